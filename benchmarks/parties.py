"""Measures a study's parties: wall and CPU time, stage by stage."""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import psutil

from benchmarks.made_tables import CATEGORIES, ID, OWNERS
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.parties.identity import Role
from veiltab.common.study.file import study_from_bytes
from veiltab.common.study.members import RELAYED
from veiltab.deploy.pki.certificates import init_pki
from veiltab.play.local.processes import LocalStudy, free_endpoints, free_ports
from veiltab.researcher.client.client import Client

_SERVER, _RESEARCHER, _RELAY = "cloud", "rosa", "relay"
_PATIENCE = 900.0
"""Seconds that a stage may take, however few the rows."""

_PATIENCE_A_ROW = 2e-5
_LOOK_AGAIN = 0.02
_IDLE_SECONDS = 10.0


@dataclass(kw_only=True)
class Usage:
    """The time of a stage: wall seconds, and CPU seconds by party."""

    wall: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """CPU seconds of all parties."""
        return sum(self.cpu.values())


class Parties:
    """Two curators, a server, a researcher's service and, in this process, the researcher's client.

    Args:
        folder: new folder for study, certificates, states and logs.
        tables: curator -> table.
        budget: epsilon of all releases together, nats.
        rows: of a table; a stage may take the longer the more there are.
        delta: of the study's budget, and of each release of `release`; none for pure epsilons.
        relay: curators and researcher are called through one.
    """

    def __init__(  # noqa: PLR0913 - one argument a choice
        self,
        folder: Path,
        tables: dict[str, Path],
        *,
        budget: int = 4,
        rows: int = 0,
        delta: str | None = None,
        relay: bool = False,
    ) -> None:
        self._patience = _PATIENCE + _PATIENCE_A_ROW * rows
        self._delta = delta
        folder.mkdir()
        ports = free_ports(len(OWNERS) + 2)
        names = (*OWNERS, _SERVER, _RESEARCHER)
        self.endpoints = dict(zip(names, (f"localhost:{port}" for port in ports), strict=True))
        """Party -> its endpoint in the study file."""
        more = ""
        if relay:
            more = f'\n[relay]\nendpoint = "{free_endpoints([_RELAY])[_RELAY]}"\n'
            self.endpoints |= dict.fromkeys((*OWNERS, _RESEARCHER), RELAYED)
        text = study_text(self.endpoints, budget, delta) + more
        (folder / "study.toml").write_text(text, "utf-8")
        init_pki(study_from_bytes(text.encode(), "study.toml"), folder / "pki")
        policy = folder / "policy.toml"
        anything = 'maximum_pair_epsilon = "any"\nmaximum_row_epsilon = "any"\ntested = "not"\n'
        policy.write_text(f'[[rule]]\n{anything}decision = "approve"\n', "utf-8")
        self._local = LocalStudy(folder=folder, tables=tables, policies=dict.fromkeys(tables, policy))
        self.state_folders = {name: self._local.state_folder(role, name) for role, name in self._local.parties}
        """Party -> its state folder."""
        self.processes: dict[str, psutil.Process] = {}
        """Party -> its process, from its start."""

    def __enter__(self) -> Self:
        """Return the parties."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop every process."""
        self._local.stop()

    def listen(self, name: str, address: str) -> None:
        """Let a party listen at another address than its endpoint, before it is started."""
        role = next(role for role, known in self._local.parties if known == name)
        self._local.options[role, name] = ("--listen", address)

    def measure_relay(self, port: int) -> None:
        """Have the relay serve its metrics at a port, before it is started."""
        self._local.options[Role.RELAY, _RELAY] = ("--metrics", str(port))

    def load(self) -> Usage:
        """Start every process, and wait until it has loaded its data and serves."""
        with self._measure() as spent:
            for role, name in self._local.parties:
                self.processes[name] = psutil.Process(self._local.start(role, name))
            self._wait(lambda: all(" serves " in self._log(*party) for party in self._local.parties))
        return spent

    def align(self) -> Usage:
        """Wait until the curators have aligned their tables."""
        with self._measure() as spent:
            self._wait(lambda: all(self._is_aligned(owner) for owner in OWNERS))
        return spent

    def release(self, sample: int | None) -> tuple[TableSpec, Usage]:
        """Run a release of all attributes, from the request to the estimate."""
        with self._client() as client, self._measure() as spent:
            before = time.process_time()
            release = client.request(
                tuple(CATEGORIES), epsilon="1", purpose="benchmark", sample=sample, delta=self._delta
            )
            status = release.wait(self._patience)
            release.estimate()
            client_seconds = time.process_time() - before
        spent.cpu["client"] = client_seconds
        return status.description().table(0), spent

    def certify(self, spec: TableSpec) -> Usage:
        """Wait until the researcher's service has certified a release, which it does once that is ready."""
        with self._client() as client, self._measure() as spent:
            client.release(spec.release_id).certificate()
        return spent

    def small_releases(self, number: int, *, at_once: bool) -> tuple[list[float], Usage]:
        """Run releases of the planned sample, from the request to the estimate.

        Args:
            number: how many.
            at_once: whether all are asked for before the first is waited for.

        Returns:
            Wall seconds of each until its estimate, and what all of them took.
        """
        with self._client() as client, self._measure() as spent:
            before, walls = time.process_time(), []
            for batch in [range(number)] if at_once else [[one] for one in range(number)]:
                began = time.monotonic()
                asked = [
                    client.request(tuple(CATEGORIES), epsilon="1", purpose=f"small {at_once} {one}") for one in batch
                ]
                for release in asked:
                    release.wait(self._patience)
                    release.estimate()
                    walls.append(time.monotonic() - began)
            # The desk certifies a release once it is ready.
            asked[-1].certificate()
            client_seconds = time.process_time() - before
        spent.cpu["client"] = client_seconds
        return walls, spent

    def idle(self) -> dict[str, float]:
        """Return each process's CPU share over some idle seconds."""
        time.sleep(_IDLE_SECONDS / 2)
        before = self._cpu()
        time.sleep(_IDLE_SECONDS)
        now = self._cpu()
        return {name: (now[name] - before[name]) / _IDLE_SECONDS for name in self.processes}

    def peaks(self) -> dict[str, int]:
        """Return each process's peak resident memory, in bytes."""
        return {name: memory_of(process.pid)["VmHWM"] for name, process in self.processes.items()}

    def _client(self) -> Client:
        identity = self._local.identity_folder(Role.RESEARCHER, _RESEARCHER)
        return Client(self._local.study_path, identity=identity, name=_RESEARCHER)

    @contextmanager
    def _measure(self) -> Iterator[Usage]:
        spent, began, before = Usage(), time.monotonic(), self._cpu()
        yield spent
        spent.wall = time.monotonic() - began
        spent.cpu = {name: now - before.get(name, 0.0) for name, now in self._cpu().items()}

    def _cpu(self) -> dict[str, float]:
        """Return each party's CPU seconds so far: of its process, and of all that this one started."""
        return {name: cpu_of(process) for name, process in self.processes.items()}

    def _wait(self, done: Callable[[], bool]) -> None:
        end = time.monotonic() + self._patience
        while not done():
            ended = [name for name, one in self.processes.items() if one.status() == psutil.STATUS_ZOMBIE]
            if ended or time.monotonic() > end:
                raise AssertionError(f"ended: {ended}; the logs are in {self._local.folder}")
            time.sleep(_LOOK_AGAIN)

    def _log(self, role: Role, name: str) -> str:
        return self._local.log(role, name).read_text("utf-8", errors="replace")

    def _is_aligned(self, curator: str) -> bool:
        path = self._local.state_folder(Role.CURATOR, curator) / "curator.sqlite"
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            return connection.execute("SELECT 1 FROM alignment").fetchone() is not None
        finally:
            connection.close()


def study_text(endpoints: dict[str, str], budget: int, delta: str | None = None) -> str:
    """Return the study file of these parties."""
    text = '[study]\nid = "bench"\ntitle = "Benchmark"\nhub = "alice"\nalignment = "tokens"\n\n'
    text += f"[budget]\nepsilon = {budget}\n"
    text += "\n[server]\n" if delta is None else f"delta = {delta}\n\n[server]\n"
    text += _entry(_SERVER, endpoints) + "\n[[researcher]]\n" + _entry(_RESEARCHER, endpoints)
    for owner, attributes in OWNERS.items():
        text += "\n[[curator]]\n" + _entry(owner, endpoints) + f'id_columns = ["{ID}"]\n'
        text += "complete = true\n" * (owner != "alice")
        text += 'normalise = ["strip", "casefold", "nfc"]\n'
        for name in attributes:
            values = json.dumps(CATEGORIES[name])
            text += f'\n[[attribute]]\nname = "{name}"\nowner = "{owner}"\ncategories = {values}\n'
    return text


def _entry(name: str, endpoints: dict[str, str]) -> str:
    return f'name = "{name}"\nendpoint = "{endpoints[name]}"\n'


def cpu_of(process: psutil.Process) -> float:
    """Return the CPU seconds of a process and of all that it started."""
    seconds = 0.0
    for one in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            # What has ended counts at whoever waited for it.
            seconds += times.user + times.system + times.children_user + times.children_system
    return seconds


def memory_of(pid: int) -> dict[str, int]:
    """Return the memory of a process in bytes, by the names of /proc: VmHWM, RssAnon and others."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii", errors="replace").splitlines()
    words = [line.split() for line in lines if line.endswith(" kB")]
    return {name.rstrip(":"): 1024 * int(size) for name, size, _ in words}
