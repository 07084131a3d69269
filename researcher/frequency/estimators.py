"""The estimators of how many nodes hold each value, from supports N_si and reports S_s of every stratum s.

All but one are linear: with coefficients that depend on public parameters alone,

    estimate(i) = sum_s (a_s N_si - b_s S_s) + constant

| estimator        | formula                                                | a_s               | b_s   | constant  |
|------------------|--------------------------------------------------------|-------------------|-------|-----------|
| c                | (N - nq)/(p-q)                                         | 1/(p-q)           | 0     | -nq/(p-q) |
| g                | c/pi + nq(1-pi)/((p-q) pi)                             | 1/(pi (p-q))      | 0     | -nq/(p-q) |
| c_hat            | (N - Sq)/(pi (p-q))                                    | 1/(pi (p-q))      | q a_s | 0         |
| T                | n c/sum(pi) + nq(n - sum(pi))/(sum(pi)(p-q))           | 1/(pi (p-q))      | 0     | -nq/(p-q) |
| horvitz_thompson | sum over reports of z/pi_s, z = (1{holds i} - q)/(p-q) | 1/(pi_s (p-q))    | q a_s | 0         |

where pi = sum_j pi_j / n is the mean rate of the nodes, so T is g. The last, hajek, divides horvitz_thompson by the
same estimate of the number of nodes: n horvitz_thompson / sum_s(S_s/pi_s), which at one rate is n (N/S - q)/(p-q).
"""

from enum import StrEnum
from fractions import Fraction
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass
from veiltab.researcher.frequency.design import RoundDesign
from veiltab.researcher.frequency.tally import Tally


class Estimator(StrEnum):
    """An estimator; its value is its name everywhere."""

    C = "c"
    G = "g"
    C_HAT = "c_hat"
    T = "T"
    HAJEK = "hajek"
    HORVITZ_THOMPSON = "horvitz_thompson"

    @property
    def is_linear(self) -> bool:
        """Whether the estimate is linear in supports and reports."""
        return self is not Estimator.HAJEK


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearForm:
    """The exact coefficients of a linear estimator: sum_s (a_s N_si - b_s S_s) + constant.

    Args:
        support: a_s, nodes added for a report whose support holds the value.
        report: b_s, nodes subtracted for every report.
    """

    support: tuple[Fraction, ...]
    report: tuple[Fraction, ...]
    constant: Fraction


def default_estimator(tally: Tally) -> Estimator:
    """Return hajek if every node reports at the same rate, else horvitz_thompson.

    Each is unbiased then (hajek given at least one report), and no other unbiased one has a notably smaller variance.
    """
    return Estimator.HAJEK if tally.design.one_rate else Estimator.HORVITZ_THOMPSON


def linear_form(estimator: Estimator, design: RoundDesign) -> LinearForm:
    """Return the coefficients of an estimator; for hajek, of its numerator.

    Source: Biswas, Cormode, Maple, equation 3 (c), equation 5 (g), Theorem 3.4 (c_hat), Theorem 5.1 (T); Horvitz,
    Thompson, A generalization of sampling without replacement from a finite universe (1952).
    """
    scale = 1 / (design.p - design.q)
    strata = len(design.rates)
    match estimator:
        case Estimator.C:
            support = (scale,) * strata
        case Estimator.G | Estimator.C_HAT | Estimator.T:
            support = (scale / design.mean_rate,) * strata
        case Estimator.HAJEK | Estimator.HORVITZ_THOMPSON:
            support = tuple(scale / rate for rate in design.rates)
        case _:
            assert_never(estimator)
    match estimator:
        case Estimator.C | Estimator.G | Estimator.T:
            report, constant = (Fraction(0),) * strata, -design.population * design.q * scale
        case Estimator.C_HAT | Estimator.HAJEK | Estimator.HORVITZ_THOMPSON:
            report, constant = tuple(design.q * a for a in support), Fraction(0)
        case _:
            assert_never(estimator)
    return LinearForm(support=support, report=report, constant=constant)


def point_estimates(
    estimator: Estimator, counts: NDArray[np.int64], reports: NDArray[np.int64], design: RoundDesign
) -> NDArray[np.float64]:
    """Return the estimated numbers of nodes that hold each value, of one tally or of many at once.

    Args:
        counts: N_si, shape (..., strata, d), integers.
        reports: S_s, shape (..., strata), integers.

    Returns:
        Shape (..., d), float64 (nodes); NaN for hajek where there is no report.
    """
    form = linear_form(estimator, design)
    supported = np.einsum("s,...sd->...d", as_floats(form.support), counts)
    offset = reports @ as_floats(form.report) - float(form.constant)
    raw: NDArray[np.float64] = supported - offset[..., None]
    if estimator.is_linear:
        return raw
    nodes = reports @ as_floats([1 / rate for rate in design.rates])
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio: NDArray[np.float64] = design.population * raw / np.where(nodes > 0, nodes, np.nan)[..., None]
    return ratio


def as_floats(numbers: tuple[Fraction, ...] | list[Fraction]) -> NDArray[np.float64]:
    """Return exact numbers as an array of float64."""
    return np.array([float(number) for number in numbers])
