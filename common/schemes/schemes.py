"""Sampling schemes: public descriptions of how a respondent comes into a sample, and how often.

Each is plain frozen data. `multiplicities` is the law of the number of copies of one respondent, on which everything
that sampling buys depends (Balle, Barthe, Gaboardi 2018; MUST, Theorem 5).
"""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import expm1, log1p
from typing import ClassVar

import numpy as np

from veiltab.common.core.binomial import Floats, binomial_pmf
from veiltab.common.errors import InvalidInputError

_NEGLIGIBLE = 1e-18


class Relation(Enum):
    """Which tables are neighbours."""

    SUBSTITUTION = "substitution"
    ADD_REMOVE = "add/remove"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """A sampling scheme: m rows of a population of n (for Poisson, m = n p rows on average).

    Args:
        population: n, rows.
        sample: m, rows.
    """

    name: ClassVar[str]
    relation: ClassVar[Relation] = Relation.SUBSTITUTION

    population: int
    sample: int

    def __post_init__(self) -> None:
        if self.population < 1 or self.sample < 1:
            raise InvalidInputError("population and sample must be at least 1", where=f"scheme {self.name}")
        self._check_sizes()

    def _check_sizes(self) -> None:
        if self.sample > self.population:
            raise InvalidInputError(
                f"the sample must be 1 to n = {self.population} rows, not {self.sample}", where=f"scheme {self.name}"
            )

    @property
    def eta(self) -> float:
        """P(a respondent is drawn at least once)."""
        return self.sample / self.population

    def multiplicities(self) -> Floats:
        """Return P(a respondent is drawn j times), j = 0, 1, ...; what is left out is below 1e-17."""
        return np.array([1 - self.eta, self.eta])

    @property
    def variance_factor(self) -> Fraction:
        """Return v with Cov(sampled fractions) = v (diag(T) - T T')."""
        n, m = self.population, self.sample
        return Fraction(n - m, (n - 1) * m) if n > 1 else Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutReplacement(Scheme):
    """m different respondents, every set of m equally likely."""

    name: ClassVar[str] = "wor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisson(Scheme):
    """Every respondent by itself with probability p = m/n. Given its size, the sample is one without replacement."""

    name: ClassVar[str] = "poisson"
    relation: ClassVar[Relation] = Relation.ADD_REMOVE


@dataclass(frozen=True, slots=True, kw_only=True)
class WithReplacement(Scheme):
    """m independent draws."""

    name: ClassVar[str] = "wr"

    def _check_sizes(self) -> None:
        """Any number of draws will do."""

    @property
    def eta(self) -> float:
        """1 - (1 - 1/n)^m."""
        return _at_least_once(self.sample, 1 / self.population)

    def multiplicities(self) -> Floats:
        """Bin(m, 1/n)."""
        return _binomial(self.sample, 1 / self.population)

    @property
    def variance_factor(self) -> Fraction:
        """1/m."""
        return Fraction(1, self.sample)


@dataclass(frozen=True, slots=True, kw_only=True)
class _TwoStage(Scheme):
    """Stage one takes b of n, stage two m of those b.

    Args:
        stage: b, rows after stage one.
    """

    stage: int

    def _check_sizes(self) -> None:
        self._check_stage()

    def _check_stage(self) -> None:
        if self.stage < 1:
            raise InvalidInputError("the first stage must take at least 1 row", where=f"scheme {self.name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MustOW(_TwoStage):
    """MUST.OW: b without replacement, then m of them with replacement."""

    name: ClassVar[str] = "must.ow"

    def _check_sizes(self) -> None:
        self._check_stage()
        if self.stage > self.population:
            raise InvalidInputError(
                f"the first stage draws without replacement: 1 to n = {self.population} rows, not {self.stage}",
                where=f"scheme {self.name}",
            )

    @property
    def eta(self) -> float:
        """(b/n) (1 - (1 - 1/b)^m)."""
        return self.stage / self.population * _at_least_once(self.sample, 1 / self.stage)

    def multiplicities(self) -> Floats:
        """With probability b/n: Bin(m, 1/b); else 0."""
        law = self.stage / self.population * _binomial(self.sample, 1 / self.stage)
        law[0] += 1 - self.stage / self.population
        return law

    @property
    def variance_factor(self) -> Fraction:
        """Return f + (1-f)/m with f = (n-b)/((n-1) b)."""
        n, b = self.population, self.stage
        first = Fraction(n - b, (n - 1) * b) if n > 1 else Fraction(0)
        return first + (1 - first) / self.sample


@dataclass(frozen=True, slots=True, kw_only=True)
class MustWO(_TwoStage):
    """MUST.WO: b with replacement, then m of those without replacement; the same law as m with replacement."""

    name: ClassVar[str] = "must.wo"

    def _check_sizes(self) -> None:
        self._check_stage()
        if self.sample > self.stage:
            raise InvalidInputError(
                f"the second stage draws without replacement: 1 to b = {self.stage} rows, not {self.sample}",
                where=f"scheme {self.name}",
            )

    @property
    def eta(self) -> float:
        """1 - (1 - 1/n)^m."""
        return _at_least_once(self.sample, 1 / self.population)

    def multiplicities(self) -> Floats:
        """Bin(m, 1/n)."""
        return _binomial(self.sample, 1 / self.population)

    @property
    def variance_factor(self) -> Fraction:
        """1/m."""
        return Fraction(1, self.sample)


@dataclass(frozen=True, slots=True, kw_only=True)
class MustWW(_TwoStage):
    """MUST.WW: b with replacement, then m of those with replacement."""

    name: ClassVar[str] = "must.ww"

    @property
    def eta(self) -> float:
        """sum_u Bin(u; b, 1/n) (1 - (1 - u/b)^m)."""
        first = _binomial(self.stage, 1 / self.population)
        hit = [_at_least_once(self.sample, u / self.stage) for u in range(len(first))]
        return float(first @ np.array(hit))

    def multiplicities(self) -> Floats:
        """Return the law of Bin(m, u/b) with u ~ Bin(b, 1/n)."""
        first = _binomial(self.stage, 1 / self.population)
        laws = [_binomial(self.sample, min(1.0, u / self.stage)) for u in range(len(first))]
        total = np.zeros(max(map(len, laws)))
        for weight, law in zip(first, laws, strict=True):
            total[: len(law)] += weight * law
        return total

    @property
    def variance_factor(self) -> Fraction:
        """1/b + (1 - 1/b)/m."""
        return Fraction(1, self.stage) + Fraction(self.stage - 1, self.stage * self.sample)


def _at_least_once(draws: int, probability: float) -> float:
    return 1.0 if probability >= 1 else -expm1(draws * log1p(-probability))


def _binomial(draws: int, probability: float) -> Floats:
    """Return Bin(draws, probability) from 0 to where the rest is negligible."""
    length = 16
    while True:
        law = binomial_pmf(np.arange(min(length, draws) + 1, dtype=np.int64), draws, probability)
        # Past the mean the terms fall at least geometrically.
        if length >= draws or (length > 2 * draws * probability + 8 and law[-1] < _NEGLIGIBLE / 2):
            return law
        length *= 2


SCHEMES: dict[str, type[Scheme]] = {
    scheme.name: scheme for scheme in (WithoutReplacement, Poisson, WithReplacement, MustOW, MustWO, MustWW)
}


def scheme_of(name: str, *, population: int, sample: int, stage: int | None = None) -> Scheme:
    """Return the scheme of a name.

    Raises:
        InvalidInputError: an unknown name, a missing or needless stage, or sizes that the scheme forbids.
    """
    if name not in SCHEMES:
        raise InvalidInputError(f"scheme {name!r} is not known", where="scheme", remedy=f"Known: {', '.join(SCHEMES)}.")
    kind = SCHEMES[name]
    if issubclass(kind, _TwoStage):
        if stage is None:
            raise InvalidInputError("a two-stage scheme needs the size of its first stage", where=f"scheme {name}")
        return kind(population=population, sample=sample, stage=stage)
    if stage is not None:
        raise InvalidInputError("a one-stage scheme has no first stage", where=f"scheme {name}")
    return kind(population=population, sample=sample)
