"""Scratch space: what is written is read back from anywhere, and nothing of it can be found or read by others."""

import os
import resource
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veiltab.common.errors import IntegrityError
from veiltab.common.storage.scratch import Scratch
from veiltab.common.storage.sealed import PAGE


@settings(deadline=None, max_examples=50)
@given(arrays=st.lists(st.binary(max_size=100), min_size=1, max_size=8), data=st.data())
def test_every_range_is_read_back(arrays: list[bytes], data: st.DataObject) -> None:
    scratch = Scratch(None)
    starts = [scratch.append(np.frombuffer(one, np.uint8)) for one in arrays]
    for one, start in zip(arrays, starts, strict=True):
        first = data.draw(st.integers(0, len(one)))
        length = data.draw(st.integers(0, len(one) - first))
        assert scratch.read(start + first, length).tobytes() == one[first : first + length]


def test_arrays_of_any_type_and_shape_are_written_in_c_order() -> None:
    scratch = Scratch(None)
    array = np.arange(60, dtype="<u2").reshape(5, 12)[::2, 1:]
    start = scratch.append(array)
    assert np.array_equal(scratch.read(start, array.nbytes).view("<u2").reshape(array.shape), array)


def test_the_file_has_no_name_and_holds_nothing_that_was_written(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    scratch = Scratch(folder)
    secret = np.frombuffer(b"Zebra, a name that nobody else has" * 100, np.uint8)
    scratch.append(secret)
    scratch.append(secret)
    assert not list(folder.iterdir())
    descriptor = scratch._file
    assert os.fstat(descriptor).st_mode & 0o777 == 0o600
    stored = os.pread(descriptor, 10**6, 0)
    assert len(stored) >= 2 * len(secret)
    assert b"Zebra" not in stored
    # The same bytes look otherwise in another place.
    blocks = [stored[place : place + 16] for place in range(0, len(stored), 16)]
    assert len(set(blocks)) == len(blocks)


def test_no_key_serves_two_files(tmp_path: Path) -> None:
    stored = list[bytes]()
    for _ in range(2):
        scratch = Scratch(tmp_path)
        scratch.append(np.zeros(4096, np.uint8))
        # Behind the length of the page, which is the same.
        stored.append(os.pread(scratch._file, 10**6, 4))
    blocks = [one[place : place + 16] for one in stored for place in range(0, 4096, 16)]
    assert len(set(blocks)) == len(blocks)


@pytest.mark.parametrize("before", [2**8, 2**16, 2**24])
def test_no_nonce_serves_two_pages_of_a_long_file(tmp_path: Path, before: int) -> None:
    scratch = Scratch(tmp_path)
    scratch.append(np.zeros(10, np.uint8))
    scratch._pages = before  # a hole in the file: nothing is written in between
    start = scratch.append(np.zeros(10, np.uint8))
    assert start == before * PAGE
    first, later = (os.pread(scratch._file, 10**6, page * (4 + PAGE + 16))[4:20] for page in (0, before))
    assert first != later
    assert scratch.read(start, 10).tobytes() == bytes(10)


def test_the_space_is_given_back_with_the_last_reference(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    descriptor = scratch._file
    os.fstat(descriptor)
    del scratch
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_what_was_never_written_is_not_read() -> None:
    scratch = Scratch(None)
    start = scratch.append(np.zeros(10, np.uint8))
    with pytest.raises(IntegrityError, match="shorter than what was written"):
        scratch.read(start, 11)


def test_a_disk_that_takes_no_more_is_named(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            scratch.append(np.zeros(10_000, np.uint8))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.__notes__ == [str(tmp_path)]
