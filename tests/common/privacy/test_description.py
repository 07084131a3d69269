"""The pure epsilon of every scheme against its formula in 60 digits, where floats would overflow or round too."""

from decimal import Decimal
from fractions import Fraction
from math import log

import mpmath
import pytest

from tests.common.privacy.enumeration import enumerated
from veiltab.common.core.numbers.rounding import exp_below
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.description import ReleaseDescription, description_of
from veiltab.common.schemes.two_stage import TwoStage

TWO_STAGE = pytest.mark.parametrize("scheme", ["must.ow", "must.ww"])


def described(scheme: str, *, population: int, sample: int, stage: int, gamma: Fraction) -> ReleaseDescription:
    facts = {"scheme": scheme, "population": population, "sample": sample, "stage": stage, "gamma": gamma, "cells": 6}
    return description_of(facts)


def exact(release: ReleaseDescription) -> mpmath.mpf:
    """ln(1 + (b/n)((1 + (gamma-1)/b)^m - 1)) of must.ow, b ln(1 + ((1 + (gamma-1)/b)^m - 1)/n) of must.ww."""
    facts = release.as_dict()
    n, m, b = facts["population"], facts["sample"], facts["stage"]
    a = mpmath.mpf(release.gamma.numerator) / release.gamma.denominator - 1
    grown = mpmath.power(1 + a / b, m) - 1
    if facts["scheme"] == "must.ow":
        return mpmath.log(1 + mpmath.mpf(b) / n * grown)
    return min(b * mpmath.log(1 + grown / n), m * mpmath.log(1 + a))


def value(bound: Decimal) -> mpmath.mpf:
    return mpmath.mpf(str(bound))


@TWO_STAGE
@pytest.mark.parametrize("second", [2, 100, 599, 650, 720, 10_000])
def test_a_second_stage_of_any_size_has_a_bound(scheme: str, second: int) -> None:
    # One row after stage one: the second stage alone costs m ln gamma.
    release = described(scheme, population=1000, sample=second, stage=1, gamma=Fraction(271_828, 100_000))
    with mpmath.workdps(60):
        true, found = exact(release), value(release.pure_epsilon)
        # Where e^x fits no float, the population is not counted on: ln 1000 too much at most.
        allowed = mpmath.mpf("1e-8") if second < 600 else mpmath.log(1000) + mpmath.mpf("1e-8")
        assert true <= found <= true + allowed


@TWO_STAGE
@pytest.mark.parametrize("population", [10**6, 10**9, 10**12])
def test_the_bound_is_never_below_the_exact_value(scheme: str, population: int) -> None:
    with mpmath.workdps(60):
        for sample in range(1, 60):
            release = described(scheme, population=population, sample=sample, stage=30, gamma=Fraction(7 + sample, 3))
            true, found = exact(release), value(release.pure_epsilon)
            assert true <= found <= true + mpmath.mpf("1e-8")


@TWO_STAGE
def test_the_exponential_of_stage_two_is_rounded_up_however_large(scheme: str) -> None:
    with mpmath.workdps(300):
        for sample in range(1, 590):
            release = described(scheme, population=1000, sample=sample, stage=1, gamma=Fraction(2_718_281, 10**6))
            assert isinstance(release.scheme, TwoStage)
            epsilon, grown = release.scheme._second_stage(release.gamma)
            assert grown is not None
            assert mpmath.mpf(grown.numerator) / grown.denominator >= mpmath.expm1(mpmath.mpf(str(epsilon)))


@TWO_STAGE
@pytest.mark.parametrize("epsilon", ["0.237100749121", "0.439398670174", "0.466925140348", "0.474630077718"])
def test_the_exponential_of_stage_two_is_rounded_up_where_expm1_rounds_down(scheme: str, epsilon: str) -> None:
    release = described(scheme, population=1000, sample=1, stage=1, gamma=exp_below(Decimal(epsilon)))
    assert isinstance(release.scheme, TwoStage)
    spent, grown = release.scheme._second_stage(release.gamma)
    assert spent == Decimal(epsilon)
    assert grown is not None
    with mpmath.workdps(60):
        assert mpmath.mpf(grown.numerator) / grown.denominator >= mpmath.expm1(mpmath.mpf(epsilon))


def test_a_float_that_rounds_down_takes_nothing_off_the_bound() -> None:
    # Stage two costs just less than 100.000000000004, whose nearest float is 7e-15 smaller, and the population puts the
    # exact bound just above a multiple of 1e-12: no rounding on the way hides the float.
    gamma = exp_below(Decimal("100.000000000004") - Decimal("1e-25"))
    release = described("must.ow", population=1557, sample=1, stage=1, gamma=gamma)
    with mpmath.workdps(60):
        assert exact(release) <= value(release.pure_epsilon)


@pytest.mark.parametrize("scheme", ["wor", "poisson", "wr", "must.ow", "must.wo", "must.ww"])
def test_the_pure_epsilon_needs_no_delta(scheme: str) -> None:
    stage = {"stage": 60} if scheme.startswith("must") else {}
    release = description_of({"scheme": scheme, "population": 100, "sample": 50, "cells": 4, "gamma": 5, **stage})
    assert release.delta(float(release.pure_epsilon)) == 0
    assert release.delta(float(release.pure_epsilon) / 2) > 0


def test_a_presence_is_described_and_read_back() -> None:
    facts = {"population": 9, "sample": 9, "cells": 6, "gamma": "7/2", "presence": "2/3"}
    release = description_of(facts)
    assert release.presence == Fraction(2, 3)
    assert description_of(release.as_dict()) == release
    seen = enumerated(9, 9, 6, Fraction(7, 2), Fraction(5, 4), Fraction(2, 3))
    assert release.delta(log(5 / 4)) == pytest.approx(float(seen), rel=1e-6)
    assert "presence" not in description_of({**facts, "presence": "1"}).as_dict()


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"sample": 8}, "presence"),
        ({"scheme": "wr"}, "presence"),
        ({"presence": "0"}, "presence"),
        ({"presence": "much"}, "presence must be a number"),
        ({"gamma": "much"}, "gamma must be a number"),
    ],
)
def test_a_presence_out_of_range_or_without_a_certificate_is_refused(facts: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        description_of({"population": 9, "sample": 9, "cells": 6, "gamma": "7/2", "presence": "2/3", **facts})


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"population": 10, "sample": 5, "cells": 4, "gamma": 0.5}, "gamma"),
        ({"population": 10, "sample": 5, "cells": 4}, "gamma"),
        ({"population": 10, "sample": 11, "cells": 4, "gamma": 2}, "1 to n"),
        ({"population": 10, "sample": 5, "cells": 1, "gamma": 2}, "cells"),
        ({"population": 10.5, "sample": 5, "cells": 4, "gamma": 2}, "population"),
        ({"population": 10, "sample": True, "cells": 4, "gamma": 2}, "sample"),
        ({"population": 10, "sample": 5, "cells": 4, "gamma": 2, "relation": "add/remove"}, "substitution"),
        ({"population": 10, "sample": 5, "cells": 4, "gamma": 2, "mechanism": "laplace"}, "gamma-diagonal"),
        ({"population": 10, "sample": 5, "cells": 4, "gamma": 2, "scheme": "srs"}, "not known"),
    ],
)
def test_descriptions_that_say_nothing_sound_are_refused(facts: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        description_of(facts)


@pytest.mark.parametrize("scheme", ["wor", "wr"])
def test_a_description_survives_its_plain_form(scheme: str) -> None:
    release = description_of({"population": 400, "sample": 300, "cells": 6, "gamma": "356.78", "scheme": scheme})
    assert description_of(release.as_dict()) == release
    assert isinstance(release.pure_epsilon, Decimal)
