import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.common.core.sources import Scripted, Spy
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.pads import PAD, decrypt, encrypt
from veiltab.common.core.randomness import ByteSource, CipherStream
from veiltab.common.core.symbols import CHUNK, MAX_LABEL, add, add_holders, check_symbols, fill_uniform, subtract
from veiltab.common.errors import IntegrityError, InvalidInputError

KEY = bytes(range(32))


class Stuck:
    """A source of ones only, which every size that is no power of two rejects."""

    def fill(self, out: memoryview, *, label: int, chunk: int) -> None:
        del label, chunk
        out[:] = b"\xff" * len(out)


def uniform(length: int, size: int, source: ByteSource, *, label: int = 0, chunk: int = 0) -> Symbols:
    out: Symbols = np.empty(length, symbol_dtype(size))
    fill_uniform(out, size, source, label=label, chunk=chunk)
    return out


def as_symbols(values: NDArray[np.int64] | list[int], size: int) -> Symbols:
    out: Symbols = np.empty(len(values), symbol_dtype(size))
    out[:] = values
    return out


@pytest.mark.parametrize("size", [2, 3, 5, 24, 128, 129, 200, 255, 256, 257, 300, 512, 65536])
def test_every_symbol_has_the_same_number_of_words(size: int) -> None:
    # Exact: all words of 8 or 16 bits are played once; those rejected come back as 0 and are set apart.
    bits = 8 if 2**8 % size * 64 <= 2**8 else 16
    words = np.arange(2**bits).astype(f"<u{bits // 8}")
    played = Scripted({0: words.view(np.uint8), MAX_LABEL: np.zeros(1, np.uint8)})
    counts = np.bincount(uniform(2**bits, size, played), minlength=size)
    share, rejected = divmod(2**bits, size)
    assert counts.tolist() == [share + rejected] + [share] * (size - 1)
    assert rejected * 64 <= 2**bits


@pytest.mark.parametrize("size", [1000, 1025, 40000, 65535])
def test_wide_words_map_at_the_edges_of_equal_shares(size: int) -> None:
    share = 2**32 // size if 2**16 % size * 64 > 2**16 else 2**16 // size
    dtype = "<u4" if share > 2**16 // size else "<u2"
    lowest = np.arange(size, dtype=np.uint64) * share
    words = np.concatenate([lowest, lowest + (share - 1)]).astype(dtype)
    found = uniform(2 * size, size, Scripted({0: words.view(np.uint8)}))
    assert np.array_equal(found, np.tile(np.arange(size), 2))


# The head of 20,000 symbols from (label 5, chunk 7) under KEY, and the SHA-256 of all; most sizes reject some words.
FILLS = [
    (2, [1, 1, 0, 1, 1, 1], "4ece295ae84bd7159ede08cbeaf4b5bff51efa157ab1ff80770d1276eb5f37ad"),
    (3, [2, 2, 0, 2, 2, 2], "8f343c0cb74c28e1e17b490b1fd77856587244343ab25a2e177ba66401c4e637"),
    (200, [198, 176, 189, 2, 26, 15], "73f4d63d9d7e25427a50ed4b1eb488085b2859a8e3cf6aeec5ec1163caa43170"),
    (256, [237, 252, 53, 225, 190, 241], "4220a5fa9955aaf455806afe40a0cbcc2c7fffe03ade45d45400a51600b1dbe9"),
    (257, [253, 226, 242, 3, 33, 20], "062c96b011cd57b6d9b26ebfcacba5c5db778f6cb877197b4ff5b772ff672348"),
    (1000, [996, 886, 952, 13, 132, 80], "dbfcc1dabb29950348450ca76d5569baf1f2a410beee909c0fb4f456d4dbae4d"),
    (65535, [64749, 57653, 61886, 880, 8581, 5230], "860823665013d97db4acf050672dd333c6f6ded2179727e183b7b0c1d4e765ca"),
]


@pytest.mark.parametrize(("size", "head", "digest"), FILLS)
def test_known_answers_of_uniform_symbols(size: int, head: list[int], digest: str) -> None:
    found = uniform(20_000, size, CipherStream(KEY), label=5, chunk=7)
    assert found[:6].tolist() == head
    assert hashlib.sha256(found.tobytes()).hexdigest() == digest


@pytest.mark.parametrize(
    ("size", "first", "last"),
    [
        (2, [0, 1, 0, 0, 1, 1, 0, 0], [0, 1, 1]),
        (3, [0, 2, 0, 1, 2, 2, 0, 1], [0, 1, 2]),
        (300, [297, 146, 232, 124, 222, 139, 259, 86], [192, 3, 150]),
    ],
)
def test_known_answers_of_pads(size: int, first: list[int], last: list[int]) -> None:
    """Encrypted zeros are the pad: chunk 0 of the column, and the three rows that chunk 1 has."""
    zeros = as_symbols([0] * (CHUNK + 3), size)
    encrypt(zeros, size, CipherStream(KEY), zeros)
    assert (zeros[:8].tolist(), zeros[-3:].tolist()) == (first, last)


@pytest.mark.parametrize("size", [3, 24, 200, 1000, 65535])
def test_no_place_and_no_block_of_a_stream_is_used_twice(size: int) -> None:
    spy = Spy(CipherStream(KEY))
    column = np.zeros(2 * CHUNK + 5, symbol_dtype(size))
    encrypt(column, size, spy, np.empty_like(column))
    refills = [place for place in spy.places if place[0] >= MAX_LABEL]
    assert refills or size == 65535
    assert {label % MAX_LABEL for label, _ in spy.places} == {PAD}
    assert len(set(spy.places)) == len(spy.places)
    blocks = [fill[i : i + 64] for fill in spy.fills for i in range(0, len(fill) - 63, 64)]
    assert len(set(blocks)) == len(blocks)
    starts = [fill[:16] for fill in spy.fills if len(fill) >= 16]
    assert len(set(starts)) == len(starts)


def test_a_stuck_source_is_refused() -> None:
    with pytest.raises(IntegrityError, match="rejected words only"):
        uniform(10, 3, Stuck())


@pytest.mark.parametrize("label", [-1, MAX_LABEL])
def test_label_that_could_meet_a_refill_is_refused(label: int) -> None:
    with pytest.raises(InvalidInputError, match="label"):
        uniform(1, 3, CipherStream(KEY), label=label)


def test_wrong_type_or_too_long_a_chunk_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="chunk"):
        fill_uniform(np.empty(1, np.uint8), 257, CipherStream(KEY), label=0, chunk=0)
    with pytest.raises(InvalidInputError, match="chunk"):
        uniform(CHUNK + 1, 3, CipherStream(KEY))


@pytest.mark.parametrize("size", [1, 2, 3, 24, 127, 128, 129, 200, 255, 256])
def test_sum_and_difference_of_all_pairs(size: int) -> None:
    a, b = (part.ravel().astype(np.uint8) for part in np.indices((size, size)))
    out = np.empty_like(a)
    add(a, b, size, out)
    assert np.array_equal(out, (a.astype(int) + b) % size)
    subtract(a, b, size, out)
    assert np.array_equal(out, (a.astype(int) - b) % size)
    assert out.dtype == np.uint8


@settings(deadline=None)
@given(st.sampled_from([257, 1000, 32767, 32768, 32769, 65535, 65536]), st.data())
def test_sum_and_difference_of_wide_symbols_in_place(size: int, data: st.DataObject) -> None:
    symbols = st.lists(st.sampled_from([0, 1, size // 2, size - 1]) | st.integers(0, size - 1), min_size=8, max_size=8)
    a, b = (np.array(data.draw(symbols), "<u2") for _ in range(2))
    total, difference = a.copy(), b.copy()
    add(total, b, size, total)
    subtract(a, difference, size, difference)
    assert np.array_equal(total, (a.astype(int) + b) % size)
    assert np.array_equal(difference, (a.astype(int) - b) % size)


@pytest.mark.parametrize("size", [1, 2, 3, 200, 256, 257, 40000, 65536])
def test_decryption_inverts_encryption_and_any_chunk_can_be_made_alone(size: int) -> None:
    rows = CHUNK + 1000
    column = as_symbols(np.arange(rows) * 7 % size, size)
    out = np.empty_like(column)
    encrypt(column, size, CipherStream(KEY), out)
    assert size == 1 or np.mean(out != column) > 0.4
    pad = uniform(1000, size, CipherStream(KEY), label=PAD, chunk=1)
    assert np.array_equal(out[CHUNK:], (column[CHUNK:].astype(int) + pad) % size)
    decrypt(out, size, CipherStream(KEY), out)
    assert np.array_equal(out, column)


def test_columns_that_do_not_fit_are_refused() -> None:
    column, source = np.array([0, 1, 2], np.uint8), CipherStream(KEY)
    with pytest.raises(IntegrityError, match="1 of 3 symbols"):
        encrypt(column, 2, source, np.empty_like(column))
    with pytest.raises(IntegrityError, match="1 of 3 symbols"):
        decrypt(column, 2, source, np.empty_like(column))
    with pytest.raises(InvalidInputError, match="do not fit"):
        encrypt(column, 3, source, np.empty(4, np.uint8))
    with pytest.raises(InvalidInputError, match="do not fit"):
        encrypt(column, 3, source, np.empty(3, "<u2"))
    with pytest.raises(IntegrityError, match="type"):
        encrypt(column, 300, source, np.empty_like(column))


@pytest.mark.parametrize(("size", "largest"), [(3, 2), (256, 255), (257, 256), (65536, 65535)])
def test_symbols_inside_the_alphabet_pass(size: int, largest: int) -> None:
    check_symbols(as_symbols([0, largest], size), size)
    check_symbols(np.empty(0, symbol_dtype(size)), size)


def test_symbols_outside_the_alphabet_are_counted_not_shown() -> None:
    with pytest.raises(IntegrityError, match=r"^2 of 5 symbols lie outside an alphabet of 3 categories$"):
        check_symbols(np.array([0, 3, 2, 99, 1], np.uint8), 3)
    with pytest.raises(IntegrityError, match="type"):
        check_symbols(np.array([0], "<u2"), 3)


def constant(value: int, kind: np.dtype[np.uint8] | np.dtype[np.uint16]) -> Symbols:
    column: Symbols = np.empty(3, kind)
    column[:] = value
    return column


@pytest.mark.parametrize("size", [2, 3, 256, 257, 65536])
def test_where_one_holder_has_a_value_that_is_the_sum_and_values_of_several_add_up(size: int) -> None:
    absent, kind = size - 1, symbol_dtype(size)
    for first, second, third, total in (
        (0, absent, absent, 0),
        (absent, absent, absent - 1, absent - 1),
        (absent, absent, absent, absent),
        (0, absent, 0, 1 % size),
        (0, 0, 0, 2 % size),
        (absent - 1, absent, 0, absent),
    ):
        parts = [constant(one, kind) for one in (first, second, third)]
        assert add_holders(parts, size).tolist() == [total] * 3
        assert add_holders(parts, size).dtype == kind
    assert add_holders(parts[:1], size) is parts[0]
