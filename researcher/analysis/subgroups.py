"""Totals of subgroups of the respondents, and what they have more or less than another subgroup."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.comparisons import Table, analysis_of, counted, quantile
from veiltab.researcher.analysis.contrasts import Contrast
from veiltab.researcher.analysis.names import Reader
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.analysis.shares import Contrasts, Floats, Shares
from veiltab.researcher.drawing.drawable import Unit
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.estimates.uncertainty import CovarianceTerms

Subgroup = Mapping[str, Sequence[str]]
"""Attribute -> its categories in the subgroup; of an attribute that is not named, all."""


def read_subgroup(reader: Reader) -> dict[str, tuple[str, ...]]:
    """Read a subgroup, such as "education=college|university & wage=high"; something else may follow.

    Raises:
        InvalidInputError: it does not parse, or names something twice or unknown.
    """
    conditions: dict[str, tuple[str, ...]] = {}
    while True:
        attribute = reader.attribute()
        if attribute.name in conditions:
            raise InvalidInputError(f"{attribute.name} is named twice", where="subgroup")
        if not reader.takes("="):
            raise reader.refusal("=", f'Write for example "{attribute.name}={attribute.categories[0]}".')
        conditions[attribute.name] = reader.categories(attribute)
        if not reader.takes("&"):
            return conditions


def totals(table: Table, subgroups: Sequence[Subgroup]) -> Analysis:
    """Estimate how many of the respondents are in each subgroup.

    Args:
        table: with all attributes concerned.
        subgroups: at least one.

    Returns:
        A row a subgroup, in rows of the table; its interval is the score interval of its share, n times.

    Raises:
        InvalidInputError: no subgroup, or an unknown attribute or category.
    """
    part, whole, members, n = _members(table, subgroups)
    shares, z = _shares(whole, members, np.ones(members.shape, np.bool_)), quantile(table)
    low, high = (n * end for end in shares.interval(z))
    labels = {"subgroup": tuple(map(_text, subgroups))}
    return analysis_of([part], "total", labels, (n * shares.estimate, low, high), unit=Unit.ROWS)


def total_contrasts(table: Table, kind: Contrast, subgroups: Sequence[Subgroup]) -> Analysis:
    """Compare the total of the first subgroup with those of others: each other minus the first, or over it.

    A ratio a/b of two subgroups without common cells is the odds of the share of the one in both together, so its
    interval is that of the share, on the scale of odds.

    Args:
        table: with all attributes concerned.
        subgroups: at least two; none has a cell of the first.

    Raises:
        InvalidInputError: fewer than two subgroups, some that overlap, an odds ratio, or an unknown attribute or
            category.
    """
    if len(subgroups) < 2:
        raise InvalidInputError("two totals are needed for a comparison", where="subgroup")
    part, whole, members, n = _members(table, subgroups)
    first, others = members[0], members[1:]
    if (first & others).any():
        raise InvalidInputError(
            "a respondent can be in both subgroups", where="subgroup", remedy="Compare subgroups without common cells."
        )
    z = quantile(table)
    match kind:
        case Contrast.DIFFERENCE:
            value, low, high = (n * end for end in _difference(whole, others, first, z))
        case Contrast.RATIO:
            shares = _shares(whole, others, others | first)
            is_sayable = shares.is_said(z)
            ends = (shares.estimate, *shares.interval(z))
            value, low, high = (np.where(is_sayable, _odds(share), np.nan) for share in ends)
            value = np.where(np.isfinite(value), value, np.nan)
        case Contrast.ODDS_RATIO:
            raise InvalidInputError("an odds ratio of totals was asked for; it compares shares", where="subgroup")
        case _:
            assert_never(kind)
    title = f"{kind.value} of totals, against {_text(subgroups[0])}"
    unit = Unit.NUMBER if kind is Contrast.RATIO else Unit.ROWS
    labels = {"subgroup": tuple(map(_text, subgroups[1:]))}
    return analysis_of([part], title, labels, (value, low, high), unit=unit, neutral=kind.neutral)


def _members(table: Table, subgroups: Sequence[Subgroup]) -> tuple[Table, Table, NDArray[np.bool_], float]:
    """Return the marginal over the attributes that are named, the table that counts them, its cells of each, and n."""
    names = {name for subgroup in subgroups for name in subgroup}
    unknown = sorted(names - set(table.domain.names))
    if unknown or not names:
        raise InvalidInputError(
            f"no attribute {unknown[0]!r}" if unknown else "no subgroup is named",
            where="subgroup",
            remedy=f"Attributes: {', '.join(table.domain.names)}.",
        )
    part = table.marginal([name for name in table.domain.names if name in names])
    members = np.ones((len(subgroups), prod(part.domain.shape)), np.bool_)
    codes = np.unravel_index(np.arange(part.domain.cells), part.domain.shape)
    for row, subgroup in zip(members, subgroups, strict=True):
        for attribute, code in zip(part.domain.attributes, codes, strict=True):
            categories = subgroup.get(attribute.name, attribute.categories)
            strange = [category for category in categories if category not in attribute.categories]
            if strange or isinstance(categories, str) or not categories:
                raise InvalidInputError(
                    f"{attribute.name} is given as a list of its categories",
                    where="subgroup",
                    remedy=f"Categories: {', '.join(attribute.categories)}.",
                )
            np.logical_and(row, np.isin(code, [attribute.categories.index(one) for one in categories]), out=row)
    return part, *counted(part, members)


def _shares(part: Table, inner: NDArray[np.bool_], outer: NDArray[np.bool_]) -> Shares:
    """Return the shares of some sets of cells in larger ones, set by set."""
    return Shares(
        part=inner @ part.raw,
        whole=outer @ part.raw,
        part_cells=inner.sum(axis=1).astype(np.float64),
        whole_cells=outer.sum(axis=1).astype(np.float64),
        terms=_terms(part) or _contrasts(part, inner.astype(np.float64), outer.astype(np.float64)),
    )


def _difference(
    part: Table, others: NDArray[np.bool_], first: NDArray[np.bool_], z: float
) -> tuple[Floats, Floats, Floats]:
    """Return T(other) - T(first), and its score interval: the d with (D_hat - d)^2 = z^2 Var(D_hat | d).

    Var = C (k + l) + L s - B (k - l)^2 - 2 X (k - l) d - S d^2, with k and l cells and s the estimated sum of both.
    """
    value = others @ part.raw - first @ part.raw
    terms = _terms(part)
    if terms is None:
        half = np.full(value.shape, np.nan)
        if isinstance(part, TableEstimate):
            each = others.astype(np.float64) - first
            half = z * np.sqrt(np.maximum(np.diagonal(part.contrast_covariance(each)), 0.0))
        return value, np.clip(value - half, -1.0, 1.0), np.clip(value + half, -1.0, 1.0)
    constant, linear, cross, background, sampling = (
        float(term) for term in (terms.constant, terms.linear, terms.cross, terms.background, terms.sampling)
    )
    more = others.sum(axis=1) - float(first.sum())
    both = np.clip((others | first) @ part.raw, 0.0, 1.0)
    here = constant * (others | first).sum(axis=1) + linear * both - background * more**2
    here += -2.0 * cross * more * value - sampling * value**2
    slope, lead = -2.0 * (cross * more + sampling * value), 1.0 + z**2 * sampling
    centre = z**2 * slope / (2.0 * lead)
    half = np.sqrt(centre**2 + z**2 * np.maximum(here, 0.0) / lead)
    return value, np.clip(value + centre - half, -1.0, 1.0), np.clip(value + centre + half, -1.0, 1.0)


def _odds(share: Floats) -> Floats:
    """Return p/(1-p), of a share within 0 and 1; infinite at 1."""
    within = np.clip(share, 0.0, 1.0)
    odds: Floats = np.divide(within, 1.0 - within, out=np.full(within.shape, np.inf), where=within < 1.0)
    return np.where(np.isnan(share), np.nan, odds)


def _terms(part: Table) -> CovarianceTerms | None:
    return part.terms if isinstance(part, TableEstimate) else None


def _contrasts(part: Table, inner: Floats, outer: Floats) -> Contrasts | None:
    return Contrasts(table=part, part=inner, whole=outer) if isinstance(part, TableEstimate) else None


def _text(subgroup: Subgroup) -> str:
    return " & ".join(f"{name}={'|'.join(categories)}" for name, categories in subgroup.items())
