"""A curator's passes on a Dask cluster against the same in one process: `python -m benchmarks.scale --dask`.

The cluster has two workers and speaks TLS. One worker is killed while it joins, one while it writes the drawn rows, and
both are started again. The table is that of alice in benchmarks.release, her only peer has the same tokens, and the
release is of everybody.
"""

import hashlib
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.made_tables import OWNERS, write_tables
from benchmarks.parties import cpu_of, study_text
from tests.common.tasks.cluster import WAIT, cluster
from tests.curator.killed_tasks import Killing
from veiltab.common.command.cli import note
from veiltab.common.core.randomness import KEY_BYTES
from veiltab.common.core.symbols import row_slices
from veiltab.common.storage.run_files import RunFiles, run_in
from veiltab.common.study.file import study_from_bytes
from veiltab.common.tasks.cluster_identity import load_cluster_identity
from veiltab.common.tasks.dask import Dask
from veiltab.common.tasks.engine import InProcess
from veiltab.curator.alignment.exchange import own_tokens
from veiltab.curator.alignment.intersection import AlignedTable, Joined
from veiltab.curator.alignment.token_order import TokenOrder
from veiltab.curator.columns.draw_tasks import DrawnSample
from veiltab.curator.table.execution import Execution
from veiltab.curator.table.table_reading import load_table

_OWNER = "alice"
_WORKERS = 2
_VICTIMS = {"_Join": 0, "_Order": 0}
"""Which task of a pass is killed."""

_KEY = bytes(KEY_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """What the passes took, and what they made.

    Args:
        wall: seconds.
        cpu: seconds, of all processes.
        digest: SHA-256 of the drawn columns in released order.
    """

    wall: float
    cpu: float
    digest: str


def measure(folder: Path, rows: int) -> dict[str, Passes]:
    """Run the passes in one process and on a cluster.

    Raises:
        AssertionError: they made other bytes, or no worker was killed.
    """
    note(f"{rows:,} rows: writing the tables")
    table = write_tables(folder, rows, "parquet")[_OWNER]
    note("  in one process")
    found = {"one process": _timed(folder / "alone", table, lambda run: Execution(run=run, engine=InProcess()))}
    note(f"  on {_WORKERS} workers over TLS, one killed while joining, one while writing")
    with cluster(folder / "cluster", workers=_WORKERS, tls=True, restarts=True) as running:
        if running.client is None:
            raise AssertionError("the cluster has no TLS")
        with closing(Dask(running.address, load_cluster_identity(running.client), wait=WAIT)) as dask:
            engine = Killing(engine=dask, folder=folder, victims=_VICTIMS)
            machines = [psutil.Process(one.pid) for one in (running.scheduler, *running.workers)]
            name = f"{_WORKERS} Dask workers, two killed"
            found[name] = _timed(
                folder / "shared", table, lambda run: Execution(run=run, engine=engine, is_remote=True), machines
            )
    if len(list(folder.glob("killed-*"))) != len(_VICTIMS):
        raise AssertionError("not every worker was killed that should be")
    if len({passes.digest for passes in found.values()}) != 1:
        raise AssertionError("the cluster made other bytes")
    return found


def _timed(
    folder: Path, table: Path, place: Callable[[RunFiles], Execution], machines: list[psutil.Process] | None = None
) -> Passes:
    folder.mkdir()
    processes = [psutil.Process(), *(machines or [])]
    began, before = time.monotonic(), sum(map(cpu_of, processes))
    with run_in(folder) as run:
        digest = _released(folder, table, place(run))
    return Passes(wall=time.monotonic() - began, cpu=sum(map(cpu_of, processes)) - before, digest=digest)


def _released(folder: Path, path: Path, execution: Execution) -> str:
    """Load, align and draw; return the digest of the columns in released order."""
    names = ("alice", "bob", "cloud", "rosa")
    endpoints = {name: f"localhost:{port}" for port, name in enumerate(names, 7400)}
    study = study_from_bytes(study_text(endpoints, 1).encode(), "study.toml")
    table, alignment = load_table(path, study, _OWNER, run=execution.run), folder / "alignment"
    alignment.mkdir()
    order = TokenOrder(table.respondents, execution)
    own, aligned = own_tokens(alignment), AlignedTable(alignment)
    order.write(_KEY, own)
    count = aligned.write(order.rows(None, {}, Joined()), table.respondents.types, own)
    sample, digest = DrawnSample(aligned, count, _KEY, OWNERS[_OWNER], execution), hashlib.sha256()
    for attribute in OWNERS[_OWNER]:
        column = sample.column(aligned, attribute)
        for part in row_slices(count):
            digest.update(column[part].data)
    return digest.hexdigest()
