"""What several copies of microdata say together: an estimate and an interval that know about the noise.

From copy i of M an analysis gives an estimate q_i and its variance v_i, as if the rows of the copy were a simple random
sample. With b the variance of the q_i and v the mean of the v_i,

    q = mean q_i,    T = (1 + 1/M) b - v,    degrees = (M - 1) (1 - v / ((1 + 1/M) b))^2

b holds the noise of the release, which each copy draws anew, and the drawing of the rows, which v takes off again. T is
an estimate and may come out negative; then (1 + 1/M) b stands for it, which is too large on average. With few rows in a
copy v is a large part of b and the interval is wider than it need be (97 to 98% instead of 95%): draw many rows.

What this assumes: the copies are exchangeable draws (each has parameters of its own: a file of a single copy has not),
the analysis agrees with the model (an effect that the model lacks is biased, and no T knows of it), and q is close to
normal. T counts the noise of the release and, where not everybody was sampled, the sampling. It does not count that the
respondents are themselves a sample of a larger population.

Source: Raghunathan, Reiter, Rubin, Multiple imputation for statistical disclosure limitation (2003); Reiter, Satisfying
disclosure restrictions with synthetic data sets (2002), for the degrees of freedom.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gamma, pi, sqrt, tan
from statistics import NormalDist

import numpy as np

from veiltab.common.errors import InvalidInputError

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """One quantity, estimated from all copies.

    Args:
        estimate: the mean over the copies.
        variance: T, or (1 + 1/M) b where T is not positive.
        degrees: degrees of freedom of the t interval.
        is_adjusted: whether T was not positive.
        low: lower end of the interval.
        high: upper end of the interval.
    """

    estimate: float
    variance: float
    degrees: float
    is_adjusted: bool
    low: float
    high: float

    @property
    def se(self) -> float:
        """The standard error."""
        return sqrt(self.variance)


def combine(estimates: Sequence[float], variances: Sequence[float], *, confidence: float = 0.95) -> Combined:
    """Combine an analysis of several copies.

    Args:
        estimates: q_i, one a copy.
        variances: v_i, one a copy, as for a simple random sample: p (1 - p)/N of a share p among N rows.
        confidence: probability that the interval holds the quantity.

    Raises:
        InvalidInputError: fewer than two copies, numbers that do not pair, are not finite, or are negative as
            variances, or a confidence outside (0, 1).
    """
    q, v = np.array(estimates, np.float64), np.array(variances, np.float64)
    if q.ndim != 1 or q.shape != v.shape or len(q) < 2:
        raise InvalidInputError("combining needs an estimate and a variance from each of two or more copies")
    if not (np.isfinite(q).all() and np.isfinite(v).all() and v.min() >= 0):
        raise InvalidInputError("estimates and variances are finite, and no variance is negative")
    if not 0.0 < confidence < 1.0:
        raise InvalidInputError(f"a confidence lies between 0 and 1, not {confidence}")
    copies, centre = len(q), float(q.mean())
    between, within = (1 + 1 / copies) * float(q.var(ddof=1)), float(v.mean())
    is_adjusted = between <= within
    variance = between if is_adjusted else between - within
    degrees = copies - 1.0 if is_adjusted else max((copies - 1) * (variance / between) ** 2, 1.0)
    half = student_quantile((1 + confidence) / 2, degrees) * sqrt(variance)
    return Combined(
        estimate=centre,
        variance=variance,
        degrees=degrees,
        is_adjusted=is_adjusted,
        low=centre - half,
        high=centre + half,
    )


def student_quantile(probability: float, degrees: float) -> float:
    """Return the quantile of Student's t distribution.

    With t = sqrt(d) tan(a), the density of a is proportional to cos(a)^(d-1): its integral is a short sum.

    Args:
        probability: from 1/2 to below 1.
        degrees: d, at least 1, not necessarily whole.
    """
    if degrees > 300:
        # Beyond, gamma functions overflow, and the first term of the expansion around the normal law is exact to 1e-4.
        z = NormalDist().inv_cdf(probability)
        return z + (z**3 + z) / (4 * degrees)
    total = sqrt(pi) * gamma(degrees / 2) / gamma((degrees + 1) / 2)
    low, high = 0.0, pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        area = angle / 2 * float(_WEIGHTS @ np.cos(angle / 2 * (_NODES + 1)) ** (degrees - 1))
        low, high = (angle, high) if area / total < probability - 0.5 else (low, angle)
    return sqrt(degrees) * tan((low + high) / 2)
