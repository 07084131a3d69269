"""What a party is doing, asked from the command line over real TLS."""

import asyncio
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from tests.conftest import Ran
from tests.worlds.parties import ALICE
from veiltab.common.observe.sinks import observing
from veiltab.common.observe.span_messages import PartyStatus
from veiltab.common.observe.status import Activity, Budget, Observation
from veiltab.common.rpc.parties.identity import Party, Role, load_identity
from veiltab.common.rpc.server import PartyServer, build_server
from veiltab.common.study.file import Study
from veiltab.deploy.operate.status_cli import duration, lines, status
from veiltab.deploy.pki.certificates import init_pki

ROOT = Path(__file__).parents[2]
ID = "ab" * 16
SEEN = Observation(
    work=(
        Activity(kind="alignment", id="", about="5 common respondents", state="aligned", waiting_for="", since=0),
        Activity(
            kind="release",
            id=ID,
            about="sex at epsilon 1 for rosa",
            state="requested",
            waiting_for="curator alice: a person decides about sex",
            since=1000,
        ),
        Activity(kind="release", id=ID, about="", state="failed", waiting_for="the disk", since=0),
    ),
    counts={("release", "requested"): 1, ("release", "ready"): 0, ("release", "failed"): 2},
    queues={"releases": 1, "held requests": 1},
    budgets=(Budget(protects="respondents", epsilon=Decimal(3), left=Decimal("0.5")),),
)
FOUND = PartyStatus(party=ALICE, version="0.1.0", started=400, certificate_ends=4000 + 3 * 86_400, observation=SEEN)


def test_people_read_what_is_done_and_what_is_waited_for() -> None:
    assert lines(FOUND, 4000) == [
        "curator alice of study survey: up 1 h 0 min, veiltab 0.1.0, certificate good for 3 d 0 h",
        "  budget of respondents: epsilon 0.500000 of 3 left",
        "  to be done: releases 1, held requests 1",
        "  releases: 1 requested, 2 failed",
        "  alignment  aligned  5 common respondents",
        f"  release {ID}  requested for 50 min 0 s  sex at epsilon 1 for rosa",
        "      waits for: curator alice: a person decides about sex",
        f"  release {ID}  failed",
        "      because: the disk",
    ]


def test_an_idle_party_and_an_expired_certificate() -> None:
    idle = replace(FOUND, certificate_ends=3999, observation=Observation())
    (line,) = lines(idle, 4000)
    assert line.endswith(", certificate EXPIRED: renew it with `veiltab pki issue`")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0 s"), (0.9, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (3600, "1 h 0 min"), (200_000, "2 d 7 h")],
)
def test_a_duration_is_told_in_two_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


# A party that answers


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, study: Study, study_bytes: bytes) -> Path:
    folder = tmp_path_factory.mktemp("party")
    (folder / "study.toml").write_bytes(study_bytes)
    init_pki(study, folder / "pki")
    return folder


@pytest.fixture(scope="module")
def port(folder: Path) -> Iterator[int]:
    """A party's status service, in a loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    own = load_identity(folder / "pki" / "curator-alice", Role.CURATOR, "alice")
    rosa = Party(study=own.party.study, role=Role.RESEARCHER, name="rosa")

    async def started() -> PartyServer:
        server = build_server(own, [rosa], [registration], "localhost:0")
        await server.start()
        return server

    with observing(own, lambda: SEEN, metrics=None) as registration:
        server = asyncio.run_coroutine_threadsafe(started(), loop).result(20)
        yield server.port
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(20)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def ask(folder: Path, ran: Ran) -> Ran:
    def asked(*options: str, who: str = "curator-alice") -> tuple[int, str, str]:
        return ran(status, str(folder / "study.toml"), "--identity", str(folder / "pki" / who), *options)

    return asked


def test_a_running_party_is_asked(ask: Ran, port: int) -> None:
    code, out, err = ask("--endpoint", f"localhost:{port}")
    assert (code, err) == (0, "")
    assert out.startswith("curator alice of study survey: up ")
    assert "waits for: curator alice: a person decides about sex\n" in out
    assert "\x1b" not in out
    code, out, _ = ask("--endpoint", f"localhost:{port}", "--json")
    data = json.loads(out)
    assert (code, data["party"], data["role"], data["name"]) == (0, ALICE.uri, "curator", "alice")
    budget = {"protects": "respondents", "epsilon": 3.0, "left": 0.5, "delta": None, "left_delta": None}
    assert data["budgets"] == [budget]
    assert data["queues"] == {"releases": 1, "held requests": 1}
    assert data["work"][1]["since"] == "1970-01-01T00:16:40+00:00"
    assert data["work"][0]["since"] is None
    assert {"kind": "release", "state": "failed", "number": 2} in data["counts"]


def test_nobody_else_is_told(ask: Ran, port: int) -> None:
    code, out, err = ask("--endpoint", f"localhost:{port}", who="curator-bob")
    # Bob's command looks for Bob, and does not take Alice for him.
    assert (code, out) == (4, "")
    assert "curator bob" in err


def test_a_party_that_does_not_run(ask: Ran) -> None:
    code, out, err = ask("--endpoint", "localhost:1")
    assert (code, out) == (4, "")
    assert "no connection" in err
    assert err.rstrip().endswith("A curator answers once it has read its table.")


@pytest.mark.long
def test_watching_redraws_until_interrupted(folder: Path, port: int) -> None:
    script = (
        "import sys; from veiltab.common.command.cli import run; from veiltab.deploy.operate.status_cli import status;"
        "sys.exit(run(status))"
    )
    ours, theirs = pty.openpty()
    watching = subprocess.Popen(
        [
            *(sys.executable, "-c", script, str(folder / "study.toml")),
            *("--identity", str(folder / "pki" / "curator-alice"), "--endpoint", f"localhost:{port}", "--watch"),
        ],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "150", "LINES": "40"},
    )
    os.close(theirs)
    shown, end = b"", time.monotonic() + 60
    # Every redraw has a clock of its own.
    while len(set(re.findall(rb"\d\d:\d\d:\d\d UTC", shown))) < 3:
        assert time.monotonic() < end, shown
        shown += os.read(ours, 65_536)
    watching.send_signal(signal.SIGINT)
    assert watching.wait(20) == 0, shown
    os.close(ours)
    assert b"a person decides about sex" in shown
    assert b"Traceback" not in shown


# Whether a party serves

ALICES = ("--serves", "curator/alice")


def test_a_party_that_serves_is_told_as_json(ask: Ran, port: int) -> None:
    code, out, _ = ask(*ALICES, "--endpoint", f"localhost:{port}", "--json", who="researcher-rosa")
    told = json.loads(out)
    assert (code, told["party"], told["serving"]) == (0, ALICE.uri, True)


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ((*ALICES, "--endpoint", "localhost:1", "--within", "0.3"), 4, "no connection"),
        (("--serves", "curator/cloud"), 2, "has no status in this study"),
        (("--serves", "researcher/zoe"), 2, "has no status in this study"),
    ],
)
def test_who_does_not_serve_is_named(ask: Ran, options: tuple[str, ...], code: int, said: str) -> None:
    found, out, err = ask(*options, who="researcher-rosa")
    assert (found, out) == (code, "")
    assert said in err


def test_who_is_no_peer_is_refused(ask: Ran, port: int) -> None:
    assert ask(*ALICES, "--endpoint", f"localhost:{port}", who="curator-bob")[0] == 3


def test_no_heavy_module_is_loaded_for_a_health_check() -> None:
    # It runs every few seconds beside every party.
    code = (
        "import sys, veiltab.deploy.cli, veiltab.deploy.operate.status_cli;"
        "print({'pandas', 'scipy', 'pyarrow'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
