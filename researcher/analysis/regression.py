"""Logistic and log-linear regression on an estimated table, with intervals that know its noise.

The true coefficients are what the regression would give on the true rows of all n respondents: the zero of a score
U(beta; T) that is linear in the table, so that U(beta; T_hat) is unbiased for every beta, and its covariance follows
from that of T_hat. The estimate is the zero of U(beta; T_hat), with the raw table.

The interval of a coefficient holds every value that the score test does not reject: with the others at the zero of
their own scores, U_j^2 <= z^2 Var(a . U), a = (1 for j, -I_oj' I_oo^-1 for the others o). To first order that is beta
+- z times the sandwich error sqrt((I^-1 L Cov(T_hat) L' I^-1)_jj); the test needs no symmetry and no noisy slope.
"""

from collections.abc import Callable
from math import inf, isnan, nan, sqrt
from statistics import NormalDist

import numpy as np

from veiltab.common.dataclass import dataclass
from veiltab.researcher.analysis.comparisons import Table, analysis_of
from veiltab.researcher.analysis.formula import Formula, design_matrix, parse_formula
from veiltab.researcher.analysis.likelihoods import Likelihood, Logistic, LogLinear
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.analysis.shares import Floats
from veiltab.researcher.estimates.estimation import TableEstimate

_ITERATIONS = 100
_NEAR = 1e-10
_STEP = 1.0
"""Longest step of a coefficient: the table may be negative in places, where Newton's own step leads nowhere."""

_FARTHEST = 15.0
"""A coefficient that far from its estimate is no limit: e^15 is three millions."""

_CLOSE = 1e-4
"""Distance from the quantile at which an end of an interval is close enough, standard errors."""


def regress(table: Table, formula: str, *, as_ratios: bool = False) -> Analysis:
    """Fit a logistic regression ("wage ~ education + age") or a log-linear model ("~ education * wage").

    Args:
        table: with all attributes of the formula.
        formula: as `parse_formula` reads it.
        as_ratios: e to the coefficients instead: odds ratios of a logistic regression.

    Returns:
        A row a coefficient, the intercept first; the first category of each attribute is the reference.

    Raises:
        InvalidInputError: the formula does not parse, or is too large for its table.

    Source: score tests (Rao 1948) on estimating equations whose covariance is known (Binder, On the variances of
    asymptotically normal estimators from complex surveys, 1983).
    """
    model = parse_formula(formula, table.domain)
    names = (*model.attributes, *([model.response] if model.response else []))
    part = table.marginal(names)
    likelihood, labels = _likelihood(model, part)
    values, ends = _fitted(likelihood, part)
    low, high = ends.T
    transform = np.exp if as_ratios else np.positive
    explained = f"{model.response}={'|'.join(model.event)}"
    return analysis_of(
        [part],
        f"logistic regression of {explained}" if model.response else f"log-linear model of {', '.join(names)}",
        {"coefficient": tuple(labels)},
        (transform(values), transform(low), transform(high)),
        (_meaning(model, as_ratios=as_ratios),),
        neutral=1.0 if as_ratios else 0.0,
    )


def _likelihood(model: Formula, part: Table) -> tuple[Likelihood, list[str]]:
    """Return the model over the cells of the part of the table that it is about, and its coefficients' names."""
    matrix, labels = design_matrix(model, part.domain.subset(model.attributes))
    if not model.response:
        return LogLinear(matrix=matrix), labels
    event = np.array([category in model.event for category in part.domain.attributes[-1].categories])
    return Logistic(matrix=matrix, event=event), labels


def _meaning(model: Formula, *, as_ratios: bool) -> str:
    reference = "The first category of each attribute is the reference."
    if not model.response:
        return f"{'e to the coefficients' if as_ratios else 'Coefficients'} of log T, T being shares. {reference}"
    return f"{'Odds ratios' if as_ratios else 'Coefficients of the log odds'}. {reference}"


def _fitted(likelihood: Likelihood, part: Table) -> tuple[Floats, Floats]:
    """Return the coefficients, shape (p,), and their intervals, shape (p, 2); NaN where they cannot be said."""
    width = likelihood.matrix.shape[1]
    unknown = np.full((width, 2), nan)
    everything, start = np.arange(width), np.zeros(width)
    if isinstance(part, TableEstimate):
        # Of a table without negative cells the likelihood is concave.
        nearest = _zero(likelihood, part.projected, start, everything)
        start = start if nearest is None else nearest
    beta = _zero(likelihood, part.raw, start, everything)
    if beta is None:
        return np.full(width, nan), unknown
    if not isinstance(part, TableEstimate):
        return beta, unknown
    profile = _Profile(likelihood=likelihood, estimate=part, beta=beta)
    ends = np.array([[profile.end(j, side) for side in (-1.0, 1.0)] for j in range(width)])
    return np.where(np.isnan(ends).any(axis=1), nan, beta), ends


def _zero(likelihood: Likelihood, table: Floats, start: Floats, free: np.typing.NDArray[np.intp]) -> Floats | None:
    """Return the coefficients at which the scores of the free ones vanish, by Newton's method; None if it fails."""
    beta = start.copy()
    for _ in range(_ITERATIONS):
        slope = likelihood.information(beta, table)[np.ix_(free, free)]
        try:
            step = np.linalg.solve(slope, likelihood.score(beta, table)[free])
        except np.linalg.LinAlgError:
            return None
        longest = float(np.abs(step).max(initial=0.0))
        if not longest < np.inf:
            return None
        beta[free] += step * min(1.0, _STEP / max(longest, _NEAR))
        if longest < _NEAR:
            return beta if _is_positive(slope) else None
    return None


def _is_positive(matrix: Floats) -> bool:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


@dataclass(frozen=True, kw_only=True, eq=False)
class _Profile:
    """The score tests of single coefficients.

    Args:
        estimate: the table, over the cells of the model.
        beta: the estimated coefficients, shape (p,).
    """

    likelihood: Likelihood
    estimate: TableEstimate
    beta: Floats

    def end(self, coefficient: int, side: float) -> float:
        """Return an end of the interval of a coefficient: the upper one for side 1, the lower one for -1.

        Returns:
            The value; infinite where there is no limit, NaN where it cannot be said.
        """
        z = NormalDist().inv_cdf((1.0 + self.estimate.confidence) / 2.0)
        error = self._error(coefficient)
        if isnan(error):
            return nan
        path = self._path(coefficient)

        def excess(distance: float) -> float:
            return -side * path(float(self.beta[coefficient]) + side * distance) - z

        distance = _root(excess, below=-z, first=min(z * error, _FARTHEST))
        return float(self.beta[coefficient]) + side * distance

    def _error(self, coefficient: int) -> float:
        """Return the sandwich standard error of a coefficient, the first guess."""
        score, along = self._effective(coefficient, self.beta)
        remaining = float(self.likelihood.information(self.beta, self.estimate.projected)[coefficient] @ along)
        return nan if isnan(score) or remaining <= 0 else sqrt(self._variance(self.beta, along)) / remaining

    def _path(self, coefficient: int) -> Callable[[float], float]:
        """Return the standardised score of a coefficient as a function of its value; each value starts at the last."""
        others = np.delete(np.arange(self.beta.size), coefficient)
        last = self.beta.copy()

        def standardised(value: float) -> float:
            nonlocal last
            start = last.copy()
            start[coefficient] = value
            beta = _zero(self.likelihood, self.estimate.raw, start, others)
            if beta is None:
                return nan
            last = beta
            score, along = self._effective(coefficient, beta)
            variance = nan if isnan(score) else self._variance(beta, along)
            return score / sqrt(variance) if variance > 0 else nan

        return standardised

    def _effective(self, coefficient: int, beta: Floats) -> tuple[float, Floats]:
        """Return the score of a coefficient and the combination of all scores that does not feel the others."""
        others = np.delete(np.arange(beta.size), coefficient)
        information = self.likelihood.information(beta, self.estimate.projected)
        along = np.zeros(beta.size)
        along[coefficient] = 1.0
        try:
            along[others] = -np.linalg.solve(information[np.ix_(others, others)], information[others, coefficient])
        except np.linalg.LinAlgError:
            return nan, along
        return float(self.likelihood.score(beta, self.estimate.raw)[coefficient]), along

    def _variance(self, beta: Floats, along: Floats) -> float:
        contrast = self.likelihood.coefficients(beta, along)[None, :]
        return max(float(self.estimate.contrast_covariance(contrast)[0, 0]), 0.0)


def _root(excess: Callable[[float], float], *, below: float, first: float) -> float:
    """Return where a function that grows from `below` < 0 at 0 crosses 0: regula falsi, Illinois's variant.

    Args:
        excess: the function of a distance above 0; NaN where it cannot be computed.
        below: its value at 0.
        first: a guess, above 0.

    Returns:
        The distance; infinite if it lies beyond _FARTHEST, NaN if the function is NaN on the way.
    """
    near, far = (0.0, below), (inf, inf)
    guess, was_near = first, False
    for _ in range(_ITERATIONS):
        value = excess(guess)
        if isnan(value) or abs(value) < _CLOSE:
            return nan if isnan(value) else guess
        if value > 0:
            far = (guess, value)
            near = (near[0], near[1] / 2) if not was_near and near[0] > 0 else near
        else:
            near = (guess, value)
            far = (far[0], far[1] / 2) if was_near else far
        was_near = value < 0
        if far[0] < inf:
            guess = near[0] + (far[0] - near[0]) * near[1] / (near[1] - far[1])
        elif guess >= _FARTHEST:
            return inf
        else:
            guess = min(guess * min(max(1.1 * below / (below - value), 1.2), 4.0), _FARTHEST)
    return guess
