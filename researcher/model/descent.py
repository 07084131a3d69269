"""The log-linear model on a junction tree that fits noisy tables best, by mirror descent on its marginals.

Minimise L(P) = 1/2 sum_t w_t ||M_t P - y_t||^2 over the distributions that factorise on the tree, M_t P being the
marginal of the attributes of table t. In the geometry of entropy a step is a step of the potentials:

    theta_C <- theta_C - alpha sum over t in C of M_t' w_t (M_t P - y_t)

followed by a step of momentum in theta (Nesterov's sequence). Where L rises the momentum starts again from nothing, and
if it was nothing alpha is halved; where L falls alpha grows. L is convex in P, so this finds the best fit; but the best
fit to noise is not the best model. The first steps find what is strong in the tables, later ones what is weak: starting
at independence and stopping early leaves weak dependences where they were.

Source: McKenna, Sheldon, Miklau, Graphical-model based estimation and inference for differential privacy (ICML 2019),
Algorithm 2; Krichene, Bayen, Bartlett, Accelerated mirror descent in continuous and discrete time (NeurIPS 2015);
O'Donoghue and Candes, Adaptive restart for accelerated gradient schemes (2015).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from veiltab.researcher.model.calibration import Calibration
from veiltab.researcher.model.junction import JunctionTree
from veiltab.researcher.model.measurement import Floats, Table

STEPS = 300
"""Steps of a fit unless said."""

FIRST_GROWTH = 2.0
"""What alpha is multiplied with at each step until one fails."""

LATER_GROWTH = 1.02
"""What alpha is multiplied with after that."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Target:
    """A table as its clique sees it: the clique's shape, the axes to sum out, and the values and shape in between."""

    shape: tuple[int, ...]
    dropped: tuple[int, ...]
    values: Floats
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Point:
    """Potentials, and what follows from them."""

    theta: Sequence[Floats]
    conditionals: list[Floats]
    loss: float
    slopes: list[Floats]


class _Loss:
    """L and its slope by the marginals, over tables that each fit in a clique."""

    def __init__(self, tree: JunctionTree, tables: Sequence[Table]) -> None:
        self._targets: list[list[_Target]] = [[] for _ in tree.cliques]
        for table in tables:
            number = tree.containing(table.axes)
            if number is None:
                raise ValueError("a table fits in no clique")
            axes = tree.cliques[number].axes
            inside = [axis for axis in axes if axis in table.axes]
            values = table.values.transpose([table.axes.index(axis) for axis in inside])
            self._targets[number].append(
                _Target(
                    shape=tree.sizes(axes),
                    dropped=tuple(place for place, axis in enumerate(axes) if axis not in table.axes),
                    values=values.reshape([tree.shape[axis] if axis in table.axes else 1 for axis in axes]),
                    weight=table.weight,
                )
            )

    def __call__(self, marginals: Sequence[Floats]) -> tuple[float, list[Floats]]:
        loss, slopes = 0.0, []
        for marginal, targets in zip(marginals, self._targets, strict=True):
            slope = np.zeros(marginal.shape)
            for target in targets:
                error = marginal.reshape(target.shape).sum(axis=target.dropped, keepdims=True) - target.values
                loss += target.weight * float(np.vdot(error, error)) / 2
                slope.reshape(target.shape)[...] += target.weight * error
            slopes.append(slope)
        return loss, slopes


def descend(
    tree: JunctionTree, tables: Sequence[Table], start: Sequence[Floats], *, steps: int = STEPS
) -> list[Floats]:
    """Fit the model.

    Args:
        tree: the junction tree.
        tables: at least one, each within a clique of the tree; not clipped.
        start: theta_C of each clique at the first step, shape (S, R) (nats).
        steps: of the descent, accepted or not.

    Returns:
        P(residual | separator) of each clique, shape (S, R).
    """
    calibration, loss = Calibration(tree), _Loss(tree, tables)

    def look(theta: Sequence[Floats]) -> _Point:
        conditionals = calibration.conditionals(theta)
        value, slopes = loss(calibration.marginals(conditionals))
        return _Point(theta=theta, conditionals=conditionals, loss=value, slopes=slopes)

    alpha, growth, momentum = 1 / max(table.weight for table in tables), FIRST_GROWTH, 1.0
    point, last = look(start), start
    for _ in range(steps):
        stepped = [theta - alpha * slope for theta, slope in zip(point.theta, point.slopes, strict=True)]
        following = (1 + sqrt(1 + 4 * momentum**2)) / 2
        ahead = (momentum - 1) / following
        tried = look([new + ahead * (new - old) for new, old in zip(stepped, last, strict=True)])
        if tried.loss <= point.loss:
            point, last, momentum = tried, stepped, following
            alpha *= growth
        elif momentum > 1:
            last, momentum = point.theta, 1.0
        else:
            alpha, growth = alpha / 2, LATER_GROWTH
    return point.conditionals
