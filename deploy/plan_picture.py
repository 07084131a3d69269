"""The picture of a plan: expected error against the sample size and against epsilon, the chosen point marked."""

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from veiltab.common.errors import InvalidInputError
from veiltab.common.extras import importing
from veiltab.common.privacy.planning import Plan, plan_release
from veiltab.common.privacy.questions import PlanQuestion

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(question: PlanQuestion, plan: Plan, path: Path) -> None:
    """Write the picture.

    Args:
        question: what was asked; its table and its caps hold for every point.
        plan: the answer, marked on both sides.
        path: .svg or .png.

    Raises:
        InvalidInputError: another suffix.
    """
    if path.suffix not in {".svg", ".png"}:
        raise InvalidInputError("a picture is .svg or .png", where=str(path))
    with importing("researcher", "a picture", where="--plot"):
        import matplotlib as mpl  # noqa: PLC0415 - an optional package
        from matplotlib import pyplot as plt  # noqa: PLC0415

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "veiltab"

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    # With the secret order each point needs a calibration of its own.
    count = 60 if plan.delta is None else 24
    sizes = sorted({int(m) for m in np.geomspace(max(1, plan.population // 10_000), plan.population, count)})
    _line(left, sizes, [_error(question, plan, plan.epsilon, m, plan.delta) for m in sizes], plan, "-")
    if plan.delta is not None:
        errors = [_error(question, plan, plan.epsilon, m, None) for m in sizes]
        left.plot(sizes, errors, "--", color="0.45", label="pure, same epsilon")
    left.plot([plan.sample], [question.root_mse(plan)], "D", color="black", markersize=8, label="this plan")
    left.set(xscale="log", yscale="log", xlabel="sampled rows m", ylabel="root-mean-square error (probability)")
    left.set_title(f"at epsilon = {plan.epsilon.normalize():f}")
    epsilons = np.geomspace(0.01, 5, count // 2)
    best = [_error(question, plan, Decimal(f"{e:.4g}"), question.sample, plan.delta) for e in epsilons]
    _line(right, list(epsilons), best, plan, "-")
    if plan.delta is not None:
        pure = [_error(question, plan, Decimal(f"{e:.4g}"), question.sample, None) for e in epsilons]
        right.plot(epsilons, pure, "--", color="0.45", label="pure, best m")
    right.plot([float(plan.epsilon)], [question.root_mse(plan)], "D", color="black", markersize=8, label="this plan")
    right.set(xscale="log", xlabel="epsilon (nats)")
    right.set_title("at the best sample size" if question.sample is None else f"at m = {question.sample}")
    for axes in (left, right):
        axes.grid(visible=True, which="both", alpha=0.25)
        axes.legend()
    figure.suptitle(f"n = {plan.population} respondents, K = {plan.mechanism.cells} cells")
    figure.savefig(path, dpi=150, metadata={"Date": None, "Creator": None} if path.suffix == ".svg" else None)
    plt.close(figure)


def _line(axes: "Axes", x: "list[int] | list[float]", y: list[float], plan: Plan, style: str) -> None:
    label = "pure" if plan.delta is None else f"delta = {plan.delta}"
    axes.plot(x, y, style, color="#16324f", linewidth=2, label=label)


def _error(question: PlanQuestion, plan: Plan, epsilon: Decimal, sample: int | None, delta: Decimal | None) -> float:
    """Return the expected error at another point, or NaN where there is no plan."""
    try:
        other = plan_release(
            population=plan.population,
            cells=question.cells,
            epsilon=epsilon,
            delta=delta,
            max_local_epsilon=question.max_local_epsilon,
            sample=sample,
        )
    except InvalidInputError:
        return float("nan")
    return question.root_mse(other)
