"""Cox regression of the hazard of an event on groups, with intervals that know the noise.

With e_g = exp(x_g' beta), D and N as in `follow_up`, and m_i(u) = sum_g w_g x_g / sum_g w_g with the weights
w_g = (N_gi - u D_gi) e_g,

    U(beta) = sum_i ( sum_g D_gi x_g - D_i int_0^1 m_i(u) du ) = 0.

That is Efron's score (1977), whose sum over the events of one time is the integral where these are many. To first order
beta_hat - beta = I^-1 T_hat(c), c the gradient of U in the table, I minus its slope in beta: a contrast whose variance
is known. The true coefficients are those of the true rows of all n respondents.
"""

import numpy as np

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.comparisons import Table, analysis_of, quantile
from veiltab.researcher.analysis.formula import design_matrix
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.analysis.shares import Floats
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.numbers.points import deviations
from veiltab.researcher.survival.follow_up import Ending, FollowUp, follow_up

_ITERATIONS = 50
_NEAR = 1e-10
_STEP = 1.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_PLACES, _SHARES = (_NODES + 1) / 2, _WEIGHTS / 2
"""Quadrature on 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Score:
    """U at some coefficients.

    Args:
        value: shape (p,).
        information: minus its slope, shape (p, p).
        by_event: slopes in D, shape (p, G, K); by_risk: in N.
    """

    value: Floats
    information: Floats
    by_event: Floats
    by_risk: Floats


def hazards(table: Table, ending: Ending, *, as_ratios: bool) -> Analysis:
    """Fit a Cox regression.

    Args:
        table: with all attributes concerned.
        as_ratios: hazard ratios, e to the coefficients, instead of these.

    Returns:
        A row a coefficient; the first category of each attribute is the reference.

    Raises:
        InvalidInputError: attributes that were rounded at random, or a model that is too large.
    """
    if ending.formula is None:
        raise InvalidInputError("nothing explains the hazard", where="survival", remedy="Write ~ and attributes.")
    names = ending.formula.attributes
    followed = follow_up(table, ending, names)
    matrix, labels = design_matrix(ending.formula, followed.part.domain.subset(names))
    beta, half, lasted = _fitted(followed, matrix[:, 1:], quantile(table))
    transform = np.exp if as_ratios else np.positive
    times = followed.times
    what = "Hazard ratios" if as_ratios else "Coefficients of the log hazard"
    is_cut = 0 < lasted < len(times.labels)
    return analysis_of(
        [followed.part],
        f"Cox regression of {ending.text} by {ending.time}",
        {"coefficient": tuple(labels[1:])},
        (transform(beta), transform(beta - half), transform(beta + half)),
        (
            f"{what}. The first category of each attribute is the reference.",
            *([f"Follow-up counts up to {ending.time} {times.labels[lasted - 1]}."] if is_cut else []),
        ),
        neutral=1.0 if as_ratios else 0.0,
    )


def _fitted(followed: FollowUp, matrix: Floats, z: float) -> tuple[Floats, Floats, int]:
    """Return the coefficients, half the widths of their intervals (NaN if unknown), and how many times counted."""
    lasted = int(followed.is_followed(slice(None)).sum())
    beta, unknown = np.zeros(matrix.shape[1]), np.full(matrix.shape[1], np.nan)
    for _ in range(_ITERATIONS):
        score = _score(followed, matrix, beta, lasted)
        try:
            step = np.linalg.solve(score.information, score.value)
        except np.linalg.LinAlgError:
            return unknown, unknown, lasted
        longest = float(np.abs(step).max(initial=0.0))
        beta = beta + step * min(1.0, _STEP / max(longest, _NEAR))
        if not np.isfinite(beta).all():
            return unknown, unknown, lasted
        if longest < _NEAR:
            break
    else:
        return unknown, unknown, lasted
    if not isinstance(followed.part, TableEstimate):
        return beta, unknown, lasted
    if not float(np.linalg.eigvalsh(score.information)[0]) > 0:
        return unknown, unknown, lasted
    slopes = followed.through_risk(score.by_event, score.by_risk, _gone_first(followed))
    contrasts: Floats = np.linalg.solve(score.information, followed.contrasts(*slopes)).astype(np.float64)
    return beta, z * deviations(followed.part, contrasts), lasted


def _gone_first(followed: FollowUp) -> float:
    return 0.0 if followed.times.are_exact else 0.5


def _score(followed: FollowUp, matrix: Floats, beta: Floats, lasted: int) -> _Score:
    """Return the score and its slopes; times from number `lasted` on do not count."""
    events = followed.events * (np.arange(followed.events.shape[1]) < lasted)
    risk = followed.at_risk(_gone_first(followed))
    grown = np.exp(np.clip(matrix @ beta, -30.0, 30.0))
    total = events.sum(axis=0)
    groups, width = matrix.shape
    value, information = events.sum(axis=1) @ matrix, np.zeros((width, width))
    by_event = np.zeros((width, groups, len(total)))
    by_risk = np.zeros_like(by_event)
    for i in np.flatnonzero(np.arange(len(total)) < lasted):
        by_event[:, :, i] = matrix.T
        for u, share in zip(_PLACES, _SHARES, strict=True):
            weights = (risk[:, i] - u * events[:, i]) * grown
            whole = weights.sum()
            if whole <= 0:
                continue
            mean = weights @ matrix / whole
            apart = matrix - mean
            value -= share * total[i] * mean
            information += share * total[i] * (apart.T * weights) @ apart / whole
            slope = share * total[i] * (apart.T * grown) / whole
            by_risk[:, :, i] -= slope
            by_event[:, :, i] += u * slope - share * mean[:, None]
    return _Score(value=value, information=information, by_event=by_event, by_risk=by_risk)
