"""The workloads that have a name: which tables of some attributes they consist of, and how many run a second time."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from typing import assert_never

from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import Study

LINKED_REPEATS = 40
"""Tables that run a second time in a linked release: about as many as one graph of fourteen attributes can use."""


class Workload(Enum):
    """A workload that has a name."""

    PAIRS = "pairs"
    LINKED = "linked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The tables of a request.

    Args:
        tables: the attributes of each table; none for one table of all attributes.
        repeats: so many of them may run a second time.
    """

    tables: tuple[tuple[str, ...], ...]
    repeats: int = 0


def tables_of(workload: Workload, attributes: Sequence[str]) -> Tables:
    """Return the tables of a workload over some attributes, in their order.

    Args:
        workload: `PAIRS`, every pair once; or `LINKED`, every pair once and the most telling ones again.
        attributes: in study order, none twice.
    """
    pairs = tuple(combinations(attributes, 2))
    match workload:
        case Workload.PAIRS:
            return Tables(tables=pairs)
        case Workload.LINKED:
            return Tables(tables=pairs, repeats=min(LINKED_REPEATS, len(pairs)))
        case _:
            assert_never(workload)


def asked_tables(
    study: Study,
    attributes: Sequence[str],
    tables: Sequence[Sequence[str]],
    workload: Workload | str | None,
    repeats: int,
) -> tuple[tuple[str, ...], Tables]:
    """Return the attributes of a request and its tables, all in study order.

    Args:
        study: the study file.
        attributes: of one table or of a workload; of a workload by default all.
        tables: the attributes of each table, instead of the attributes.
        workload: one that has a name, or its name.
        repeats: so many of the tables may run a second time.

    Raises:
        InvalidInputError: an unknown attribute or workload, an attribute twice, or choices that exclude one another.
    """
    if tables:
        if attributes or workload is not None:
            raise InvalidInputError("tables stand alone, without attributes or a workload", where="tables")
        several = tuple(study.domain(table).names for table in tables)
        union = study.domain(dict.fromkeys(name for table in several for name in table)).names
        return union, Tables(tables=several, repeats=repeats)
    if workload is not None and not attributes:
        attributes = [rule.name for rule in study.attributes]
    names = study.domain(attributes).names
    if workload is None:
        return names, Tables(tables=(), repeats=repeats)
    if repeats:
        raise InvalidInputError(
            "the repeats of tables were given twice: in the workload and beside it", where="repeats"
        )
    if len(names) < 3:
        raise InvalidInputError(
            "fewer than three attributes were given",
            where="attributes",
            remedy="Ask for one table by its attributes alone.",
        )
    try:
        return names, tables_of(Workload(workload), names)
    except ValueError:
        known = ", ".join(one.value for one in Workload)
        raise InvalidInputError(
            f"no workload {workload!r}", where="workload", remedy=f"Known: {known}; or list the tables."
        ) from None
