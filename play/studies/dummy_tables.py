"""Tables of made-up people for any study, so that it can be rehearsed before anybody's data are touched.

The people are drawn from a public stream, the SHAKE-256 of the study's id: the tables are the same every time, nothing
in them is secret, and nothing in them is anybody's. One trait of each person shows in all attributes, so that there are
dependences for a report to find. Some people are in the table of one curator alone, and some values are missing; a
complete curator has everybody of the hub, and leaves nobody out. Each person is at one of the curators that hold
attributes together.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import shake_256
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import PARTS
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.identity_rule import IdentityRule
from veiltab.common.study.coding.coding import DROP, UNKNOWN, Coding
from veiltab.common.study.coding.dates import DateBins, day_of_edge
from veiltab.common.study.coding.rules import AttributeRule
from veiltab.common.study.file import CuratorMember, Study
from veiltab.play.studies.dummy_identity import identity_row
from veiltab.play.studies.registers import among_present

MOST_PEOPLE = 1_000_000

_FOLLOWING = 0.6
"""Probability that a person's trait decides a value."""

_MISSING = 0.02
"""Probability that a value is missing, in a table of few columns."""

_LEFT_OUT = 0.1
"""Part of the people, at most, whom missing values leave out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DummyTables:
    """The tables, and what the curators together know of them.

    Args:
        people: how many every curator holds; the numbers of the others come after theirs.
        values: curator and column -> a raw value a person.
        symbols: int64, shape (people of the hub, attributes): in study order, absent ones too; DROP where a value of
            the hub is missing that leaves its person out.
    """

    study: Study
    people: int
    values: Mapping[tuple[str, str], Sequence[str]]
    symbols: NDArray[np.int64]

    @property
    def respondents(self) -> NDArray[np.int64]:
        """The symbols of the rows of the hub: no value of theirs is missing that leaves them out."""
        counted: NDArray[np.int64] = self.symbols[(self.symbols != DROP).all(axis=1)]
        return counted

    def truth(self, names: Iterable[str]) -> NDArray[np.int64]:
        """Return the true counts of the cells of some attributes in C order, of the people whom their curators have."""
        domain = self.study.domain(names)
        every = [rule.name for rule in self.study.attributes]
        columns = self.respondents[:, [every.index(name) for name in domain.names]]
        cells = np.ravel_multi_index(tuple(columns.T), domain.shape)
        return among_present(domain, np.bincount(cells, minlength=domain.cells).astype(np.int64))

    def write(self, folder: Path) -> dict[str, Path]:
        """Write one CSV file a curator, `dummy-<curator>.csv`, with its id columns and those of its attributes.

        Returns:
            Curator -> its file.
        """
        paths = {curator.name: folder / f"dummy-{curator.name}.csv" for curator in self.study.curators}
        for curator in self.study.curators:
            numbers = _numbers(self.study, self.people, curator.name)
            order = np.argsort(_uniform(self.study, f"order of {curator.name}", len(numbers)))
            _write(paths[curator.name], curator, self.study.identity, self.values, numbers[order].tolist())
        return paths


def dummy_tables(study: Study, people: int) -> DummyTables:
    """Draw the tables of a study's curators.

    Args:
        study: says which columns there are, and how their values are coded.
        people: how many every curator holds; each has a tenth more, at the hub and in complete tables the same ones.

    Raises:
        InvalidInputError: too few or too many people for the study, or a column that is both an id and an attribute.
    """
    if not 1 <= people <= MOST_PEOPLE:
        raise InvalidInputError(f"{people:,} dummy people are not 1 to {MOST_PEOPLE:,}", where="--population")
    trait = _uniform(study, "trait", people + _alone(people) * len(study.curators))
    values: dict[tuple[str, str], list[str]] = {}
    for number, rules in enumerate(_rules_of_columns(study)):
        made_values = _column(study, rules, trait, reverse=number % 3 == 2)
        values |= {(holder, rule.column): made_values for rule in rules for holder in rule.holders}
    tables = DummyTables(study=study, people=people, values=values, symbols=_symbols(study, people, values))
    _check_enough(tables)
    return tables


def _symbols(study: Study, people: int, values: Mapping[tuple[str, str], Sequence[str]]) -> NDArray[np.int64]:
    """Return the symbols of the people of the hub, as `DummyTables` has them."""
    numbers, rules = _numbers(study, people, study.hub), study.attributes
    columns = [[_symbol(rule.coding, values[rule.owner, rule.column][number]) for number in numbers] for rule in rules]
    symbols = np.array(columns, np.int64)
    is_there = np.zeros(symbols.shape, np.bool_)
    for curator in (curator.name for curator in study.curators):
        own = [place for place, rule in enumerate(rules) if curator in rule.holders]
        here = np.isin(numbers, _numbers(study, people, curator)) & (symbols[own] != DROP).all(axis=0)
        is_there[own] |= here | (not study.may_lack(curator))
    sizes = np.array([[rule.attribute.size] for rule in rules])
    return np.where(is_there, symbols, sizes - 1).T


def _numbers(study: Study, people: int, curator: str) -> NDArray[np.int64]:
    """Return the numbers of the people in a curator's table: those whom all have, and some more."""
    names, alone = [one.name for one in study.curators], _alone(people)
    first = people + alone * names.index(study.hub if study.curator(curator).complete else curator)
    together = [name for name in names if any(rule.others for rule in study.attributes_of(name))]
    common = range(together.index(curator), people, len(together)) if curator in together else range(people)
    return np.array([*common, *range(first, first + alone)])


def _alone(people: int) -> int:
    """Return how many people a curator has whom not all have."""
    return people // 10 + 1


def raw_values(codings: Sequence[Coding]) -> list[tuple[str, ...]]:
    """Return the values that a column may have, those of each category together, and no missing ones.

    Args:
        codings: of the attributes that the column has; a value is one that all of them know.
    """
    groups: dict[tuple[int, ...], list[str]] = {}
    for raw in dict.fromkeys(raw for coding in codings for raw in examples(coding)):
        symbols = tuple(_symbol(coding, raw) for coding in codings)
        if UNKNOWN not in symbols and not any(_is_of_missing(*pair) for pair in zip(codings, symbols, strict=True)):
            groups.setdefault(symbols, []).append(raw)
    return [tuple(groups[symbols]) for symbols in sorted(groups)]


def examples(coding: Coding) -> Iterator[str]:
    """Yield raw values of every kind: categories, what is recoded to them, dates, points, edges, and middles of both.

    Some may be unknown to it, as are the names of bins; `code` says which.
    """
    yield from coding.categories
    yield from (raw for raw, _ in coding.recode)
    yield from first_days(coding.dates) if coding.dates else ()
    points = coding.grid.points if coding.grid else ()
    yield from map(str, coding.bins)
    yield from (f"{(low + high) / 2:f}" for low, high in pairwise(points or coding.bins))


def first_days(bins: DateBins) -> Iterator[str]:
    """Yield the first day of each bin, as the column writes it."""
    for day in map(day_of_edge, bins.edges[:-1]):
        yield day.strftime(bins.format) if bins.format else day.isoformat()


def _symbol(coding: Coding, raw: str) -> int:
    """Return the symbol of a raw value; of a grid only its points are known, so that the true counts are whole."""
    code = coding.code(raw)
    if coding.grid is None or code < 0:
        return code
    return UNKNOWN if code % PARTS else code // PARTS


def _is_of_missing(coding: Coding, symbol: int) -> bool:
    return symbol == DROP or coding.categories[symbol] == coding.missing


def _rules_of_columns(study: Study) -> list[list[AttributeRule]]:
    """Return the attributes of each column of each curator, in study order."""
    columns: dict[tuple[str, str], list[AttributeRule]] = {}
    for rule in study.attributes:
        for holder in rule.holders:
            if rule.column in study.curator(holder).id_columns:
                raise InvalidInputError(
                    f"column {rule.column!r} of {holder} is an id and an attribute",
                    where=f"attribute {rule.name}",
                    remedy="Dummy tables have none: rehearse with a copy of the study file without this attribute.",
                )
        columns.setdefault((rule.owner, rule.column), []).append(rule)
    return list(columns.values())


def _column(study: Study, rules: Sequence[AttributeRule], trait: NDArray[np.float64], *, reverse: bool) -> list[str]:
    """Return a raw value for each person."""
    codings, what, people = [rule.coding for rule in rules], f"{rules[0].owner} {rules[0].column}", len(trait)
    groups = raw_values(codings)
    if not groups:
        raise InvalidInputError("no raw value is known to all attributes of a column", where=f"column {what}")
    follows = _uniform(study, f"{what} follows", people) < _FOLLOWING
    level = np.where(follows, 1 - trait if reverse else trait, _uniform(study, f"{what} level", people))
    # The middle categories are the largest, and the first ones are larger than the last.
    middle = (len(groups) - 1) / 2
    weights = np.array(
        [1.5 - abs(place - middle) / (middle + 1) - 0.3 * place / len(groups) for place in range(len(groups))]
    )
    picks = np.searchsorted(np.cumsum(weights / weights.sum())[:-1], level, side="right")
    within = _uniform(study, f"{what} within", people)
    values = [groups[place][int(share * len(groups[place]))] for place, share in zip(picks, within, strict=True)]
    absent = [raw for raw in codings[0].missing_values if all(coding.code(raw) != UNKNOWN for coding in codings)]
    leaves_out = any(coding.missing is None for coding in codings)
    if absent and not (leaves_out and study.curator(rules[0].owner).complete):
        rate = min(_MISSING, _LEFT_OUT / len(study.attributes))
        (missing,) = np.nonzero(_uniform(study, f"{what} missing", people) < rate)
        for number in missing.tolist():
            values[number] = absent[number % len(absent)]
    return values


def _write(
    path: Path,
    curator: CuratorMember,
    identity: IdentityRule | None,
    values: Mapping[tuple[str, str], Sequence[str]],
    numbers: Iterable[int],
) -> None:
    """Write the rows of the people of these numbers."""
    own = [(name, column) for name, column in values if name == curator.name]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*curator.id_columns, *(column for _, column in own)])
        for number in numbers:
            if identity is None:
                ids = [_id_part(number, place) for place in range(len(curator.id_columns))]
            else:
                ids = identity_row(identity, curator, number)
            writer.writerow([*ids, *(values[column][number] for column in own)])


def _id_part(number: int, place: int) -> str:
    """Return what stands in an id column: seven digits, different for all people, then two that are not."""
    return f"{1_000_000 + number * 7_368_787 % 9_000_000}" if place == 0 else f"{10 + (number + place) * 7 % 90}"


def _uniform(study: Study, what: str, count: int) -> NDArray[np.float64]:
    """Return public numbers from 0 to below 1 that are the same for the same study and purpose."""
    stream = shake_256(f"dummy {study.id} {what}".encode()).digest(8 * count)
    return (np.frombuffer(stream, "<u8") >> np.uint64(11)).astype(np.float64) * np.float64(2.0**-53)


def _check_enough(tables: DummyTables) -> None:
    counted, needed = len(tables.respondents), tables.study.minimum_population
    if counted < needed:
        raise InvalidInputError(
            f"of {tables.people:,} dummy people {counted:,} have all values at {tables.study.hub}, and a release counts"
            f" at least {needed:,}",
            where="--population",
            remedy=f"Give {needed + needed // 4 + 10} or more.",
        )
