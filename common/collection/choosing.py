"""The choice of an oracle: the expected variance and report length of each, and the reason for the best."""

from collections.abc import Sequence
from decimal import Decimal
from math import sqrt
from typing import Any

from veiltab.common.collection.oracles import ORACLE_NAMES, Oracle, oracle_for
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError

TIE = 1.01
"""Oracles whose variances differ by less than this factor count as equally accurate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An oracle and its expected accuracy.

    Args:
        oracle: the oracle with its parameters.
        variance: of an estimated count, squared nodes, mean over the values.
        standard_error: its root as a fraction of the population.
    """

    oracle: Oracle
    variance: float
    standard_error: float

    @property
    def report_bytes(self) -> int:
        """Payload of one report, in bytes."""
        return self.oracle.report_bytes

    def as_dict(self) -> dict[str, Any]:
        """Return all figures, as JSON holds them."""
        return {
            "oracle": self.oracle.name,
            "parameters": self.oracle.parameters,
            "epsilon": str(self.oracle.epsilon),
            "variance": self.variance,
            "standard_error": self.standard_error,
            "report_bytes": self.report_bytes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Candidates for a round, the best one first.

    Args:
        size: number of values d.
        epsilon: budget of one report, nats.
        population: nodes n.
        rate: probability with which a node reports.
        candidates: best first.
        reason: why the first one is best, in one sentence.
    """

    size: int
    epsilon: Decimal
    population: int
    rate: float
    candidates: tuple[Candidate, ...]
    reason: str

    @property
    def best(self) -> Candidate:
        """The one to run."""
        return self.candidates[0]

    def as_dict(self) -> dict[str, Any]:
        """Return all figures, as JSON holds them."""
        return {
            **same_fields(self, ("size", "population", "rate", "reason")),
            "epsilon": str(self.epsilon),
            "candidates": [candidate.as_dict() for candidate in self.candidates],
        }


def expected_variance(oracle: Oracle, *, population: int, rate: float, frequency: float) -> float:
    """Return the variance of the estimated count of one value under sampling.

    n [f p(1-p) + (1-f) q(1-q)] / (pi (p-q)^2)  +  n f (1-pi)/pi

    The estimator is (N - S q)/(pi (p-q)), where N of the S reports support the value; Horvitz and Thompson's has the
    same variance.

    Args:
        oracle: the randomiser of the nodes.
        population: nodes n.
        rate: probability pi with which each reports, in (0, 1].
        frequency: true fraction f of nodes with the value.

    Returns:
        Squared nodes; exact for fixed values, not a bound.

    Raises:
        InvalidInputError: an argument out of range.

    Source: Biswas, Cormode, Maple (the estimator); derived from the independence of the nodes.
    """
    if population < 1:
        raise InvalidInputError(f"the population must be at least 1, not {population}", where="population")
    if not 0 < rate <= 1:
        raise InvalidInputError("the rate must be above 0 and at most 1", where="rate")
    if not 0 <= frequency <= 1:
        raise InvalidInputError("the frequency is not between 0 and 1", where="frequency")
    p, q = oracle.p, oracle.q
    own, other, scale = (float(exact) for exact in (p * (1 - p), q * (1 - q), (p - q) ** 2))
    noise = (frequency * own + (1 - frequency) * other) / (rate * scale)
    return population * (noise + frequency * (1 - rate) / rate)


def choose(
    size: int, epsilon: Decimal, *, population: int, rate: float = 1.0, among: Sequence[str] = ORACLE_NAMES
) -> Choice:
    """Rank oracles for a round by their variance, mean over the values; near ties go to the smaller report.

    The mean over the values is the same whatever their distribution: it is the variance at f = 1/d.

    Args:
        size: number of values d, 2 to 65536.
        epsilon: budget of one report, nats.
        population: nodes n.
        rate: probability with which a node reports; for several strata, their harmonic mean weighted by population,
            because the mean of 1/rate counts.
        among: names of the oracles to rank.

    Returns:
        All of them, best first, and the reason.

    Raises:
        InvalidInputError: an argument out of range.

    Source: Wang, Blocki, Li, Jha 2017 (krr below 3 e^epsilon + 2 values, else OUE or OLH, for a rare value); subset
    selection (Ye, Barg 2018) is at least as accurate as all of them.
    """
    return ranked(
        [oracle_for(name, size, epsilon) for name in among], epsilon=epsilon, population=population, rate=rate
    )


def ranked(oracles: Sequence[Oracle], *, epsilon: Decimal, population: int, rate: float) -> Choice:
    """Rank oracles of one number of values by their variance, as `choose` does.

    Args:
        epsilon: that no report exceeds, nats.
        population: nodes n.
        rate: see `choose`.
    """
    names = [oracle.name for oracle in oracles]
    if not names or len(set(names)) != len(names):
        raise InvalidInputError("name at least one oracle, and each once", where="oracles")
    ordered = sorted(oracles, key=lambda oracle: ORACLE_NAMES.index(oracle.name))
    best_first = _ranked([_candidate(oracle, population, rate) for oracle in ordered])
    return Choice(
        size=oracles[0].size,
        epsilon=epsilon,
        population=population,
        rate=rate,
        candidates=tuple(best_first),
        reason=_reason(best_first),
    )


def _candidate(oracle: Oracle, population: int, rate: float) -> Candidate:
    variance = expected_variance(oracle, population=population, rate=rate, frequency=1 / oracle.size)
    return Candidate(oracle=oracle, variance=variance, standard_error=sqrt(variance) / population)


def _ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Order by repeated choice of the best; among ties with reports of one length, the simplest comes first."""
    rest, ranked = list(candidates), []
    while rest:
        ranked.append(min(_tied(rest), key=lambda candidate: candidate.report_bytes))
        rest.remove(ranked[-1])
    return ranked


def _tied(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates whose accuracy ties with the best."""
    least = min(candidate.variance for candidate in candidates)
    return [candidate for candidate in candidates if candidate.variance <= TIE * least]


def _reason(ranked: Sequence[Candidate]) -> str:
    """Say why the first one is best."""
    best, tied = ranked[0], _tied(ranked)
    name = best.oracle.name
    if len(ranked) == 1:
        return f"{name} is the only oracle considered."
    if len(tied) == 1:
        second = min(ranked[1:], key=lambda candidate: candidate.variance)
        ratio = best.variance / second.variance
        return f"{name} has the least variance, {ratio:.2f} of that of the next best, {second.oracle.name}."
    lengths = [candidate.report_bytes for candidate in tied]
    lead = "sends least" if lengths.count(best.report_bytes) == 1 else "is the simplest that sends least"
    length = "1 byte" if best.report_bytes == 1 else f"{best.report_bytes} bytes"
    names = ", ".join(candidate.oracle.name for candidate in tied)
    return f"{name} {lead}, {length} a report, among {names}, all within 1 % of the least variance."
