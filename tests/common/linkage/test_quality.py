"""Estimates of links from counts: by hand, where they are exact, and on the safe side where they are bounds."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import comb

import pytest

from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.identity_rule import IdentityRule
from veiltab.common.linkage.ladder import FieldKind, ladder_of
from veiltab.common.linkage.quality import (
    Agreement,
    Estimate,
    Links,
    PlaceboPass,
    common_people,
    recall,
    wrong_in_sample,
    wrong_links,
)
from veiltab.common.linkage.row_keys import Keys
from veiltab.common.linkage.self_match import SelfMatch, decide_passes

COUNTS = Links(links=750, spoke_rows=1000, hub_rows=1500, self_match=0.004)
KINDS = {name: FieldKind(name) for name in ("given", "family", "birth", "sex", "postcode")}


def identity(keys: int = 3, **more: object) -> IdentityRule:
    ladder = ladder_of([f"given:{n}" for n in range(1, keys + 1)])
    return IdentityRule(fields=tuple(KINDS.items()), hub="hub", ladder=ladder, **more)  # type: ignore[arg-type]


def decide(one: IdentityRule, *passes: list[str]) -> tuple[SelfMatch, ...]:
    keys: list[list[Keys]] = [[tuple(c.encode() for c in row) for row in rows] for rows in passes]
    return decide_passes(one, zip(one.ladder, keys, strict=True), len(passes[0]))


def test_wrong_links_are_what_the_hub_foresees_and_what_moved_dates_link() -> None:
    placebo = [
        PlaceboPass(proposals=4, entered=1000, entered_real=500),
        PlaceboPass(proposals=0, entered=0, entered_real=9),
    ]
    found = wrong_links(COUNTS, Estimate(value=800, sd=1), placebo)
    assert found.by_self_match == pytest.approx((1000 - 800) * (1 - 750 / 1500) * 0.004)
    assert found.by_chance == pytest.approx(4 * 500 / 1000 * 0.5)
    assert found.share == pytest.approx((0.4 + 1) / 750)
    assert found.chance == pytest.approx(1 / 750)
    assert found.sd == pytest.approx(2 * (0.4 + 1 + 1) ** 0.5 / 750)
    assert found.precision == Estimate(value=1 - found.share, sd=found.sd)
    # Few rows stand for many: four links by chance are worth 20, and each of them is as uncertain as five.
    few = wrong_links(COUNTS, Estimate(value=800, sd=1), [PlaceboPass(proposals=4, entered=100, entered_real=1000)])
    assert (few.by_chance, few.sd) == pytest.approx((20, 2 * (0.4 + 5 * (20 + 5)) ** 0.5 / 750))
    apart = wrong_links(replace(COUNTS, crowd=150), Estimate(value=800, sd=1), placebo)
    assert (apart.share, apart.chance) == pytest.approx(((1.4 + 75) / 750, (1 + 75) / 750))
    assert apart.sd == pytest.approx((4 * 2.4 + 150**2 / 12) ** 0.5 / 750)
    assert (apart.precision.value, apart.precision.sd) == pytest.approx((1 - 1.4 / 600, found.sd * 750 / 600))


def test_a_pass_with_nothing_to_move_adds_three_wrong_links() -> None:
    one = PlaceboPass(proposals=4, entered=1000, entered_real=500)
    assert wrong_links(COUNTS, None, [one, None]).by_chance == pytest.approx(3 + 4 * 500 / 1000 * 0.5)


def test_what_is_unknown_makes_more_wrong_links() -> None:
    known = wrong_links(COUNTS, Estimate(value=800, sd=1), [])
    assert wrong_links(COUNTS, None, []).by_self_match > known.by_self_match
    assert wrong_links(COUNTS, None, []).by_chance == 3
    assert wrong_links(COUNTS, Estimate(value=5000, sd=1), []).by_self_match == 0


def test_people_of_both_tables_are_exact_where_errors_are_independent() -> None:
    """Counts that are their own expectations: name errors one at a time, dates and postcodes independent of them."""
    people, q_given, q_family, swapped, q_birth, q_postcode, dated = 100_000, 0.92, 0.9, 0.01, 0.97, 0.85, 0.98
    both = q_given * q_family * (1 - swapped)
    there = people * dated

    def count(names: float, *others: float) -> int:
        product = there * names
        for other in others:
            product *= other
        return round(product)

    agreement = Agreement(
        all_four=count(both, q_birth, q_postcode),
        without_postcode=count(both, q_birth),
        without_birth=count(both, q_postcode),
        family_differs=count(q_given * (1 - q_family) * (1 - swapped), q_birth, q_postcode),
        given_differs=count((1 - q_given) * q_family * (1 - swapped), q_birth, q_postcode),
        names_swapped=count(swapped, q_birth, q_postcode),
        dated=dated,
    )
    found = common_people(agreement)
    assert found is not None
    assert found.value == pytest.approx(people, rel=5e-4)
    assert 0 < found.sd < 0.01 * people
    links = Links(links=80_000, spoke_rows=120_000, hub_rows=130_000, self_match=0.001)
    wrong = wrong_links(links, found, [])
    estimate = recall(links, wrong, found)
    assert estimate is not None
    assert estimate.value == pytest.approx(80_000 * (1 - wrong.share) / found.value)
    assert estimate.sd > found.sd / people * 0.79
    assert recall(links, wrong, None) is None


def tail(wrong: int, tested: int, p: Fraction) -> Fraction:
    """P(Bin(tested, p) >= wrong), exactly."""
    top, bottom = p.numerator, p.denominator
    fewer = sum(comb(tested, k) * top**k * (bottom - top) ** (tested - k) for k in range(wrong))
    return 1 - Fraction(fewer, bottom**tested)


@pytest.mark.parametrize(
    ("wrong", "tested"), [(0, 1), (1, 1), (0, 20), (1, 20), (3, 20), (10, 20), (19, 20), (20, 20), (2, 150), (4, 1000)]
)
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_ends_of_a_tested_share_leave_no_more_than_their_tails(wrong: int, tested: int, confidence: float) -> None:
    share, low, high = wrong_in_sample(wrong, tested, confidence)
    most = Fraction(confidence).limit_denominator(1000)
    most = (1 - most) / 2
    assert share == wrong / tested
    assert low <= share <= high
    assert low == 0 if wrong == 0 else tail(wrong, tested, Fraction(low)) <= most
    assert high == 1 if wrong == tested else 1 - tail(wrong + 1, tested, Fraction(high)) <= most
    if wrong:
        assert tail(wrong, tested, Fraction(low) + Fraction(1, 10**6)) > most
    if wrong < tested:
        assert 1 - tail(wrong + 1, tested, Fraction(high) - Fraction(1, 10**6)) > most


@pytest.mark.parametrize(
    "make",
    [
        lambda: wrong_in_sample(2, 1),
        lambda: wrong_in_sample(0, 0),
        lambda: wrong_in_sample(-1, 5),
        lambda: wrong_in_sample(1, 5, 1.0),
        lambda: Links(links=0, spoke_rows=5, hub_rows=5, self_match=0),
        lambda: Links(links=6, spoke_rows=5, hub_rows=9, self_match=0),
        lambda: Links(links=5, spoke_rows=5, hub_rows=9, self_match=-1),
        lambda: PlaceboPass(proposals=2, entered=1, entered_real=1),
        lambda: Agreement(
            all_four=3, without_postcode=2, without_birth=3, family_differs=0, given_differs=0, names_swapped=0, dated=1
        ),
        lambda: Agreement(
            all_four=1, without_postcode=2, without_birth=3, family_differs=0, given_differs=0, names_swapped=0, dated=2
        ),
    ],
)
def test_counts_that_contradict_one_another_are_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(InvalidInputError):
        make()


def test_self_matches_are_rows_that_agree_with_exactly_one_other() -> None:
    rows = ["a", "a", "b", "b", "b", "c", "", ""] + [f"{n}" for n in range(10)]
    (found, *_) = decide(identity(1), rows)
    assert found.share == Fraction(2, len(rows))
    assert not found.does_run


def test_of_variants_the_rows_count_and_not_the_variants() -> None:
    steps = decide(identity(1), ["ab", "ab", "cd", "ce", "cf", *(chr(300 + n) for n in range(995))])
    assert steps[0].share == Fraction(2, 1000)


def test_a_pass_runs_below_both_limits() -> None:
    """wrong_a_match is 1/2: 4 of 1,000 rows foresee .002, which is the cap; 6 are above .005 of the rows."""

    def rows(*alike: str) -> list[str]:
        return [*(one for one in alike for _ in range(2)), *(chr(1000 + n) for n in range(1000 - 2 * len(alike)))]

    one = identity(1)
    assert one.wrong_a_match == Fraction(1, 2)
    assert [decide(one, rows(*pairs))[0].does_run for pairs in ("ab", "abc")] == [True, False]
    assert decide(one, rows(*"ab"))[0].foreseen == Fraction(2, 1000)
    generous = identity(1, cap=Decimal("0.5"))
    assert [decide(generous, rows(*pairs))[0].does_run for pairs in ("ab", "abc")] == [True, False]


def test_a_row_that_an_earlier_pass_confuses_counts_once_and_one_that_did_not_run_does_not_count() -> None:
    alike = ["a", "a", *(chr(1000 + n) for n in range(998))]
    many = [*"aabbccddee", *(chr(2000 + n) for n in range(990))]
    same = decide(identity(2), alike, alike)
    assert [step.share for step in same] == [Fraction(2, 1000), 0]
    after = decide(identity(2), many, alike)
    assert [step.does_run for step in after] == [False, True]
    assert after[1].share == Fraction(2, 1000)
    assert after[1].foreseen == Fraction(1, 1000)
    assert tuple(one.step for one in after if one.does_run) == identity(2).ladder[1:]


def test_foreseen_wrong_links_add_up() -> None:
    first = ["a", "a", *(chr(1000 + n) for n in range(998))]
    second = [chr(3000), chr(3001), "b", "b", *(chr(4000 + n) for n in range(996))]
    third = [*(chr(5000 + n) for n in range(4)), "c", "c", *(chr(6000 + n) for n in range(994))]
    steps = decide(identity(3), first, second, third)
    assert [step.foreseen for step in steps] == [Fraction(n, 1000) for n in (1, 2, 3)]
    assert [step.does_run for step in steps] == [True, True, False]
