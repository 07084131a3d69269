"""Notices to the people in charge: when there is one, that it says little, and how it leaves."""

import asyncio
import json
import ssl
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.serialization import Encoding

from tests.conftest import reserve
from tests.curator.notice_servers import EndlessServer, MailServer, WebServer, serving
from veiltab.common.errors import InvalidInputError, UnavailableError
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.parties.identity import Identity, Party, Role
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.cli import curator
from veiltab.curator.notify import channels as channels_module
from veiltab.curator.notify.channels import channels_of, send
from veiltab.curator.notify.events import EventSource
from veiltab.curator.notify.notifier import Notifier
from veiltab.curator.notify.outbox import NOT_NEEDED, Notice, Outbox, next_attempt
from veiltab.curator.officer.notify_settings import Kind, NotifySettings
from veiltab.curator.officer.policy import load_policy
from veiltab.curator.progress.progress import HELD
from veiltab.curator.progress.release_record import GrantDecision
from veiltab.curator.records.store import CuratorStore
from veiltab.deploy.pki.authority import names_of, new_authority

Make = Callable[..., Any]
ID, OTHER = "0" * 31 + "1", "1" * 32
DAY = 86_400
NOW = datetime.now(UTC)
ALICE = Party(study="survey", role=Role.CURATOR, name="alice")
AUTHORITY = new_authority("survey", since=NOW - timedelta(days=1), until=NOW + timedelta(days=1000))
PEM = AUTHORITY.certificate.public_bytes(Encoding.PEM)
ISSUED = AUTHORITY.issue("x", names_of(ALICE, "localhost:1"), NOW - timedelta(hours=1), NOW + timedelta(days=90))
IDENTITY = Identity(certificate=ISSUED.certificate_pem, key=ISSUED.key_pem, authority=PEM)
WANTED = '[notify]\nchannels = "channels.toml"\n'
FACTS = {"event": "held", "study": "survey", "curator": "alice", "release": ID, "text": "it waits", "look": "veiltab"}
NOTICE = Notice(kind=Kind.HELD, subject=ID, facts=FACTS)
AGAIN = Notice(kind=Kind.REFUSED, subject=OTHER, facts=FACTS)


def settings(tmp_path: Path, text: str) -> NotifySettings:
    (tmp_path / "policy.toml").write_text(text)
    found = load_policy(tmp_path / "policy.toml", researchers=[], attributes=[]).notify
    assert found is not None
    return found


def to(tmp_path: Path, **urls: str) -> str:
    """Write a file of channels, and return the table that names it."""
    path = tmp_path / "channels.toml"
    path.touch(0o600)
    path.write_text("".join(f"{name} = {json.dumps(url)}\n" for name, url in urls.items()))
    return f'[notify]\nchannels = "{path}"\n'


# The table of the policy file, and the file of channels


def test_a_policy_says_who_is_told(tmp_path: Path) -> None:
    found = settings(tmp_path, WANTED)
    assert (found.channels, found.authority) == (Path("channels.toml"), None)
    assert (found.budget, found.certificate_days) == (Decimal("0.8"), 30)
    assert found.events == set(Kind) - {Kind.TEST}
    found = settings(tmp_path, WANTED + 'events = ["held"]\nbudget = 0.5\ncertificate_days = 7\nca = "ca.pem"\n')
    assert (set(found.events), found.budget, found.certificate_days) == ({Kind.HELD}, Decimal("0.5"), 7)
    assert found.authority == Path("ca.pem")
    assert load_policy(None, researchers=[], attributes=[]).notify is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[notify]\nbudget = 0.5", "channels is not there"),
        (WANTED + "chanels = 'x'", "unknown key 'chanels'. Did you mean 'channels'"),
        ("notify = 5", "another kind"),
        (WANTED + "events = ['helt']", "unknown events: helt"),
        (WANTED + "events = ['test']", "unknown events: test"),
        (WANTED + "budget = 0", "a part of the budget"),
        (WANTED + "budget = 1.1", "a part of the budget"),
        (WANTED + "certificate_days = 0", "whole number from 1 to 3650"),
    ],
)
def test_a_malformed_table_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        settings(tmp_path, text)


@pytest.mark.parametrize(
    "url",
    [
        "mailtos://u:s3cret@b.org/a@b.org?from=v@b.org&mode=ssl&smtp=mail.b.org",
        "jsons://u:s3cret@a.org/x?+Authorization=Bearer",
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#c",
        "workflows://h.example.org:443/workflow/signature",
        "mmosts://h.org/3ccdd113474722377935511fc85d3dd4",
        "ntfys://ntfy.example.org/topic",
    ],
)
def test_notices_go_by_these_services(tmp_path: Path, url: str) -> None:
    assert channels_of(settings(tmp_path, to(tmp_path, one=url))) == {"one": url}


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        *((url, "another scheme") for url in ("https://s3cret.org", " jsons://s3cret.org", "file:///s3cret", "s3cret")),
        *((url, "another scheme") for url in ("syslog://s3cret", "dbus://", "macosx://", "JSONS://s3cret.org")),
        *(
            (f"jsons://s3cret.org/x{more}", "other parameters")
            for more in (
                "?verify=no",
                "?redirect=yes",
                "?to=a;verify=no",
                "?a?verify=no",
                "?%76erify=no",
                "?:x=y",
                "?-x=y",
            )
        ),
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ?template=/etc/s3cret", "other parameters"),
        ("mailtos://b.org/a@b.org?from=v@b.org&pgppub=/etc/s3cret", "other parameters"),
        *((url, "without TLS to another machine") for url in ("json://s3cret.org", "json://localhost.s3cret.org")),
        ("mailto://localhost/a@b.org?from=v@b.org&smtp=s3cret.org", "without TLS to another machine"),
        ("mailto://u:s3cret@gmail.com", "without TLS to another machine"),
        ("mailtos://u:s3cret@b.org?mode=insecure", "without TLS to another machine"),
        *((url, "malformed") for url in ("mailtos://s3cret.org", "jsons://", "mailtos://u:s3cret@b.org?mode=none")),
    ],
)
def test_another_url_is_refused_and_never_shown(
    tmp_path: Path, url: str, problem: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InvalidInputError, match=f"channels.toml: one: .*{problem}") as caught:
        channels_of(settings(tmp_path, to(tmp_path, one=url)))
    assert "s3cret" not in f"{caught.value}{caught.value.remedy}{caplog.text}{capfd.readouterr()}"


@pytest.mark.parametrize(
    "text", ["", "one = 5", "'mailtos://u:s3cret@b.org' = ''", "[one]\nurl = 's3cret'", "one = 's3cret"]
)
def test_a_malformed_file_of_channels_is_refused(tmp_path: Path, text: str) -> None:
    wanted = settings(tmp_path, to(tmp_path))
    wanted.channels.write_text(text)
    with pytest.raises(InvalidInputError) as caught:
        channels_of(wanted)
    assert "s3cret" not in f"{caught.value}{caught.value.remedy}"


def test_a_file_of_channels_that_others_may_read_is_refused(tmp_path: Path) -> None:
    wanted = settings(tmp_path, to(tmp_path, one="jsons://a.org"))
    wanted.channels.chmod(0o640)
    with pytest.raises(InvalidInputError, match="others than the owner"):
        channels_of(wanted)


# What people are told


@pytest.fixture
def store(tmp_path: Path, make_request: Make) -> Iterator[CuratorStore]:
    store = CuratorStore(tmp_path / "curator.sqlite")
    store.releases.add(make_request(purpose="a secret plague"), 1)
    yield store
    store.close()


def source(store: CuratorStore, wanted: NotifySettings) -> EventSource:
    ledger = Ledger(store.connection, Decimal(1))
    return EventSource("survey", IDENTITY, store, ledger, wanted, lambda: {ID, OTHER})


def told(store: CuratorStore, wanted: NotifySettings, now: float = 0) -> list[tuple[str, str]]:
    moment = int(now or time.time())
    return [(one.kind.value, one.subject) for one in source(store, wanted).events(moment, 1_000)]


def hold(store: CuratorStore) -> None:
    store.decisions.decide(ID, (GrantDecision(attribute="sex", verdict=HELD, expires=None, decided_by="policy"),))


def test_people_are_told_what_waits_and_what_was_refused(
    store: CuratorStore, make_request: Make, tmp_path: Path
) -> None:
    wanted = settings(tmp_path, WANTED)
    assert told(store, wanted) == []
    hold(store)
    assert told(store, wanted) == [("held", ID)]
    assert told(store, wanted, now=2_000_000_001) == [
        ("certificate", f"{n:x}") for n in serials()
    ]  # after the deadline
    store.releases.add(make_request(release_id=OTHER), 1)
    store.releases.set_state(OTHER, ReleaseState.DENIED, "why")
    assert told(store, wanted) == [("held", ID), ("refused", OTHER)]
    store.connection.execute("UPDATE release SET since = 999 WHERE id = ?", [OTHER])  # before notices were wanted
    assert told(store, wanted) == [("held", ID)]
    assert told(store, settings(tmp_path, WANTED + 'events = ["budget"]')) == []


def serials() -> list[int]:
    own = IDENTITY.stated.serial
    return [own, AUTHORITY.certificate.serial_number]


@pytest.mark.parametrize(("days", "number"), [(59, 0), (61, 1), (971, 2)])
def test_people_are_told_that_a_certificate_ends(store: CuratorStore, tmp_path: Path, days: int, number: int) -> None:
    found = told(store, settings(tmp_path, WANTED), now=NOW.timestamp() + days * DAY)
    assert found == [("certificate", f"{serial:x}") for serial in serials()[:number]]


def test_people_are_told_once_that_the_budget_is_nearly_spent(
    store: CuratorStore, make_spec: Make, tmp_path: Path
) -> None:
    ledger = Ledger(store.connection, Decimal(1))
    reserve(ledger, make_spec(epsilon=Decimal("0.1")))
    ledger.charge(ID)
    assert told(store, settings(tmp_path, WANTED + "budget = 0.11")) == []
    assert told(store, settings(tmp_path, WANTED + "budget = 0.10")) == [("budget", "0.1 of 1")]


def test_a_notice_has_no_purpose_and_no_figures(store: CuratorStore, tmp_path: Path) -> None:
    hold(store)
    (event,) = source(store, settings(tmp_path, WANTED)).events(int(time.time()), 0)
    assert event.facts == {
        "event": "held",
        "study": "survey",
        "curator": "alice",
        "release": ID,
        "researcher": "rosa",
        "text": "a request waits for a person",
        "look": "veiltab curator requests study.toml --name alice --state STATE",
    }


# The outbox


def test_an_event_makes_one_notice_also_after_a_restart(tmp_path: Path) -> None:
    for _ in range(2):
        store = CuratorStore(tmp_path / "curator.sqlite")
        outbox = Outbox(store.connection)
        assert outbox.enabled_since(int(time.time())) <= outbox.enabled_since(2_000_000_000) < 2_000_000_000
        outbox.add(NOTICE, ["webhook", "email"], 100)
        outbox.add(AGAIN, ["webhook"], 100)
        assert [one.notice.kind for one in outbox.due("webhook", 100)] == [Kind.HELD, Kind.REFUSED]
        assert not outbox.due("webhook", 99)
        store.close()


def test_a_notice_is_due_until_it_is_sent(store: CuratorStore) -> None:
    outbox = Outbox(store.connection)
    outbox.add(NOTICE, ["webhook", "email"], 100)
    (first,) = outbox.due("webhook", 100)
    outbox.set_failed(first, "it answers 500", 100)
    assert not outbox.due("webhook", 129)
    (again,) = outbox.due("webhook", 130)
    assert (again.attempts, again.problem, again.notice.facts) == (1, "it answers 500", FACTS)
    outbox.set_sent(again, 131)
    assert not outbox.due("webhook", 10**9)
    assert len(outbox.due("email", 100)) == 1
    assert [(one.channel, one.sent, one.problem) for one in outbox.latest(5)] == [
        ("webhook", 131, ""),
        ("email", None, ""),
    ]


def test_the_waits_grow_and_end_after_a_week() -> None:
    waits = [(next_attempt(attempts, 0, 0) or 0) for attempts in range(7)]
    assert waits == [30, 120, 600, 3600, 21_600, 21_600, 21_600]
    assert next_attempt(9, 0, 7 * DAY - 21_600) == 7 * DAY
    assert next_attempt(9, 0, 7 * DAY - 21_599) is None


# The channels


def server_context(tmp_path: Path) -> ssl.SSLContext:
    for name, content in (("s.pem", ISSUED.certificate_pem), ("s.key", ISSUED.key_pem), ("ca.pem", PEM)):
        (tmp_path / name).write_bytes(content)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "s.pem", tmp_path / "s.key")
    return context


def sent(tmp_path: Path, url: str, more: str = "") -> None:
    wanted = settings(tmp_path, to(tmp_path, one=url) + more)
    asyncio.run(send("one", url, wanted.authority, NOTICE.title, NOTICE.body(7)))


def test_a_notice_is_posted_over_tls_to_a_server_that_is_trusted(tmp_path: Path) -> None:
    server = WebServer(server_context(tmp_path))
    with serving(server):
        url = f"jsons://localhost:{server.port}/hook"
        sent(tmp_path, url, f'ca = "{tmp_path / "ca.pem"}"\n')
        ((path, body),) = server.posts
        posted = json.loads(body)
        assert (path, posted["title"]) == ("/hook", "veiltab: curator alice, study survey: it waits")
        assert posted["message"].splitlines() == [*(f"{name}: {value}" for name, value in FACTS.items()), "number: 7"]
        with pytest.raises(UnavailableError, match="cannot be reached"):
            sent(tmp_path, url)
        assert len(server.posts) == 1


@pytest.mark.parametrize("status", [301, 404, 500])
def test_only_a_good_answer_counts_and_no_redirection_is_followed(tmp_path: Path, status: int) -> None:
    server = WebServer(status=status)
    with serving(server), pytest.raises(UnavailableError, match=f"it answers {status}"):
        sent(tmp_path, f"json://127.0.0.1:{server.port}")
    assert len(server.posts) == 1


@pytest.mark.parametrize("mode", ["starttls", "ssl"])
def test_a_notice_is_mailed_over_tls(tmp_path: Path, mode: str) -> None:
    server = MailServer(server_context(tmp_path), is_tls_at_once=mode == "ssl")
    url = f"mailtos://u:s3cret@localhost:{server.port}/a@b.org/c@d.org?from=v@b.org&mode={mode}"
    with serving(server):
        sent(tmp_path, url, f'ca = "{tmp_path / "ca.pem"}"\n')
        with pytest.raises(UnavailableError, match="cannot be reached"):
            sent(tmp_path, url)
    assert [(recipients, is_tls) for recipients, _, is_tls in server.mails] == [
        (["a@b.org"], True),
        (["c@d.org"], True),
    ]
    assert server.logins == ["\0u\0s3cret"]
    assert "Subject: veiltab: curator alice, study survey: it waits" in server.mails[0][1]
    assert f"release: {ID}" in server.mails[0][1]


def test_a_mail_server_without_tls_is_told_nothing(tmp_path: Path) -> None:
    server = MailServer()
    with serving(server):
        with pytest.raises(UnavailableError, match="cannot be reached"):
            sent(tmp_path, f"mailtos://127.0.0.1:{server.port}/a@b.org?from=v@b.org")
        assert not server.mails
        sent(tmp_path, f"mailto://127.0.0.1:{server.port}/a@b.org?from=v@b.org")
        assert [is_tls for _, _, is_tls in server.mails] == [False]


@pytest.mark.parametrize(
    ("scheme", "first", "then"),
    [
        ("mailto", b"220 ready\r\n", (b"250-" + b"A" * 8_000 + b"\r\n") * 100),
        ("json", b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        ("json", b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 100_000),
    ],
)
def test_a_server_that_answers_without_end_is_one_failed_attempt(  # noqa: PLR0913, PLR0917 - a server and what it says
    store: CuratorStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, first: bytes, then: bytes
) -> None:
    monkeypatch.setattr(channels_module, "SECONDS", 3)
    server, outbox = EndlessServer(first, then, pause=0.001), Outbox(store.connection)
    url = f"{scheme}://127.0.0.1:{server.port}/a@b.org" + ("?from=v@b.org" if scheme == "mailto" else "")
    notifier = Notifier(source(store, settings(tmp_path, to(tmp_path, one=url))), outbox)
    outbox.add(AGAIN, ["one"], int(time.time()))
    with serving(server):
        asyncio.run(notifier.send_due("one"))
    assert [(one.attempts, bool(one.problem)) for one in outbox.latest(2)] == [(1, True)]
    assert not outbox.due("one", int(time.time()))


def test_a_sender_that_is_killed_is_one_failed_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels_module, "_SENDER", ("/bin/sh", "-c", "kill -9 $$"))
    with pytest.raises(UnavailableError, match="does not take the notice"):
        sent(tmp_path, "jsons://a.org")


# The notifier


def test_what_happens_is_told_once_by_each_channel(store: CuratorStore, tmp_path: Path) -> None:
    web, mail = WebServer(), MailServer(refuses="451 later")
    mailed = f"mailto://127.0.0.1:{mail.port}/a@b.org?from=v@b.org"
    wanted = settings(tmp_path, to(tmp_path, webhook=f"json://127.0.0.1:{web.port}", email=mailed))
    outbox = Outbox(store.connection)

    def look() -> None:
        notifier = Notifier(source(store, wanted), outbox)
        notifier.note_events()
        for channel in ("email", "webhook"):
            asyncio.run(notifier.send_due(channel))

    with serving(web), serving(mail):
        look()
        hold(store)
        for _ in range(3):
            look()
        assert [f"release: {ID}" in json.loads(body)["message"] for _, body in web.posts] == [True]
        assert not mail.mails
        (waiting,) = (one for one in outbox.latest(9) if one.sent is None)
        assert (waiting.channel, waiting.attempts, bool(waiting.problem)) == ("email", 1, True)
        mail.refuses = ""
        store.connection.execute("UPDATE delivery SET due = 0 WHERE sent IS NULL")
        for _ in range(2):
            look()
        assert (len(mail.mails), len(web.posts)) == (1, 1)


def test_a_request_that_was_decided_meanwhile_is_not_told_to_wait(
    store: CuratorStore, make_request: Make, tmp_path: Path
) -> None:
    server, outbox = WebServer(), Outbox(store.connection)
    urls = to(tmp_path, webhook=f"json://127.0.0.1:{server.port}")
    wanted = settings(tmp_path, urls + 'events = ["held", "refused"]\n')
    notifier = Notifier(source(store, wanted), outbox)
    outbox.enabled_since(1)
    store.releases.add(make_request(release_id=OTHER), 1)
    for release_id in (ID, OTHER):
        store.decisions.decide(
            release_id, (GrantDecision(attribute="sex", verdict=HELD, expires=None, decided_by="policy"),)
        )
    notifier.note_events()
    store.releases.set_state(ID, ReleaseState.DENIED, "why")
    notifier.note_events()
    with serving(server):
        asyncio.run(notifier.send_due("webhook"))
    posted = [
        dict(line.split(": ", 1) for line in json.loads(body)["message"].splitlines()) for _, body in server.posts
    ]
    assert [(one["event"], one["release"]) for one in posted] == [("held", OTHER), ("refused", ID)]
    dropped, *others = outbox.latest(3)
    assert (dropped.problem, dropped.sent, dropped.due, dropped.attempts) == (NOT_NEEDED, None, None, 0)
    assert all(one.sent for one in others)
    assert not outbox.due("webhook", 10**10)


def test_a_channel_that_hangs_holds_up_nobody() -> None:
    server = EndlessServer(b"", b"HTTP/1.1 100 Continue\r\n\r\n", pause=0.01)

    async def both() -> str:
        hanging = asyncio.create_task(send("one", f"json://127.0.0.1:{server.port}", None, "", "x"))
        await asyncio.sleep(0)
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        return "done"

    with serving(server):
        assert asyncio.run(both()) == "done"


def test_a_notifier_goes_on_after_a_failure(
    store: CuratorStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veiltab.curator.notify.notifier._LOOK_AGAIN_SECONDS", 0.001)
    notifier = Notifier(source(store, settings(tmp_path, to(tmp_path, one="jsons://a.org"))), Outbox(store.connection))

    async def watch() -> int:
        looks: asyncio.Queue[None] = asyncio.Queue()

        async def fail(_channel: str) -> None:
            looks.put_nowait(None)
            raise OSError(28, "no space left on device")

        monkeypatch.setattr(notifier, "send_due", fail)
        task = asyncio.create_task(notifier.run())
        for _ in range(3):
            await looks.get()
        task.cancel()
        return looks.qsize()

    assert asyncio.run(watch()) == 0


# The commands


def test_notices_are_tried_and_listed(tmp_path: Path, study_bytes: bytes) -> None:
    server = WebServer()
    (tmp_path / "study.toml").write_bytes(study_bytes)
    policy = tmp_path / "policy.toml"
    store = CuratorStore(tmp_path / "state" / "curator.sqlite")
    at = [str(tmp_path / "study.toml"), "--name", "alice", "--state", str(tmp_path / "state"), "--policy", str(policy)]

    def run(command: str, *options: str) -> Any:  # noqa: ANN401 - a result
        return CliRunner().invoke(curator, ["notify", command, *at, *options])

    policy.write_text("")
    assert isinstance(run("test").exception, InvalidInputError)
    policy.write_text(to(tmp_path, webhook=f"json://127.0.0.1:{server.port}", away="json://127.0.0.1:1"))
    with serving(server):
        result = run("test", "--json")
    assert result.exit_code == 4
    assert json.loads(result.output) == {
        "channels": {"webhook": {"problem": ""}, "away": {"problem": "it cannot be reached, or refuses"}}
    }
    assert json.loads(server.posts[0][1])["message"].startswith("event: test")
    assert run("list").output == "There are no notices.\n"
    outbox = Outbox(store.connection)
    outbox.add(NOTICE, ["email", "webhook"], 100)
    outbox.set_sent(outbox.due("webhook", 100)[0], 101)
    outbox.set_failed(outbox.due("email", 100)[0], "the mail server answers 451", 100)
    first, second = run("list").output.splitlines()
    assert first.endswith("email waits until 1970-01-01T00:02:10+00:00 after 1 attempts: the mail server answers 451")
    assert second.endswith(f"it waits  {ID}  webhook sent 1970-01-01T00:01:41+00:00")
    outbox.set_failed(outbox.due("email", 130)[0], "still", 10**9)
    plain = json.loads(run("list", "--json").output)["deliveries"]
    assert [(one["channel"], one["due"], one["attempts"]) for one in plain] == [
        ("email", None, 2),
        ("webhook", None, 0),
    ]
    assert "given up after 2 attempts: still" in run("list").output
    outbox.add(AGAIN, ["webhook"], 100)
    outbox.set_dropped(outbox.due("webhook", 100)[0])
    assert run("list").output.endswith("webhook dropped: not needed any more\n")
    store.close()
