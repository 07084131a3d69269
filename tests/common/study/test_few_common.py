"""When few respondents are common to all tables."""

import pytest

from tests.common.study.other import FULL
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.few_common import few_common
from veiltab.common.study.file import Study, study_from_bytes


def study(share: str = "", alice: str = "") -> Study:
    text = FULL.replace(b"minimum_population = 2", f"minimum_population = 2{share}".encode())
    return study_from_bytes(text.replace(b'["strip"]', f'["strip"]{alice}'.encode()), "s.toml")


@pytest.mark.parametrize(
    ("share", "n", "rows", "is_few"),
    [
        ("", 1199, 12_000, True),
        ("", 6000, 12_000, False),
        ("", 5999, 12_000, True),
        ("", 5, 0, False),
        ("\nminimum_share = 0", 1, 12_000, False),
        ("\nminimum_share = 0.05", 1199, 12_000, False),
        ("\nminimum_share = 1", 11_999, 12_000, True),
    ],
)
def test_a_share_of_ones_own_table(share: str, n: int, rows: int, *, is_few: bool) -> None:
    assert bool(few_common(study(share), n, rows)) is is_few


def test_the_smallest_table_counts_and_how_ids_are_written_is_said() -> None:
    small = study(alice='\nforms = { id = { "09999999" = 1000, "9+" = 900 } }')
    assert few_common(small, 950, 12_000) == ""
    assert few_common(small, 949, 12_000) == (
        "949 common respondents are less than 0.5 of the smallest table, which has 1,900 rows (minimum_share of the"
        " study). Compare how those are named who are in all tables: alice: id as 1,000 as 09999999, 900 as 9+"
    )


def test_a_share_is_between_0_and_1() -> None:
    with pytest.raises(InvalidInputError, match="minimum_share is not between 0 and 1"):
        study("\nminimum_share = 1.1")
