"""The workloads that have a name: which tables of some attributes they consist of, and how many run a second time."""

from collections.abc import Sequence
from decimal import Decimal
from enum import Enum
from itertools import combinations
from statistics import fmean

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.schemes.without_replacement import WithoutReplacement
from veiltab.common.study.file import Study

LINKED_REPEATS = 40
"""Tables that run a second time in a linked release: about as many as one graph of fourteen attributes can use."""

ALL_TRIPLES, TRIPLES_TOO = 0.04, 0.08
"""Mean foreseen distance of triples, if all of the budget were theirs, below which a linked release has them alone, or
beside the pairs (docs/decisions/0033)."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """What is known of a release before its request, and decides what `linked` measures; None where it is not known.

    Args:
        rows: that will be sampled at least; the study's fewest respondents if not given.
        delta: likewise.
    """

    rows: int | None
    epsilon: Decimal | None
    delta: Decimal | None


def linked_tables(study: Study, attributes: Sequence[str], prospect: Prospect) -> Tables:
    """Return what a linked release of some attributes measures, by sizes and prices alone.

    Args:
        attributes: in study order, none twice.

    Returns:
        Every triple where the noise leaves room for it; every pair and triple where it nearly does; else every pair,
        and the most telling ones again.
    """
    pairs, triples = (tuple(combinations(attributes, size)) for size in (2, 3))
    error = _triples_error(study, triples, prospect)
    if error < ALL_TRIPLES:
        return Tables(tables=triples)
    if error < TRIPLES_TOO and len(pairs + triples) <= study.maximum_tables:
        return Tables(tables=pairs + triples)
    return Tables(tables=pairs, repeats=min(LINKED_REPEATS, len(pairs)))


def _triples_error(study: Study, triples: Sequence[Sequence[str]], prospect: Prospect) -> float:
    """Return the mean foreseen distance of triples that divide a whole budget; 1 where they cannot be released."""
    from veiltab.common.privacy.planning.workload_prices import foreseen_errors, workload_prices  # noqa: PLC0415 - not for releases of one table

    if prospect.epsilon is None or prospect.delta is None or not 1 < len(triples) <= study.maximum_tables:
        return 1.0
    cells = [study.domain(triple).cells for triple in triples]
    if max(cells) > study.maximum_cells:
        return 1.0
    rows = prospect.rows or study.minimum_population
    prices = workload_prices(cells, 0, prospect.epsilon, prospect.delta)
    if any(price.mu == 0 for price in prices.first):
        return 1.0
    return fmean(foreseen_errors(WithoutReplacement(population=rows, sample=rows), cells, prices))


def asked_tables(  # noqa: PLR0913, PLR0917 - one argument a choice
    study: Study,
    attributes: Sequence[str],
    tables: Sequence[Sequence[str]],
    workload: Workload | str | None,
    repeats: int,
    prospect: Prospect,
) -> tuple[tuple[str, ...], Tables]:
    """Return the attributes of a request and its tables, all in study order.

    Args:
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
        is_linked = Workload(workload) is Workload.LINKED
    except ValueError:
        words = ", ".join(one.value for one in Workload)
        raise InvalidInputError(
            f"no workload {workload!r}", where="workload", remedy=f"Known: {words}; or list the tables."
        ) from None
    return names, linked_tables(study, names, prospect) if is_linked else Tables(tables=tuple(combinations(names, 2)))
