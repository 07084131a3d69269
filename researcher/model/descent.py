"""The log-linear model on a junction tree that fits noisy tables best, by mirror descent on its marginals.

Minimise L(P) = 1/2 sum_t w_t ||M_t P - y_t||^2 over the distributions that factorise on the tree, M_t P being the
marginal of the attributes of table t. In the geometry of entropy a step is a step of the potentials:

    theta_C <- theta_C - alpha sum over t in C of M_t' w_t (M_t P - y_t)

followed by a step of momentum in theta (Nesterov's sequence). Where L rises the momentum starts again from nothing,
and if it was nothing alpha is halved; where L falls alpha doubles, or grows by a fiftieth once it was too large. L is
convex in P, so this finds the best fit; but the best fit to noise is not the best model. The first steps find what is
strong in the tables, later ones what is weak and at last the noise: a fit that starts at independence and stops early
leaves weak dependences out. When to stop, fitting.py decides.

Messages are float32, whose rounding is a ten-thousandth of the noise of a table or less; steps and losses are float64.

Source: McKenna, Sheldon, Miklau, Graphical-model based estimation and inference for differential privacy (ICML 2019),
Algorithm 2; Krichene, Bayen, Bartlett, Accelerated mirror descent in continuous and discrete time (NeurIPS 2015);
O'Donoghue and Candes, Adaptive restart for accelerated gradient schemes (2015).
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import count
from math import sqrt

import numpy as np

from veiltab.common.dataclass import dataclass
from veiltab.researcher.model.calibration import Calibration
from veiltab.researcher.model.junction import JunctionTree
from veiltab.researcher.model.loss import Loss
from veiltab.researcher.model.measurement import Floats, Rounded, Table
from veiltab.researcher.model.tree_distribution import TreeDistribution

EVERY = 25
"""Steps from one look at the model to the next."""

_FIRST_GROWTH = 2.0
_LATER_GROWTH = 1.02


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Point:
    """Potentials of the cells of all tables, and what follows from them."""

    theta: Floats
    conditionals: Sequence[Rounded]
    loss: float
    slope: Floats


def tree_path(tree: JunctionTree, tables: Sequence[Table], margins: Sequence[Floats]) -> Iterator[TreeDistribution]:
    """Fit the model, and yield it at the start and after every EVERY steps, without end.

    Args:
        tables: at least one, each within a clique of the tree; not clipped.
        margins: where to start: positive shares of each attribute, shape (K_a,).

    Yields:
        The distribution after 0, EVERY, 2 EVERY, ... steps.
    """
    calibration, loss, start = Calibration(tree), Loss(tree, tables), _independence(tree, margins)

    def look(theta: Floats) -> _Point:
        conditionals = calibration.conditionals(loss.spread(start, theta.astype(np.float32)))
        value, slope = loss(calibration.marginals(conditionals))
        return _Point(theta=theta, conditionals=conditionals, loss=value, slope=slope)

    alpha, growth, momentum = 1 / max(table.weight for table in tables), _FIRST_GROWTH, 1.0
    last: Floats = np.zeros(loss.cells)
    point = look(last)
    for step in count():
        if step % EVERY == 0:
            yield TreeDistribution(tree, point.conditionals)
        stepped = point.theta - alpha * point.slope
        following = (1 + sqrt(1 + 4 * momentum**2)) / 2
        tried = look(stepped + (momentum - 1) / following * (stepped - last))
        if tried.loss <= point.loss:
            point, last, momentum = tried, stepped, following
            alpha *= growth
        elif momentum > 1:
            last, momentum = point.theta, 1.0
        else:
            alpha, growth = alpha / 2, _LATER_GROWTH


def _independence(tree: JunctionTree, margins: Sequence[Floats]) -> list[Rounded]:
    """Return potentials of independent attributes for each clique: one axis an attribute, 1 long in the separator."""
    logarithms = [np.log(margin).astype(np.float32) for margin in margins]
    flat = [np.zeros([1] * len(one.separator), np.float32) for one in tree.cliques]
    parts = ([*(logarithms[axis] for axis in one.residual), end] for one, end in zip(tree.cliques, flat, strict=True))
    return [reduce(np.add.outer, part) for part in parts]
