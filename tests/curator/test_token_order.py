"""A table in the order of its tokens, part by part, against all of it at once."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.curator.made_rows import rows_of
from veiltab.common.core.domain import Symbols
from veiltab.common.storage import partitions
from veiltab.common.storage.scratch import Scratch
from veiltab.curator.token_order import TokenOrder
from veiltab.curator.tokens import tokens

KEY = bytes(range(32))


@pytest.mark.parametrize("rows", [1, 10_000, pytest.param(10**6, marks=pytest.mark.long)])
def test_the_parts_are_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(partitions, "BATCH", 3000)
    monkeypatch.setattr(partitions, "PART", 1000)
    rng = np.random.default_rng(rows)
    ids = [f"person {number}" for number in rng.permutation(rows)]
    columns: dict[str, Symbols] = {
        "sex": rng.integers(0, 2, rows, np.uint8),
        "place": rng.integers(0, 60_000, rows, np.uint16),
    }
    table = rows_of([ids[start : start + 777] for start in range(0, rows, 777)], columns)
    ordered = TokenOrder(table, Scratch(tmp_path))
    own, order = tmp_path / "own", tmp_path / "order"
    ordered.write(KEY, own, order)

    whole = tokens(pa.array(ids), KEY)
    words = whole.view(">u8")
    by_token = np.lexsort((words[:, 1], words[:, 0]))
    assert own.read_bytes() == whole[by_token].tobytes()
    assert np.array_equal(np.fromfile(order, np.int64), by_token)
    pieces = list(ordered.symbols())
    assert len(pieces) == len(list(ordered.tokens(own))) >= rows // 1000
    for name, column in columns.items():
        assert np.array_equal(np.concatenate([piece[name] for piece in pieces]), column[by_token])
    assert b"".join(piece.tobytes() for piece in ordered.tokens(own)) == own.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"own", "order"}
