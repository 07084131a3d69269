"""What happened, as plain facts: one release, whichever accountant may look at it.

Relation: substitution of one respondent's row, n public. A Poisson sample is described by the size that it came to
have: given its size it is a sample without replacement, and its size says nothing under substitution.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import expm1, log1p
from typing import Any

from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.core.rounding import exp_below, ln_above, ln_below
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.amplification import amplify, gamma_for_pure_epsilon, pure_epsilon
from veiltab.common.privacy.profiles import GammaDiagonalProfile
from veiltab.common.privacy.shuffle import OrderCertificate
from veiltab.common.schemes.schemes import (
    MustOW,
    MustWW,
    Poisson,
    Relation,
    Scheme,
    WithoutReplacement,
    scheme_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseDescription:
    """One release through the gamma-diagonal mechanism.

    Args:
        scheme: how rows were sampled.
        cells: K.
        gamma: that of the mechanism that ran, exact, at least 1.
    """

    scheme: Scheme
    cells: int
    gamma: Fraction

    def __post_init__(self) -> None:
        if self.cells < 2:
            raise InvalidInputError("there must be at least 2 cells", where="cells")
        if self.gamma < 1:
            raise InvalidInputError("gamma must be at least 1", where="gamma")

    @property
    def local_epsilon(self) -> Decimal:
        """Return ln gamma (nats, rounded up): what a row faces from who knows the sample."""
        return ln_above(self.gamma)

    @property
    def pure_epsilon(self) -> Decimal:
        """Return the pure epsilon against the researcher (nats, rounded up).

        without replacement, Poisson: ln(1 + (m/n)(gamma-1)), tight
        with replacement, MUST.WO:    m ln(1 + (gamma-1)/n), tight
        MUST.OW:                      ln(1 + (b/n)((1 + (gamma-1)/b)^m - 1)), tight
        MUST.WW:                      b ln(1 + ((1 + (gamma-1)/b)^m - 1)/n), a bound

        Source: Lin, Wang, Rane, Theorem 3.2; the draws of a stage with replacement are independent, and sampling
        without replacement amplifies what follows it (Balle, Barthe, Gaboardi 2018).
        """
        scheme, a = self.scheme, self.gamma - 1
        n, m = scheme.population, scheme.sample
        if isinstance(scheme, WithoutReplacement | Poisson):
            return pure_epsilon(self.gamma, population=n, sample=m)
        if isinstance(scheme, MustOW | MustWW):
            b = scheme.stage
            # e^x - 1 of stage two, rounded up through ln_above.
            second = m * ln_above(1 + a / b)
            grown = Fraction(expm1(float(second)) * (1 + 1e-14)) if second < 600 else None
            if grown is None:
                return second if isinstance(scheme, MustOW) else b * second
            if isinstance(scheme, MustOW):
                return ln_above(1 + Fraction(b, n) * grown)
            return b * ln_above(1 + grown / n)
        return m * ln_above(1 + a / n)

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of delta at an epsilon (nats, at least 0): the best of all that is proved."""
        if epsilon >= float(self.pure_epsilon):
            return 0.0
        scheme = self.scheme
        if isinstance(scheme, WithoutReplacement | Poisson):
            return OrderCertificate(
                population=scheme.population, sample=scheme.sample, cells=self.cells, gamma=self.gamma
            ).delta(epsilon)
        base = log1p(expm1(epsilon) / scheme.eta)
        profile = GammaDiagonalProfile(gamma=float(self.gamma), cells=self.cells)
        return amplify(scheme, profile, max(0.0, base * (1 - 1e-13))).delta

    def as_dict(self) -> dict[str, Any]:
        """Return the plain form, as a ledger or a file holds it."""
        stage = {"stage": self.scheme.stage} if hasattr(self.scheme, "stage") else {}
        return {
            "mechanism": "gamma-diagonal",
            "relation": Relation.SUBSTITUTION.value,
            "scheme": self.scheme.name,
            "population": self.scheme.population,
            "sample": self.scheme.sample,
            **stage,
            "cells": self.cells,
            "gamma": f"{self.gamma.numerator}/{self.gamma.denominator}",
        }


def description_of(facts: Mapping[str, Any], where: str = "release") -> ReleaseDescription:
    """Read a description: its gamma as a number, a fraction, or by `replacement`, the 64-bit r64.

    Raises:
        InvalidInputError: a key is missing or out of range; a mechanism, scheme or relation that is not known here.
    """
    if facts.get("mechanism", "gamma-diagonal") != "gamma-diagonal":
        raise InvalidInputError("only gamma-diagonal releases are composed here", where=where)
    if facts.get("relation", Relation.SUBSTITUTION.value) != Relation.SUBSTITUTION.value:
        raise InvalidInputError("releases relate to substitution; other relations are not mixed with it", where=where)
    cells = _whole(facts, "cells", where)
    scheme = scheme_of(
        str(facts.get("scheme", "wor")),
        population=_whole(facts, "population", where),
        sample=_whole(facts, "sample", where),
        stage=_whole(facts, "stage", where) if "stage" in facts else None,
    )
    if "replacement" in facts:
        gamma = GammaDiagonal(cells=cells, replacement=_whole(facts, "replacement", where)).gamma
    else:
        gamma = _fraction(facts.get("gamma"), where)
    return ReleaseDescription(scheme=scheme, cells=cells, gamma=gamma)


def _whole(facts: Mapping[str, Any], key: str, where: str) -> int:
    value = facts.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidInputError(f"{key} must be a whole number from 1", where=where)
    return value


def _fraction(value: object, where: str) -> Fraction:
    try:
        return Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise InvalidInputError("gamma must be a number above 1", where=where) from None


def gamma_for(scheme: Scheme, epsilon: Decimal) -> Fraction:
    """Return the largest gamma that keeps a release under a scheme inside a pure epsilon, rounded down.

    The inverse of `ReleaseDescription.pure_epsilon`.

    Raises:
        InvalidInputError: sizes that the scheme forbids.
    """
    n, m = scheme.population, scheme.sample
    if isinstance(scheme, WithoutReplacement | Poisson):
        return gamma_for_pure_epsilon(epsilon, population=n, sample=m)
    if isinstance(scheme, MustOW):
        b = scheme.stage
        excess = b * (exp_below(ln_below(1 + (exp_below(epsilon) - 1) * Fraction(n, b)) / m) - 1)
    elif isinstance(scheme, MustWW):
        b = scheme.stage
        excess = b * (exp_below(ln_below(1 + n * (exp_below(epsilon / b) - 1)) / m) - 1)
    else:
        excess = n * (exp_below(epsilon / m) - 1)
    # The bound that is claimed is rounded up to 1e-12 a step; stay below it.
    while ReleaseDescription(scheme=scheme, cells=2, gamma=1 + excess).pure_epsilon > epsilon:
        excess *= 1 - Fraction(1, 10**6)
    return 1 + excess
