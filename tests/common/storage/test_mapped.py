"""Arrays on disk."""

import tempfile
from pathlib import Path

import numpy as np
import pytest

from veiltab.common.storage.mapped import mapped_array, mapped_rows


@pytest.mark.parametrize("lengths", [[], [0], [3], [2, 0, 5]])
def test_rows_are_those_of_all_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lengths: list[int]) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")  # another disk, perhaps a smaller one
    pieces = [np.random.default_rng(length).integers(-5, 2**40, length) for length in lengths]
    rows = mapped_rows(iter(pieces), tmp_path)
    assert rows.tolist() == [row for piece in pieces for row in piece.tolist()]
    assert rows.dtype == np.int64
    assert isinstance(rows, np.memmap) is bool(sum(lengths))
    assert not list(tmp_path.iterdir())


def test_an_array_is_what_its_file_holds_and_is_read_alone(tmp_path: Path) -> None:
    numbers = np.arange(5000, dtype="<u2")
    numbers.tofile(tmp_path / "numbers")
    array = mapped_array(tmp_path / "numbers", "<u2")
    assert np.array_equal(array, numbers)
    assert not array.flags.writeable
    (tmp_path / "empty").touch()
    for name, error in {"empty": ValueError, "none": FileNotFoundError}.items():
        with pytest.raises(error):
            mapped_array(tmp_path / name, "<u2")
