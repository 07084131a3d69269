"""Amplification by a secret sample, for the gamma-diagonal mechanism and for any mechanism with a group profile.

Neighbouring relation: substitution of one respondent's row, with a public population size n; Poisson sampling relates
to adding or removing one (see veiltab.common.schemes). The two are never mixed.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
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


class Effect(Enum):
    """The effect of sampling on (epsilon, delta) of a base mechanism (MUST, Definition 5)."""

    STRONG = "strong"
    TYPE_I_WEAK = "type-I weak"
    TYPE_II_WEAK = "type-II weak"
    DILUTION = "dilution"


@dataclass(frozen=True, slots=True, kw_only=True)
class Amplified:
    """A point of the aligned privacy profile: (epsilon, delta) of the base, and of the base on a sample.

    Args:
        eta: P(a respondent is drawn at least once).
        base_epsilon: epsilon of the base mechanism, nats.
        base_delta: its delta for one copy.
        epsilon: epsilon on the sample, nats, an upper bound.
        delta: delta on the sample, an upper bound.
    """

    eta: float
    base_epsilon: float
    base_delta: float
    epsilon: float
    delta: float
    relation: Relation

    @property
    def effect(self) -> Effect:
        """The parameters that the sampling improves."""
        smaller_epsilon, smaller_delta = self.epsilon <= self.base_epsilon, self.delta <= self.base_delta
        if smaller_epsilon:
            return Effect.STRONG if smaller_delta else Effect.TYPE_I_WEAK
        return Effect.TYPE_II_WEAK if smaller_delta else Effect.DILUTION


def amplify(scheme: MultiplicityLaw, profile: GroupProfile, epsilon: float) -> Amplified:
    """Return the guarantee of a base mechanism on a sample.

    epsilon' = ln(1 + eta (e^epsilon - 1)),    delta' = sum_j P(a respondent is drawn j times) delta_j(epsilon)

    Args:
        scheme: the sampling scheme; its relation is that of the result.
        epsilon: the base epsilon at which its profile is read, nats.

    Returns:
        Upper bounds; tight for sampling without replacement and Poisson.

    Raises:
        InvalidInputError: epsilon is not a number from 0 to 700.

    Source: Balle, Barthe, Gaboardi 2018, Theorems 8 to 10; MUST, Theorem 5. Smith's lemma is the Poisson case, Theorem
    1 of Hu, Drechsler, Kim that without replacement.
    """
    if not 0 <= epsilon <= LARGEST_BASE:
        raise InvalidInputError("epsilon must be a number from 0 to 700", where="epsilon")
    eta, law = _draws(scheme)
    delta = profile.mean_delta(epsilon, law)
    return Amplified(
        eta=eta,
        base_epsilon=epsilon,
        base_delta=profile.delta(epsilon, 1),
        epsilon=min(epsilon, log1p(eta * expm1(epsilon)) * (1 + 1e-14)),
        delta=min(1.0, delta * (1 + 1e-11) + (1e-17 if len(law) > 2 and delta > 0 else 0.0)),
        relation=scheme.relation,
    )


@lru_cache(maxsize=64)
def _draws(scheme: MultiplicityLaw) -> tuple[float, Floats]:
    """Return eta and the law of multiplicities, which every point of a profile needs."""
    return scheme.eta, scheme.multiplicities()


def base_epsilon(scheme: MultiplicityLaw, epsilon: float) -> float:
    """Return the base epsilon that reaches a target after sampling, rounded down: ln(1 + (e^epsilon - 1)/eta)."""
    if not 0 <= epsilon <= LARGEST_BASE:
        raise InvalidInputError("epsilon must be a number from 0 to 700", where="epsilon")
    eta, _ = _draws(scheme)
    return log1p(expm1(epsilon) / eta) * (1 - 1e-14)
