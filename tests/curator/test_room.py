"""What a curator's steps are said to write is what they write, or a little more."""

import asyncio
import secrets
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from tests.conftest import noise_with, request_with, spec_with
from tests.curator.disk_use import disk_use
from tests.curator.made_rows import aligned, execution
from tests.curator.test_shared_sample import Tossed
from tests.researcher.made_workload import workload_with
from tests.worlds.columns import encrypt
from veiltab.common.core.domain import Symbols
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.spec import release_of
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.schemes import SCHEMES, has_stage, scheme_class
from veiltab.curator.alignment.disk_needs import alignment_bytes, release_bytes
from veiltab.curator.columns.encryption import ColumnEncryption
from veiltab.curator.columns.shared_sample import Sampler
from veiltab.curator.peers.calls import Peers
from veiltab.curator.peers.coins import Coins
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.table.execution import Execution

ID = "0" * 31 + "1"
N = 50_000
SLACK = 2**16 + 2**14
MODES = [(name, Sampling.SEED) for name in SCHEMES] + [("wor", Sampling.SERVER), ("wor", Sampling.INDICES)]


def measured(folder: Path, spec: TableSpec, place: Execution | None = None) -> int:
    """Return what a release writes at alice."""
    tokens = np.sort(np.frombuffer(secrets.token_bytes(16 * N), "S16")).view(np.uint8).reshape(-1, 16)
    columns: dict[str, Symbols] = {"sex": np.zeros(N, np.uint8), "age": np.zeros(N, np.uint16)}
    table = aligned(folder / "aligned", tokens, columns)
    with closing(CuratorStore(folder / "curator.sqlite")) as store, disk_use(folder) as use:
        store.releases.add(request_with(), 1)
        sampler = Sampler("alice", folder / "releases", cast("Coins", Tossed()), store, place or execution(folder))
        sample = asyncio.run(sampler.draw(spec, table, cast("Peers", SimpleNamespace())))
        encryption = ColumnEncryption(store, folder / "releases" / ID, ID)
        for column in spec.columns:
            values = sample.rows.column(table, column.attribute)
            encrypt(encryption, column.attribute, values, column.size, spec.pad, noise_with(canaries=spec.canaries))
    return use.most


COLUMNS = (Column(attribute="sex", owner="alice", size=2), Column(attribute="age", owner="alice", size=300))


@pytest.mark.parametrize(("scheme", "sampling"), MODES)
def test_a_release_writes_no_more_than_is_kept_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, sampling: Sampling
) -> None:
    for name in (
        "common.storage.partitions.BATCH",
        "common.storage.partitions.PART",
        "curator.columns.sample_rows.CHUNK",
    ):
        monkeypatch.setattr(f"veiltab.{name}", 2**13)
    monkeypatch.setattr("veiltab.curator.columns.sample_rows.MOST_HELD", 0)
    spec = spec_with(
        columns=COLUMNS,
        population=N,
        sample=N // 2 if sampling.is_by_server else N,
        scheme=scheme,
        sampling=sampling,
        stage=N if has_stage(scheme_class(scheme)) else None,
        canaries=1000,
        server_replacement=2**63,
    )
    most = measured(tmp_path, spec)
    assert most <= release_bytes(release_of(spec), "alice") <= 3 * most + SLACK
    assert release_bytes(release_of(spec), "bob") < release_bytes(release_of(spec), "alice")


def test_a_large_release_writes_no_more_in_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.curator.table.execution.SMALL", 1)
    spec = spec_with(columns=COLUMNS, population=N, sample=N, canaries=1000, server_replacement=2**63)
    for is_remote in (False, True):
        folder = tmp_path / str(is_remote)
        place = replace(execution(folder), is_remote=is_remote)
        most, kept = measured(folder, spec, place), release_bytes(release_of(spec), "alice", copies=is_remote)
        assert most <= kept <= 2 * most + SLACK


def test_an_alignment_by_hand() -> None:
    # Tokens and symbols twice, and the tokens of all three.
    assert alignment_bytes(1000, [np.dtype(np.uint8), np.dtype(np.uint16)], 3) == 1000 * (2 * 19 + 3 * 16) + 2**16


def test_one_time_pads_stay_beside_their_columns() -> None:
    spec = spec_with(canaries=50)
    more = release_bytes(release_of(replace(spec, pad=Pad.OTP)), "alice") - release_bytes(release_of(spec), "alice")
    assert more == spec.uploaded_rows == 450


def test_of_several_tables_so_many_take_room_as_run_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = workload_with()
    pair, single, other = (release_bytes(release_of(table), "alice") for table in workload.each_table())
    assert pair > single == other
    assert release_bytes(workload, "alice") == pair + 2 * single
    monkeypatch.setattr("veiltab.curator.alignment.disk_needs.MOST_TABLES_AT_A_TIME", 2)
    assert release_bytes(workload, "alice") == pair + single
    # One-time pads stay: those of every table, and of the two that may run again.
    pads = release_bytes(replace(workload, pad=Pad.OTP), "alice") - release_bytes(workload, "alice")
    assert pads == 1008 * (4 + 3)
