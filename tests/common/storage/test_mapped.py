"""Row numbers on disk."""

from pathlib import Path

import numpy as np
import pytest

from veiltab.common.storage.mapped import mapped_rows


@pytest.mark.parametrize("lengths", [[], [0], [3], [2, 0, 5]])
def test_rows_are_those_of_all_pieces(tmp_path: Path, lengths: list[int]) -> None:
    pieces = [np.random.default_rng(length).integers(-5, 2**40, length) for length in lengths]
    rows = mapped_rows(iter(pieces), tmp_path)
    assert rows.tolist() == [row for piece in pieces for row in piece.tolist()]
    assert rows.dtype == np.int64
    assert isinstance(rows, np.memmap) is bool(sum(lengths))
    assert not list(tmp_path.iterdir())
