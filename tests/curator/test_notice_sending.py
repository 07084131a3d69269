"""How notices leave: by web and by mail, again and again, held up by nobody."""

import asyncio
import json
import ssl
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.conftest import request_with
from tests.curator.made_records import decide
from tests.curator.notice_servers import EndlessServer, MailServer, WebServer, serving
from tests.curator.told_people import (  # noqa: F401 - fixtures
    AGAIN,
    FACTS,
    ID,
    ISSUED,
    NOTICE,
    OTHER,
    PEM,
    hold,
    settings,
    source,
    store_fixture,
    to,
)
from tests.worlds.states import curator_state
from veiltab.common.errors import InvalidInputError, UnavailableError
from veiltab.common.release.state import ReleaseState
from veiltab.curator.notify import channels as channels_module
from veiltab.curator.notify.channels import send
from veiltab.curator.notify.notifier import Notifier
from veiltab.curator.notify.outbox import NOT_NEEDED, Outbox
from veiltab.curator.progress.progress import HELD
from veiltab.curator.records.store import CuratorStore
from veiltab.deploy.cli import veiltab


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


def test_only_a_good_answer_counts_and_no_redirection_is_followed(tmp_path: Path) -> None:
    server = WebServer(status=301)
    with serving(server), pytest.raises(UnavailableError, match="it answers 301"):
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


@pytest.mark.long
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


def test_a_request_that_was_decided_meanwhile_is_not_told_to_wait(store: CuratorStore, tmp_path: Path) -> None:
    server, outbox = WebServer(), Outbox(store.connection)
    urls = to(tmp_path, webhook=f"json://127.0.0.1:{server.port}")
    wanted = settings(tmp_path, urls + 'events = ["held", "refused"]\n')
    notifier = Notifier(source(store, wanted), outbox)
    outbox.enabled_since(1)
    store.releases.add(request_with(release_id=OTHER), 1)
    for release_id in (ID, OTHER):
        decide(store, HELD, release_id=release_id)
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


async def test_a_channel_that_hangs_holds_up_nobody() -> None:
    server = EndlessServer(b"", b"HTTP/1.1 100 Continue\r\n\r\n", pause=0.01)
    with serving(server):
        hanging = asyncio.create_task(send("one", f"json://127.0.0.1:{server.port}", None, "", "x"))
        await asyncio.sleep(0)
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging


async def test_a_notifier_outlives_a_failure(
    store: CuratorStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veiltab.curator.notify.notifier._LOOK_AGAIN_SECONDS", 0.001)
    notifier = Notifier(source(store, settings(tmp_path, to(tmp_path, one="jsons://a.org"))), Outbox(store.connection))
    looks: asyncio.Queue[None] = asyncio.Queue()

    async def fail(_channel: str) -> None:
        looks.put_nowait(None)
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(notifier, "send_due", fail)
    task = asyncio.create_task(notifier.run())
    for _ in range(3):
        await looks.get()
    task.cancel()
    assert looks.qsize() == 0


def test_notices_are_tried_and_listed(tmp_path: Path, study_bytes: bytes) -> None:
    server = WebServer()
    (tmp_path / "study.toml").write_bytes(study_bytes)
    policy = tmp_path / "policy.toml"
    store = curator_state(tmp_path / "state")
    at = [str(tmp_path / "study.toml"), "--state", str(tmp_path / "state")]

    def run(*options: str) -> Any:  # noqa: ANN401 - a result
        return CliRunner().invoke(veiltab, ["curator", "notify", *at, "--policy", str(policy), *options])

    policy.write_text("")
    assert isinstance(run("--test").exception, InvalidInputError)
    policy.write_text(to(tmp_path, webhook=f"json://127.0.0.1:{server.port}", away="json://127.0.0.1:1"))
    with serving(server):
        result = run("--test", "--json")
    assert result.exit_code == 4
    assert json.loads(result.output) == {
        "channels": {"webhook": {"problem": ""}, "away": {"problem": "it cannot be reached, or refuses"}}
    }
    assert json.loads(server.posts[0][1])["message"].startswith("event: test")
    assert run().output == "There are no notices.\n"
    outbox = Outbox(store.connection)
    outbox.add(NOTICE, ["email", "webhook"], 100)
    outbox.set_sent(outbox.due("webhook", 100)[0], 101)
    outbox.set_failed(outbox.due("email", 100)[0], "the mail server answers 451", 100)
    first, second = run().output.splitlines()
    assert first.endswith("email waits until 1970-01-01T00:02:10+00:00 after 1 attempts: the mail server answers 451")
    assert second.endswith(f"it waits  {ID}  webhook sent 1970-01-01T00:01:41+00:00")
    outbox.set_failed(outbox.due("email", 130)[0], "still", 10**9)
    plain = json.loads(run("--json").output)["deliveries"]
    assert [(one["channel"], one["due"], one["attempts"]) for one in plain] == [
        ("email", None, 2),
        ("webhook", None, 0),
    ]
    assert "given up after 2 attempts: still" in run().output
    outbox.add(AGAIN, ["webhook"], 100)
    outbox.set_dropped(outbox.due("webhook", 100)[0])
    assert run().output.endswith("webhook dropped: not needed any more\n")
    store.close()
