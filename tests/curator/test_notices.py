"""Notices to the people in charge: when there is one, that it says little, and how it leaves."""

import asyncio
import json
import os
import resource
import ssl
import sys
import threading
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
from veiltab.curator.notify.channels import channels_of
from veiltab.curator.notify.events import EventSource
from veiltab.curator.notify.notifier import Notifier, in_a_thread
from veiltab.curator.notify.outbox import NOT_NEEDED, Notice, Outbox, next_attempt
from veiltab.curator.notify.sending import message_of
from veiltab.curator.officer.notify_settings import Kind, NotifySettings, Security
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
WEBHOOK = '[notify]\nwebhook = "https://example.org/x"\n'
MAIL = '[notify]\nemail = ["a@b.org"]\nsmtp = "mail.b.org:587"\nsmtp_from = "v@b.org"\n'
FACTS = {"event": "held", "study": "survey", "curator": "alice", "release": ID, "text": "it waits", "look": "veiltab"}
NOTICE = Notice(number=7, kind=Kind.HELD, created=1_900_000_000, facts=FACTS)


def settings(tmp_path: Path, text: str) -> NotifySettings:
    (tmp_path / "policy.toml").write_text(text)
    found = load_policy(tmp_path / "policy.toml", researchers=[], attributes=[]).notify
    assert found is not None
    return found


# The table of the policy file


def test_a_policy_says_who_is_told(tmp_path: Path) -> None:
    found = settings(tmp_path, WEBHOOK)
    assert (found.webhook, found.command, found.mail) == ("https://example.org/x", (), None)
    assert (found.budget, found.certificate_days) == (Decimal("0.8"), 30)
    assert found.events == set(Kind) - {Kind.TEST}
    whole = (
        MAIL + 'events = ["held"]\nbudget = 0.5\ncertificate_days = 7\nca = "ca.pem"\ncommand = ["/bin/true", "-x"]\n'
    )
    found = settings(tmp_path, whole + 'smtp_user = "u"\nsmtp_password_file = "p"\nsmtp_security = "tls"\n')
    assert (set(found.events), found.budget, found.certificate_days) == ({Kind.HELD}, Decimal("0.5"), 7)
    assert found.mail is not None
    assert (found.mail.host, found.mail.port, found.mail.security) == ("mail.b.org", 587, Security.TLS)
    assert (found.mail.user, found.mail.password_file, found.authority) == ("u", Path("p"), Path("ca.pem"))
    assert list(channels_of(found)) == ["command", "email"]
    assert load_policy(None, researchers=[], attributes=[]).notify is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[notify]\nbudget = 0.5", "nobody is told"),
        ("[notify]\nwebhok = 'https://a.org'", "unknown key 'webhok'. Did you mean 'webhook'"),
        ("notify = 5", "another kind"),
        (WEBHOOK + "events = ['helt']", "unknown events: helt"),
        (WEBHOOK + "events = ['test']", "unknown events: test"),
        (WEBHOOK + "budget = 0", "a part of the budget"),
        (WEBHOOK + "budget = 1.1", "a part of the budget"),
        (WEBHOOK + "certificate_days = 0", "whole number from 1 to 3650"),
        (WEBHOOK + "command = 'x'", "another kind"),
        *(
            (f"[notify]\nwebhook = '{url}'", "must be an https:// URL")
            for url in (
                *("http://example.org", "ftp://a.org", "https://", "https://u:p@a.org", "https://a.org/ x", "a.org"),
                "https://a.org:0/",
            )
        ),
        ("[notify]\nwebhook = 'https://a.org:x'", "no URL"),
        ("[notify]\nemail = ['a@b.org']", "smtp must be HOST:PORT"),
        ("[notify]\nsmtp = 'a:25'\nsmtp_from = 'v@b.org'", "must be addresses"),
        (MAIL.replace("v@b.org", ""), "must be addresses"),
        (MAIL.replace("a@b.org", r"a@b.org\nBcc: c@d.org"), "must be addresses"),
        (MAIL.replace("a@b.org", "a@b.org, c@d.org"), "must be addresses"),
        (MAIL.replace(":587", ""), "smtp must be HOST:PORT"),
        (MAIL.replace(":587", ":70000"), "smtp must be HOST:PORT"),
        (MAIL + "smtp_security = 'ssl'", 'must be "starttls", "tls" or "none"'),
        (MAIL + "smtp_security = 'none'", "none to another machine"),
        (MAIL + "smtp_user = 'u'", "go together"),
        (MAIL + "smtp_password_file = 'p'", "go together"),
    ],
)
def test_a_malformed_table_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        settings(tmp_path, text)


# What people are told


@pytest.fixture
def store(tmp_path: Path, make_request: Make) -> Iterator[CuratorStore]:
    store = CuratorStore(tmp_path / "curator.sqlite")
    store.releases.add(make_request(purpose="a secret plague"), 1)
    yield store
    store.close()


def source(store: CuratorStore, wanted: NotifySettings) -> EventSource:
    ledger = Ledger(store.connection, Decimal(1))
    return EventSource(
        study="survey",
        name="alice",
        identity=IDENTITY,
        store=store,
        ledger=ledger,
        settings=wanted,
        held=lambda: {ID, OTHER},
    )


def told(store: CuratorStore, wanted: NotifySettings, now: float = 0) -> list[tuple[str, str]]:
    moment = int(now or time.time())
    return [(one.kind.value, one.subject) for one in source(store, wanted).events(moment, 1_000)]


def hold(store: CuratorStore) -> None:
    store.decisions.decide(ID, (GrantDecision(attribute="sex", verdict=HELD, expires=None, decided_by="policy"),))


def test_people_are_told_what_waits_and_what_was_refused(
    store: CuratorStore, make_request: Make, tmp_path: Path
) -> None:
    wanted = settings(tmp_path, WEBHOOK)
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
    assert told(store, settings(tmp_path, WEBHOOK + 'events = ["budget"]')) == []


def serials() -> list[int]:
    own = IDENTITY.stated.serial
    return [own, AUTHORITY.certificate.serial_number]


@pytest.mark.parametrize(("days", "number"), [(59, 0), (61, 1), (971, 2)])
def test_people_are_told_that_a_certificate_ends(store: CuratorStore, tmp_path: Path, days: int, number: int) -> None:
    found = told(store, settings(tmp_path, WEBHOOK), now=NOW.timestamp() + days * DAY)
    assert found == [("certificate", f"{serial:x}") for serial in serials()[:number]]


def test_people_are_told_once_that_the_budget_is_nearly_spent(
    store: CuratorStore, make_spec: Make, tmp_path: Path
) -> None:
    ledger = Ledger(store.connection, Decimal(1))
    reserve(ledger, make_spec(epsilon=Decimal("0.1")))
    ledger.charge(ID)
    assert told(store, settings(tmp_path, WEBHOOK + "budget = 0.11")) == []
    assert told(store, settings(tmp_path, WEBHOOK + "budget = 0.10")) == [("budget", "0.1 of 1")]


def test_a_notice_has_no_purpose_and_no_figures(store: CuratorStore, tmp_path: Path) -> None:
    hold(store)
    (event,) = source(store, settings(tmp_path, WEBHOOK)).events(int(time.time()), 0)
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
        outbox.add(Kind.HELD, ID, FACTS, ["webhook", "email"], 100)
        outbox.add(Kind.REFUSED, ID, FACTS, ["webhook"], 100)
        assert [one.notice.kind for one in outbox.due("webhook", 100)] == [Kind.HELD, Kind.REFUSED]
        assert not outbox.due("webhook", 99)
        store.close()


def test_a_notice_is_due_until_it_is_sent(store: CuratorStore) -> None:
    outbox = Outbox(store.connection)
    outbox.add(Kind.HELD, ID, FACTS, ["webhook", "email"], 100)
    (first,) = outbox.due("webhook", 100)
    outbox.set_failed(first, "it answers 500", 100)
    assert not outbox.due("webhook", 129)
    (again,) = outbox.due("webhook", 130)
    assert (again.attempts, again.problem, again.notice.facts) == (1, "it answers 500", FACTS)
    outbox.set_sent(again, 131)
    assert not outbox.due("webhook", 10**9)
    assert len(outbox.due("email", 100)) == 1
    assert [(one.channel, one.sent, one.problem) for one in outbox.latest(5)] == [
        ("email", None, ""),
        ("webhook", 131, ""),
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


def send(tmp_path: Path, text: str) -> None:
    (channel,) = channels_of(settings(tmp_path, text)).values()
    channel(NOTICE)


def test_a_notice_is_posted_over_tls_to_a_server_that_is_trusted(tmp_path: Path) -> None:
    server = WebServer(server_context(tmp_path))
    with serving(server):
        url = f'[notify]\nwebhook = "https://localhost:{server.port}/hook?a=b"\n'
        send(tmp_path, f'{url}ca = "{tmp_path / "ca.pem"}"\n')
        ((path, body),) = server.posts
        assert (path, json.loads(body)) == ("/hook?a=b", {"number": 7, **FACTS})
        with pytest.raises(UnavailableError, match="SSLCertVerificationError"):
            send(tmp_path, url)
        assert len(server.posts) == 1


@pytest.mark.parametrize("status", [301, 404, 500])
def test_only_a_good_answer_counts_and_no_redirection_is_followed(tmp_path: Path, status: int) -> None:
    server = WebServer(status=status)
    with serving(server), pytest.raises(UnavailableError, match=f"it answers {status}"):
        send(tmp_path, f'[notify]\nwebhook = "http://127.0.0.1:{server.port}"\n')
    assert [path for path, _ in server.posts] == ["/"]


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_notice_is_mailed_over_tls(tmp_path: Path, security: str) -> None:
    server = MailServer(server_context(tmp_path), is_tls_at_once=security == "tls")
    (tmp_path / "password").write_text("s3cret\n")
    text = (
        f'[notify]\nemail = ["a@b.org", "c@d.org"]\nsmtp = "localhost:{server.port}"\nsmtp_from = "v@b.org"\n'
        f'smtp_security = "{security}"\nsmtp_user = "u"\nsmtp_password_file = "{tmp_path / "password"}"\n'
    )
    with serving(server):
        send(tmp_path, f'{text}ca = "{tmp_path / "ca.pem"}"\n')
        ((recipients, mail, is_tls),) = server.mails
        with pytest.raises(UnavailableError, match="SSLCertVerificationError"):
            send(tmp_path, text)
    assert (recipients, is_tls, server.logins) == (["a@b.org", "c@d.org"], True, ["\0u\0s3cret"])
    assert "Subject: veiltab: curator alice, study survey: it waits" in mail
    assert f"release: {ID}" in mail
    assert len(server.mails) == 1


def test_a_mail_server_without_tls_is_told_nothing(tmp_path: Path) -> None:
    server = MailServer()
    text = f'[notify]\nemail = ["a@b.org"]\nsmtp = "127.0.0.1:{server.port}"\nsmtp_from = "v@b.org"\n'
    with serving(server):
        with pytest.raises(UnavailableError, match="SMTPNotSupportedError"):
            send(tmp_path, text)
        assert not server.mails
        send(tmp_path, text + 'smtp_security = "none"\n')
        assert [is_tls for _, _, is_tls in server.mails] == [False]
        server.refuses = "554 no, s3cret"
        with pytest.raises(UnavailableError, match="answers 554") as caught:
            send(tmp_path, text + 'smtp_security = "none"\n')
    assert "s3cret" not in str(caught.value)


def test_two_mails_of_one_notice_have_one_name(tmp_path: Path) -> None:
    mail = settings(tmp_path, MAIL).mail
    assert mail is not None
    assert message_of(mail, NOTICE)["Message-ID"] == "<survey.alice.held.7.1900000000@b.org>"


def test_a_command_gets_the_notice_and_no_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import sys; open(sys.argv[1], 'w').write(sys.stdin.read()); sys.exit(int(sys.argv[2]))"
    out = tmp_path / "out; touch x"

    def command(code: int) -> str:
        return f"[notify]\ncommand = {json.dumps([sys.executable, '-S', '-c', script, str(out), str(code)])}\n"

    send(tmp_path, command(0))
    assert json.loads(out.read_text()) == {"number": 7, **FACTS}
    with pytest.raises(UnavailableError, match="exit code 3"):
        send(tmp_path, command(3))
    with pytest.raises(UnavailableError, match="FileNotFoundError"):
        send(tmp_path, f'[notify]\ncommand = ["{tmp_path}/none"]\n')
    monkeypatch.setattr(channels_module, "SECONDS", 0.01)
    with pytest.raises(UnavailableError, match="TimeoutExpired"):
        send(tmp_path, f"[notify]\ncommand = {json.dumps([sys.executable, '-c', 'import time; time.sleep(60)'])}\n")


def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The shell waits for a process that holds the pipe open, until both are ended.
    os.mkfifo(tmp_path / "pipe")
    script = f"sleep 3600 > {tmp_path / 'pipe'} & wait"
    monkeypatch.setattr(channels_module, "SECONDS", 0.5)
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    with pytest.raises(UnavailableError, match="TimeoutExpired"):
        send(tmp_path, f"[notify]\ncommand = {json.dumps(['/bin/sh', '-c', script])}\n")
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_mail_server_that_answers_without_end_costs_a_bounded_process_its_memory(tmp_path: Path) -> None:
    server = EndlessServer(b"220 ready\r\n", (b"250-" + b"A" * 8_000 + b"\r\n") * 100)
    text = f'[notify]\nemail = ["a@b.org"]\nsmtp = "127.0.0.1:{server.port}"\nsmtp_from = "v@b.org"\n'
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with serving(server), pytest.raises(UnavailableError, match="MemoryError"):
        send(tmp_path, text + 'smtp_security = "none"\n')
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


@pytest.mark.parametrize(
    ("first", "then"), [(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), (b"HTTP/1.1 200 OK\r\nX: ", b"x")]
)
def test_a_web_server_that_answers_without_end_is_one_failed_attempt(
    store: CuratorStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bytes, then: bytes
) -> None:
    monkeypatch.setattr(channels_module, "SECONDS", 0.5)
    server, outbox = EndlessServer(first, then, pause=0.01), Outbox(store.connection)
    notifier = Notifier(
        source(store, settings(tmp_path, f'[notify]\nwebhook = "http://127.0.0.1:{server.port}"\n')), outbox
    )
    for subject in (ID, OTHER):
        outbox.add(Kind.REFUSED, subject, FACTS, ["webhook"], int(time.time()))
    with serving(server):
        for _ in range(2):
            asyncio.run(notifier.send_due("webhook"))
    assert [(one.attempts, "TimeoutExpired" in one.problem) for one in outbox.latest(2)] == [(1, True), (1, True)]
    assert not outbox.due("webhook", int(time.time()))


def test_a_sender_that_is_killed_is_one_failed_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels_module, "_SENDER", ("/bin/sh", "-c", "kill -9 $$"))
    with pytest.raises(UnavailableError, match="ends with exit code -9"):
        send(tmp_path, WEBHOOK)


# The notifier


def test_what_happens_is_told_once_by_each_channel(store: CuratorStore, tmp_path: Path) -> None:
    web, mail = WebServer(), MailServer(refuses="451 later")
    text = f'[notify]\nwebhook = "http://127.0.0.1:{web.port}"\nemail = ["a@b.org"]\nsmtp = "127.0.0.1:{mail.port}"\n'
    wanted = settings(tmp_path, text + 'smtp_from = "v@b.org"\nsmtp_security = "none"\n')
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
        assert [json.loads(body)["release"] for _, body in web.posts] == [ID]
        assert not mail.mails
        (waiting,) = (one for one in outbox.latest(9) if one.sent is None)
        assert (waiting.channel, waiting.attempts, waiting.problem) == (
            "email",
            1,
            "email: the mail server answers 451",
        )
        mail.refuses = ""
        store.connection.execute("UPDATE delivery SET due = 0 WHERE sent IS NULL")
        for _ in range(2):
            look()
        assert (len(mail.mails), len(web.posts)) == (1, 1)


def test_a_request_that_was_decided_meanwhile_is_not_told_to_wait(
    store: CuratorStore, make_request: Make, tmp_path: Path
) -> None:
    server, outbox = WebServer(), Outbox(store.connection)
    wanted = settings(tmp_path, f'[notify]\nwebhook = "http://127.0.0.1:{server.port}"\nevents = ["held", "refused"]\n')
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
    posted = [json.loads(body) for _, body in server.posts]
    assert [(one["event"], one["release"]) for one in posted] == [("held", OTHER), ("refused", ID)]
    dropped, *sent = outbox.latest(3)
    assert (dropped.problem, dropped.sent, dropped.due, dropped.attempts) == (NOT_NEEDED, None, None, 0)
    assert all(one.sent for one in sent)
    assert not outbox.due("webhook", 10**10)


def test_a_channel_that_hangs_holds_up_nobody() -> None:
    never = threading.Event()

    def wait() -> None:
        never.wait()

    async def both() -> str:
        hanging = asyncio.create_task(in_a_thread(wait))
        await in_a_thread(lambda: None)
        hanging.cancel()
        return "done"

    try:
        assert asyncio.run(both()) == "done"
    finally:
        never.set()


def test_a_notifier_goes_on_after_a_failure(
    store: CuratorStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veiltab.curator.notify.notifier._LOOK_AGAIN_SECONDS", 0.001)
    notifier = Notifier(source(store, settings(tmp_path, WEBHOOK)), Outbox(store.connection))

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
    policy.write_text(f'[notify]\nwebhook = "http://127.0.0.1:{server.port}"\ncommand = ["{tmp_path}/none"]\n')
    with serving(server):
        result = run("test", "--json")
    assert result.exit_code == 4
    assert json.loads(result.output) == {
        "channels": {"webhook": {"problem": ""}, "command": {"problem": "FileNotFoundError: No such file or directory"}}
    }
    assert json.loads(server.posts[0][1])["event"] == "test"
    assert run("list").output == "There are no notices.\n"
    outbox = Outbox(store.connection)
    outbox.add(Kind.HELD, ID, FACTS, ["email", "webhook"], 100)
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
    outbox.add(Kind.HELD, OTHER, FACTS, ["webhook"], 100)
    outbox.set_dropped(outbox.due("webhook", 100)[0])
    assert run("list").output.endswith("webhook dropped: not needed any more\n")
    store.close()
