"""What several releases together give each coalition, against the exact law of two views."""

from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product

import pytest

from tests.common.privacy.test_coalitions import (
    CELLS,
    Eighths,
    Law,
    See,
    divergence,
    release_of,
    seen_by_analyst_and_curator,
    seen_by_desk,
    seen_by_desk_and_server,
)
from veiltab.common.core.mechanism import UNIT, TwoSidedNoise
from veiltab.common.core.numbers.rounding import exp_below
from veiltab.common.privacy.cards.all_releases import Slots, bounds_together
from veiltab.common.privacy.cards.card import Bound, card_of
from veiltab.common.privacy.coalitions import Coalition, TwoSidedRelease
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.planning.planning import plan_release
from veiltab.common.privacy.pricing.price import Price, price
from veiltab.common.schemes import scheme_of


def of(bounds: tuple[Bound, ...], coalition: Coalition) -> Bound:
    (found,) = (bound for bound in bounds if bound.roles == coalition.roles)
    return found


def both(one: Law, other: Law) -> Law:
    return {(first, second): p * q for (first, p), (second, q) in product(one.items(), other.items())}


@pytest.mark.parametrize(
    ("coalition", "see"),
    [
        (Coalition.DESK, seen_by_desk),
        (Coalition.DESK_AND_SERVER, seen_by_desk_and_server),
        (Coalition.ANALYST_AND_CURATORS, seen_by_analyst_and_curator),
    ],
)
@pytest.mark.parametrize("delta", ["0.3", "0.02"])
def test_two_views_say_no_more_than_their_prices(coalition: Coalition, see: See, delta: str) -> None:
    noises: list[Eighths] = [(4, 4), (2, 6)]
    bound = of(bounds_together([release_of(2, 2, noise) for noise in noises], Decimal(delta)), coalition)
    assert bound.epsilon is not None
    e = exp_below(bound.epsilon) if bound.epsilon else Fraction(1)
    for other in range(CELLS):
        laws = [both(*(see((x, other), 2, noise) for noise in noises)) for x in range(CELLS)]
        for one, two in permutations(laws, 2):
            # Between e and its bound from below lies less than 1e-50.
            assert float(divergence(one, two, e)) <= float(bound.delta) * (1 + 1e-12) + 1e-15


def planned(epsilon: str, cells: int = 24) -> TwoSidedRelease:
    return plan_release(
        population=45222, cells=cells, epsilon=Decimal(epsilon), delta=Decimal("1e-6"), noise_split=Decimal("0.5")
    ).release


def test_squares_of_prices_add_up_and_rows_add_up() -> None:
    releases = [planned("0.1"), planned("0.1"), planned("0.1"), planned("0.1")]
    bounds = bounds_together(releases, Decimal("1e-6"))
    assert [bound.roles for bound in bounds] == [coalition.roles for coalition in Coalition]
    alone = card_of(releases[0], delta=Decimal("1e-6"))
    for coalition in (Coalition.DESK, Coalition.DESK_AND_SERVER, Coalition.ANALYST_AND_CURATORS):
        one, four = alone.bound(coalition).epsilon, of(bounds, coalition).epsilon
        assert one is not None
        assert four is not None
        # About twice that of one release; the slack costs some percent.
        assert 2 * one < four < Decimal("2.12") * one
    rows = of(bounds, Coalition.DESK_AND_CURATORS)
    assert (rows.epsilon, rows.per_row) == (4 * releases[0].row_epsilon, True)
    assert of(bounds, Coalition.SERVER_AND_CURATORS).epsilon == 0
    assert of(bounds, Coalition.DESK_SERVER_AND_CURATOR).epsilon is None


def test_a_kind_of_release_is_priced_once_by_who_keeps_prices() -> None:
    asked: dict[tuple[ReleaseDescription, Decimal], Price] = {}

    def kept(view: ReleaseDescription, slack: Decimal) -> Price:
        key = (view, slack)
        asked[key] = asked.get(key) or price(view, slack)
        return asked[key]

    bounds_together([planned("0.1")] * 3, Decimal("1e-6"), pricing=kept)
    assert len(asked) == 3


def test_one_release_has_its_card_and_none_has_no_bounds() -> None:
    release = planned("0.5")
    assert bounds_together([], Decimal("1e-6")) == ()
    assert bounds_together([release], Decimal("1e-6")) == card_of(release, delta=Decimal("1e-6")).bounds


def test_releases_that_are_chosen_on_the_way_count_as_the_worst_of_their_candidates() -> None:
    candidates = (release_of(9, 9, (4, 4)), release_of(9, 9, (2, 2)))
    fixed, delta = release_of(9, 9, (2, 6)), Decimal("1e-6")
    slots = bounds_together([fixed, Slots(candidates=candidates, count=2)], delta)
    assert slots == bounds_together([fixed, candidates[1], candidates[1]], delta)
    for chosen in product(candidates, repeat=2):
        for worst, bound in zip(slots, bounds_together([fixed, *chosen], delta), strict=True):
            assert worst.epsilon is None or (bound.epsilon or 0) <= worst.epsilon


def test_one_release_without_the_curators_noise_leaves_no_protection_from_desk_and_server() -> None:
    bounds = bounds_together([release_of(9, 9, (2, 2)), release_of(9, 9, (0, 2))], Decimal("1e-6"))
    assert of(bounds, Coalition.DESK_AND_SERVER).epsilon is None
    assert of(bounds, Coalition.ANALYST_AND_CURATORS).epsilon is not None


def test_a_scheme_without_a_certificate_leaves_the_rows_alone_to_bound_curators() -> None:
    noise = TwoSidedNoise(cells=4, curator_replacement=UNIT // 4, server_replacement=UNIT // 4)
    other = TwoSidedRelease(scheme=scheme_of("wr", population=9, sample=4), noise=noise)
    bound = of(bounds_together([release_of(9, 9, (2, 2)), other], Decimal("1e-6")), Coalition.ANALYST_AND_CURATORS)
    assert (bound.epsilon, bound.per_row) == (2 * other.row_epsilon, True)
