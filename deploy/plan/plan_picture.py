"""The picture of a plan: expected error against the sample size and against epsilon, the chosen point marked."""

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.privacy.planning.planning import Plan, plan_release
from veiltab.common.privacy.planning.questions import PlanQuestion
from veiltab.researcher.drawing.style import INK, logarithmic, write_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CHOSEN: Any = {"marker": "D", "color": "black", "markersize": 8, "linestyle": "none", "label": "this plan"}


def draw(question: PlanQuestion, plan: Plan, path: Path) -> None:
    """Write the picture.

    Args:
        question: what was asked; its table and its caps hold for every point.
        plan: the answer, marked on both sides.

    Raises:
        InvalidInputError: another suffix, or a file that cannot be written.
    """
    write_picture(path, (10, 4), lambda figure: _paint(figure, question, plan), option="--plot")


def _paint(figure: "Figure", question: PlanQuestion, plan: Plan) -> None:
    left, right = figure.subplots(1, 2, sharey=True)
    # With the secret order each point needs a calibration of its own.
    count = 60 if plan.delta is None else 24
    sizes = sorted({int(m) for m in np.geomspace(max(1, plan.population // 10_000), plan.population, count)})
    _curves(left, sizes, [(plan.epsilon, m) for m in sizes], question, plan, "pure, same epsilon")
    left.plot([plan.sample], [question.root_mse(plan)], **_CHOSEN)
    left.set(xlabel="sampled rows m", ylabel="root-mean-square error (probability)")
    left.set_title(f"at epsilon = {plan.epsilon.normalize():f}")
    epsilons = np.geomspace(0.01, 5, count // 2).tolist()
    points = [(Decimal(f"{epsilon:.4g}"), question.sample) for epsilon in epsilons]
    _curves(right, epsilons, points, question, plan, "pure, best m")
    right.plot([float(plan.epsilon)], [question.root_mse(plan)], **_CHOSEN)
    right.set(xlabel="epsilon (nats)")
    right.set_title("at the best sample size" if question.sample is None else f"at m = {question.sample}")
    logarithmic(left, "x", "y")
    logarithmic(right, "x")
    for axes in (left, right):
        axes.grid(visible=True, which="both", alpha=0.25)
        axes.legend()
    figure.suptitle(f"n = {plan.population} respondents, K = {plan.mechanism.cells} cells")


def _curves(  # noqa: PLR0913, PLR0917 - what a panel shows
    axes: "Axes",
    x: Sequence[float],
    points: Sequence[tuple[Decimal, int | None]],
    question: PlanQuestion,
    plan: Plan,
    pure: str,
) -> None:
    """Draw the error at some (epsilon, sample size), and beside a plan with a delta that of a pure one."""
    errors = [_error(question, plan, epsilon, sample, plan.delta) for epsilon, sample in points]
    axes.plot(
        x,
        errors,
        "-",
        color=INK,
        linewidth=2,
        label="pure" if plan.delta is None else f"delta = {delta_text(plan.delta)}",
    )
    if plan.delta is not None:
        errors = [_error(question, plan, epsilon, sample, None) for epsilon, sample in points]
        axes.plot(x, errors, "--", color="0.45", label=pure)


def _error(question: PlanQuestion, plan: Plan, epsilon: Decimal, sample: int | None, delta: Decimal | None) -> float:
    """Return the expected error at another point, or NaN where there is no plan."""
    try:
        other = plan_release(
            population=plan.population,
            cells=plan.mechanism.cells,
            epsilon=epsilon,
            delta=delta,
            max_local_epsilon=question.max_local_epsilon,
            sample=sample,
            noise_split=question.noise_split,
            max_pair_epsilon=question.max_pair_epsilon,
        )
    except InvalidInputError:
        return float("nan")
    return question.root_mse(other)
