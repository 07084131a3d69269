from bisect import bisect_right
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veiltab.common.errors import InvalidInputError
from veiltab.common.study.coding.coding import DROP, UNKNOWN, Coding, bin_labels
from veiltab.common.study.coding.dates import DateBins
from veiltab.play.studies.dummy_tables import examples


def decimals(*texts: str) -> tuple[Decimal, ...]:
    return tuple(Decimal(text) for text in texts)


TEXTS = Coding(categories=("a", "b", "c"), recode=(("alpha", "a"), ("beta", "b"), ("2", "b")))
AGES = Coding(categories=("child", "adult", "senior"), bins=decimals("0", "18", "65", "120"))


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("a", 0),
        (" b\t", 1),
        ("alpha", 0),
        ("\nbeta ", 1),
        ("2", 1),
        ("A", UNKNOWN),
        ("2.0", UNKNOWN),
        ("", DROP),
        ("?", DROP),
        (" NA", DROP),
        (None, DROP),
    ],
)
def test_texts_are_looked_up_without_white_space_around_them(raw: str | None, code: int) -> None:
    assert TEXTS.code(raw) == code
    assert TEXTS.is_missing(raw) == (code == DROP)


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("0", 0),
        ("17.999999999999999999999", 0),
        ("18", 1),
        (" 18.0 ", 1),
        ("+1.8e1", 1),
        ("65", 2),
        ("120", 2),
        ("120.0000000000000000000001", UNKNOWN),
        ("-0.1", UNKNOWN),
        ("1e99999999999999999999", UNKNOWN),
        ("\u0661\u0668", UNKNOWN),
        ("18 years", UNKNOWN),
        ("child", UNKNOWN),
        ("?", DROP),
    ],
)
def test_numbers_fall_into_half_open_bins_and_the_last_is_closed(raw: str, code: int) -> None:
    assert AGES.code(raw) == code


def test_missing_values_can_be_a_category() -> None:
    coding = Coding(categories=("a", "unknown"), missing_values=("", "n/a"), missing="unknown")
    assert [coding.code(raw) for raw in ("a", "n/a", "", None, "unknown", "?")] == [0, 1, 1, 1, 1, UNKNOWN]
    binned = Coding(categories=("[0, 1]", "none"), bins=decimals("0", "1"), missing="none")
    assert [binned.code(raw) for raw in ("1", "?", "2")] == [0, 1, UNKNOWN]


@given(
    st.lists(st.decimals(-100, 100, places=2), min_size=2, max_size=8, unique=True), st.decimals(-120, 120, places=3)
)
def test_bins_agree_with_exact_comparison(edges: list[Decimal], number: Decimal) -> None:
    bins = tuple(sorted(edges))
    coding = Coding(categories=bin_labels(bins), bins=bins)
    expected = UNKNOWN
    for symbol, (low, high) in enumerate(pairwise(bins)):
        inside = Fraction(low) <= Fraction(number) < Fraction(high)
        if inside or (symbol == len(bins) - 2 and number == high):
            expected = symbol
    assert coding.code(str(number)) == expected
    assert bisect_right(bins, number) or expected == UNKNOWN


def test_labels_show_which_end_belongs() -> None:
    assert bin_labels(decimals("0", "0.5", "1")) == ("[0, 0.5)", "[0.5, 1]")
    assert bin_labels(()) == ()


@pytest.mark.parametrize(
    ("categories", "rest", "problem"),
    [
        (("a", "a"), {}, "listed twice"),
        ((), {}, "0 categories are listed"),
        (("a", ""), {}, "cannot be shown"),
        (("a", " b"), {}, "cannot be shown"),
        (("a", "b\x1b[2J"), {}, "cannot be shown"),
        (("a", "b" * 81), {}, "cannot be shown"),
        (("a", "b"), {"recode": (("x", "z"),)}, "not a category"),
        (("a", "b"), {"recode": (("a", "b"),)}, "second meaning"),
        (("a", "b"), {"recode": (("x", "a"), ("x", "b"))}, "second meaning"),
        (("a", "b"), {"recode": ((" x", "a"),)}, "white space"),
        (("a", "b"), {"missing_values": ("? ",)}, "white space"),
        (("a", "?"), {}, "both a missing value and a category"),
        (("a", "b"), {"recode": (("NA", "a"),)}, "both a missing value and a category"),
        (("a", "b"), {"missing": "c"}, "not a category"),
        (("a", "b"), {"bins": decimals("0", "1", "2"), "recode": (("x", "a"),)}, "both recode and bins"),
        (("a", "b"), {"bins": decimals("0", "1")}, "2 categories for 1 bins"),
        (("a", "b"), {"bins": decimals("0", "1"), "missing": "a"}, "2 categories for 1 bins"),
        (("a", "b"), {"bins": decimals("0", "2", "1")}, "do not increase"),
        (("a",), {"bins": decimals("0")}, "do not increase"),
        (("a",), {"bins": decimals("0", "inf")}, "finite"),
    ],
)
def test_rules_that_contradict_themselves_are_refused(
    categories: tuple[str, ...], rest: dict[str, object], problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        Coding(categories=categories, **rest)  # type: ignore[arg-type]


def test_a_missing_value_may_repeat_its_own_category() -> None:
    assert Coding(categories=("a", "?"), missing="?").code("?") == 1


def test_examples_are_of_every_kind_that_the_rule_speaks_of() -> None:
    texts = Coding(categories=("a", "b"), recode=(("A", "a"),))
    assert list(examples(texts)) == ["a", "b", "A"]
    bins = Coding(categories=("low", "high"), bins=(Decimal(0), Decimal(1), Decimal(4)))
    assert [raw for raw in examples(bins) if bins.code(raw) != UNKNOWN] == ["0", "1", "4", "0.5", "2.5"]
    dates = DateBins(edges=("1990", "2000-07", "2010"), format="%d.%m.%Y")
    dated = Coding(categories=dates.labels, dates=dates)
    assert [raw for raw in examples(dated) if dated.code(raw) != UNKNOWN] == ["01.01.1990", "01.07.2000"]


def test_unicode_forms_of_one_text_are_one_category() -> None:
    coding = Coding(
        categories=("B\u00fcro", "Caf\u0065\u0301"), recode=(("K\u00fcche", "B\u00fcro"),), missing_values=("\u00e9",)
    )
    raw = ("Bu\u0308ro", "Caf\u00e9", "Ku\u0308che", "e\u0301")
    assert [coding.code(one) for one in raw] == [0, 1, 0, DROP]
    assert coding.is_missing("e\u0301")
    with pytest.raises(InvalidInputError, match="is listed twice"):
        Coding(categories=("B\u00fcro", "Bu\u0308ro"))
