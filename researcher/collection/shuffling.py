"""What anonymity gains in a round: the guarantee against an adversary who sees only the counts of reports.

Given that S of a stratum's n nodes reported, who they were is a uniform set of S nodes, and the counts say no more than
the reports in random order. So a round is, stratum by stratum, a release of S of n rows in secret order: the order
certificate holds, Theorem A for k-ary randomised response and Theorem B for the other oracles, and so does the pure
guarantee of the secret coins, ln(1 + (S/n)(gamma - 1)). The number of reports says nothing about values. Against an
adversary who knows which nodes reported, the certificate of S of S holds.

Neighbours: substitution of one node's value; its stratum is public. A node is in one stratum, so the worst stratum
counts.
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import exp, inf, log, nextafter, sqrt

import numpy as np
from numpy.typing import NDArray

from veiltab.common.collection.oracles import Oracle
from veiltab.common.core.numbers.rounding import ln_above, parse_delta, parse_epsilon
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.cards.guarantee_text import epsilon_text, guarantee_text, odds_text
from veiltab.common.privacy.profiles import Gaussian
from veiltab.common.privacy.shuffle import MAX_SAMPLE, OrderCertificate
from veiltab.common.privacy.shuffle_two_level import CrowdCertificate
from veiltab.common.privacy.threshold_search import largest_allowed

_POINTS_TOGETHER = 128
"""Losses at which the profile of a round is read, where rounds are composed."""

_SMALLEST_LOG_RATIO = -60.0
"""ln(sensitivity/sigma) at which Gaussian noise hides everything."""

_ENOUGH = 50
"""Reports of the blanket, of two values, from which on Theorem B is nearer to the worst table than Theorem A."""

Certificate = OrderCertificate | CrowdCertificate


@dataclass(frozen=True, slots=True, kw_only=True)
class CentralGuarantee:
    """The guarantees of a round by adversary; every epsilon is an upper bound in nats, of the worst stratum.

    Args:
        local_epsilon: ln gamma, against everybody.
        pure_epsilon: against an adversary who sees reports without names and does not know who reported.
        epsilon: (epsilon, delta) against an adversary who sees only the counts; None where there is no certificate.
        known_epsilon: the same against an adversary who also knows which nodes reported.
        why: why there is no certificate, else empty.
    """

    local_epsilon: Decimal
    pure_epsilon: Decimal
    delta: Decimal
    epsilon: Decimal | None
    known_epsilon: Decimal | None
    why: str = ""

    def rows(self) -> tuple[tuple[str, str], ...]:
        """Return (adversary, what it faces), one row an adversary."""
        local = f"epsilon {epsilon_text(self.local_epsilon)} a node; its own noise alone protects"
        pure = f"{guarantee_text(self.pure_epsilon, None)}; {odds_text(self.pure_epsilon)}"
        if self.epsilon is None or self.known_epsilon is None:
            return (
                ("who sees counts, not who reported", f"{pure}; no (epsilon, delta): {self.why}"),
                ("who sees whose report is whose", local),
            )
        both = f"{guarantee_text(self.epsilon, self.delta)}; {odds_text(self.epsilon)}"
        bound = f"{guarantee_text(self.known_epsilon, self.delta)}; {odds_text(self.known_epsilon)}"
        return (
            ("who sees counts, not who reported", both if self.epsilon < self.pure_epsilon else pure),
            ("who sees counts and knows who reported", bound),
            ("who sees whose report is whose", local),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CentralComparison:
    """Standard errors side by side, at one (epsilon, delta) against an adversary who sees the counts.

    Args:
        epsilon: nats.
        delta: probability.
        collected: standard errors of the estimated counts, shape (d,) (nodes).
        gaussian: standard error of every count of a Gaussian histogram of all n values (nodes).
    """

    epsilon: Decimal
    delta: Decimal
    collected: NDArray[np.float64]
    gaussian: float


def central_guarantee(
    populations: Sequence[int], reports: Sequence[int], *, oracle: Oracle, delta: Decimal
) -> CentralGuarantee:
    """Return the guarantees of a round.

    Args:
        populations: nodes n_s of each stratum; a lower bound is safe.
        reports: S_s, reports counted in each stratum.
        oracle: the randomiser of the nodes.
        delta: probability.

    Returns:
        Upper bounds; those with delta are nearly attained.

    Raises:
        InvalidInputError: more reports than nodes, or a number out of range.

    Source: Biswas, Cormode, Maple, Section 6 (ii), which asks for it; the order certificate; Balle, Bell, Gascon,
    Nissim 2019 (the blanket of any oracle); Lin, Wang, Rane, Theorem 3.2 (secret sample; for any pure mechanism Balle,
    Barthe, Gaboardi 2018, Theorem 9).
    """
    parse_delta(delta)
    if len(populations) != len(reports) or not all(0 <= s <= n for n, s in zip(populations, reports, strict=False)):
        raise InvalidInputError("a stratum has fewer than 0 reports, or more than it has nodes", where="reports")
    gamma = oracle.gamma
    heard = _heard(populations, reports)
    pure = max((ln_above(1 + Fraction(s, n) * (gamma - 1)) for n, s in heard), default=Decimal(0))
    why = _why_not(heard)

    def certified(pairs: list[tuple[int, int]]) -> Decimal | None:
        if why:
            return None
        share = nextafter(float(delta), 0.0)
        return Decimal(max((_epsilon(oracle, n, s, share) for n, s in undominated(pairs)), default=0.0))

    return CentralGuarantee(
        local_epsilon=ln_above(gamma),
        pure_epsilon=pure,
        delta=delta,
        epsilon=certified(heard),
        known_epsilon=certified([(s, s) for _, s in heard]),
        why=why,
    )


def guarantee_together(rounds: Sequence[tuple[Oracle, Sequence[int], Sequence[int]]], delta: Decimal) -> Decimal | None:
    """Return the epsilon of several rounds together against who sees only their counts, nats, an upper bound.

    A node may answer each of them; their coins are independent. The profile of a round is that of its worst stratum at
    each epsilon, and the profiles are composed as privacy loss distributions.

    Args:
        rounds: the randomiser, nodes of each stratum (a lower bound is safe), and reports.

    Returns:
        None where a round has no certificate.

    Source: Su, Cheng, Wang 2025 (arXiv 2504.07414), joint composition; Sommer et al. 2018, Theorem 4.
    """
    from veiltab.common.privacy.pricing.composition import composed_epsilon  # noqa: PLC0415 - not for rounds without a central epsilon

    parts = []
    for oracle, populations, reports in rounds:
        heard = _heard(populations, reports)
        if _why_not(heard):
            return None
        worst = [certificate_of(oracle, n, s) for n, s in undominated(heard)]

        def profile(epsilons: NDArray[np.float64], worst: Sequence[Certificate] = worst) -> NDArray[np.float64]:
            return np.array([max(one.delta(float(epsilon)) for one in worst) for epsilon in epsilons])

        if worst:
            parts.append((profile, float(ln_above(oracle.gamma)), 1))
    if not parts:
        return Decimal(0)
    return Decimal(composed_epsilon(parts, nextafter(float(delta), 0.0), points=_POINTS_TOGETHER))


def undominated(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the strata (n, S) among which the worst is at every delta: none has both fewer reports and a larger S/n.

    The bound of Theorem A is E (w (Z + e - 1) - (e - 1))_+ with w = S/n and Z the mean of S independent terms of one
    law. It falls with S, by Jensen's inequality (the mean of S + 1 is the expectation of the mean of S of them), and
    rises with w. So does that of Theorem B, term by term.
    """
    front: list[tuple[int, int]] = []
    largest = Fraction(0)
    for n, s in sorted(pairs, key=lambda pair: (pair[1], pair[0])):
        if Fraction(s, n) > largest:
            front.append((n, s))
            largest = Fraction(s, n)
    return front


def gaussian_standard_error(epsilon: Decimal, delta: Decimal) -> float:
    """Return the standard error (nodes) of each count of a histogram released by a trusted centre with Gaussian noise.

    The least sigma with Phi(r/2 - epsilon/r) - e^epsilon Phi(-r/2 - epsilon/r) <= delta, r = sqrt(2)/sigma

    Args:
        epsilon: nats, in (0, 100].
        delta: probability, in (0, 1).

    Source: Balle, Wang 2018, Theorem 8; a substitution moves two counts by one (sensitivity sqrt(2)).
    """
    nats, share = float(parse_epsilon(epsilon)), float(parse_delta(delta))

    def excess(log_ratio: float) -> float:
        reached = Gaussian(ratio=exp(log_ratio)).delta(nats, 1)
        return log(reached / share) if reached > 0 else -inf

    guess = log(nats / sqrt(2 * log(1.25 / share)))
    return sqrt(2) / exp(largest_allowed(_SMALLEST_LOG_RATIO, guess, 10.0, excess))


def compare_with_gaussian(
    standard_errors: NDArray[np.float64], guarantee: CentralGuarantee
) -> CentralComparison | None:
    """Return a round's standard errors beside those of a trusted centre with the same guarantee, if it has one.

    Args:
        standard_errors: of the estimated counts, shape (d,) (nodes).
        guarantee: of the round, against an adversary who sees only the counts.

    Source: Biswas, Cormode, Maple, Section 6 (ii), which asks for it.
    """
    if not guarantee.epsilon:
        return None
    return CentralComparison(
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        collected=standard_errors,
        gaussian=gaussian_standard_error(guarantee.epsilon, guarantee.delta),
    )


def certificate_of(oracle: Oracle, population: int, reports: int) -> Certificate:
    """Return the certificate of so many reports of a stratum's nodes.

    Theorem A is exact for k-ary randomised response of three values or more. Of two values Theorem B is nearer to the
    worst table, if there are reports enough of the blanket; both hold.
    """
    blanket = oracle.blanket
    if blanket.two or (oracle.size == 2 and reports * blanket.probability >= _ENOUGH):
        return CrowdCertificate(population=population, sample=reports, blanket=blanket)
    return OrderCertificate(population=population, sample=reports, cells=oracle.size, gamma=oracle.gamma)


@lru_cache(maxsize=64)
def _epsilon(oracle: Oracle, population: int, reports: int, delta: float) -> float:
    """Return the epsilon that the certificate grants; plans ask for the same one again."""
    return certificate_of(oracle, population, reports).epsilon(delta)


def _heard(populations: Sequence[int], reports: Sequence[int]) -> list[tuple[int, int]]:
    """Return (n, S) of the strata with reports, each once, in order."""
    return sorted({(n, s) for n, s in zip(populations, reports, strict=True) if s})


def _why_not(heard: Sequence[tuple[int, int]]) -> str:
    if any(s > MAX_SAMPLE for _, s in heard):
        return f"the certificate is computed for at most {MAX_SAMPLE:,} reports"
    return ""
