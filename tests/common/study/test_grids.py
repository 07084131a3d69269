"""Numbers on a grid: the law of their rounding, enumerated; and hostile grids."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from tests.conftest import STUDY
from veiltab.common.core.domain import PARTS, POSITION
from veiltab.common.core.randomness import CipherStream
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.coding.coding import UNKNOWN, Coding
from veiltab.common.study.coding.grids import Grid, decade_steps, equal_steps, rounded
from veiltab.common.study.file import study_from_bytes

GRID = Grid(points=tuple(map(Decimal, ("0", "10", "25", "100"))))


class EveryCoin:
    """A source whose n-th coin is n: over 2^16 rows each coin comes once."""

    def fill(self, out: memoryview, *, label: int, chunk: int) -> None:
        """Fill with all coins, in order."""
        assert (label, chunk) == (0, 0)
        out[:] = np.arange(len(out) // 2, dtype="<u2").tobytes()


def law(number: str, grid: Grid = GRID) -> dict[int, Fraction]:
    """Return the law of the symbol of a number, by every coin."""
    position = grid.position(Decimal(number))
    assert position is not None
    (symbols,) = rounded(np.full(PARTS, position, POSITION), len(grid.points), EveryCoin())
    return {int(s): Fraction(int(n), PARTS) for s, n in zip(*np.unique(symbols, return_counts=True), strict=True)}


@pytest.mark.parametrize("number", ["0", "0.00001", "3", "9.9999", "10", "17.5", "24.99999", "25", "99", "100"])
def test_a_number_becomes_one_of_its_two_points_and_its_mean_stays(number: str) -> None:
    chances, value = law(number), Decimal(number)
    around = [symbol for symbol, point in enumerate(GRID.points) if abs(point - value) < 75]
    assert set(chances) <= set(around)
    assert len(chances) <= 2
    assert max(chances) - min(chances) <= 1
    mean = sum(Fraction(GRID.points[symbol]) * chance for symbol, chance in chances.items())
    steps = [high - low for low, high in zip(GRID.points, GRID.points[1:], strict=False) if low <= value <= high]
    assert abs(mean - Fraction(value)) <= Fraction(max(steps)) / 2**17


def test_a_point_of_the_grid_is_never_moved() -> None:
    assert [law(str(point)) for point in GRID.points] == [{symbol: 1} for symbol in range(4)]


def test_numbers_outside_become_ends_if_the_grid_clips_and_unknown_otherwise() -> None:
    clipping = Grid(points=GRID.points, clips=True)
    outside = [Decimal(text) for text in ("-0.1", "100.0001", "1e308", "-1e9999")]
    assert [GRID.position(one) for one in outside] == [None] * 4
    assert [clipping.position(one) for one in outside] == [0, 3 * PARTS, 3 * PARTS, 0]


def test_chunks_have_coins_of_their_own() -> None:
    positions = np.full(3 * 2**20, PARTS // 2, POSITION)
    chunks = list(rounded(positions, 2, CipherStream(bytes(32))))
    assert len(chunks) > 1
    assert (chunks[0][:1000] != chunks[1][:1000]).any()
    share = np.concatenate(chunks).mean()
    assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(len(positions))
    again = np.concatenate(list(rounded(positions, 2, CipherStream(bytes(32)))))
    assert (again == np.concatenate(chunks)).all()


# Grids as they are written.


def test_grids_by_steps_and_decades() -> None:
    assert equal_steps(Decimal(0), Decimal("0.3"), Decimal("0.1")) == tuple(map(Decimal, ("0", "0.1", "0.2", "0.3")))
    points = decade_steps(tuple(map(Decimal, ("0", "1", "100"))), 3)
    assert tuple(map(str, Grid(points=points).labels)) == ("0", "1", "2.2", "4.6", "10", "22", "46", "100")


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("", "without grid"),
        ("grid = [1]", "does not increase"),
        ("grid = [1, 1]", "does not increase"),
        ("grid = [2, 1]", "does not increase"),
        ("grid = [0, nan]", "finite|size"),
        ("grid = [0, inf]", "finite|size"),
        ("grid = [0, 1e308]", "ordinary size"),
        ("grid = [0, 1e-20]", "ordinary size|1e-15"),
        ("grid = [0, 10]\nstep = 3", "does not divide"),
        ("grid = [0, 10]\nstep = 0", "not above 0"),
        ("grid = [0, 10]\nstep = -1", "not above 0"),
        ("grid = [0, 1000000]\nstep = 1", "does not divide the grid into fewer"),
        ("grid = [0, 5, 10]\nstep = 5", "two ends"),
        ("grid = [0, 10]\nstep = 5\ndecade_points = 2", "beside"),
        ("grid = [0, 10]\ndecade_points = 2", "decade"),
        ("grid = [1, 10]\ndecade_points = 0", "decade"),
        ("grid = [1]\ndecade_points = 2", "decade"),
        ("grid = [1, 10]\nrecode = { a = 'b' }", "recode"),
        ("grid = [1, 10]\noutside = 'wrap'", "outside"),
        ("grid = [1, 10]\ncategories = ['a', 'b', 'c']", "categories"),
        ('grid = [0, 1]\nmissing = "category"\nmissing_category = "7"', "reads as a number"),
        ('grid = [0, 1]\nmissing = "category"\nmissing_category = "nan"', "reads as a number"),
        ('grid = [0, 1]\nmissing = "category"\nmissing_category = "1_0"', "reads as a number"),
    ],
)
def test_a_grid_that_cannot_be_is_refused(keys: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        study_from_bytes(NUMBER.replace("GRID", f'kind = "number"\n{keys}').encode(), "s.toml")


def test_a_grid_needs_its_kind() -> None:
    with pytest.raises(InvalidInputError, match="without kind"):
        study_from_bytes(NUMBER.replace("GRID", 'categories = ["a", "b"]\ngrid = [0, 1]').encode(), "s.toml")


@pytest.mark.parametrize("raw", ["nan", "inf", "1_000", "0x10", "1e99999", "12 h", "--3", "1,5"])
def test_what_is_no_number_has_no_place_on_a_grid(raw: str) -> None:
    coding = Coding(categories=GRID.labels, grid=GRID)
    assert coding.code(raw) == UNKNOWN


NUMBER = (
    STUDY.decode()
    + """
[[attribute]]
name = "hours"
owner = "alice"
GRID
"""
)
