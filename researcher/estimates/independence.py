"""Are two attributes, or two groups of attributes, independent? A chi-square test that knows about the noise.

With p and q the marginals, d_ab = T_ab - p_a q_b is zero under independence. To first order d_hat = J T_hat with
J = (I - p 1') (x) (I - q 1'), so its covariance is J Cov(T_hat) J', and

    W = d_hat' [J Cov(T_hat) J']^{-1} d_hat  ->  chi-square with (A-1)(B-1) degrees of freedom,

the last row and column of d being determined by the others. Without noise and with m << n, W is Pearson's statistic.
"""

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.planning.planning import FEWEST_ROWS
from veiltab.researcher.estimates.chi_square import chi_square_tail, quadratic_form
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.estimates.projection import project_to_simplex
from veiltab.researcher.estimates.uncertainty import MATRIX_LIMIT, Design


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IndependenceTest:
    """The outcome of one test.

    Args:
        left: attributes of the first group.
        right: attributes of the second group.
        degrees: (A-1)(B-1).
        p_value: probability of a statistic at least this large if the groups were independent.
        level: probability of a false alarm that `verdict` accepts.
        association: Cramer's V with the expected contribution of the noise taken off, from 0 (none) to about 1.
        least_expected: smallest number of noisy rows expected in a cell under independence (rows).
        remarks: whom the table is of, where people may be absent.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    statistic: float
    degrees: int
    p_value: float
    level: float
    association: float
    least_expected: float
    remarks: tuple[str, ...]

    @property
    def dependent(self) -> bool:
        """Whether independence is rejected at `level`."""
        return self.p_value < self.level

    @property
    def approximate(self) -> bool:
        """Whether a cell expects so few rows that the p-value is a rough one."""
        return self.least_expected < FEWEST_ROWS

    @property
    def verdict(self) -> str:
        """What the test says, in a sentence or two."""
        pair = f"{' and '.join(self.left)} against {' and '.join(self.right)}"
        if self.dependent:
            text = f"{pair}: dependent, at the {self.level:g} level."
        else:
            text = f"{pair}: no dependence shown at the {self.level:g} level, which does not prove independence."
        if self.approximate:
            text += f" Rough: a cell expects only {self.least_expected:.1f} rows."
        return text

    def strength(self, digits: int) -> str:
        """Return the association with so many decimals, or in words if they would all be zeros."""
        if not self.association:
            return "too small for this noise"
        least = 5 / 10 ** (digits + 1)
        return f"below {least:g}" if self.association < least else f"{self.association:.{digits}f}"

    def __repr__(self) -> str:
        return (
            f"<IndependenceTest: {' and '.join(self.left)} against {' and '.join(self.right)}, p = {self.p_value:.3g}>"
        )

    def __str__(self) -> str:
        """Return the verdict, and its numbers."""
        facts = (
            f"W = {self.statistic:.4g} with {self.degrees} degrees of freedom, p = {self.p_value:.3g};"
            f" Cramer's V, noise taken off and all cells weighed alike: {self.strength(3)}."
        )
        return "\n".join((self.verdict, facts, *self.remarks))


def independence(
    estimate: TableEstimate, left: Sequence[str], right: Sequence[str], *, level: float = 0.05
) -> IndependenceTest:
    """Test whether two groups of attributes are independent among the n respondents.

    The covariance is taken under the null hypothesis, at the product of the estimated marginals (projected on the
    simplex). The n respondents are the whole population: a real table is almost never exactly independent in it, so
    with little noise and m near n a trivial dependence is found too; `association` says how strong it is.

    Args:
        estimate: a joint estimate that contains both groups.
        left: names of the first group, at least one.
        right: names of the second group, none of them in the first.
        level: accepted probability of a false alarm, asymptotically.

    Returns:
        Statistic, degrees of freedom, p-value, verdict.

    Raises:
        InvalidInputError: groups that overlap or have one category, too many contrasts, a level outside (0, 1), or a
            singular covariance (no noise and no sampling error, or a category without any row).

    Source: Rao and Scott, The analysis of categorical data from complex sample surveys (1981), Wald statistic, with the
    covariance of the mechanism and of sampling without replacement.
    """
    if not 0.0 < level < 1.0:
        raise InvalidInputError(f"the level is {level}, not between 0 and 1", remedy="0.05 is customary.")
    if set(left) & set(right):
        raise InvalidInputError("an attribute stands in both groups", remedy="Name two separate groups.")
    joint = estimate.marginal([*left, *right])
    size = joint.domain.subset(left).cells
    table = joint.raw.reshape(size, -1)
    degrees = (table.shape[0] - 1) * (table.shape[1] - 1)
    if not 1 <= degrees <= MATRIX_LIMIT:
        raise InvalidInputError(
            f"the test has {degrees} degrees of freedom, outside 1 to {MATRIX_LIMIT}",
            remedy="Test attributes with at least two categories each, and not too many together.",
        )
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    p, q = project_to_simplex(rows), project_to_simplex(columns)
    # The contrasts leave out the last row and column: the largest, so that the order of categories changes nothing.
    by_row, by_column = np.argsort(p, kind="stable"), np.argsort(q, kind="stable")
    p, q, differences = p[by_row], q[by_column], (table - np.outer(rows, columns))[np.ix_(by_row, by_column)]
    statistic = quadratic_form(differences[:-1, :-1].reshape(-1), null_covariance(p, q, joint.design))
    return IndependenceTest(
        left=tuple(left),
        right=tuple(right),
        statistic=statistic,
        degrees=degrees,
        p_value=chi_square_tail(statistic, degrees),
        level=level,
        association=_association(differences, p, q, joint.design),
        least_expected=float(joint.design.expected_rows(np.array([p.min() * q.min()]))[0]),
        remarks=estimate.remarks,
    )


def null_covariance(p: NDArray[np.float64], q: NDArray[np.float64], design: Design) -> NDArray[np.float64]:
    """Return the covariance of d_hat without its last row and column, if T_ab = p_a q_b.

    J T = 0 and J is a Kronecker product, so of the five terms of Cov(T_hat) three remain and none needs the
    (A B) x (A B) matrix.

    Args:
        p: first marginal, shape (A,), float64 (probabilities).
        q: second marginal, shape (B,), float64 (probabilities).
        design: the public parameters, over A B cells.

    Returns:
        Shape ((A-1)(B-1), (A-1)(B-1)), float64, contrasts in C order.

    Source: delta method.
    """
    terms = design.terms
    left, right = _centring(p)[:-1], _centring(q)[:-1]
    ones = np.outer(left.sum(axis=1), right.sum(axis=1)).reshape(-1)
    plain = np.kron(left @ left.T, right @ right.T)
    weighted = np.kron((left * p) @ left.T, (right * q) @ right.T)
    background = np.outer(ones, ones)
    covariances: NDArray[np.float64] = (
        float(terms.constant) * plain + float(terms.linear) * weighted - float(terms.background) * background
    )
    return covariances


def _centring(marginal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return I - p 1', one factor of the Jacobian."""
    matrix: NDArray[np.float64] = np.eye(marginal.size) - marginal[:, None]
    return matrix


def _association(
    differences: NDArray[np.float64], p: NDArray[np.float64], q: NDArray[np.float64], design: Design
) -> float:
    """Return Cramer's V from sum d^2/(p q) less what the noise alone is expected to add to it."""
    present = np.outer(p > 0, q > 0)
    expected = np.where(present, np.outer(p, q), 1.0)
    noise = _null_variances(p, q, design)
    inertia = float(((differences**2 - noise) / expected)[present].sum())
    return sqrt(max(inertia, 0.0) / (min(differences.shape) - 1))


def _null_variances(p: NDArray[np.float64], q: NDArray[np.float64], design: Design) -> NDArray[np.float64]:
    """Return the variance of every d_ab under independence, the last row and column included; shape (A, B)."""
    terms, left, right = design.terms, _centring(p), _centring(q)
    plain = np.outer((left**2).sum(axis=1), (right**2).sum(axis=1))
    weighted = np.outer(left**2 @ p, right**2 @ q)
    ones = np.outer(left.sum(axis=1), right.sum(axis=1))
    spread: NDArray[np.float64] = float(terms.constant) * plain + float(terms.linear) * weighted
    return spread - float(terms.background) * ones**2
