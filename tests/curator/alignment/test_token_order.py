"""A table in the order of its tokens, section by section, against all of it at once."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from tests.curator.made_rows import rows_of
from tests.curator.watched_tasks import Watched
from veiltab.common.core.domain import Symbols
from veiltab.common.errors import IntegrityError
from veiltab.common.observe.progress import Stage
from veiltab.common.storage import partitions
from veiltab.common.storage.run_files import RunFiles, new_run
from veiltab.common.tasks.engine import InProcess
from veiltab.curator.alignment import token_order
from veiltab.curator.alignment.token_order import TokenOrder
from veiltab.curator.table.table_rows import TableRows, rows_on_disk
from veiltab.curator.table.tokens import tokens
from veiltab.curator.table.workplace import Workplace

KEY = bytes(range(32))
PEERS = ("bob", "carol")
Turn = Callable[[NDArray[np.uint8]], NDArray[np.uint8]]
"""What a curator does to the order of its tokens."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut few rows as many are cut."""
    monkeypatch.setattr(token_order, "SPREAD", 2500)
    monkeypatch.setattr(token_order, "PIECE", 400)
    monkeypatch.setattr(partitions, "SECTION", 3000)
    monkeypatch.setattr(partitions, "PART", 1000)


@pytest.fixture
def run(tmp_path: Path) -> RunFiles:
    return new_run(tmp_path)


def made_table(rows: int) -> tuple[list[str], dict[str, Symbols], TableRows]:
    rng = np.random.default_rng(rows)
    ids = [f"person {number}" for number in rng.permutation(rows)]
    columns: dict[str, Symbols] = {
        "sex": rng.integers(0, 2, rows, np.uint8),
        "place": rng.integers(0, 60_000, rows, np.uint16),
    }
    return ids, columns, rows_of([ids[start : start + 777] for start in range(0, rows, 777)], columns)


def ordered_tokens(ids: list[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    whole = tokens(pa.array(ids), KEY)
    words = whole.view(">u8")
    by_token = np.lexsort((words[:, 1], words[:, 0]))
    return whole[by_token], by_token


def files_of(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("rows", [1, 10_000])
def test_the_sections_are_the_whole(tmp_path: Path, run: RunFiles, rows: int) -> None:
    check_sections(tmp_path, run, rows, at_least=rows // 5000)


@pytest.mark.long
def test_the_sections_of_many_rows_are_the_whole(tmp_path: Path, run: RunFiles) -> None:
    check_sections(tmp_path, run, 2**20 + 3, at_least=2)


def check_sections(tmp_path: Path, run: RunFiles, rows: int, *, at_least: int) -> None:
    ids, columns, table = made_table(rows)
    ordered = TokenOrder(table, Workplace(run=run, engine=InProcess()))
    own, order = tmp_path / "own", tmp_path / "order"
    ordered.write(KEY, own, order)
    whole, by_token = ordered_tokens(ids)
    assert own.read_bytes() == whole.tobytes()
    assert np.array_equal(np.fromfile(order, np.int64), by_token)
    assert len(files_of(run.folder)) >= at_least
    assert all("-sorted-" in name for name in files_of(run.folder))  # what was spread is gone

    rng, others = np.random.default_rng(7), {name: tmp_path / name for name in PEERS}
    common = np.ones(rows, np.bool_)
    for path in others.values():
        here = rng.random(rows) < 0.9
        here[0] = True
        strangers = rng.integers(0, 256, (rows // 10, 16), np.uint8)
        theirs = np.concatenate([whole[here], strangers])
        path.write_bytes(b"".join(sorted(map(bytes, theirs))))
        common &= here
    pieces = list(ordered.common(others))
    assert len(pieces) >= at_least
    assert np.array_equal(np.concatenate([made for made, _ in pieces]), whole[common])
    for name, column in columns.items():
        assert np.array_equal(np.concatenate([symbols[name] for _, symbols in pieces]), column[by_token][common])
    assert files_of(tmp_path) == {"own", "order", "run", *PEERS}

    del ordered
    assert not files_of(run.folder)


def exchanged(place: int) -> Turn:
    return lambda rows: rows[[*range(place), place + 1, place, *range(place + 2, len(rows))]]


def turned(by: int) -> Turn:
    """Each of two runs is ascending; at their seam, and at the edges of sections, the order breaks."""
    return lambda rows: np.roll(rows, by, axis=0)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("turn", [*map(exchanged, [0, 1, 2999, 5000, 9998]), *map(turned, [1, 3000, 9999])])
def test_tokens_of_another_that_are_not_ascending_are_refused(tmp_path: Path, run: RunFiles, turn: Turn) -> None:
    ids, _, table = made_table(10_000)
    ordered = TokenOrder(table, Workplace(run=run, engine=InProcess()))
    ordered.write(KEY, tmp_path / "own", None)
    theirs, _ = ordered_tokens(ids)
    (tmp_path / "bob").write_bytes(turn(theirs).tobytes())
    with pytest.raises(IntegrityError, match="not in ascending order"):
        list(ordered.common({"bob": tmp_path / "bob"}))


@pytest.mark.usefixtures("small")
def test_each_pass_says_how_far_it_is(tmp_path: Path, run: RunFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.curator.table.workplace.SMALL", 0)
    _, _, table = made_table(10_000)
    stage = Stage()
    engine = Watched(stage)
    ordered = TokenOrder(table, Workplace(run=run, engine=engine), stage)
    ordered.write(KEY, tmp_path / "own", None)
    assert not str(stage)
    list(ordered.common({"bob": tmp_path / "own"}))
    assert not str(stage)
    passes = engine.passes
    shares = [int(line.partition(": ")[2].removesuffix(" %")) for line in engine.said]
    assert list(dict.fromkeys(passes)) == ["computing tokens", "sorting tokens", "comparing tokens"]
    for name in set(passes):
        (first, *rest) = (share for share, what in zip(shares, passes, strict=True) if what == name)
        assert first == 0
        assert rest == sorted(rest)
        assert 50 <= rest[-1] < 100  # the last task is ready, and not counted yet


@pytest.mark.usefixtures("small")
def test_rows_are_numbered_among_the_respondents(tmp_path: Path, run: RunFiles) -> None:
    """So that the row of a token is that of its id, whoever else is in the table."""
    rows, kept = rows_on_disk({}, run), np.arange(10_000) % 3 > 0
    everybody = [f"person {number}" for number in range(10_000)]
    for start in range(0, 10_000, 777):
        part = slice(start, start + 777)
        rows.append(pa.array(everybody[part], pa.large_string()), kept[part], {})
    TokenOrder(rows, Workplace(run=run, engine=InProcess())).write(KEY, tmp_path / "own", tmp_path / "order")
    whole, by_token = ordered_tokens([name for name, is_kept in zip(everybody, kept, strict=True) if is_kept])
    assert (tmp_path / "own").read_bytes() == whole.tobytes()
    assert np.array_equal(np.fromfile(tmp_path / "order", np.int64), by_token)


@pytest.mark.usefixtures("small")
def test_two_orders_of_a_run_keep_apart(tmp_path: Path, run: RunFiles) -> None:
    """Such as those of two alignments, of which the earlier one ends."""
    ids, columns, table = made_table(5000)
    first, second = (TokenOrder(table, Workplace(run=run, engine=InProcess())) for _ in range(2))
    first.write(bytes(32), tmp_path / "first", None)
    second.write(KEY, tmp_path / "own", None)
    del first
    whole, by_token = ordered_tokens(ids)
    pieces = list(second.common({"bob": tmp_path / "own"}))
    assert np.array_equal(np.concatenate([made for made, _ in pieces]), whole)
    assert np.array_equal(np.concatenate([symbols["sex"] for _, symbols in pieces]), columns["sex"][by_token])
