"""Amplification by a secret sample, for the gamma-diagonal mechanism and for any mechanism with a group profile.

Neighbouring relation: substitution of one respondent's row, with a public population size n; Poisson sampling relates
to adding or removing one (see veiltab.common.schemes). The two are never mixed.
"""

from collections.abc import Hashable
from functools import lru_cache
from math import expm1, log1p
from typing import ClassVar, Protocol

from veiltab.common.core.numbers.elementary import Floats
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.profiles import LARGEST_BASE, GroupProfile
from veiltab.common.schemes import Relation


class MultiplicityLaw(Hashable, Protocol):
    """The part of a sampling scheme that amplification needs; see Scheme."""

    relation: ClassVar[Relation]

    @property
    def eta(self) -> float:
        """P(a respondent is drawn at least once)."""

    def multiplicities(self) -> Floats:
        """Return P(a respondent is drawn j times), j = 0, 1, ..."""


def amplified_delta(scheme: MultiplicityLaw, profile: GroupProfile, epsilon: float) -> float:
    """Return delta on a sample of a base mechanism whose profile is read at a base epsilon (nats), an upper bound.

    delta' = sum_j P(a respondent is drawn j times) delta_j(epsilon)

    It holds at epsilon' = ln(1 + eta (e^epsilon - 1)), in the relation of the scheme; tight for sampling without
    replacement and Poisson.

    Raises:
        InvalidInputError: epsilon is not a number from 0 to 700.

    Source: Balle, Barthe, Gaboardi 2018, Theorems 8 to 10; MUST, Theorem 5.
    """
    _check_epsilon(epsilon)
    _, law = _draws(scheme)
    delta = profile.mean_delta(epsilon, law)
    return min(1.0, delta * (1 + 1e-11) + (1e-17 if len(law) > 2 and delta > 0 else 0.0))


@lru_cache(maxsize=64)
def _draws(scheme: MultiplicityLaw) -> tuple[float, Floats]:
    """Return eta and the law of multiplicities, which every point of a profile needs."""
    return scheme.eta, scheme.multiplicities()


def base_epsilon(scheme: MultiplicityLaw, epsilon: float) -> float:
    """Return the base epsilon that reaches a target after sampling, rounded down: ln(1 + (e^epsilon - 1)/eta)."""
    _check_epsilon(epsilon)
    eta, _ = _draws(scheme)
    return log1p(expm1(epsilon) / eta) * (1 - 1e-14)


def _check_epsilon(epsilon: float) -> None:
    if not 0 <= epsilon <= LARGEST_BASE:
        raise InvalidInputError("epsilon must be a number from 0 to 700", where="epsilon")
