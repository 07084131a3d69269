"""A whole deployment under random operations and faults, decided by a seed."""

import asyncio
import errno
import random
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.simulation.ending import check_ends
from tests.simulation.network import NO_ANSWER_SECONDS, Faults, Network
from tests.simulation.parties import RESEARCHERS, SERVER, SIZES, PartyHost, Village, parties_of, village
from tests.simulation.virtual import START, Killed, VirtualLoop, simulated, stream_of
from tests.simulation.watch import Watch
from veiltab.common.errors import VeiltabError
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.parties.identity import Role
from veiltab.common.schemes.registry import SCHEMES, has_stage, scheme_class
from veiltab.curator.columns.encryption import ColumnEncryption
from veiltab.curator.columns.noise_and_canaries import PlainColumn
from veiltab.curator.progress.progress import APPROVED, DENIED, HELD
from veiltab.curator.progress.release_record import GrantDecision
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.release import upload
from veiltab.researcher.receiving.receiving import Receiver

TROUBLE_SECONDS = 30.0
SETTLING_SECONDS = 900.0
TIDYING_SECONDS = NO_ANSWER_SECONDS + 35.0  # a call that was lost in the last moment is waited for
_TROUBLES = (*["kill"] * 2, *["kill at a step"] * 2, "stop", "full", "clock", "nothing")
LONG_DAYS = 20
"""Days until the deadline of a request that no fault may keep from its end."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a seed decides at its beginning.

    Args:
        curators: how many.
        researchers: how many.
        budget: of the study.
        hostile: a party whose answers are altered, or empty.
        requests: how many.
        skewed: most seconds that a clock is off.
        restores: whether the server's operator restores copies of its disk, made at any moment.
    """

    curators: int
    researchers: int
    budget: str
    hostile: str
    requests: int
    skewed: float
    restores: bool


def plan_of(rng: random.Random) -> Plan:
    curators = rng.choice([2, 2, 3])
    restores = rng.random() < 0.15
    return Plan(
        curators=curators,
        researchers=rng.choice([1, 2]),
        budget=rng.choice(["1000", "1000", "1000", "12"]),
        hostile=rng.choice([""] * 7 + [SERVER, "alice", "bob"]),
        requests=5 if restores else rng.randint(1, 4),  # a copy needs something to be a copy of
        skewed=rng.choice([0.0, 5.0, 3600.0, 2 * 86_400.0]),
        restores=restores,
    )


@dataclass(kw_only=True)
class Deployment:
    """One run.

    Args:
        seed: decides all of it.
        changes: what is not as the seed would have it in the plan.
        symbols: another number gives the same people other symbols.
    """

    seed: int
    changes: Mapping[str, Any] = field(default_factory=dict)
    symbols: int = 7
    rng: random.Random = field(init=False)
    plan: Plan = field(init=False)
    village: Village = field(init=False)
    network: Network = field(init=False)
    watch: Watch = field(init=False)
    hosts: dict[str, PartyHost] = field(init=False)
    requests: dict[str, ReleaseRequest] = field(default_factory=dict)
    verdicts: dict[str, str] = field(default_factory=dict)
    loop: VirtualLoop = field(init=False)

    def run(self) -> "Outcome":
        """Run it to its end.

        Raises:
            AssertionError: something happened that must not, or something did not that must.
        """
        self.rng = random.Random(self.seed)  # noqa: S311 - it must repeat
        self.plan = replace(plan_of(self.rng), **self.changes)
        self.village = village(self.plan.curators, self.plan.budget, self.symbols)
        folder = Path(tempfile.mkdtemp(prefix="deployment-", dir=_fast_folder()))
        certificates = {name: identity.certificate for name, identity in self.village.identities.items()}
        self.hosts = {}
        self.watch = Watch(
            village=self.village, hosts=self.hosts, hostile=self.plan.hostile, restored=self.plan.restores
        )
        self.network = Network(self._generator("network"), certificates, self.watch.see_call)
        for party in parties_of(self.village.study):
            if party.role is not Role.RESEARCHER or party.name in RESEARCHERS[: self.plan.researchers]:
                self.hosts[party.name] = PartyHost(
                    village=self.village, network=self.network, party=party, folder=folder, seed=self.seed
                )
        self.loop = VirtualLoop(self._generator("threads"))
        encrypt, count = ColumnEncryption.encrypt, Receiver._count

        def encrypted(encryption: ColumnEncryption, columns: Iterable[PlainColumn], *others: Any) -> None:  # noqa: ANN401 - of any kind
            columns = tuple(columns)
            for one in columns:
                self.watch.see_plain(encryption._release_id, one.attribute, one.symbols[:])
            encrypt(encryption, columns, *others)

        def counted(receiver: Receiver, spec: TableSpec, *found: Any) -> None:  # noqa: ANN401 - of any kind
            _, tested, columns, _ = found
            self.watch.see_rows(spec.release_id, columns, tested.rows)
            count(receiver, spec, *found)

        try:
            with (
                simulated(self.loop, stream_of(self.seed, "elsewhere"), self.network.channel),
                patch.object(ColumnEncryption, "encrypt", encrypted),
                patch.object(Receiver, "_count", counted),
                # In half of the runs the columns are streamed, as long ones are.
                patch.object(upload, "TOGETHER", self._generator("columns").choice([0, upload.TOGETHER])),
                asyncio.Runner(loop_factory=lambda: self.loop) as runner,
            ):
                return runner.run(self._all())
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _generator(self, what: str) -> random.Random:
        return random.Random(f"{self.seed} {what}")  # noqa: S311 - it must repeat

    async def _all(self) -> "Outcome":
        for host in self.hosts.values():
            self._set_clock(host)
            await host.start()
        try:
            await asyncio.gather(self._trouble(), self._ask(), self._look_after())
            await self._settle()
            return Outcome(trace=tuple(self.network.trace), happened=self.network.happened, ends=check_ends(self))
        finally:
            for host in self.hosts.values():
                if host.process is not None:
                    await host.kill()

    # What the parties ask

    async def _ask(self) -> None:
        """Let the researchers ask, and people decide."""
        for number in range(self.plan.requests):
            await asyncio.sleep(self.rng.expovariate(0.1))
            request = self._request(number)
            host = self.hosts[request.researcher]
            label = self.rng.choice(["", f"label-{number}"])
            if host.process is None:
                continue
            try:
                stored, _ = host.on_machine(partial(host.researcher.start, request, label, self.village.study.digest))
            except (VeiltabError, OSError, sqlite3.OperationalError, Killed) as error:
                self.network.note(f"{host.name} cannot ask: {type(error).__name__}")
                continue
            self.requests[stored.request.release_id] = stored.request
            self.network.note(f"{host.name} asks for {stored.request.to_json()}")

    def _request(self, number: int) -> ReleaseRequest:
        rng, noise = self.rng, self._generator(f"noise {number}")
        while True:
            names = rng.sample(list(SIZES), rng.randint(1, 4))
            if rng.random() < 0.7:
                names = [name for name in names if name not in {"held", "denied"}] or ["code"]
            long = rng.random() < 0.8
            now = START + self.loop.time()
            researcher = rng.choice(RESEARCHERS[: self.plan.researchers])
            lifetime = LONG_DAYS * 86_400 if long else rng.uniform(5, 60)
            scheme = rng.choice(["wor", "wor", *SCHEMES])
            staged = has_stage(scheme_class(scheme)) == (rng.random() < 0.95)
            try:
                return ReleaseRequest(
                    release_id=rng.randbytes(16).hex(),
                    researcher=researcher,
                    attributes=tuple(name for name in SIZES if name in names),
                    epsilon=Decimal(rng.choice(["0.5", "3", "8", "20"])),
                    purpose=f"purpose {number}",
                    deadline=int(now + lifetime),
                    partial=rng.random() < 0.5,
                    sampling=rng.choice(list(Sampling)),
                    pad=rng.choice(list(Pad)),
                    sample=rng.choice([None, None, 1, 30, 119]),
                    delta=rng.choice([None, None, Decimal("1e-6")]),
                    scheme=scheme,
                    stage=60 if staged else None,
                    noise_split=Decimal(noise.choice(["0", "0.5"])),
                    canaries=noise.choice([None, 0, 40]),
                )
            except VeiltabError:
                continue

    async def _look_after(self) -> None:
        """Let people decide about what is held, look at every party, and start those that ended."""
        end = self.loop.time() + TROUBLE_SECONDS
        while self.loop.time() < end:
            await asyncio.sleep(self.rng.uniform(0.5, 3.0))
            await self._raise_the_dead()
            if self.rng.random() < 0.2:
                self._decide()
            self.watch.look()

    def _decide(self) -> None:
        """Let a person decide about what a curator holds."""
        for host in self.watch.curators:
            if host.process is None or host.process.machine.dead:
                continue
            for release in (
                host.curator.store.releases.releases() if host.curator.store.decisions.count_waiting_requests() else ()
            ):
                if release.state is ReleaseState.REQUESTED:
                    with suppress(OSError, sqlite3.OperationalError, Killed):  # tried again later
                        host.on_machine(partial(self._decide_about, host.curator.store, release.request.release_id))

    def _decide_about(self, store: CuratorStore, release: str) -> None:
        for one in store.decisions.decisions(release):
            if one.verdict == HELD:
                verdict = self.verdicts.setdefault(release, self.rng.choice([APPROVED, APPROVED, DENIED]))
                decision = GrantDecision(attribute=one.attribute, verdict=verdict, expires=None, decided_by="person")
                store.decisions.decide(release, (decision,))

    # What befalls them

    def _set_clock(self, host: PartyHost) -> None:
        host.skew = self.rng.uniform(-1, 1) * self.plan.skewed
        if host.process is not None:
            host.process.machine.skew = host.skew

    async def _trouble(self) -> None:
        rng, network = self.rng, self.network
        end = self.loop.time() + TROUBLE_SECONDS
        while self.loop.time() < end:
            network.faults = Faults(
                lost_request=rng.choice([0, 0, 0.05, 0.3]),
                lost_reply=rng.choice([0, 0, 0.05, 0.3]),
                cut=rng.choice([0, 0, 0.05]),
                repeat=rng.choice([0, 0.1]),
                slow=rng.choice([0, 0, 0.1]),
                partitions={frozenset(rng.sample(list(self.hosts), 2))} if rng.random() < 0.3 else set(),
                hostile=self.plan.hostile,
            )
            host = self.hosts[rng.choice(list(self.hosts))]
            match "restore" if self.plan.restores and rng.random() < 0.5 else rng.choice(_TROUBLES):
                case "kill" if host.process is not None:
                    await host.kill()
                    network.happened["kill"] += 1
                case "kill at a step" if host.process is not None:
                    host.process.machine.countdown = rng.randrange(40)
                case "stop" if host.process is not None:
                    await host.stop()
                    network.happened["stop"] += 1
                case "full" if not host.full:
                    self._fill(host, full=True)
                    self.loop.call_later(rng.uniform(0.5, 15), self._fill, host)
                    network.happened["full disk"] += 1
                case "clock":
                    self._set_clock(host)
                    network.happened["clock set"] += 1
                case "restore":
                    await self._restore(self.hosts[SERVER])
                case _:
                    pass
            await asyncio.sleep(rng.expovariate(0.3))

    async def _restore(self, server: PartyHost) -> None:
        """Copy the server's disk at one of its next durable steps, and put the copy in its place some time later."""
        copies: list[Path] = []
        if server.process is not None:
            server.process.machine.copied = lambda: copies.append(server.copied_disk())
            server.process.machine.copying = self.rng.randrange(12)
        await asyncio.sleep(self.rng.uniform(5, 15))
        if server.process is not None and copies:
            await server.kill()
        if copies:
            server.disk = copies[0]
            self.network.happened["restored server"] += 1
            self.network.note("the server is restored from a copy")

    def _fill(self, host: PartyHost, *, full: bool = False) -> None:
        host.full = full
        if host.process is not None:
            host.process.machine.full = full

    async def _raise_the_dead(self, *, at_once: bool = False) -> None:
        """Clear away processes that were killed or ended, and start them again now or later."""
        for host in self.hosts.values():
            process = host.process
            if process is not None and process.machine.dead:
                self.network.happened["kill at a step"] += 1
                await host.kill()
            elif process is not None and process.working.done():
                self._check_how_it_ended(host, process.working)
                await host.stop()
            if host.process is None and (at_once or self.rng.random() < 0.5):
                await self._start(host)

    async def _start(self, host: PartyHost) -> None:
        """Start a party again; one whose disk is full may not start."""
        try:
            await host.start()
        except (VeiltabError, OSError):
            if not host.full:
                raise
            self.network.note(f"{host.name} does not start: its disk is full")

    def _check_how_it_ended(self, host: PartyHost, working: "asyncio.Task[None]") -> None:
        error: BaseException | None = None if working.cancelled() else working.exception()
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        self.network.note(f"{host.name} ended: {type(error).__name__}: {error}")
        if _is_full(error):  # its operator makes room, and starts it again
            self.network.happened["process ended by a full disk"] += 1
            return
        raise AssertionError(f"the process of {host.name} ended: {error!r}") from error

    # How it ends

    async def _settle(self) -> None:
        """Stop all faults, and wait until everything is over."""
        self.network.note("no more faults")
        self.network.faults = Faults()
        for host in self.hosts.values():
            self._fill(host)
            if host.process is not None:
                host.process.machine.countdown = -1
        # Nobody waits for what a liar or an old copy keeps from its end.
        forgiven = self.plan.hostile or self.plan.restores
        end = self.loop.time() + (0.0 if forgiven else SETTLING_SECONDS)
        tidy = None
        while tidy is None or self.loop.time() < tidy:
            await asyncio.sleep(3.0)
            await self._raise_the_dead(at_once=True)
            self._decide()
            self.watch.look()
            if tidy is None and (self._is_over() or self.loop.time() > end):
                tidy = self.loop.time() + TIDYING_SECONDS

    def _is_over(self) -> bool:
        return all(
            host.researcher.store.release(release).state.finished
            for release, request in self.requests.items()
            for host in (self.hosts[request.researcher],)
        )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a run was.

    Args:
        trace: every message, in order.
        happened: how often each fault did.
        ends: release -> its last state.
    """

    trace: tuple[str, ...]
    happened: Counter[str]
    ends: dict[str, str]


def _is_full(error: BaseException | None) -> bool:
    match error:
        case sqlite3.OperationalError():
            return error.sqlite_errorcode == sqlite3.SQLITE_FULL
        case OSError():
            return error.errno == errno.ENOSPC
        case _:
            return False


def _fast_folder() -> str | None:
    """Return a folder in memory, if there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - made anew under a random name
