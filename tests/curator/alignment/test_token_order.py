"""A table in the order of its tokens, and by the rows of a hub, section by section, against all of it at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from tests.conftest import refuses
from tests.curator.made_rows import rows_of
from tests.curator.watched_tasks import Watched
from veiltab.common.core.domain import PARTS, POSITION, Symbols
from veiltab.common.errors import IntegrityError
from veiltab.common.observe.progress import Stage
from veiltab.common.storage import partitions
from veiltab.common.storage.run_files import RunFiles, new_run
from veiltab.common.tasks.engine import InProcess
from veiltab.curator.alignment import intersection, token_order
from veiltab.curator.alignment.intersection import HubRows, Joined, Lacking, Tokens
from veiltab.curator.alignment.token_order import TokenOrder
from veiltab.curator.table.execution import Execution
from veiltab.curator.table.table_rows import TableRows, rows_on_disk
from veiltab.curator.table.tokens import tokens

KEY = bytes(range(32))
LACKING: Mapping[str, Lacking] = {
    "sex": Lacking(categories=2, parts=1),
    "place": Lacking(categories=60_000, parts=1),
    "income": Lacking(categories=50, parts=PARTS),
}
"""Of the attributes of `made_table`: what people have who are not there."""

ABSENT: Mapping[str, int] = {"sex": 2, "place": 60_000, "income": 50 * PARTS}
Turn = Callable[[NDArray[np.uint8]], NDArray[np.uint8]]
"""What a curator does to the order of its tokens."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut few rows as many are cut."""
    monkeypatch.setattr(token_order, "SPREAD", 2500)
    monkeypatch.setattr(intersection, "PIECE", 400)
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
        "income": rng.integers(0, 49 * PARTS + 1, rows, POSITION),
    }
    return ids, columns, rows_of([ids[start : start + 777] for start in range(0, rows, 777)], columns)


def ordered_tokens(ids: list[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    whole = tokens(pa.array(ids, pa.large_string()), KEY)
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
    ordered = TokenOrder(table, Execution(run=run, engine=InProcess()))
    own = tmp_path / "own"
    ordered.write(KEY, own)
    whole, by_token = ordered_tokens(ids)
    assert own.read_bytes() == whole.tobytes()
    assert len(files_of(run.folder)) >= at_least
    assert all("-sorted-" in name for name in files_of(run.folder))  # what was spread is gone

    pieces, joined = list(ordered.rows(None, {}, alone := Joined())), Joined()
    assert len(pieces) >= at_least
    check_rows(pieces, whole, {name: column[by_token] for name, column in columns.items()})
    rng = np.random.default_rng(7)
    here = rng.random(rows) < 0.9
    here[0] = True
    hub, expected = hub_of(whole[here], rows // 10), {name: column[by_token][here] for name, column in columns.items()}
    (tmp_path / "hub").write_bytes(hub.tobytes())
    check_rows(list(ordered.rows(tmp_path / "hub", LACKING, joined)), hub, filled(hub, whole[here], expected))
    assert (alone.matched, joined.matched) == (rows, int(np.count_nonzero(here)))
    assert files_of(tmp_path) == {"own", "run", "hub"}
    assert not any("-from-" in name for name in files_of(run.folder))

    del ordered
    assert not files_of(run.folder)


def hub_of(some: Tokens, strangers: int) -> Tokens:
    """Return tokens of a hub in order: some, and those of people whom it has alone."""
    others = np.random.default_rng(strangers).integers(0, 256, (strangers, 16), np.uint8)
    return in_order_of_bytes(np.concatenate([some, others]))


def in_order_of_bytes(some: Tokens) -> Tokens:
    words = some.view(">u8")
    return some[np.lexsort((words[:, 1], words[:, 0]))]


def filled(hub: Tokens, some: Tokens, symbols: Mapping[str, Symbols]) -> dict[str, Symbols]:
    """Return the columns by the rows of a hub that has some people: one by one, as the definition says."""
    places = {bytes(one): place for place, one in enumerate(some)}
    rows = [places.get(bytes(one)) for one in hub]
    return {
        name: np.array([ABSENT[name] if row is None else column[row] for row in rows]).astype(column.dtype)  # type: ignore[misc] # as its column
        for name, column in symbols.items()
    }


def check_rows(made: Sequence[HubRows], tokens_: Tokens, columns: Mapping[str, Symbols]) -> None:
    """Check tokens and columns that came in pieces."""
    assert np.array_equal(np.concatenate([tokens_[:0], *(piece for piece, _ in made)]), tokens_)
    for name, column in columns.items():
        whole = np.concatenate([column[:0], *(symbols[name] for _, symbols in made)])
        assert whole.dtype == column.dtype
        assert np.array_equal(whole, column)


def joined_with(
    folder: Path, table: TableRows, hub: Tokens, lacking: Mapping[str, Lacking]
) -> tuple[list[HubRows], int]:
    """Return the rows of a hub, and how many are of people in a table."""
    ordered, joined = TokenOrder(table, Execution(run=new_run(folder), engine=InProcess())), Joined()
    ordered.write(KEY, folder / "own")
    (folder / "hub").write_bytes(hub.tobytes())
    return list(ordered.rows(folder / "hub", lacking, joined)), joined.matched


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("strangers", [0, 1, 30_000])
@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("rows", [0, 1, 7000])
def test_rows_of_the_hub_have_own_symbols_or_absent(tmp_path: Path, rows: int, share: float, strangers: int) -> None:
    """A hub that is wider or narrower than the table, or has nobody of it."""
    ids, columns, table = made_table(rows)
    whole, by_token = ordered_tokens(ids)
    here = np.random.default_rng(strangers).random(rows) < share
    hub = hub_of(whole[here], strangers)
    made, matched = joined_with(tmp_path, table, hub, LACKING)
    expected = {name: column[by_token][here] for name, column in columns.items()}
    check_rows(made, hub, filled(hub, whole[here], expected))
    assert matched == np.count_nonzero(here)
    assert all(len(piece) <= 400 for piece, _ in made)


@pytest.mark.usefixtures("small")
def test_sections_in_which_the_hub_has_nobody(tmp_path: Path) -> None:
    """And such as only the hub has: its people have few of the leading bits that the table has."""
    ids, columns, table = made_table(7000)
    whole, by_token = ordered_tokens(ids)
    for number, part in enumerate([slice(0, 5), slice(3000, 3500), slice(6990, 7000), slice(0, 0)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        edges = np.repeat(np.array([[0], [255]], np.uint8), 16, axis=1)
        hub = in_order_of_bytes(np.concatenate([whole[part], edges]))
        made, matched = joined_with(folder, table, hub, LACKING)
        expected = {name: column[by_token][part] for name, column in columns.items()}
        check_rows(made, hub, filled(hub, whole[part], expected))
        assert matched == len(whole[part])


@pytest.mark.usefixtures("small")
def test_a_complete_table_that_lacks_somebody_says_so_nowhere(tmp_path: Path) -> None:
    ids, columns, table = made_table(3000)
    whole, by_token = ordered_tokens(ids)
    hub = hub_of(whole[::2], 2000)
    lacking = {name: replace(one, key=bytes(32)) for name, one in LACKING.items()}
    made, matched = joined_with(tmp_path, table, hub, lacking)
    assert matched == 1500
    people = {bytes(one): place for place, one in enumerate(whole[::2])}
    rows = np.array([people.get(bytes(one), -1) for one in hub])
    for name, column in columns.items():
        joined = np.concatenate([symbols[name] for _, symbols in made])
        assert np.array_equal(joined[rows >= 0], column[by_token][::2][rows[rows >= 0]])
        drawn = joined[rows < 0].astype(np.int64)
        parts, categories = lacking[name].parts, lacking[name].categories
        assert not np.any(drawn % parts)
        assert 0 <= drawn.min() < drawn.max() < categories * parts
        assert len(set(drawn)) > min(categories, 1000) / 2  # uniform, not one value for all


def exchanged(place: int) -> Turn:
    return lambda rows: rows[[*range(place), place + 1, place, *range(place + 2, len(rows))]]


def turned(by: int) -> Turn:
    """Each of two runs is ascending; at their seam, and at the edges of sections, the order breaks."""
    return lambda rows: np.roll(rows, by, axis=0)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("turn", [*map(exchanged, [0, 1, 2999, 5000, 9998]), *map(turned, [1, 3000, 9999])])
def test_tokens_of_a_hub_that_are_not_ascending_are_refused(tmp_path: Path, run: RunFiles, turn: Turn) -> None:
    ids, _, table = made_table(10_000)
    ordered = TokenOrder(table, Execution(run=run, engine=InProcess()))
    ordered.write(KEY, tmp_path / "own")
    theirs, _ = ordered_tokens(ids)
    (tmp_path / "hub").write_bytes(turn(theirs).tobytes())
    with refuses(IntegrityError, where="hub"):
        list(ordered.rows(tmp_path / "hub", LACKING, Joined()))


@pytest.mark.usefixtures("small")
def test_each_pass_says_how_far_it_is(tmp_path: Path, run: RunFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.curator.table.execution.SMALL", 0)
    _, _, table = made_table(10_000)
    stage = Stage()
    engine = Watched(stage)
    ordered = TokenOrder(table, Execution(run=run, engine=engine), stage)
    ordered.write(KEY, tmp_path / "own")
    assert not str(stage)
    list(ordered.rows(tmp_path / "own", LACKING, Joined()))
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
    TokenOrder(rows, Execution(run=run, engine=InProcess())).write(KEY, tmp_path / "own")
    whole, _ = ordered_tokens([name for name, is_kept in zip(everybody, kept, strict=True) if is_kept])
    assert (tmp_path / "own").read_bytes() == whole.tobytes()


@pytest.mark.usefixtures("small")
def test_two_orders_of_a_run_keep_apart(tmp_path: Path, run: RunFiles) -> None:
    """Such as those of two alignments, of which the earlier one ends."""
    ids, columns, table = made_table(5000)
    first, second = (TokenOrder(table, Execution(run=run, engine=InProcess())) for _ in range(2))
    first.write(bytes(32), tmp_path / "first")
    second.write(KEY, tmp_path / "own")
    del first
    whole, by_token = ordered_tokens(ids)
    pieces = list(second.rows(None, {}, Joined()))
    check_rows(pieces, whole, {name: column[by_token] for name, column in columns.items()})
