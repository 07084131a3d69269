from itertools import product

import pyarrow as pa
import pytest

from veiltab.common.errors import InvalidInputError
from veiltab.common.study.id_shapes import can_match, check_id_shape
from veiltab.curator.reading.id_shapes import id_shapes
from veiltab.curator.reading.respondents import SEPARATOR


def shapes(*ids: str, columns: int = 1) -> tuple[str, ...]:
    """The shapes of ids that come in two pieces, as those of a file may."""
    pieces = [list(ids[: len(ids) // 2]), list(ids[len(ids) // 2 :])]
    return id_shapes([pa.array(piece, pa.large_string()) for piece in pieces], columns)


@pytest.mark.parametrize(
    ("ids", "shape"),
    [
        (("1", "22", "333"), "9+"),
        (("0012", "1234"), "0999"),
        (("12", "34"), "99"),
        (("1.0", "22.0"), "9+.0"),
        (("1234.0", "5678.0"), "9+.0"),
        (("ab-12", "cd-34"), "aa-99"),
        (("é1", "b2"), "a9"),
        (("007", "0012"), "text"),
        (("x", "yy"), "text"),
        (("1.0", "2.5", "33.0"), "text"),
        (("a" * 81, "b" * 81), "text"),
        ((), "text"),
    ],
)
def test_the_shape_is_what_all_ids_share(ids: tuple[str, ...], shape: str) -> None:
    assert shapes(*ids) == (shape,)
    check_id_shape(shape)


def test_each_id_column_has_its_shape() -> None:
    ids = [SEPARATOR.join(parts) for parts in (("ab", "01", "7"), ("cd", "12", "18"))]
    assert shapes(*ids, columns=3) == ("aa", "09", "9+")


CLASHES = {
    ("9+", "9+.0"),
    ("9+", "0999"),
    ("9+", "aa-99"),
    ("9+.0", "9999"),
    ("9+.0", "0999"),
    ("9+.0", "aa-99"),
    ("0999", "aa-99"),
    ("9999", "aa-99"),
}
PAIRS = list(product(("9+", "9+.0", "9999", "0999", "aa-99", "text"), repeat=2))


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_which_shapes_can_match(pair: tuple[str, str]) -> None:
    assert can_match(*pair) is (pair not in CLASHES and pair[::-1] not in CLASHES)


@pytest.mark.parametrize("shape", ["", "1234", "90", "9+.00", "9\n", "9" * 81])
def test_what_is_no_shape_is_refused(shape: str) -> None:
    with pytest.raises(InvalidInputError, match="not a shape"):
        check_id_shape(shape)
