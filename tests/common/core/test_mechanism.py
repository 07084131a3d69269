import hashlib
from fractions import Fraction
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chisquare

from tests.common.core.sources import Scripted, Spy, stream
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.mechanism import UNIT, GammaDiagonal, TwoSidedNoise, invert, perturb, perturb_chunk
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.symbols import CHUNK, MAX_LABEL, add, subtract
from veiltab.common.core.tabulation import tabulate
from veiltab.common.errors import IntegrityError, InvalidInputError

ALPHA = 1e-4


def test_known_answers() -> None:
    """What is replaced, and by what, from one key: columns of 3 and 300 categories, into the second chunk."""
    mechanism = GammaDiagonal.from_gamma(900, Fraction(900))
    columns: list[Symbols] = [np.zeros(CHUNK + 3, symbol_dtype(size)) for size in (3, 300)]
    perturb(columns, (3, 300), mechanism, CipherStream(bytes(range(32))), columns)
    assert [column[:10].tolist() for column in columns] == [
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        [112, 0, 228, 298, 0, 0, 152, 193, 0, 0],
    ]
    assert [column[-3:].tolist() for column in columns] == [[1, 0, 0], [126, 0, 0]]
    assert [hashlib.sha256(column.tobytes()).hexdigest() for column in columns] == [
        "f52f94baf2ce41d8261177e2bfdf499e9f04b4b8eae7cae34453737af2d2b022",
        "11692a2724b3ea93e07e7090c2d11e0036de9a0966afb64c073645bc19f6b81e",
    ]


@settings(deadline=None)
@given(st.integers(1, 10**7), st.fractions(min_value=1, max_value=10**12, max_denominator=10**9))
def test_gamma_is_the_largest_that_does_not_exceed_the_wish(cells: int, wish: Fraction) -> None:
    if wish == 1:
        return
    mechanism = GammaDiagonal.from_gamma(cells, wish)
    assert 1 <= mechanism.gamma <= wish
    if mechanism.replacement > 1:
        assert GammaDiagonal(cells=cells, replacement=mechanism.replacement - 1).gamma > wish
    q = mechanism.gamma + cells - 1
    assert mechanism.retention == (mechanism.gamma - 1) / q
    assert 1 - mechanism.retention == Fraction(mechanism.replacement, UNIT) == cells / q


def test_marginal_keeps_the_replacement_probability() -> None:
    joint = GammaDiagonal.from_gamma(24, Fraction(5))
    margin = joint.marginal(6)
    assert margin == GammaDiagonal(cells=6, replacement=joint.replacement)
    assert margin.gamma == 1 + 6 * joint.retention / (1 - joint.retention)


@pytest.mark.parametrize("gamma", [Fraction(1), Fraction(1, 2), Fraction(-3)])
def test_gamma_that_hides_more_than_everything_is_refused(gamma: Fraction) -> None:
    with pytest.raises(InvalidInputError, match="gamma must exceed 1"):
        GammaDiagonal.from_gamma(4, gamma)


@pytest.mark.parametrize(("cells", "replacement"), [(0, 1), (2, 0), (2, UNIT + 1)])
def test_values_out_of_range_are_refused(cells: int, replacement: int) -> None:
    with pytest.raises(InvalidInputError):
        GammaDiagonal(cells=cells, replacement=replacement)


@pytest.mark.parametrize("curators", [-1, UNIT])
def test_curators_replace_no_row_for_certain(curators: int) -> None:
    with pytest.raises(InvalidInputError, match="the curators' replacement probability"):
        TwoSidedNoise(cells=2, curator_replacement=curators, server_replacement=1)


def pram_matrix(mechanism: GammaDiagonal) -> list[list[Fraction]]:
    rho, cells = mechanism.retention, mechanism.cells
    return [[rho * (x == y) + (1 - rho) / cells for x in range(cells)] for y in range(cells)]


def words(symbols: NDArray[np.int64], size: int) -> NDArray[np.uint8]:
    """Bytes that fill_uniform maps to these symbols of an alphabet of at most 3."""
    return (symbols * (256 // size)).astype(np.uint8)


@pytest.mark.parametrize("shape", [(2, 3), (3, 3), (2, 2, 2), (3, 2, 2)])
def test_lemma_3_1_by_enumeration(shape: tuple[int, ...]) -> None:
    # One row of the chunk for each (value, pad, decision, noise): the real code runs on all of them.
    cells = prod(shape)
    mechanism = GammaDiagonal.from_gamma(cells, Fraction(7, 2))
    x, pad, replace, noise = (part.ravel() for part in np.indices((cells, cells, 2, cells)))
    values, pads, noises = (np.unravel_index(part, shape) for part in (x, pad, noise))
    columns, outputs = [], []
    for value, secret, size in zip(values, pads, shape, strict=True):
        columns.append(np.empty(x.size, np.uint8))
        add(value.astype(np.uint8), secret.astype(np.uint8), size, columns[-1])
        outputs.append(np.empty(x.size, np.uint8))
    scripts = {2 + j: words(noises[j], size) for j, size in enumerate(shape)}
    scripts |= {0: np.where(replace, 0, 255).astype(np.uint8), 1: np.empty(0, np.uint8)}
    perturb_chunk(columns, shape, mechanism, Scripted(scripts), outputs, chunk=0)
    for out, secret, size in zip(outputs, pads, shape, strict=True):
        subtract(out, secret.astype(np.uint8), size, out)
    y = np.ravel_multi_index(tuple(outputs), shape)
    law = [[Fraction(0)] * cells for _ in range(cells)]
    rho = mechanism.retention
    for row in zip(y.tolist(), x.tolist(), replace.tolist(), strict=True):
        law[row[0]][row[1]] += (1 - rho if row[2] else rho) / cells**2
    assert law == pram_matrix(mechanism)


@pytest.mark.parametrize("replacement", [1, 2**56 - 1, 2**56, 2**56 + 1, 3 * 2**62 + 12345, UNIT - 1])
def test_replaced_exactly_when_the_64_bit_word_is_below(replacement: int) -> None:
    # Every first byte, and on a tie the two words at the edge: together all cases of u < r64.
    leading, trailing = divmod(replacement, 2**56)
    cases = [(byte, 0) for byte in range(256) if byte != leading]
    cases += [(leading, rest) for rest in (0, trailing - 1, trailing, 2**56 - 1) if rest >= 0]
    ties = [rest for byte, rest in cases if byte == leading]
    scripts = {
        0: np.array([byte for byte, _ in cases], np.uint8),
        1: (np.array(ties, "<u8") << np.uint64(8)).view(np.uint8),
        2: np.full(len(cases), 255, np.uint8),
    }
    column, out = np.zeros(len(cases), np.uint8), np.empty(len(cases), np.uint8)
    mechanism = GammaDiagonal(cells=2, replacement=replacement)
    perturb_chunk([column], [2], mechanism, Scripted(scripts), [out], chunk=0)
    assert out.tolist() == [int(byte * 2**56 + rest < replacement) for byte, rest in cases]


def test_certain_replacement_replaces_every_row() -> None:
    shape, rows = (3, 2), 2 * CHUNK
    columns: list[Symbols] = [np.zeros(rows, np.uint8) for _ in shape]
    perturb(columns, shape, GammaDiagonal(cells=6, replacement=UNIT), stream(1), columns)
    histogram = np.zeros(6, np.int64)
    tabulate(columns, shape, histogram)
    assert chisquare(histogram).pvalue > ALPHA


@pytest.mark.parametrize("sizes", [(3, 200), (1000, 7)])
def test_perturbation_uses_no_place_twice(sizes: tuple[int, ...]) -> None:
    spy = Spy(stream(9))
    columns: list[Symbols] = [np.zeros(2 * CHUNK + 3, symbol_dtype(size)) for size in sizes]
    perturb(columns, sizes, GammaDiagonal.from_gamma(prod(sizes), Fraction(9)), spy, columns)
    assert len(set(spy.places)) == len(spy.places)
    assert any(label >= MAX_LABEL for label, _ in spy.places)


def test_perturbation_is_repeatable_in_place_on_slices_and_on_files(tmp_path: Path) -> None:
    sizes, rows = (300, 3), CHUNK + 77
    mechanism = GammaDiagonal.from_gamma(900, Fraction(500))
    columns: list[Symbols] = [(np.arange(rows) % 300).astype("<u2"), (np.arange(rows) % 3).astype(np.uint8)]
    first: list[Symbols] = [np.empty_like(column) for column in columns]
    perturb(columns, sizes, mechanism, stream(1), first)
    mapped: list[Symbols] = []
    for j, column in enumerate(columns):
        path = tmp_path / str(j)
        column.tofile(path)
        file: Symbols = np.memmap(path, column.dtype, "r+")
        mapped.append(file)
    perturb(mapped, sizes, mechanism, stream(1), mapped)
    tail: list[Symbols] = [np.empty_like(column[CHUNK:]) for column in columns]
    perturb_chunk([c[CHUNK:] for c in columns], sizes, mechanism, stream(1), tail, chunk=1)
    for j in range(2):
        assert not np.array_equal(first[j], columns[j])
        assert np.array_equal(first[j], mapped[j])
        assert np.array_equal(first[j][CHUNK:], tail[j])


def test_columns_that_make_no_table_are_refused() -> None:
    mechanism = GammaDiagonal.from_gamma(6, Fraction(9))
    two, three = np.zeros(2, np.uint8), np.zeros(3, np.uint8)
    with pytest.raises(InvalidInputError, match="6 cells"):
        perturb([two, two], [2, 2], mechanism, stream(1), [two, two])
    with pytest.raises(InvalidInputError, match="length"):
        perturb([two, three], [2, 3], mechanism, stream(1), [two, two])


@settings(deadline=None)
@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=40), st.integers(1, UNIT * 99 // 100))
def test_inversion_against_exact_arithmetic(counts: list[int], replacement: int) -> None:
    if sum(counts) == 0:
        return
    mechanism = GammaDiagonal(cells=len(counts), replacement=replacement)
    estimate = invert(np.array(counts), mechanism)
    assert abs(estimate.sum() - 1) < 1e-10
    for found, count in zip(estimate.tolist(), counts, strict=True):
        exact = (Fraction(count, sum(counts)) - (1 - mechanism.retention) / len(counts)) / mechanism.retention
        assert found == pytest.approx(float(exact), abs=1e-12)


def test_nothing_to_invert_is_refused_by_name() -> None:
    mechanism = GammaDiagonal.from_gamma(2, Fraction(4))
    with pytest.raises(InvalidInputError, match="counts no rows"):
        invert(np.zeros(2, np.int64), mechanism)
    with pytest.raises(InvalidInputError, match="r = 1"):
        invert(np.ones(2, np.int64), GammaDiagonal(cells=2, replacement=UNIT))
    with pytest.raises(InvalidInputError, match="2 cells"):
        invert(np.ones(3, np.int64), mechanism)


def test_a_marginal_histogram_inverts_under_the_same_replacement() -> None:
    # Adding the joint estimate over an attribute is the same as inverting the added histogram.
    joint = GammaDiagonal.from_gamma(6, Fraction(4))
    histogram = np.array([5, 1, 7, 3, 2, 9])
    summed = invert(histogram, joint).reshape(2, 3).sum(axis=1)
    margin = invert(histogram.reshape(2, 3).sum(axis=1), joint.marginal(2))
    assert summed == pytest.approx(margin, abs=1e-12)


def test_one_cell_leaves_nothing_to_perturb() -> None:
    column = np.zeros(3, np.uint8)
    perturb([column], [1], GammaDiagonal(cells=1, replacement=UNIT // 2), stream(3), [column])
    assert column.tolist() == [0, 0, 0]


def test_symbol_outside_its_alphabet_is_refused() -> None:
    column, mechanism = np.array([0, 3], np.uint8), GammaDiagonal.from_gamma(3, Fraction(2))
    with pytest.raises(IntegrityError, match="1 of 2 symbols"):
        perturb([column], [3], mechanism, stream(3), [column])
