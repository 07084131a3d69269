"""The correlation of two attributes of numbers, by the moments of the tables of a release.

    rho = (E[XY] - E[X] E[Y]) / sqrt(Var X Var Y)

is a smooth function of five moments. To first order its error is a sum of contrasts, one for each table that measured
some of them, whose variances are known and add up; the mean of the second order is taken off.
"""

from collections.abc import Sequence

import numpy as np

from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.comparisons import Table, doubts, quantile
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.analysis.shares import Floats
from veiltab.researcher.drawing.shown import Unit
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.numbers.moments import SURE, Feature, best_product, domain_of, whole_numbers
from veiltab.researcher.numbers.points import covariance, twin_of


def correlation(tables: Sequence[Table], names: Sequence[str]) -> Analysis:
    """Estimate the correlation of two attributes of numbers over all respondents.

    Args:
        tables: of one release: one with both, and for each rounded attribute one with its twin.

    Returns:
        One row, within -1 and 1; NaN where a variance does not stand out from the noise.

    Raises:
        InvalidInputError: not two attributes, one without numbers or with missing ones, or no table for a moment.
    """
    if len(set(names)) != 2 or len(names) != 2:
        raise InvalidInputError("a correlation is that of two attributes", where="correlation")
    domain = domain_of(tables)
    attributes = [domain.subset([name]).attributes[0] for name in names]
    x, y = (
        Feature(label=one.name, attribute=one, twin=twin_of(one, domain), values=whole_numbers(one))
        for one in attributes
    )
    measured = [best_product(tables, *pair) for pair in ((x, None), (y, None), (x, x), (y, y), (x, y))]
    moments = np.array([tables[place].raw @ contrast for place, contrast in measured])
    value = low = high = np.nan
    errors = _covariance(tables, measured)
    if _are_surely_positive(moments, errors):
        rho, slopes = _correlation(moments)
        half = quantile(tables[0]) * float(np.sqrt(np.maximum(slopes @ errors @ slopes, 0.0)))
        found = rho - _bias(moments, errors)
        value, low, high = np.clip([found, found - half, found + half], -1.0, 1.0)
    parts = [tables[place] for place in dict.fromkeys(place for place, _ in measured)]
    return Analysis(
        title=f"correlation of {x.label} and {y.label}",
        labels={"pair": (f"{x.label}, {y.label}",)},
        unit=Unit.NUMBER,
        estimate=np.array([value]),
        low=np.array([low]),
        high=np.array([high]),
        neutral=0.0,
        confidence=tables[0].confidence,
        is_measured=all(isinstance(part, TableEstimate) for part in parts),
        remarks=tuple(dict.fromkeys(remark for part in parts for remark in doubts(part))),
        study_digest=tables[0].study_digest,
    )


def _are_surely_positive(moments: Floats, errors: Floats) -> bool:
    """Return whether both variances lie SURE standard errors above 0; above 0, if a table is modelled."""
    x, y, *_ = moments.tolist()
    slopes = np.array([[-2 * x, 0, 1, 0, 0], [0, -2 * y, 0, 1, 0]])
    with np.errstate(invalid="ignore"):
        spread = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", slopes, errors, slopes), 0.0))
    return bool((np.array(_variances(moments)) > SURE * np.nan_to_num(spread)).all())


def _variances(moments: Floats) -> tuple[float, float]:
    """Return Var X and Var Y of the means of X, Y, X^2, Y^2 and XY."""
    x, y, square_x, square_y, _ = moments.tolist()
    return square_x - x * x, square_y - y * y


def _correlation(moments: Floats) -> tuple[float, Floats]:
    """Return rho, and its slopes in the moments."""
    x, y, *_, product = moments.tolist()
    variance_x, variance_y = _variances(moments)
    scale = np.sqrt(variance_x * variance_y)
    rho = (product - x * y) / scale
    slopes = (
        rho * x / variance_x - y / scale,
        rho * y / variance_y - x / scale,
        -rho / (2 * variance_x),
        -rho / (2 * variance_y),
        1 / scale,
    )
    return float(rho), np.array(slopes)


def _bias(moments: Floats, errors: Floats) -> float:
    """Return the mean of the second order, sum of H_ab Cov_ab / 2; 0 where the second order says nothing."""
    bias = 0.0
    for place, step in enumerate(np.sqrt(np.maximum(np.diagonal(errors), 0.0)) / 100):
        shift = step * (np.arange(len(moments)) == place)
        if not step > 0 or not min(*_variances(moments + shift), *_variances(moments - shift)) > 0:
            continue
        second = (_correlation(moments + shift)[1] - _correlation(moments - shift)[1]) / (2 * step)
        bias += float(second @ errors[place]) / 2
    return bias


def _covariance(tables: Sequence[Table], measured: Sequence[tuple[int, Floats]]) -> Floats:
    """Return the covariance of the moments: independent between tables; NaN if one is modelled."""
    found = np.zeros((len(measured), len(measured)))
    for place in {place for place, _ in measured}:
        table, own = tables[place], [number for number, (one, _) in enumerate(measured) if one == place]
        if not isinstance(table, TableEstimate):
            return np.full_like(found, np.nan)
        found[np.ix_(own, own)] = covariance(table, np.array([measured[number][1] for number in own]))
    return found
