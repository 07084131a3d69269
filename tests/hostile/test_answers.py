"""Servers and curators that answer whatever they like: a researcher's service takes nothing for its release but that.

What they say in words reaches no terminal but as a line of plain text.
"""

import asyncio
import os
import pty
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from inspect import isasyncgenfunction
from pathlib import Path
from typing import Any, Self

import pytest

from tests.hostile.clients import Behaviour, call, connection, impostor, message, number_of
from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, Who, World, made_world
from tests.worlds.loops import blocking
from veiltab.play.local.processes import LocalStudy

ESCAPES = "\x1b[2J\x1b]0;owned\x07\x1b[31mred\r\n\x9b1mnext line\u202egnihton" + "x" * 100_000
STATES = {name: number_of("ReleaseState", f"RELEASE_STATE_{name}") for name in ("REQUESTED", "READY", "FAILED")}
GET_RELEASE = "ReleaseService/GetRelease"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A study of two curators, a server and a researcher."""
    world = made_world(tmp_path_factory.mktemp("world") / "study")
    with world.local:
        yield world


@pytest.fixture
def running(world: World) -> World:
    world.ensure(ALICE, BOB, CLOUD, ROSA)
    return world


class Impostor:
    """A party's place, taken by one that says whatever a test wants; in a thread of its own."""

    def __init__(self, world: World, party: Who, behaviours: dict[str, Behaviour]) -> None:
        self.asked: list[str] = []
        counted = {path: self._counted(path, behaviour) for path, behaviour in behaviours.items()}
        self._serving, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(world, party, counted)))

    def _counted(self, path: str, behaviour: Behaviour) -> Behaviour:
        async def answer(request: object, context: object) -> object:
            self.asked.append(path)
            return behaviour(request, context)

        async def answers(request: object, context: object) -> AsyncIterator[object]:
            self.asked.append(path)
            async for one in behaviour(request, context):
                yield one

        return answers if isasyncgenfunction(behaviour) else answer

    async def _serve(self, world: World, party: Who, behaviours: dict[str, Behaviour]) -> None:
        async with impostor(world.local, party, behaviours):
            self._serving.set()
            await asyncio.to_thread(self._over.wait)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._serving.wait(20)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def wait_for(self, path: str, times: int) -> None:
        """Wait until an RPC was asked some more times."""
        before, end = self.asked.count(path), time.monotonic() + 30
        while self.asked.count(path) < before + times:
            assert time.monotonic() < end, f"{path} is not asked any more"
            time.sleep(0.05)


@blocking
async def release_of_server(world: World, release_id: str) -> Any:  # noqa: ANN401 - a message
    """Return what the true server says of a release."""

    async with connection(world.local, ROSA, CLOUD) as channel:
        return await call(channel, GET_RELEASE)(message("GetReleaseRequest", release_id=release_id), timeout=20)


def files(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.long
def test_the_release_of_another_id_is_never_taken(running: World) -> None:
    first = running.ask(("region", "income"), "--wait", "--label", running.label()).data["release"]["id"]
    older = release_of_server(running, first)
    assert older.state == STATES["READY"]
    folder = running.local.state_folder(*ROSA) / "releases"
    running.wait_until((folder / first / "certificate").exists)
    before = files(folder)
    running.local.kill(*CLOUD)
    with Impostor(running, CLOUD, {GET_RELEASE: lambda _request, _context: older}) as server:
        held = running.ask(("region", "health"), "--label", running.label()).data["release"]["id"]
        server.wait_for(GET_RELEASE, 3)
        with running.client() as client:
            assert client.status(held).state.value == "requested"
            assert "a person decides about health" in client.status(held).waiting_for
        running.restart(ROSA)
        server.wait_for(GET_RELEASE, 3)
    assert files(folder) == before
    running.start(CLOUD)
    assert running.curator_command("approve", "bob", "--release", held).code == 0
    with running.client() as client:
        assert client.release(held).wait(60).state.value == "ready"


def on_terminal(*words: str | Path) -> str:
    """Run `veiltab` on a terminal; return everything that reached it."""
    master, terminal = pty.openpty()
    command = [*LocalStudy.launcher, *map(str, words)]
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        shown = b""
        while piece := _read(master):
            shown += piece
        process.wait(60)
    os.close(master)
    return shown.decode()


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65_536)
    except OSError:  # the other end is closed
        return b""


def is_plain(shown: str) -> bool:
    """Whether a terminal shows a text as it is, in lines of an ordinary length."""
    lines = shown.replace("\r\n", "\n").split("\n")
    return all(line.isprintable() and len(line) < 5000 for line in lines)


def rosas(world: World, verb: str, *options: str) -> Sequence[str | Path]:
    """Return the words of a command of the researcher's."""
    identity = world.local.identity_folder(*ROSA)
    return ("researcher", verb, world.local.study_path, "--identity", identity, *options)


def said_until(words: Sequence[str | Path], what: str) -> str:
    """Run a command on a terminal until it shows some words; return what it showed."""
    end = time.monotonic() + 40
    while what not in (shown := on_terminal(*words)):
        assert time.monotonic() < end, shown
        time.sleep(0.2)
    return shown


def said_by_desk(world: World, release: str) -> list[str]:
    """Return what a researcher's service repeats of its peers' words about a release, as it leaves the service."""

    async def ask() -> Any:  # noqa: ANN401 - a message
        async with connection(world.local, ROSA, ROSA) as channel:
            request = message("GetResultRequest", release=release)
            return await call(channel, "ResearcherService/GetResult")(request, timeout=20)

    answer = asyncio.run(ask())
    return [answer.failure, *(party.waiting_for for party in answer.parties)]


def server_says(**fields: Any) -> Callable[[Any, Any], Any]:  # noqa: ANN401 - fields of a message
    """Return what answers every release with some fields."""
    return lambda _request, _context: message("GetReleaseResponse", **fields)


@pytest.mark.long
def test_what_a_server_says_reaches_a_terminal_as_plain_text(running: World) -> None:
    label = running.label()
    running.local.kill(*CLOUD)
    assert running.ask(("region", "health"), "--label", label).code == 0
    answers: list[tuple[str, dict[str, Any]]] = [
        ("red", {"state": STATES["REQUESTED"], "waiting_for": [ESCAPES]}),
        ("red", {"state": STATES["REQUESTED"], "progress": ESCAPES}),
        ("failed", {"state": STATES["FAILED"], "failure": ESCAPES}),
    ]
    for what, fields in answers:
        with Impostor(running, CLOUD, {GET_RELEASE: server_says(**fields)}):
            shown = said_until(rosas(running, "status", "--release", label), what)
            assert "red" in shown
            assert is_plain(shown)
            assert all(map(is_plain, said_by_desk(running, label)))
    assert is_plain(on_terminal(*rosas(running, "status")))
    assert is_plain(on_terminal(*rosas(running, "estimate", "--release", label)))
    running.start(CLOUD)
