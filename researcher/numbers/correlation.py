"""The correlation of two attributes of numbers, by the moments of the tables of a release.

    rho = (E[XY] - E[X] E[Y]) / sqrt(Var X Var Y)

is a smooth function of five moments, which all tables estimate together (`moments`). To first order its error is linear
in theirs; the mean of the second order is taken off.
"""

from collections.abc import Sequence

import numpy as np

from veiltab.common.core.domain import Domain
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.comparisons import Table, analysis_of, quantile
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.analysis.shares import Floats
from veiltab.researcher.numbers.moments import UNSURE, Feature, Moments, domain_of, doubt_about, features, moments
from veiltab.researcher.numbers.points import numbers_of


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
        raise InvalidInputError("a correlation was asked of other than two attributes", where="correlation")
    domain = domain_of(tables)
    x, y = (column for name in names for column in _columns(domain, name))
    estimates = moments(tables, [(x, None), (y, None), (x, x), (y, y), (x, y)])
    value = low = high = np.nan
    about_variances = _doubts(estimates)
    if UNSURE not in about_variances:
        rho, slopes = _correlation(estimates.values)
        half = quantile(tables[0]) * estimates.deviation(slopes) if estimates.is_measured else np.nan
        middle = rho - _bias(estimates.values, np.nan_to_num(estimates.errors))
        value, low, high = np.clip([middle, middle - half, middle + half], -1.0, 1.0)
    return analysis_of(
        estimates.parts,
        f"correlation of {x.label} and {y.label}",
        {"pair": (f"{x.label}, {y.label}",)},
        (np.array([value]), np.array([low]), np.array([high])),
        tuple(about_variances),
        neutral=0.0,
    )


def _columns(domain: Domain, name: str) -> list[Feature]:
    """Return the column of an attribute of numbers; refuse other attributes."""
    (attribute,) = domain.subset([name]).attributes
    numbers_of(attribute)
    return features(attribute, domain)


def _doubts(estimates: Moments) -> list[str]:
    """Return what is to be said of the two variances."""
    x, y, *_ = estimates.values.tolist()
    slopes = np.array([[-2 * x, 0, 1, 0, 0], [0, -2 * y, 0, 1, 0]])
    both = zip(_variances(estimates.values), slopes, strict=True)
    return list(filter(None, dict.fromkeys(doubt_about(value, estimates.deviation(slope)) for value, slope in both)))


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
