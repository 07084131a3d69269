"""A party that misbehaves at a relay, which is a process of its own: it costs itself alone."""

import asyncio
import re
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.deploy.relay.test_meeting_point import Place, paired
from veiltab.common.relay.lines import Streams
from veiltab.play.studies.adult_tables import adult_study
from veiltab.play.studies.templates import relayed

MIB = 2**20
MOST_MIB = 96
PATIENCE = 5.0
"""Seconds in which others are served, on a machine that does much else."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A relay with its usual limits, as a process."""
    made = Place(tmp_path)
    made.listener.close()
    study = tmp_path / "study.toml"
    study.write_bytes(relayed(adult_study(), "localhost:443"))
    words = ("relay", "serve", study, "--identity", tmp_path / "pki" / "relay-relay", "--listen", "127.0.0.1:0")
    with subprocess.Popen([sys.executable, "-m", "veiltab", *words], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        port = re.search(r"serves on port (\d+)", process.stderr.readline())
        assert port is not None
        made.address, made.pid = ("127.0.0.1", int(port[1])), process.pid
        yield made
        process.terminate()
        assert process.wait(15) == 0


async def answers(place: Place, name: str, line: str, times: int) -> list[str]:
    """Return what the relay says to so many connections at once; "" where it ends one without a word."""

    async def answer() -> str:
        try:
            streams = await place.open(name)
            await streams.say(line)
            return await streams.line(20)
        except Exception:  # noqa: BLE001 - it is not the test's business how a refused connection ends
            return ""

    return await asyncio.gather(*(answer() for _ in range(times)))


async def flood(place: Place) -> None:
    """Call somebody who is not there, again and again."""
    said = await answers(place, "rosa", "CALL server/cloud", 100)
    assert said.count("server cloud has no connection here") == 8
    assert 20 <= said.count("too many calls of this party wait") <= 32
    assert len(said) - said.count("") - said.count("this party opens too many connections; wait a minute") == 40


async def never_read(place: Place) -> None:
    """Have a friend send for ever, and read nothing."""
    parked, _ = await place.asked("cloud", "PARK")
    calling = asyncio.create_task(place.asked("rosa", "CALL server/cloud"))
    assert (await parked.line()) == "FROM researcher/rosa"
    await parked.say("OK")
    await calling
    sent = 0
    with suppress(TimeoutError):
        while sent < 100 * MIB:
            parked.writer.write(bytes(MIB))
            async with asyncio.timeout(3):
                await parked.writer.drain()
            sent += MIB
    assert sent < 16 * MIB


async def half_a_line(place: Place) -> None:
    """Begin a line on each of many connections."""
    opened = [await place.open("rosa") for _ in range(30)]
    for one in opened:
        one.writer.write(b"CALL cur")
    began = time.monotonic()
    ends = await asyncio.gather(*(one.reader.read() for one in opened))
    assert {*ends} == {b"no line came in time\n"}
    assert time.monotonic() - began < 10 + PATIENCE


async def thousand_connections(place: Place) -> None:
    """Open as many connections as a process may, and say nothing; then as many with a certificate."""
    plain = [socket.create_connection(place.address) for _ in range(1000)]
    await asyncio.sleep(1)
    for one in plain:
        one.close()
    for _ in range(3):
        said = await answers(place, "rosa", "PARK", 100)
    assert not [one for one in said if one.startswith("OK")]


Attack = Callable[[Place], Awaitable[None]]


@pytest.mark.parametrize("attack", [flood, never_read, half_a_line, thousand_connections])
async def test_a_hostile_party_costs_itself_alone(
    place: Place, attack: Attack, record_property: Callable[[str, object], None]
) -> None:
    async def echo(caller: Streams, callee: Streams) -> float:
        """Return the longest time in which others' bytes went both ways."""
        longest = 0.0
        while True:
            began = time.monotonic()
            for source, sink in ((caller, callee), (callee, caller)):
                source.writer.write(bytes(10_000))
                await sink.reader.readexactly(10_000)
            longest = max(longest, time.monotonic() - began)
            if done.is_set():
                return longest
            await asyncio.sleep(0.1)

    done = asyncio.Event()
    echoing = asyncio.create_task(echo(*await paired(place)))
    await attack(place)
    assert (await place.asked("bob", "PARK"))[1].startswith("OK")
    done.set()
    longest = await echoing
    await place.end()
    most = psutil.Process(place.pid).memory_info().rss / MIB
    record_property("figure", f"{attack.__name__}: others waited {longest:.1f} s, the relay has {most:.0f} MiB")
    assert longest < PATIENCE
    assert most < MOST_MIB
