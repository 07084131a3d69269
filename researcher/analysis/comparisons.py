"""Shares of one attribute given others, and their differences, ratios and odds ratios between groups and releases."""

from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Domain, check_names
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.planning.planning import FEW_ROWS
from veiltab.researcher.analysis.contrasts import Contrast, contrast_interval, contrast_values
from veiltab.researcher.analysis.modelled import ModelledTable
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.analysis.shares import Contrasts, Floats, Shares
from veiltab.researcher.drawing.drawable import Unit
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.estimates.people_present import Number, PresentEstimate
from veiltab.researcher.estimates.pooling import PooledEstimate
from veiltab.researcher.estimates.projection import project_to_simplex
from veiltab.researcher.estimates.uncertainty import CovarianceTerms

Table = TableEstimate | ModelledTable
"""What is analysed: a measured table, pooled or not, or one from a model."""

_MOST_APART = 7.0
_CONTRADICTION = (
    "Tables that measured this differ from what they say together by {:.1f} standard errors, and chance allows 7:"
    " a party may have changed its table or its noise. Do not rely on it."
)

SAME_RESPONDENTS = (
    "Both releases are of the same respondents. Their samples and their noise are independent; an interval counts both."
)


def conditional_shares(table: Table, given: Sequence[str] = ()) -> Analysis:
    """Return P(the other attributes | given), cell by cell.

    Args:
        table: with all attributes concerned; take its marginal to leave some out.
        given: names of the attributes that are conditioned on; none gives the shares of all respondents.

    Returns:
        A row a cell, the given attributes first. `projected` holds the nearest distribution to the raw shares of each
        group: it differs where a raw share leaves 0 to 1.

    Raises:
        InvalidInputError: an unknown attribute, or no attribute left to ask about.
    """
    ordered, groups = _ordered(table, given)
    shares = shares_of(ordered, groups)
    z = quantile(table)
    is_sayable = shares.is_said(z)
    value, low, high = (np.where(is_sayable, end, np.nan) for end in (shares.estimate, *shares.interval(z)))
    return analysis_of(
        [table],
        f"share of {_listed(ordered.domain.names[len(given) :])}" + given_text(given),
        cell_labels(ordered.domain),
        (value, low, high),
        unit=Unit.SHARE,
        projected=np.concatenate([_nearest(group) for group in np.split(value, groups)]),
    )


def contrasts(
    table: Table, kind: Contrast, given: Sequence[str], reference: Mapping[str, str] | None = None
) -> Analysis:
    """Compare the conditional shares of every group with those of a reference group.

    The ratio of two conditional shares is the relative risk.

    Args:
        table: with all attributes concerned.
        kind: difference, ratio or odds ratio.
        given: attributes whose combinations of categories are the groups, at least one.
        reference: category of each given attribute in the reference group; by default the first of each.

    Returns:
        A row a cell of the other groups.

    Raises:
        InvalidInputError: an unknown attribute or category, no group, or no attribute left to ask about.
    """
    if not given:
        raise InvalidInputError(
            f"no groups were named for the {kind.value.replace('-', ' ')}",
            where="given",
            remedy="Name the attribute that makes the groups.",
        )
    ordered, groups = _ordered(table, given)
    names = ordered.domain.names[len(given) :]
    base = reference_group(ordered.domain, given, reference or {})
    shares, per_group = shares_of(ordered, groups), ordered.domain.cells // groups
    rows = np.flatnonzero(np.arange(ordered.domain.cells) // per_group != base)
    first, second = shares.take(rows), shares.take(base * per_group + rows % per_group)
    against = _listed(ordered.domain.categories_of(base * per_group)[: len(given)])
    return _contrast_analysis(
        kind,
        first,
        second,
        first.correlation(second),
        title=f"{_title(kind)} of the share of {_listed(names)}{given_text(given)}, against {against}",
        labels=cell_labels(ordered.domain, rows),
        table=table,
        remarks=doubts(table),
    )


def compare(table: Table, other: Table, kind: Contrast = Contrast.DIFFERENCE, given: Sequence[str] = ()) -> Analysis:
    """Compare the shares of one release with those of another: first minus second, or first over second.

    The errors of two releases are independent, whether they are of the same respondents or not: each draws its own
    sample of a fixed table and has noise of its own, so the variances add, each with its own sampling part.

    Args:
        other: of the second release, with the same attributes in any order.
        kind: difference, ratio or odds ratio.
        given: attributes that are conditioned on; none compares shares of all respondents.

    Returns:
        A row a cell.

    Raises:
        InvalidInputError: releases under different study files, or with different attributes or confidences; one
            release compared with itself.
    """
    if table is other:
        raise InvalidInputError("a release is compared with itself", remedy="Name another release.")
    if table.study_digest != other.study_digest:
        raise InvalidInputError("the releases were asked for under different study files, so their cells may differ")
    if table.confidence != other.confidence:
        raise InvalidInputError("the estimates have different confidences")
    if set(table.domain.names) != set(other.domain.names):
        raise InvalidInputError(
            f"one release has {_listed(table.domain.names)}, the other {_listed(other.domain.names)}",
            remedy="Compare the attributes that both have.",
        )
    ordered, groups = _ordered(table, given)
    names = ordered.domain.names[len(given) :]
    second_table = other.marginal(ordered.domain.names)
    if second_table.domain != ordered.domain:
        raise InvalidInputError("the releases have different categories")
    first, second = shares_of(ordered, groups), shares_of(second_table, groups)
    same = (SAME_RESPONDENTS,) if table.population == other.population else ()
    return _contrast_analysis(
        kind,
        first,
        second,
        np.zeros(first.part.size),
        title=f"{_title(kind)} of the share of {_listed(names)}{given_text(given)}, between releases",
        labels=cell_labels(ordered.domain),
        table=table,
        remarks=(*same, *dict.fromkeys(chain(doubts(table), doubts(other)))),
    )


def shares_of(ordered: Table, groups: int) -> Shares:
    """Return the share of every cell in its group, the groups being equal runs of cells."""
    terms: CovarianceTerms | Contrasts | None = ordered.terms if isinstance(ordered, TableEstimate) else None
    per_group = ordered.domain.cells // groups
    if terms is None and isinstance(ordered, TableEstimate):
        part, of_groups = np.eye(ordered.domain.cells), np.kron(np.eye(groups), np.ones(per_group))
        terms = Contrasts(table=ordered, part=part, whole=np.repeat(of_groups, per_group, axis=0))
    wholes = ordered.raw.reshape(groups, per_group).sum(axis=1)
    return Shares(
        part=ordered.raw,
        whole=np.repeat(wholes, per_group),
        part_cells=np.ones(ordered.domain.cells),
        whole_cells=np.full(ordered.domain.cells, float(per_group)),
        terms=terms,
    )


def counted(table: Table, contrasts: NDArray[Number]) -> tuple[Table, NDArray[Number], float]:
    """Return a table, contrasts of it, and the number times which these are sums over the people of a table.

    Args:
        contrasts: of the table, shape (c, K).

    Raises:
        InvalidInputError: some people are absent, and links are corrected: their number has an error of its own.
    """
    if isinstance(table, ModelledTable):
        return table, contrasts, table.people
    if isinstance(table, PresentEstimate):
        return table.observed, table.expanded(contrasts), table.population
    if table.design.people != table.population:
        raise InvalidInputError(
            "totals and sums are not corrected for wrong links where people may be absent",
            where="linkage error",
            remedy="Ask for shares or means, or leave the linkage error out.",
        )
    return table, contrasts, table.population


def cell_labels(domain: Domain, cells: NDArray[np.intp] | None = None) -> dict[str, tuple[str, ...]]:
    """Return the categories of some cells, or of all, attribute by attribute."""
    numbers = np.arange(domain.cells) if cells is None else cells
    symbols = np.unravel_index(numbers, domain.shape)
    return {
        attribute.name: tuple(attribute.categories[int(code)] for code in codes)
        for attribute, codes in zip(domain.attributes, symbols, strict=True)
    }


def quantile(table: Table) -> float:
    """Return the quantile of the normal law that goes with a table's confidence, such as 1.96."""
    return NormalDist().inv_cdf((1.0 + table.confidence) / 2.0)


def doubts(table: Table) -> tuple[str, ...]:
    """Return what one must know of a table: cells that expect few rows, runs that contradict another, corrections."""
    few = (FEW_ROWS,) if table.has_few_rows else ()
    apart = table.contradiction if isinstance(table, TableEstimate) else 0.0
    contradicts = (_CONTRADICTION.format(apart),) if apart > _MOST_APART else ()
    return (*few, *contradicts, *table.remarks)


def doubts_about(tables: Sequence[Table]) -> tuple[str, ...]:
    """Return what one must know of several tables; whom they are of, once for the same curators."""
    remarks_once, spokes = dict[str, None](), set[tuple[str, ...]]()
    for table in tables:
        remarks = doubts(table)
        if isinstance(table, PresentEstimate):
            remarks = remarks[: -1 if table.spokes in spokes else None]
            spokes.add(table.spokes)
        remarks_once |= dict.fromkeys(remarks)
    return tuple(remarks_once)


def analysis_of(
    tables: Sequence[Table],
    title: str,
    labels: Mapping[str, tuple[str, ...]],
    ends: tuple[Floats, Floats, Floats],
    remarks: tuple[str, ...] = (),
    **others: Any,  # noqa: ANN401 - fields of an analysis
) -> Analysis:
    """Return an analysis of a table or several, in numbers if nothing else is said.

    Args:
        ends: the estimates and their intervals' lower and upper ends.
        remarks: before those about the tables.
    """
    value, low, high = ends
    return Analysis(
        title=title,
        labels=labels,
        estimate=value,
        low=low,
        high=high,
        confidence=tables[0].confidence,
        is_measured=all(isinstance(one, TableEstimate) for one in tables),
        remarks=(*remarks, *doubts_about(tables)),
        study_digest=tables[0].study_digest,
        **{"unit": Unit.NUMBER, **others},
    )


def _contrast_analysis(  # noqa: PLR0913 - one argument a quantity
    kind: Contrast,
    first: Shares,
    second: Shares,
    correlation: Floats,
    *,
    title: str,
    labels: Mapping[str, tuple[str, ...]],
    table: Table,
    remarks: tuple[str, ...],
) -> Analysis:
    z = quantile(table)
    is_sayable = first.is_said(z) & second.is_said(z)
    value = contrast_values(kind, first.estimate, second.estimate, upper=True)
    is_measured = first.terms is not None and second.terms is not None
    unknown = np.full(is_sayable.shape, np.nan)
    low, high = contrast_interval(kind, first, second, z, correlation) if is_measured else (unknown, unknown)
    return Analysis(
        title=title,
        labels=labels,
        unit=Unit.SHARE if kind is Contrast.DIFFERENCE else Unit.NUMBER,
        estimate=np.where(is_sayable & np.isfinite(value), value, np.nan),
        low=np.where(is_sayable, low, np.nan),
        high=np.where(is_sayable, high, np.nan),
        neutral=kind.neutral,
        confidence=table.confidence,
        is_measured=is_measured,
        remarks=remarks,
        study_digest=table.study_digest,
    )


def _nearest(shares: Floats) -> Floats:
    """Return the distribution that is nearest to the shares of a group; they are it unless one leaves 0 to 1."""
    return project_to_simplex(shares) if shares.min() < 0.0 else shares


def _ordered(table: Table, given: Sequence[str]) -> tuple[Table, int]:
    """Return the table with the given attributes first, and the number of their combinations."""
    check_names(given)
    groups = table.domain.subset(given).cells if given else 1
    rest = [name for name in table.domain.names if name not in given]
    if not rest:
        raise InvalidInputError(
            "all attributes of the table are given, so nothing is left to ask about",
            where="given",
            remedy="Leave one of them out.",
        )
    return table.marginal([*given, *rest]), groups


def reference_group(domain: Domain, given: Sequence[str], reference: Mapping[str, str]) -> int:
    """Return the number of the group of reference."""
    for name in reference:
        if name not in given:
            raise InvalidInputError(
                f"the reference names {name!r}, which is not among the given attributes", where="reference"
            )
    groups = domain.subset(given)
    codes = []
    for attribute in groups.attributes:
        category = reference.get(attribute.name, attribute.categories[0])
        if category not in attribute.categories:
            raise InvalidInputError(
                f"{attribute.name} has no category {category!r}",
                where="reference",
                remedy=f"Categories: {_listed(attribute.categories)}.",
            )
        codes.append(attribute.categories.index(category))
    return int(np.ravel_multi_index(codes, groups.shape))


def _title(kind: Contrast) -> str:
    return kind.value.replace("-", " ")


def given_text(given: Sequence[str]) -> str:
    """Return the end of a title: " given A, B", or nothing."""
    return f" given {_listed(given)}" if given else ""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def source_sentence(table: Table) -> str:
    """Say how often a release of several tables has measured a table."""
    match table.observed if isinstance(table, PresentEstimate) else table:
        case ModelledTable():
            return "From a model of all tables of the release: none has all of these attributes."
        case PooledEstimate(parts=parts):
            return f"Measured by {len(parts)} tables of the release, pooled; one that ran twice counts as two."
        case _:
            return "Measured by one table of the release, which ran once."
