"""Amplification by a secret sample, for the gamma-diagonal mechanism and for any mechanism with a group profile.

Neighbouring relation: substitution of one respondent's row, with a public population size n; Poisson sampling relates
to adding or removing one (see veiltab.common.schemes). The two are never mixed.
"""

from collections.abc import Hashable
from functools import lru_cache
from math import expm1, log1p
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.numbers.elementary import Floats
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.profiles import LARGEST_BASE, GroupProfile, SlopedProfile
from veiltab.common.schemes import Relation

_MOST_COPIES = 65
"""Length of a law of multiplicities from which on all a_j are alike."""


class MultiplicityLaw(Hashable, Protocol):
    """The part of a sampling scheme that amplification needs; see Scheme."""

    relation: ClassVar[Relation]

    @property
    def eta(self) -> float:
        """P(a respondent is drawn at least once)."""

    @property
    def pool(self) -> float:
        """P(a respondent is among the rows of which the last stage draws each row anew), or eta."""

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


def sampled_delta(scheme: MultiplicityLaw, profile: SlopedProfile, epsilon: float) -> float:
    """Return delta at an epsilon (nats) on a sample, an upper bound.

    delta' = min over all a_j of sum_{j>=1} P(a respondent is drawn j times) delta_j(ln a_j), where

    a_j - 1 >= x/pool,    sum_{j>=1} P(j) (a_j - 1) <= x = e^epsilon - 1

    With all a_j alike it is `amplified_delta`. Relation: that of the scheme.

    Raises:
        InvalidInputError: epsilon is not a number from 0 to 700.

    Source: docs/accounting.md, samples with repeats.
    """
    _check_epsilon(epsilon)
    eta, law = _draws(scheme)
    if not 2 < len(law) <= _MOST_COPIES or scheme.pool <= eta:
        return amplified_delta(scheme, profile, min(base_epsilon(scheme, epsilon), LARGEST_BASE))
    total = expm1(epsilon)
    copies, tops, rises = _rises(profile, len(law) - 1)
    least = total / scheme.pool
    excesses = np.full(len(law), least)
    # What the rises cost of what may be divided, in the order of what they gain.
    costs = np.cumsum(law[copies] * np.maximum(np.minimum(rises, tops - least), 0.0))
    rest = total * (1 - 1e-12) - float(law[1:].sum()) * least
    whole = int(np.searchsorted(costs, rest, side="right"))
    np.maximum.at(excesses, copies[:whole], tops[:whole])
    if whole < len(costs):
        cost = costs[whole - 1] if whole else 0.0
        excesses[copies[whole]] += max(rest - cost, 0.0) / law[copies[whole]]
    epsilons = np.minimum(np.log1p(excesses) * (1 - 1e-14), LARGEST_BASE)
    deltas = [profile.delta(float(epsilons[j]), j) for j in range(1, len(law))]
    return min(1.0, float(law[1:] @ np.array(deltas)) * (1 + 1e-11) + 1e-17)


@lru_cache(maxsize=16)
def _rises(profile: SlopedProfile, most: int) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Return (j, a_j - 1 after it, by how much it rises) of rises of the a_j that gain less and less."""
    parts = []
    for j in range(1, most + 1):
        epsilons, slopes = profile.slopes(j)
        tops = np.expm1(epsilons)
        parts.append((np.full(len(tops), j), tops, np.diff(tops, prepend=0.0), -slopes))
    copies, tops, rises, losses = map(np.concatenate, zip(*parts, strict=True))
    order = np.argsort(losses, kind="stable")
    return copies[order], tops[order], rises[order]


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
