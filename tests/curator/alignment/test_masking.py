"""Columns of elements: sorted, compared and read back, beside sets and lists of Python's."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from veiltab.curator.alignment import intersection
from veiltab.curator.alignment.private.masking import among, count, elements_of, ids_of, is_ascending, sort

RNG = np.random.default_rng(1)
COLUMN = [RNG.bytes(32) for _ in range(50)] + [bytes(31) + b"\x01", b"\xff" * 31 + b"\x00", b"\xff" * 32]


def written(path: Path, column: list[bytes]) -> Path:
    path.write_bytes(b"".join(column))
    return path


def test_a_sorted_file_is_in_the_order_of_bytes(tmp_path: Path) -> None:
    source = written(tmp_path / "source", COLUMN)
    sort(source, tmp_path / "sorted")
    assert (tmp_path / "sorted").read_bytes() == b"".join(sorted(COLUMN))
    assert count(tmp_path / "sorted") == len(COLUMN)
    assert is_ascending(elements_of(tmp_path / "sorted"))
    assert not is_ascending(elements_of(source))


def test_equal_neighbours_are_not_ascending(tmp_path: Path) -> None:
    low, high = bytes(32), bytes(31) + b"\x01"
    assert is_ascending(elements_of(written(tmp_path / "a", [low, high])))
    assert not is_ascending(elements_of(written(tmp_path / "b", [low, low])))
    assert is_ascending(elements_of(written(tmp_path / "c", [])))


@pytest.mark.parametrize("piece", [3, 2**16])
def test_which_elements_are_among_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(intersection, "PIECE", piece)
    others = sorted([*COLUMN[::3], RNG.bytes(32)])
    found = among(elements_of(written(tmp_path / "a", COLUMN)), elements_of(written(tmp_path / "b", others)))
    assert found.tolist() == [element in others for element in COLUMN]
    nothing = elements_of(written(tmp_path / "c", []))
    assert not among(elements_of(tmp_path / "a"), nothing).any()
    assert among(nothing, elements_of(tmp_path / "b")).tolist() == []


def test_ids_of_chunks_and_slices_are_their_bytes() -> None:
    names = ["Ann", "", "Zoë", "Bea", "漢字", "d" * 300]
    chunks = [pa.array(names, pa.large_string()).slice(1, 3), pa.array(names, pa.large_string())]
    column = pa.chunked_array(chunks)
    wanted = [name.encode() for name in [*names[1:4], *names]]
    assert ids_of(column) == wanted
    assert ids_of(column.slice(2, 4)) == wanted[2:6]
