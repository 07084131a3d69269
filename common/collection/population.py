"""Synthetic populations for simulations and demonstrations: the nodes' values and strata.

A distribution is over the values 1..d. Its text is made of

    binomial:N:P   uniform:D   zipf:D:S   law+law (the sum of two independent values)   law|law (either, equally likely)

where | binds less than +. The value 0 is left out and the rest normalised, so binomial:100:0.5 is over 1..100.
"""

import csv
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from io import StringIO

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.binomial import binomial_pmf
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError

MAX_VALUES = 65536
"""Most values of a distribution."""

MAX_NODES = 10**9
"""Most nodes of a population."""

_LEAST_RATE = Decimal("1e-9")
_FORMS = "Write binomial:N:P, uniform:D or zipf:D:S, and + or | between them."
_COLUMNS = ("stratum", "population", "rate")
_OPTIONAL = "distribution"

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Distribution:
    """A distribution over the values 1..d.

    Args:
        text: as the user wrote it.
        probabilities: of 1..d, shape (d,), summing to 1.
    """

    text: str
    probabilities: Floats

    @property
    def values(self) -> int:
        """The largest value, d."""
        return len(self.probabilities)

    def counts(self, nodes: int, domain: int | None = None) -> NDArray[np.int64]:
        """Return how many of the nodes hold each value: n p rounded so that the sum is n (largest remainders).

        Args:
            nodes: n, at least 1.
            domain: number of values of the domain, at least those of the distribution, which are the default.

        Returns:
            Shape (domain,), int64; of equal remainders the smaller value comes first.

        Raises:
            InvalidInputError: no or too many nodes, or a domain that does not cover the values.
        """
        size = self.values if domain is None else domain
        if size < self.values:
            raise InvalidInputError(
                f"a domain of {size} values does not cover {self.text}, whose values go to {self.values}",
                where="--domain",
                remedy=f"Give at least {self.values}.",
            )
        if not 1 <= nodes <= MAX_NODES:
            raise InvalidInputError(f"{nodes} nodes were given, not 1 to {MAX_NODES}", where="population")
        expected = nodes * np.pad(self.probabilities, (0, size - self.values))
        whole = np.floor(expected + 1e-9)
        # Rounding errors must not decide between equal remainders.
        remainders = np.round(expected - whole, 6)
        counts = whole.astype(np.int64)
        counts[np.argsort(-remainders, kind="stable")[: nodes - int(counts.sum())]] += 1
        return counts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PopulationStratum:
    """A stratum of a synthetic population.

    Args:
        population: nodes in it, at least 1.
        rate: probability with which each reports, exact, in (0, 1].
        distribution: of its nodes' values; None for that of the whole population.
    """

    name: str
    population: int
    rate: Fraction
    distribution: Distribution | None = None


def parse_population(text: str, *, where: str = "--distribution") -> Distribution:
    """Return the distribution that a text describes, such as binomial:50:0.6+binomial:50:0.4.

    Raises:
        InvalidInputError: another form, or a number out of range.
    """
    parts = [_without_zero(_sum(part, where), where) for part in text.split("|")]
    size = max(len(part) for part in parts)
    mixed: Floats = np.mean([np.pad(part, (0, size - len(part))) for part in parts], axis=0)
    return Distribution(text=text, probabilities=mixed)


def parse_rate(text: str, *, where: str = "--rate") -> Fraction:
    """Return a probability of reporting, exactly as it is written.

    Raises:
        InvalidInputError: it is not a decimal number in [1e-9, 1].
    """
    try:
        rate = Decimal(text.strip())
    except InvalidOperation:
        rate = Decimal("NaN")
    if not rate.is_finite() or not 0 < rate <= 1:
        raise InvalidInputError("a rate must be a number above 0 and at most 1", where=where)
    if rate < _LEAST_RATE or len(rate.as_tuple().digits) > 60:
        raise InvalidInputError(f"a rate must be at least {_LEAST_RATE}, in at most 60 digits", where=where)
    return Fraction(rate)


def parse_strata(text: str, *, where: str = "--strata") -> tuple[PopulationStratum, ...]:
    """Return the strata of a CSV text with the columns stratum, population, rate and, if values differ, distribution.

    Args:
        text: a header line and one line a stratum; empty lines are skipped.

    Raises:
        InvalidInputError: columns that are missing or not known, or a cell that is wrong; names line and column.
    """
    lines = _lines(text, where)
    _, header = next(lines, (1, []))
    _check_header(header, where)
    strata: dict[str, PopulationStratum] = {}
    for number, cells in lines:
        line = f"{where} line {number}"
        if not any(cells):
            continue
        if len(cells) != len(header):
            raise InvalidInputError(f"{len(cells)} cells stand under {len(header)} columns", where=line)
        stratum = _stratum(dict(zip(header, cells, strict=True)), line)
        if stratum.name in strata:
            raise InvalidInputError("an earlier line has this stratum too", where=f"{line}, column stratum")
        strata[stratum.name] = stratum
    if not strata:
        raise InvalidInputError("there is no stratum", where=where, remedy="Add one line a stratum.")
    return tuple(strata.values())


def _lines(text: str, where: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line numbers and cells."""
    reader = csv.reader(StringIO(text.removeprefix("\ufeff"), newline=""))
    try:
        for cells in reader:
            yield reader.line_num, [cell.strip() for cell in cells]
    except csv.Error:
        raise InvalidInputError("this line is not CSV", where=f"{where} line {reader.line_num}") from None


def _check_header(header: list[str], where: str) -> None:
    columns = (*_COLUMNS, _OPTIONAL)
    remedy = f"The first line is {','.join(_COLUMNS)} or {','.join(columns)}."
    for name in _COLUMNS:
        if name not in header:
            raise InvalidInputError("this column is missing", where=f"{where} line 1, column {name}", remedy=remedy)
    for name in header:
        if name not in columns or header.count(name) > 1:
            problem = "this column comes twice" if name in columns else "this column is not known"
            raise InvalidInputError(problem, where=f"{where} line 1, column {name[:40]}", remedy=remedy)


def _stratum(cells: Mapping[str, str], line: str) -> PopulationStratum:
    name, population = cells["stratum"], cells["population"]
    if not name:
        raise InvalidInputError("a stratum has no name", where=f"{line}, column stratum")
    if not (population.isascii() and population.isdigit() and 1 <= int(population[:12]) <= MAX_NODES):
        raise InvalidInputError(
            f"the population is not a whole number from 1 to {MAX_NODES}", where=f"{line}, column population"
        )
    if not cells["rate"]:
        raise InvalidInputError(
            "this stratum has no probability of reporting",
            where=f"{line}, column rate",
            remedy="Give a number above 0 and at most 1.",
        )
    law = cells.get(_OPTIONAL, "")
    return PopulationStratum(
        name=name,
        population=int(population),
        rate=parse_rate(cells["rate"], where=f"{line}, column rate"),
        distribution=parse_population(law, where=f"{line}, column {_OPTIONAL}") if law else None,
    )


def _sum(text: str, where: str) -> Floats:
    """Return the law of a sum of independent values over 0, 1, ..."""
    total = np.ones(1)
    for part in text.split("+"):
        law = _law(part.strip(), where)
        if len(total) + len(law) - 2 > MAX_VALUES:
            raise InvalidInputError(f"the values go beyond {MAX_VALUES}", where=where)
        total = np.convolve(total, law)
    return total


def _law(text: str, where: str) -> Floats:
    """Return one law over 0, 1, ..."""
    name, *numbers = text.split(":")
    laws: dict[str, tuple[int, Callable[..., Floats]]] = {
        "binomial": (2, lambda size, p: binomial_pmf(np.arange(size + 1, dtype=np.int64), size, p)),
        "uniform": (1, lambda size: np.append(0.0, np.full(size, 1 / size))),
        "zipf": (2, _zipf),
    }
    if name not in laws or len(numbers) != laws[name][0]:
        raise InvalidInputError(f"{text[:60]!r} is not a distribution", where=where, remedy=_FORMS)
    try:
        size, rest = int(numbers[0]), [float(number) for number in numbers[1:]]
    except ValueError:
        raise InvalidInputError(f"{text[:60]!r} has something else than numbers", where=where, remedy=_FORMS) from None
    if not 1 <= size <= MAX_VALUES:
        raise InvalidInputError(f"{name} has 1 to {MAX_VALUES} values, not {size}", where=where)
    if name == "binomial" and not 0 <= rest[0] <= 1:
        raise InvalidInputError("the probability of a binomial lies between 0 and 1", where=where)
    if name == "zipf" and not 0 <= rest[0] <= 100:
        raise InvalidInputError("the exponent of a zipf distribution lies between 0 and 100", where=where)
    return laws[name][1](size, *rest)


def _zipf(size: int, exponent: float) -> Floats:
    weights = np.arange(1, size + 1, dtype=np.float64) ** -exponent
    return np.append(0.0, weights / weights.sum())


def _without_zero(law: Floats, where: str) -> Floats:
    positive = law[1:]
    if not positive.sum() > 0:
        raise InvalidInputError("only the value 0 has a probability, and it is left out", where=where)
    normalised: Floats = positive / positive.sum()
    return normalised
