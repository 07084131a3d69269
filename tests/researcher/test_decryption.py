from functools import partial
from pathlib import Path
from tracemalloc import get_traced_memory, reset_peak, start, stop

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.conftest import refuses
from tests.researcher.made_release import decrypted_canaries
from veiltab.common.core.canaries import CanaryPlaces
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.pads import encrypt
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.symbols import CHUNK
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.release.receipts.canary_changes import ChangesCollector
from veiltab.common.release.table_spec import Column
from veiltab.common.storage.mapped import mapped_rows
from veiltab.researcher.receiving.decryption import EncryptedColumn, PublishedRows, count_rows
from veiltab.researcher.receiving.server_check import DecryptedCanaries

KEY = bytes(range(32))


def canaries_among(rows: int, canaries: int = 0) -> CanaryPlaces:
    return CanaryPlaces.of(KEY, rows=rows, canaries=canaries)


def column_of(size: int, name: str = "sex") -> Column:
    return Column(attribute=name, owner="alice", size=size)


def symbols(size: int, rows: int) -> Symbols:
    made: Symbols = np.empty(rows, symbol_dtype(size))
    made[:] = np.arange(rows) * 7 % size
    return made


def random_symbols(source: np.random.Generator, size: int, rows: int) -> Symbols:
    made: Symbols = np.empty(rows, symbol_dtype(size))
    made[:] = source.integers(0, size, rows)
    return made


def padded(column: Symbols, size: int, pad: Symbols) -> Symbols:
    """Return what a one-time pad makes of a column, computed without the product's kernels."""
    made = np.empty_like(column)
    made[:] = (column.astype(np.int64) + pad) % size
    return made


def counted(noisy: Path, size: int, rows: int, key: bytes | Path) -> NDArray[np.int64]:
    """Count one column without canaries."""
    column = EncryptedColumn(column=column_of(size), noisy=noisy, keys=(key,))
    return count_rows([column], PublishedRows(uploaded=rows, canaries=canaries_among(rows)))


def decrypted(noisy: Path, size: int, rows: int, key: bytes | Path) -> Symbols:
    """Return every symbol of a column, all of whose rows are said to be canaries."""
    column = EncryptedColumn(column=column_of(size), noisy=noisy, keys=(key,))
    published = PublishedRows(uploaded=rows, canaries=canaries_among(rows, rows))
    assert not count_rows([column], published).any()
    return decrypted_canaries([column], published)[0]


@pytest.mark.parametrize("size", [2, 3, 127, 128, 129, 200, 255, 256, 257, 300, 40_000, 65_536])
def test_both_kinds_of_pad_come_off(tmp_path: Path, size: int) -> None:
    rows = CHUNK + 3
    plain = symbols(size, rows)
    ciphertext = np.empty_like(plain)
    encrypt(plain, size, CipherStream(KEY), ciphertext)
    noisy = tmp_path / "noisy"
    noisy.write_bytes(ciphertext.tobytes())
    assert np.array_equal(decrypted(noisy, size, rows, KEY), plain)

    drawn = random_symbols(np.random.default_rng(size), size, rows)
    noisy.write_bytes(padded(plain, size, drawn).tobytes())
    pad = tmp_path / "pad"
    pad.write_bytes(drawn.tobytes())
    assert np.array_equal(decrypted(noisy, size, rows, pad), plain)


@pytest.mark.parametrize("length", [0, 9, 11, 20])
def test_a_file_of_another_length_is_refused(tmp_path: Path, length: int) -> None:
    noisy, pad = tmp_path / "noisy", tmp_path / "pad"
    noisy.write_bytes(bytes(length))
    with refuses(IntegrityError, where="attribute sex"):
        counted(noisy, 5, 10, KEY)
    noisy.write_bytes(bytes(10))
    pad.write_bytes(bytes(length))
    with refuses(IntegrityError, where="attribute sex"):
        counted(noisy, 5, 10, pad)


@pytest.mark.parametrize("size", [5, 300])
def test_symbols_outside_the_alphabet_are_refused(tmp_path: Path, size: int) -> None:
    noisy, pad = tmp_path / "noisy", tmp_path / "pad"
    good = symbols(size, 10)
    bad = good.copy()
    bad[9] = size
    pad.write_bytes(good.tobytes())
    noisy.write_bytes(bad.tobytes())
    for key in (KEY, pad):
        with pytest.raises(IntegrityError, match="1 of 10 symbols lie outside"):
            counted(noisy, size, 10, key)
    noisy.write_bytes(good.tobytes())
    pad.write_bytes(bad.tobytes())
    with pytest.raises(IntegrityError, match="1 of 10 symbols lie outside"):
        counted(noisy, size, 10, pad)


def test_a_key_of_another_length_is_refused_without_showing_it(tmp_path: Path) -> None:
    (tmp_path / "noisy").write_bytes(bytes(10))
    with pytest.raises(InvalidInputError, match="the key has"):
        counted(tmp_path / "noisy", 5, 10, b"1234567")


class Release:
    """Encrypted columns of random rows with canaries among them, of which some or all are published.

    Args:
        folder: where the columns are written.
        uploaded: rows, canaries included.
        canaries: how many.
        sampled: rows that the server sampled; None if it published all.
        one_time: whether the pads are one-time pads, else streams.
    """

    SIZES = (2, 300, 3)

    def __init__(self, folder: Path, *, uploaded: int, canaries: int, sampled: int | None, one_time: bool) -> None:
        source = np.random.default_rng(12)
        self.rows = PublishedRows(
            uploaded=uploaded,
            canaries=canaries_among(uploaded, canaries),
            sampled=None if sampled is None else np.sort(source.choice(uploaded, sampled, replace=False)),
            many=partial(mapped_rows, folder=folder),
        )
        self.table = [random_symbols(source, size, uploaded) for size in self.SIZES]
        self.columns = []
        for number, (plain, size) in enumerate(zip(self.table, self.SIZES, strict=True)):
            noisy, pad = folder / f"{number}.noisy", folder / f"{number}.pad"
            key = bytes([number]) * 32
            ciphertext = np.empty_like(plain)
            if one_time:
                drawn = random_symbols(source, size, uploaded)
                pad.write_bytes(drawn.tobytes())
                ciphertext = padded(plain, size, drawn)
            else:
                encrypt(plain, size, CipherStream(key), ciphertext)
            noisy.write_bytes(ciphertext[self.published].tobytes())
            column = column_of(size, f"a{number}")
            self.columns.append(EncryptedColumn(column=column, noisy=noisy, keys=(pad if one_time else key,)))

    @property
    def published(self) -> NDArray[np.int64]:
        """The places of the published rows."""
        return np.arange(self.rows.uploaded) if self.rows.sampled is None else self.rows.sampled


@pytest.mark.parametrize("one_time", [False, True], ids=["stream", "one-time"])
@pytest.mark.parametrize(
    ("uploaded", "canaries", "sampled"),
    [
        (4000, 0, None),
        (4000, 1000, None),
        (1, 1, None),
        (CHUNK, CHUNK, None),
        (2 * CHUNK + 50, 70_000, None),
        (4000, 0, 900),
        (4000, 1000, 900),
        (4000, 1000, 4000),
        (2 * CHUNK + 50, 70_000, 3),
        (2 * CHUNK + 50, 70_000, CHUNK + 7),
    ],
)
def test_rows_of_data_are_counted_and_canaries_are_not(
    tmp_path: Path, uploaded: int, canaries: int, sampled: int | None, *, one_time: bool
) -> None:
    release = Release(tmp_path, uploaded=uploaded, canaries=canaries, sampled=sampled, one_time=one_time)
    found = count_rows(release.columns, release.rows)
    published = set(release.published.tolist())
    places = release.rows.canaries.all()
    known = [place for place in places.tolist() if place in published]
    data = sorted(published - set(known))
    expected = np.zeros(Release.SIZES, np.int64)
    np.add.at(expected, tuple(column[data] for column in release.table), 1)
    assert found.dtype == np.int64
    assert np.array_equal(found, expected.reshape(-1))
    for symbols_of_one, column in zip(decrypted_canaries(release.columns, release.rows), release.table, strict=True):
        assert np.array_equal(symbols_of_one, column[known])
    numbers = release.rows.published_canaries.sampled
    assert np.array_equal(places if numbers is None else places[numbers], known)
    assert np.array_equal(release.published[release.rows.published_canaries.rows], known)


@pytest.mark.parametrize("one_time", [False, True], ids=["stream", "one-time"])
def test_what_is_decrypted_is_written_nowhere_and_fills_no_memory(tmp_path: Path, *, one_time: bool) -> None:
    peaks = []
    for chunks in (2, 8):
        folder = tmp_path / str(chunks)
        folder.mkdir()
        release = Release(folder, uploaded=chunks * CHUNK, canaries=1000, sampled=None, one_time=one_time)
        before = sorted((path.name, path.read_bytes()) for path in folder.iterdir())
        start()
        reset_peak()
        count_rows(release.columns, release.rows)
        peaks.append(get_traced_memory()[1])
        stop()
        assert sorted((path.name, path.read_bytes()) for path in folder.iterdir()) == before
    assert peaks[1] < peaks[0] + CHUNK // 8


@pytest.mark.parametrize("is_sampled", [False, True])
def test_many_canaries_fill_no_memory(tmp_path: Path, *, is_sampled: bool) -> None:
    """A release of everybody with a delta has about as many as rows."""
    peaks, column = [], column_of(2)
    some = ChangesCollector([column], most=0).changes()
    assert some is not None
    for chunks in (2, 5):
        uploaded, canaries = chunks * CHUNK, chunks * CHUNK // 2
        rows = PublishedRows(
            uploaded=uploaded,
            canaries=canaries_among(uploaded, canaries),
            sampled=np.arange(0, uploaded, 2) if is_sampled else None,
            many=partial(mapped_rows, folder=tmp_path),
        )
        noisy = tmp_path / "noisy"
        noisy.write_bytes(bytes(rows.count))
        start()
        changed = DecryptedCanaries(KEY, [column], canaries, rows.published_canaries, {"alice": some})
        count_rows([EncryptedColumn(column=column, noisy=noisy, keys=(KEY,))], rows, changed.compare)
        peaks.append(get_traced_memory()[1])
        stop()
    assert peaks[1] < peaks[0] + CHUNK


@pytest.mark.parametrize(
    "where",
    [[], [-1, 3], [3, 3], [4, 3], [3, 10], [0, 2, 1], [2**62]],
    ids=["none", "negative", "repeated", "falling", "too large", "falling later", "far too large"],
)
def test_places_that_are_none_of_the_uploaded_rows_are_refused(where: list[int]) -> None:
    with refuses(IntegrityError, where="places"):
        PublishedRows(uploaded=10, canaries=canaries_among(10), sampled=np.array(where, np.int64))
