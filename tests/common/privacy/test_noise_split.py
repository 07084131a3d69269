"""The split of the noise: exact, the same everywhere, and no more than what was asked for needs."""

from decimal import Decimal, localcontext
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.common.privacy.precise import pairs_of
from tests.conftest import refuses
from veiltab.common.core.mechanism import UNIT, GammaDiagonal
from veiltab.common.core.numbers.rounding import exp_below, ln_above
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.coalitions import PAIRS
from veiltab.common.privacy.planning.noise_split import check_split, curators_part, parse_split, servers_part
from veiltab.common.privacy.planning.planning import plan_release

VECTORS = [
    ("0.5", 1_152_921_504_606_846_976, 585_760_926_402_687_604, 585_760_926_402_687_605),
    ("0.5", 12_345_678_901_234_567, 6_173_872_605_921_055, 6_173_872_605_921_056),
    ("0.25", 9_223_372_036_854_775_808, 2_934_943_109_024_486_668, 7_478_244_423_164_712_593),
    ("0.9", 3, 3, 1),
]
"""s, r, r_c and r_s, in units of 2^-64; from mpmath in 80 digits."""


def mechanism(replacement: int) -> GammaDiagonal:
    return GammaDiagonal(cells=24, replacement=replacement)


@pytest.mark.parametrize(("split", "replacement", "curators", "server"), VECTORS)
def test_known_answers(split: str, replacement: int, curators: int, server: int) -> None:
    least = mechanism(replacement)
    assert (curators_part(least, Decimal(split)), servers_part(least, curators)) == (curators, server)


@given(st.integers(1, UNIT), st.decimals(0, Decimal("0.999999999999999999"), places=18))
def test_the_two_parts_are_the_least_that_are_enough(replacement: int, split: Decimal) -> None:
    least = mechanism(replacement)
    curators = curators_part(least, split)
    assert 0 <= curators < UNIT
    server = servers_part(least, curators)
    assert 1 <= server <= UNIT
    whole = (UNIT - replacement) * UNIT
    assert (UNIT - curators) * (UNIT - server) <= whole
    # One unit less of the server would be too little.
    assert server == 1 or (UNIT - curators) * (UNIT - server + 1) > whole


@given(st.integers(1, UNIT - 1), st.decimals(0, Decimal("0.999"), places=3))
def test_the_curators_part_is_the_power_to_the_nearest_unit(replacement: int, split: Decimal) -> None:
    with mpmath.workdps(80):
        kept = mpmath.mpf(UNIT - replacement) / UNIT
        exact = (1 - mpmath.power(kept, mpmath.mpf(str(split)))) * UNIT
        found = curators_part(mechanism(replacement), split)
        assert abs(found - exact) <= mpmath.mpf("0.5000001") or found == UNIT - 1


def test_the_split_is_the_same_whatever_the_surroundings() -> None:
    least = mechanism(UNIT // 7)
    expected = curators_part(least, Decimal("0.5"))
    with localcontext(prec=5):
        assert curators_part(least, Decimal("0.5")) == expected
    with mpmath.workdps(50):
        assert expected == int(mpmath.nint((1 - mpmath.sqrt(1 - mpmath.mpf(UNIT // 7) / UNIT)) * UNIT))


def test_without_a_part_of_the_curators_the_server_adds_all() -> None:
    for replacement in (1, 2**40 + 1, UNIT - 1, UNIT):
        least = mechanism(replacement)
        assert curators_part(least, Decimal(0)) == 0
        assert servers_part(least, 0) == replacement


@pytest.mark.parametrize("text", ["1", "-0.1", "NaN", "Infinity", "half", "0." + "1" * 19, ""])
def test_a_split_is_a_number_from_zero_to_below_one(text: str) -> None:
    with refuses(InvalidInputError, where="noise_split"):
        parse_split(text)


def test_a_split_is_read() -> None:
    assert parse_split("0.25") == parse_split(0.25) == Decimal("0.25")
    assert parse_split(0.1) == Decimal("0.1")
    check_split(Decimal("0.999999999999999999"))


@pytest.mark.parametrize("by_server", [False, True])
@pytest.mark.parametrize(("sample", "delta"), [(None, "1e-6"), (300, None), (300, "1e-5")])
def test_a_cap_on_pairs_is_kept_and_used(sample: int | None, delta: str | None, *, by_server: bool) -> None:
    cap, at = Decimal("0.6"), Decimal(delta or "1e-6")
    asked = None if delta is None else Decimal(delta)
    plan = plan_release(
        population=2000,
        cells=6,
        epsilon=Decimal("0.8"),
        delta=asked,
        sample=sample,
        noise_split=Decimal("0.5"),
        max_pair_epsilon=cap,
        is_sampled_by_server=by_server,
    )
    found = pairs_of(plan.release, at)
    for pair in PAIRS:
        faced = found[pair]
        assert faced is not None
        assert faced <= cap
    assert max(each for each in found.values() if each is not None) > cap * Decimal("0.999")
    # The whole keeps what was asked for as before.
    assert plan.pure_epsilon <= Decimal("0.8") or plan.description.delta(0.8) <= float(at)


def test_a_cap_on_a_row_is_about_the_servers_noise() -> None:
    plan = plan_release(
        population=2000,
        cells=6,
        epsilon=Decimal("0.5"),
        delta=Decimal("1e-6"),
        noise_split=Decimal("0.5"),
        max_local_epsilon=Decimal(2),
    )
    assert plan.local_epsilon == plan.release.row_epsilon == ln_above(plan.mechanism.server.gamma) <= Decimal(2)
    assert plan.mechanism.server.gamma <= exp_below(Decimal(2)) < plan.mechanism.server.gamma + Fraction(1, 10**9)


def test_a_cap_on_pairs_needs_a_certificate() -> None:
    with pytest.raises(InvalidInputError, match="certified"):
        plan_release(population=200, cells=6, epsilon=Decimal(1), sample=20, scheme="wr", max_pair_epsilon=Decimal(1))
