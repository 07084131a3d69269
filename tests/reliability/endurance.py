"""Everything at once, for long: python -m tests.reliability.endurance --minutes 60.

On one deployment of two curators, a server and two researchers: releases and rounds of nodes, one after another; held
requests, as many as a researcher may open; half-open connections and calls that send nothing; every half minute a
random party is killed, stopped in order, or restarted by SIGHUP. Meanwhile every party that is not being restarted is
asked for its health over new connections.
"""

import asyncio
import json
import random
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar

import click
import grpc
import numpy as np
import psutil

from tests.hostile.clients import call, code_of, connection, message, number_of, unsent
from tests.protocol.polling import FLEET, Poll, all_at_once
from tests.protocol.village import Rules
from tests.protocol.world import ALICE, BOB, CLOUD, RITA, ROSA, Who, World, made_world
from tests.reliability.promises import Books, ready
from veiltab.common.core.randomness import SystemSource
from veiltab.common.errors import UnavailableError

T = TypeVar("T")
PARTIES = (ALICE, BOB, CLOUD, ROSA, RITA)
NODES = """
[nodes]
name = "fleet"
budget_epsilon = 1000
strata = ["north", "south"]

[[question]]
name = "value"
integers = [1, 20]
"""
EACH_ROUND = 25
"""Nodes of a stratum that report in a round."""
PAUSE = 2.0
"""Seconds between releases, rounds and floods."""
RESTARTS = 30.0
"""Longest seconds between restarts."""
HALF_OPEN, SILENT = 200, 100
LONGEST = 120.0
"""Seconds after which a release counts as lost."""
SETTLED = 60.0
"""Age in seconds at which the memory of a process is compared with what it takes later."""
SLOWEST, MOST_GROWTH = 1.0, 32.0
"""What the 99th percentile of health and the growth of a process stay below: seconds, MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run showed.

    Args:
        seed: of restarts.
        minutes: how long it lasted.
        releases: how many were ready.
        rounds: how many counted each report once.
        restarts: how many there were.
        half_open: connections that began no handshake.
        held: requests that waited for a person.
        checks: times that a party was asked for its health.
        health: 99th percentile of its answers, in seconds.
        growth: most MiB that a process took beyond those of its first minute.
        processes: how many lived long enough to tell.
        faults: promises that were broken.
    """

    seed: str
    minutes: float
    releases: int
    rounds: int
    restarts: int
    half_open: int
    held: int
    checks: int
    health: float
    growth: float
    processes: int
    faults: Sequence[str]

    @property
    def holds(self) -> bool:
        """Whether every promise was kept."""
        return not self.faults and self.health < SLOWEST and self.growth < MOST_GROWTH

    def __str__(self) -> str:
        return (
            f"{self.minutes:g} min: {self.releases} releases and {self.rounds} rounds beside {self.restarts} restarts,"
            f" {self.half_open} half-open connections and {self.held} held requests; health in {self.health:.2f} s"
            f" (p99 of {self.checks}); memory of {self.processes} processes after their first minute at most"
            f" {self.growth:+.0f} MiB; {len(self.faults)} faults"
        )


class Endurance:
    """The loads, each a function that runs in a thread until `ended`.

    Args:
        world: its parties; they run.
        chance: chooses restarts.
    """

    def __init__(self, world: World, chance: random.Random) -> None:
        self._world, self._chance = world, chance
        self._poll = Poll(local=world.local)
        self._digest = world.local.study.digest
        self._server = ("localhost", int(world.local.endpoint(*CLOUD).rpartition(":")[2]))
        self._away: set[Who] = set()
        self._since = dict.fromkeys(PARTIES, time.monotonic())
        self._settled: dict[tuple[Who, float], float] = {}
        self._asked = 0
        # One loop for all: gRPC's calls disturb one another where loops come and go in threads.
        self._loop = asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, daemon=True).start()
        self.ended = Event()
        self.books = Books(world=world)
        self.faults: list[str] = []
        self.seconds: list[float] = []
        self.growths: dict[tuple[Who, float], float] = {}
        self.releases = self.rounds = self.restarts = self.half_open = self.held = 0

    @property
    def loads(self) -> Mapping[Callable[[], None], float]:
        """Each of them, and the seconds between its turns."""
        return {
            self._release: PAUSE,
            self._poll_nodes: 5 * PAUSE,
            self._hold: PAUSE,
            self._flood: PAUSE,
            self._stall: PAUSE,
            self._restart: 0.0,
            self._examine: 0.25,
        }

    def repeat(self, load: Callable[[], None], pause: float) -> None:
        """Run a load until the end; whatever it raises is a fault."""
        while not self.ended.wait(pause):
            try:
                load()
            except Exception as error:  # noqa: BLE001 - the others go on
                self.faults.append(f"{load.__name__}: {error!r}")
                click.echo(self.faults[-1], err=True)

    def progress(self) -> str:
        """Return what was counted so far."""
        return f"{self.releases} releases, {self.rounds} rounds, {self.restarts} restarts, {len(self.faults)} faults"

    def _release(self) -> None:
        self.books.note(ready(self._world, ("region", "income"), epsilon="0.2", within=LONGEST))
        self.releases += 1

    def _poll_nodes(self) -> None:
        asked = self._until_answered(lambda: self._poll.opened(EACH_ROUND))
        sent = [
            asked.request(token, asked.spec.randomiser.randomise(0, SystemSource()), stratum=stratum)
            for stratum, tokens in asked.tokens.items()
            for token in tokens
        ]
        said = self._wait(all_at_once(self._poll, sent, connections=EACH_ROUND))
        # Whose answer was lost in a restart sends its report again, and reads that the token is spent.
        refused = set(said) - {"", "TOKEN_SPENT"}
        reports = self._until_answered(asked.reports)
        if refused or reports != [EACH_ROUND] * len(asked.tokens):
            raise AssertionError(f"{reports} reports counted, {refused}")
        counts = self._until_answered(asked.counts)
        if counts != asked.sum_of(sent):
            raise AssertionError(f"{counts} is not the sum of the reports")
        self.rounds += 1

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _until_answered(self, ask: Callable[[], T]) -> T:
        end = time.monotonic() + LONGEST
        while True:
            try:
                return ask()
            except UnavailableError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def _hold(self) -> None:
        """Let one more request wait for a person, if the researcher may open another."""
        self._asked += 1
        request = message(
            "ReleaseRequest",
            release_id=f"{self._asked:032x}",
            attributes=["health"],
            epsilon="1",
            deadline=int(time.time()) + 86_400,
            sampling=number_of("SamplingMode", "SAMPLING_MODE_SEED"),
            pad=number_of("PadKind", "PAD_KIND_CHACHA20"),
            scheme=number_of("Scheme", "SCHEME_WOR"),
            noise_split="0",
        )
        proposal = message("ProposeReleaseRequest", study_digest=self._digest, request=request)

        async def propose() -> set[grpc.StatusCode]:
            codes = set()
            for curator in (ALICE, BOB):
                async with connection(self._world.local, RITA, curator) as channel:
                    codes.add(await code_of(call(channel, "CuratorService/ProposeRelease")(proposal, timeout=20)))
            return codes

        codes = self._wait(propose())
        if not codes <= {grpc.StatusCode.OK, grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAVAILABLE}:
            raise AssertionError(str(codes))
        if codes == {grpc.StatusCode.OK}:
            self.held += 1

    def _flood(self) -> None:
        """Open connections to the server, begin no handshake, and close them later."""
        opened: list[socket.socket] = []
        with suppress(OSError):  # it may be away
            opened.extend(socket.create_connection(self._server, timeout=5) for _ in range(HALF_OPEN))
        self.half_open += len(opened)
        self.ended.wait(PAUSE)
        for one in opened:
            one.close()

    def _stall(self) -> None:
        """Begin calls to the server, and send no message on them."""

        async def begin() -> None:
            async with connection(self._world.local, FLEET, CLOUD) as channel:
                stalled = [unsent(channel, "CollectionService/Report", 58) for _ in range(SILENT)]
                await asyncio.sleep(PAUSE)
                for one in stalled:
                    one.cancel()

        self._wait(begin())

    def _restart(self) -> None:
        """Let a party begin anew in one of three ways."""
        if self.ended.wait(self._chance.uniform(0, RESTARTS)):
            return
        who, local = self._chance.choice(PARTIES), self._world.local
        number = self._chance.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGHUP))
        begun = self._begun(who)
        self._away.add(who)
        if number == signal.SIGHUP:
            local._running[who].send_signal(number)
        else:
            local.kill(*who, number=number)
            local.start(*who)
        self._world.wait_until(lambda: self._begun(who) > begun, LONGEST)
        self.restarts += 1
        self._since[who] = time.monotonic()
        self._away.discard(who)

    def _begun(self, who: Who) -> int:
        """Return how often a party began to serve."""
        return self._world.log(who).count("serves on port")

    def _examine(self) -> None:
        """Ask every party for its health, and see what memory it takes."""
        for who in PARTIES:
            since = self._since[who]
            if who in self._away:
                continue
            began = time.monotonic()
            code = self._wait(self._health(who))
            seconds = time.monotonic() - began
            if who in self._away or since != self._since[who]:
                continue
            if code is not grpc.StatusCode.OK:
                raise AssertionError(f"{who}: {code}")
            self.seconds.append(seconds)
            if began - since > SETTLED:
                taken = psutil.Process(self._world.local._running[who].pid).memory_info().rss / 2**20
                first = self._settled.setdefault((who, since), taken)
                self.growths[who, since] = taken - first

    async def _health(self, who: Who) -> grpc.StatusCode:
        caller = FLEET if who == CLOUD else who if who in {ROSA, RITA} else ROSA
        async with connection(self._world.local, caller, who) as channel:
            check: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
            check = channel.unary_unary("/grpc.health.v1.Health/Check")
            return await code_of(check(b"", timeout=20))

    def outcome(self, seed: str, minutes: float) -> Outcome:
        """Return what there is to tell once no load runs any more."""
        faults = list(self.faults)
        faults += [f"{one}: not charged" for one in self.books.uncharged()]
        faults += [f"{one}: double" for one in self.books.double()]
        faults += ["the ledgers differ"] if self.books.ledgers_differ() else []
        return Outcome(
            seed=seed,
            minutes=minutes,
            releases=self.releases,
            rounds=self.rounds,
            restarts=self.restarts,
            half_open=self.half_open,
            held=self.held,
            checks=len(self.seconds),
            health=float(np.quantile(self.seconds, 0.99)),
            growth=max(self.growths.values(), default=0.0),
            processes=len(self.growths),
            faults=faults,
        )


def endured(minutes: float, seed: str) -> Outcome:
    """Run every load on a deployment, which is removed unless it broke a promise; return what they showed."""
    folder = Path(tempfile.mkdtemp(prefix="veiltab-endurance-"))
    world = made_world(folder / "study", people=300, rules=Rules(budget="1000"), more=NODES)
    with world.local:
        world.start(*PARTIES)
        run = Endurance(world, random.Random(seed))  # noqa: S311 - it draws restarts
        with ThreadPoolExecutor(len(run.loads)) as pool:
            for load, pause in run.loads.items():
                pool.submit(run.repeat, load, pause)
            end = time.monotonic() + 60 * minutes
            while (left := end - time.monotonic()) > 0:
                time.sleep(min(30.0, left))
                click.echo(run.progress(), err=True)
            run.ended.set()
        outcome = run.outcome(seed, minutes)
    if outcome.holds:
        shutil.rmtree(folder)
    else:
        click.echo(f"kept for whoever looks into it: {folder}: {outcome.faults}", err=True)
    return outcome


@click.command(help=__doc__)
@click.option("--minutes", default=60.0, show_default=True)
@click.option("--seed", default="", help="Of the restarts; a new one if not given.")
@click.option("--json", "as_json", is_flag=True, help="Print everything that was counted.")
def main(minutes: float, seed: str, as_json: bool) -> None:  # noqa: FBT001 - an option
    """Run every load and print what they showed; exit with 1 if a promise was broken."""
    seed = seed or secrets.token_hex(4)
    click.echo(f"seed {seed}", err=True)
    outcome = endured(minutes, seed)
    click.echo(json.dumps(asdict(outcome)) if as_json else str(outcome))
    sys.exit(0 if outcome.holds else 1)


if __name__ == "__main__":
    main()
