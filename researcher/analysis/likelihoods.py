"""The two models of a regression on a table: what their scores are, linear in the table."""

from abc import ABC, abstractmethod

import numpy as np

from veiltab.common.dataclass import dataclass
from veiltab.researcher.analysis.shares import Floats

_STEEP = 30.0
"""Linear predictors beyond it count as it: e^30 cannot be told from infinity."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Likelihood(ABC):
    """A model with coefficients beta, shape (p,), of the cells of a table T, shape (K,).

    The coefficients that the whole population would give are the zero of the score U(beta; T).

    Args:
        matrix: the design matrix, shape (cells of the attributes on the right, p).
    """

    matrix: Floats

    @abstractmethod
    def score(self, beta: Floats, table: Floats) -> Floats:
        """Return U(beta; T), shape (p,)."""

    @abstractmethod
    def information(self, beta: Floats, table: Floats) -> Floats:
        """Return -dU/dbeta, shape (p, p)."""

    @abstractmethod
    def coefficients(self, beta: Floats, along: Floats) -> Floats:
        """Return the coefficients of the cells in along . U, shape (K,): U is linear in the table.

        Args:
            beta: where, shape (p,).
            along: combination of the scores, shape (p,).
        """

    def _predictor(self, beta: Floats) -> Floats:
        predictor: Floats = np.clip(self.matrix @ beta, -_STEEP, _STEEP)
        return predictor


@dataclass(frozen=True, kw_only=True, eq=False)
class Logistic(Likelihood):
    """P(event | x) = 1/(1 + e^(-x beta)); U = sum_x x [T(x, event) - P(event | x) T(x)].

    Cells of the table: those of the matrix, each with the categories of the response.

    Args:
        event: whether a category of the response is in the event, shape (R,), bool.
    """

    event: np.typing.NDArray[np.bool_]

    def score(self, beta: Floats, table: Floats) -> Floats:
        """Return U(beta; T), shape (p,)."""
        cells = self._cells(table)
        scores: Floats = self.matrix.T @ (cells[:, self.event].sum(axis=1) - self._share(beta) * cells.sum(axis=1))
        return scores

    def information(self, beta: Floats, table: Floats) -> Floats:
        """Return sum_x x x' T(x) P (1 - P)."""
        share = self._share(beta)
        return _weighted(self.matrix, self._cells(table).sum(axis=1) * share * (1.0 - share))

    def coefficients(self, beta: Floats, along: Floats) -> Floats:
        """Return (along . x) (1{event} - P(event | x)), cell by cell."""
        weights: Floats = (self.matrix @ along)[:, None] * (self.event[None, :] - self._share(beta)[:, None])
        return weights.reshape(-1)

    def _share(self, beta: Floats) -> Floats:
        share: Floats = 1.0 / (1.0 + np.exp(-self._predictor(beta)))
        return share

    def _cells(self, table: Floats) -> Floats:
        return table.reshape(-1, self.event.size)


@dataclass(frozen=True, kw_only=True, eq=False)
class LogLinear(Likelihood):
    """T(x) = e^(x beta); U = sum_x x [T(x) - e^(x beta)]: the fitted table has the margins of the terms."""

    def score(self, beta: Floats, table: Floats) -> Floats:
        """Return U(beta; T), shape (p,)."""
        scores: Floats = self.matrix.T @ (table - np.exp(self._predictor(beta)))
        return scores

    def information(self, beta: Floats, table: Floats) -> Floats:  # noqa: ARG002 - it depends on beta alone
        """Return sum_x x x' e^(x beta)."""
        return _weighted(self.matrix, np.exp(self._predictor(beta)))

    def coefficients(self, beta: Floats, along: Floats) -> Floats:  # noqa: ARG002 - it depends on neither
        """Return along . x, cell by cell."""
        weights: Floats = self.matrix @ along
        return weights


def _weighted(matrix: Floats, weights: Floats) -> Floats:
    product: Floats = (matrix * weights[:, None]).T @ matrix
    return product
