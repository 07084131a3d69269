"""The parties of a simulated study: the product's own drivers, stores and servicers, each on a virtual machine."""

import asyncio
import atexit
import csv
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, assert_never, cast

import numpy as np

from tests.curator.made_rows import execution
from tests.simulation.handlers import Server
from tests.simulation.network import Network, Service, looked_at
from tests.simulation.virtual import HERE, START, Machine, stream_of
from tests.worlds.studies import APPROVE_ALL
from veiltab.common.command.parties import parties_in
from veiltab.common.rpc.authorisation import Admission, Gatekeeper
from veiltab.common.rpc.parties.identity import Identity, Party, Role, load_identity
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.officer.policy import load_policy
from veiltab.curator.party.service import CuratorPeerServicer, CuratorServicer
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.release.curator import Curator
from veiltab.curator.release.driver import CuratorDriver
from veiltab.curator.release.rpc_answers import RpcAnswers
from veiltab.curator.table.table_reading import load_table
from veiltab.deploy.pki.certificates import init_pki
from veiltab.researcher.desk.driver import ResearcherDriver
from veiltab.researcher.desk.service import ResearcherServicer
from veiltab.researcher.records.store import ResearcherStore
from veiltab.server.party.service import IngestServicer, ReleaseServicer
from veiltab.server.records.store import ServerStore
from veiltab.server.release.releases import Releases
from veiltab.v1.curator_pb2_grpc import add_CuratorServiceServicer_to_server
from veiltab.v1.curator_peer_pb2_grpc import add_CuratorPeerServiceServicer_to_server
from veiltab.v1.ingest_pb2_grpc import add_IngestServiceServicer_to_server
from veiltab.v1.researcher_pb2_grpc import add_ResearcherServiceServicer_to_server
from veiltab.v1.server_release_pb2_grpc import add_ReleaseServiceServicer_to_server

PEOPLE = 120
SIZES = {"code": 5, "twin": 5, "colour": 3, "mark": 4, "held": 2, "denied": 2}
"""Attribute -> categories. Whoever has a code has a twin and a mark that follow from it."""

SERVER = "cloud"
RESEARCHERS = ("rosa", "rita")
_HOLD = '[[rule]]\nattributes = ["held"]\ndecision = "hold"\n'
_DENY = '[[rule]]\nattributes = ["denied"]\ndecision = "deny"\n'


def owners(curators: int) -> dict[str, str]:
    third = "carol" if curators == 3 else "alice"
    return {"code": "alice", "twin": "bob", "colour": "bob", "mark": third, "held": "bob", "denied": "alice"}


def follows(code: np.ndarray) -> dict[str, np.ndarray]:
    """Return the symbols that everybody's code determines."""
    return {"code": code, "twin": (2 * code + 1) % 5, "mark": code % 4}


@dataclass(frozen=True, kw_only=True)
class Village:
    """A study file, certificates, tables and policies.

    Args:
        folder: where they lie.
        study: the study.
        identities: of each party.
    """

    folder: Path
    study: Study
    identities: dict[str, Identity]


_KEPT = ExitStack()
atexit.register(_KEPT.close)


@cache
def village(curators: int, budget: str, seed: int) -> Village:
    """Return a study of two or three curators; made once a process."""
    folder = Path(_KEPT.enter_context(tempfile.TemporaryDirectory(prefix="village-")))
    owner = owners(curators)
    text = f"""
[study]
id = "village"
title = "A village"
hub = "alice"
alignment = "tokens"
minimum_population = 20
maximum_cells = 400
[budget]
epsilon = {budget}
[server]
name = "{SERVER}"
endpoint = "{SERVER}:1"
"""
    text += "".join(
        f'[[curator]]\nname = "{name}"\nendpoint = "{name}:1"\nid_columns = ["id"]\n'
        + "complete = true\n" * (name != "alice")
        for name in sorted(set(owner.values()))
    )
    text += "".join(f'[[researcher]]\nname = "{name}"\nendpoint = "{name}:1"\n' for name in RESEARCHERS)
    for name, holder in owner.items():
        categories = [f"{name}-{number}" for number in range(SIZES[name])]
        text += f'[[attribute]]\nname = "{name}"\nowner = "{holder}"\ncategories = {categories}\n'
    study = study_from_bytes(text.encode(), "study.toml")
    init_pki(study, folder / "pki", lifetime=timedelta(days=36_500), clock=lambda: datetime.fromtimestamp(START, UTC))
    _write_tables(folder, owner, seed)
    identities = {
        party.name: load_identity(folder / "pki" / f"{party.role.value}-{party.name}", party.role, party.name)
        for party in parties_of(study)
    }
    return Village(folder=folder, study=study, identities=identities)


def _write_tables(folder: Path, owner: dict[str, str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    symbols = follows(rng.integers(0, 5, PEOPLE))
    symbols |= {name: rng.integers(0, size, PEOPLE) for name, size in SIZES.items() if name not in symbols}
    for curator in sorted(set(owner.values())):
        names = [name for name, holder in owner.items() if holder == curator]
        rows = [(f"person-{row:04d}", *(f"{name}-{symbols[name][row]}" for name in names)) for row in range(PEOPLE)]
        if curator != "alice":  # the hub: people whom it has alone would be absent elsewhere
            rows += [(f"{curator}-only-{row}", *(f"{name}-0" for name in names)) for row in range(10)]
        order = np.random.default_rng(len(names)).permutation(len(rows))
        with (folder / f"{curator}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", *names])
            writer.writerows(rows[place] for place in order)
        rules = (_HOLD if "held" in names else "") + (_DENY if "denied" in names else "") + APPROVE_ALL
        (folder / f"{curator}.toml").write_text(rules, "utf-8")


@dataclass(kw_only=True, eq=False)
class Process:
    """A party's process: what it runs, and the machine it runs on."""

    machine: Machine
    driver: Curator | ResearcherDriver | Releases
    store: CuratorStore | ResearcherStore | ServerStore
    working: "asyncio.Task[None]"


@dataclass(kw_only=True, eq=False)
class PartyHost:
    """A party, through all its processes.

    Args:
        village: the study.
        network: connects it.
        party: who it is.
        folder: where its disks lie.
        seed: of its generators.
    """

    village: Village
    network: Network
    party: Party
    folder: Path
    seed: int
    skew: float = 0.0
    full: bool = False
    count: int = 0
    copies: int = 0
    process: Process | None = None
    disk: Path = field(init=False)

    def __post_init__(self) -> None:
        self.disk = self.folder / f"{self.party.name}-0"
        self.disk.mkdir(parents=True)

    @property
    def name(self) -> str:
        return self.party.name

    @property
    def curator(self) -> Curator:
        assert self.process is not None
        return cast("Curator", self.process.driver)

    @property
    def researcher(self) -> ResearcherDriver:
        assert self.process is not None
        return cast("ResearcherDriver", self.process.driver)

    def on_machine(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the work returns
        """Do something on the machine, as a command of the party's does."""
        assert self.process is not None
        context = copy_context()
        context.run(HERE.set, self.process.machine)
        return context.run(work)

    async def start(self) -> None:
        """Start a process on what the last one left on the disk."""
        assert self.process is None
        machine = Machine(
            name=self.name, random_bytes=stream_of(self.seed, self.name, self.count), skew=self.skew, full=self.full
        )
        machine.killed = self._keep_disk
        self.count += 1
        context = copy_context()
        context.run(HERE.set, machine)
        try:
            driver, store, work, server = context.run(self._build)
        except BaseException:
            machine.dead = True
            raise
        gate = Gatekeeper(
            Admission(
                study=self.village.study.id,
                peers=frozenset(_callers(self.village.study, self.party)),
                own=self.party,
                clock=_now,
            )
        )
        self.network.services[self.name] = Service(machine=machine, handlers=await server.behind(gate))
        working = asyncio.get_running_loop().create_task(work, context=context)
        working.add_done_callback(looked_at)
        self.process = Process(machine=machine, driver=driver, store=store, working=working)

    def _keep_disk(self) -> None:
        """Keep the disk as it is in this moment; what a killed process still seems to do goes to the old one."""
        self.disk = self.copied_disk()
        self.network.note(f"{self.name} is killed")

    def copied_disk(self) -> Path:
        """Return a copy of the disk as it is in this moment."""
        self.copies += 1
        copy = self.folder / f"{self.name}-{self.copies}"
        shutil.copytree(self.disk, copy, ignore=shutil.ignore_patterns("*-shm"))
        return copy

    async def kill(self) -> None:
        """Kill the process, if it was not killed yet, and clear away what it had."""
        assert self.process is not None
        self.process.machine.kill()
        await self._clear(self.process)

    async def stop(self) -> None:
        """End the process in order."""
        assert self.process is not None
        for task in list(self.process.machine.tasks):
            task.cancel()
        await self._clear(self.process)

    async def _clear(self, process: Process) -> None:
        self.process = None
        del self.network.services[self.name]
        while tasks := list(process.machine.tasks):
            await asyncio.wait(tasks)
        process.machine.dead = True
        process.store.close()

    def _build(self) -> "tuple[Any, Any, Coroutine[Any, Any, None], Server]":
        study, server = self.village.study, Server()
        registered: Any = server
        identity = self.village.identities[self.name]
        match self.party.role:
            case Role.CURATOR:
                store = CuratorStore(self.disk / "curator.sqlite")
                own = [rule.name for rule in study.attributes_of(self.name)]
                rules = self.village.folder / f"{self.name}.toml"
                policy = load_policy(rules, researchers=RESEARCHERS, attributes=own)
                ledger = Ledger(store.connection, study.budget_epsilon, study.budget_delta)
                parts = Curator(identity, study, self.disk, store, ledger, policy, execution(self.disk))
                add_CuratorPeerServiceServicer_to_server(CuratorPeerServicer(RpcAnswers(parts)), registered)
                add_CuratorServiceServicer_to_server(CuratorServicer(RpcAnswers(parts)), registered)
                table = load_table(self.village.folder / f"{self.name}.csv", study, self.name)
                return parts, store, CuratorDriver(parts).run(table), server
            case Role.SERVER:
                kept = ServerStore(self.disk)
                releases = Releases(study, kept)
                add_IngestServiceServicer_to_server(IngestServicer(releases), registered)
                add_ReleaseServiceServicer_to_server(ReleaseServicer(releases, identity), registered)
                return releases, kept, releases.run(), server
            case Role.RESEARCHER:
                asked = ResearcherStore(self.disk, study)
                researcher = ResearcherDriver(identity, study, asked)
                add_ResearcherServiceServicer_to_server(ResearcherServicer(researcher), registered)
                return researcher, asked, researcher.run(), server
            case Role.ANALYST | Role.NODE | Role.RELAY:
                raise AssertionError("they run no service")
            case _:
                assert_never(self.party.role)


def _now() -> datetime:
    return datetime.fromtimestamp(START, UTC)


def _callers(study: Study, party: Party) -> list[Party]:
    """Return who may call a party, as its `serve` command names them."""
    if party.role is Role.RESEARCHER:
        return [party]
    return [caller for caller in parties_in(study, Role.CURATOR, Role.RESEARCHER) if caller != party]


def parties_of(study: Study) -> list[Party]:
    return [party for role in (Role.CURATOR, Role.SERVER, Role.RESEARCHER) for party in parties_in(study, role)]
