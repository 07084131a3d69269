from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.mechanism import GammaDiagonal, perturb
from veiltab.common.core.pads import encrypt
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.symbols import CHUNK
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.release.spec import Column
from veiltab.researcher.decryption import Places, count_rows, decrypt_column

KEY = bytes(range(32))


def column_of(size: int) -> Column:
    return Column(attribute="sex", owner="alice", size=size)


def symbols(size: int, rows: int) -> Symbols:
    made: Symbols = np.empty(rows, symbol_dtype(size))
    made[:] = np.arange(rows) * 7 % size
    return made


@pytest.mark.parametrize("size", [2, 3, 127, 128, 129, 200, 255, 256, 257, 300, 40_000, 65_536])
def test_both_kinds_of_pad_come_off(tmp_path: Path, size: int) -> None:
    rows = CHUNK + 3
    plain = symbols(size, rows)
    ciphertext = np.empty_like(plain)
    encrypt(plain, size, CipherStream(KEY), ciphertext)
    noisy, out = tmp_path / "noisy", tmp_path / "rows"
    noisy.write_bytes(ciphertext.tobytes())
    decrypt_column(noisy, column_of(size), rows, KEY, out)
    assert np.array_equal(np.fromfile(out, symbol_dtype(size)), plain)

    drawn = np.random.default_rng(size).integers(0, size, rows)
    noisy.write_bytes(((plain.astype(np.int64) + drawn) % size).astype(symbol_dtype(size)).tobytes())
    pad = tmp_path / "pad"
    pad.write_bytes(drawn.astype(symbol_dtype(size)).tobytes())
    decrypt_column(noisy, column_of(size), rows, pad, out)
    assert np.array_equal(np.fromfile(out, symbol_dtype(size)), plain)


def test_decryption_commutes_with_perturbation(tmp_path: Path) -> None:
    """What comes off perturbed ciphertext is the row itself wherever the server kept it."""
    rows, size = 5000, 5
    plain = symbols(size, rows)
    ciphertext, noisy = np.empty_like(plain), np.empty_like(plain)
    encrypt(plain, size, CipherStream(KEY), ciphertext)
    mechanism = GammaDiagonal.from_gamma(size, Fraction(9))
    perturb([ciphertext], [size], mechanism, CipherStream(bytes(32)), [noisy])
    (tmp_path / "noisy").write_bytes(noisy.tobytes())
    decrypt_column(tmp_path / "noisy", column_of(size), rows, KEY, tmp_path / "rows")
    decrypted = np.fromfile(tmp_path / "rows", np.uint8)
    assert np.array_equal(decrypted == plain, noisy == ciphertext)
    assert 0.5 < float(np.mean(decrypted == plain)) < 0.9


def test_another_key_gives_other_rows(tmp_path: Path) -> None:
    noisy = tmp_path / "noisy"
    noisy.write_bytes(symbols(5, 1000).tobytes())
    for name, key in (("a", KEY), ("b", bytes(32))):
        decrypt_column(noisy, column_of(5), 1000, key, tmp_path / name)
    assert (tmp_path / "a").read_bytes() != (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("length", [0, 9, 11, 20])
def test_a_file_of_another_length_is_refused(tmp_path: Path, length: int) -> None:
    noisy, pad, out = tmp_path / "noisy", tmp_path / "pad", tmp_path / "rows"
    noisy.write_bytes(bytes(length))
    with pytest.raises(IntegrityError, match="attribute sex: a column has another length than its release"):
        decrypt_column(noisy, column_of(5), 10, KEY, out)
    noisy.write_bytes(bytes(10))
    pad.write_bytes(bytes(length))
    with pytest.raises(IntegrityError, match="another length"):
        decrypt_column(noisy, column_of(5), 10, pad, out)
    assert not out.exists()


@pytest.mark.parametrize("size", [5, 300])
def test_symbols_outside_the_alphabet_are_refused(tmp_path: Path, size: int) -> None:
    noisy, pad, out = tmp_path / "noisy", tmp_path / "pad", tmp_path / "rows"
    good = symbols(size, 10)
    bad = good.copy()
    bad[9] = size
    pad.write_bytes(good.tobytes())
    noisy.write_bytes(bad.tobytes())
    for key in (KEY, pad):
        with pytest.raises(IntegrityError, match="1 of 10 symbols lie outside"):
            decrypt_column(noisy, column_of(size), 10, key, out)
    noisy.write_bytes(good.tobytes())
    pad.write_bytes(bad.tobytes())
    with pytest.raises(IntegrityError, match="1 of 10 symbols lie outside"):
        decrypt_column(noisy, column_of(size), 10, pad, out)
    assert not out.exists()


def test_a_key_of_another_length_is_refused_without_showing_it(tmp_path: Path) -> None:
    (tmp_path / "noisy").write_bytes(bytes(10))
    with pytest.raises(InvalidInputError, match="32 bytes, not 7"):
        decrypt_column(tmp_path / "noisy", column_of(5), 10, b"1234567", tmp_path / "rows")


def test_rows_are_counted_in_c_order(tmp_path: Path) -> None:
    sizes, rows = (2, 300, 3), 4000
    source = np.random.default_rng(12)
    table = [source.integers(0, size, rows).astype(symbol_dtype(size)) for size in sizes]
    columns = [Column(attribute=f"a{size}", owner="alice", size=size) for size in sizes]
    files = [tmp_path / column.attribute for column in columns]
    for file, values in zip(files, table, strict=True):
        file.write_bytes(values.tobytes())
    counted = count_rows(files, columns, rows)
    expected = np.zeros(sizes, np.int64)
    for cell in zip(*table, strict=True):
        expected[cell] += 1
    assert counted.dtype == np.int64
    assert np.array_equal(counted, expected.reshape(-1))
    assert [counted[k] for k, _ in enumerate(product(*map(range, sizes)))] == expected.reshape(-1).tolist()


def test_columns_of_another_length_are_not_counted(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(9))
    with pytest.raises(IntegrityError, match="another length"):
        count_rows([tmp_path / "a"], [column_of(2)], 10)


@pytest.mark.parametrize(
    "where",
    [[], [-1, 3], [3, 3], [4, 3], [3, 10], [0, 2, 1], [2**62]],
    ids=["none", "negative", "repeated", "falling", "too large", "falling later", "far too large"],
)
def test_places_that_are_none_of_the_uploaded_rows_are_refused(where: list[int]) -> None:
    with pytest.raises(IntegrityError, match="places: the sampled places are not ascending places"):
        Places(np.array(where, np.int64), 10)


@pytest.mark.parametrize("one_time", [False, True])
def test_rows_that_the_server_sampled_are_decrypted_where_their_pads_are(tmp_path: Path, *, one_time: bool) -> None:
    rows, size = CHUNK + 50, 7
    plain, where = symbols(size, rows), np.array([0, 1, 9, CHUNK - 1, CHUNK, rows - 1])
    pad, noisy, out = tmp_path / "pad", tmp_path / "noisy", tmp_path / "rows"
    padded = np.empty_like(plain)
    if one_time:
        drawn = symbols(size, rows)[::-1]
        pad.write_bytes(drawn.tobytes())
        padded[:] = (plain.astype(np.int64) + drawn) % size
    else:
        encrypt(plain, size, CipherStream(KEY), padded)
    noisy.write_bytes(padded[where].tobytes())
    decrypt_column(noisy, column_of(size), len(where), pad if one_time else KEY, out, Places(where, rows))
    assert out.read_bytes() == plain[where].tobytes()
