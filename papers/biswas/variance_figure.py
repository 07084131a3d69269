"""The figure of Theorem 3.5: g has the larger variance, not c_hat."""

from collections.abc import Callable, Mapping, Sequence

from veiltab.papers.biswas.populations import PAPER, VALUES
from veiltab.papers.biswas.variances import FEW, FEW_EPSILON, MANY_EPSILONS, RATE, SHARE, claimed, exact, variance_key
from veiltab.papers.experiment import Curve, Figure, Panel, Plain, Style
from veiltab.researcher.frequency.estimators import Estimator

Results = Mapping[str, Plain]
Where = Callable[[str], tuple[str, str]]
"""From an abscissa to (rate, share)."""

_STYLES: Mapping[str, Style] = dict(zip(MANY_EPSILONS, ("line", "dashed"), strict=True))
_ERRORS = 3
"""Standard errors of a bar, to either side."""

_SHARES = tuple(f"{step / 40:g}" for step in range(41))
_RATES = tuple(f"{step / 40:g}" for step in range(2, 41))
_SHARE_LABEL = "share f of the value"
_RATE_LABEL = "probability pi that a node reports"


def figure(results: Results) -> Figure:
    """Return the variances, and their ratio in the paper's setting, against f and pi."""
    return Figure(
        name="biswas-theorem-3-5",
        title=f"{PAPER}, Theorem 3.5 is reversed: g varies more than c_hat (50,000 nodes)",
        panels=(
            _few(results, _SHARES, lambda share: (RATE, share), f"pi = {RATE}", _SHARE_LABEL),
            _few(results, _RATES, lambda rate: (rate, "0.25"), "f = 0.25", _RATE_LABEL),
            _ratios(results, _SHARES, lambda share: (RATE, share), f"pi = {RATE}", _SHARE_LABEL),
            _ratios(results, _RATES, lambda rate: (rate, SHARE), f"f = {SHARE}", _RATE_LABEL),
        ),
        caption=(
            "Equation 6 takes the number N of reports of a value and the number S of all reports as uncorrelated, and"
            " so puts c_hat above g. But S q takes off what N owes to S: Var g - Var c_hat = n (1 - pi) q"
            " [q + 2 f (p - q)]/(pi (p - q)^2), never negative, and nought only if everybody reports. The simulated"
            f" points (bars: {_ERRORS} standard errors) lie on the exact curves. With the paper's 100 values q is small"
            " and the difference a percent; with 4 values it is a fifth and more at pi = .1."
        ),
    )


def _few(results: Results, steps: Sequence[str], where: Where, fixed: str, x_label: str) -> Panel:
    points = (_points(results, FEW, FEW_EPSILON, steps, where, one, f"{one}, simulated") for one in ("g", "c_hat"))
    lines = (
        _line("g, exact", steps, lambda at: exact(FEW, FEW_EPSILON, *where(at), Estimator.G), "line", "g"),
        _line(
            "c_hat, exact", steps, lambda at: exact(FEW, FEW_EPSILON, *where(at), Estimator.C_HAT), "dashed", "c_hat"
        ),
        _line("c_hat, by equation 6", steps, lambda at: claimed(FEW, FEW_EPSILON, *where(at)), "dotted", "paper"),
    )
    return Panel(
        title=f"4 values, epsilon = {FEW_EPSILON}, {fixed}",
        x_label=x_label,
        y_label="variance of the count, over n (nodes)",
        curves=(*points, *lines),
        y_log=x_label == _RATE_LABEL,
    )


def _line(label: str, steps: Sequence[str], of: Callable[[str], float], style: Style, group: str) -> Curve:
    return Curve(label=label, x=tuple(map(float, steps)), y=tuple(map(of, steps)), style=style, group=group)


def _ratios(results: Results, steps: Sequence[str], where: Where, fixed: str, x_label: str) -> Panel:
    x = tuple(map(float, steps))
    curves = []
    for epsilon, style in _STYLES.items():
        ratio = tuple(
            exact(VALUES, epsilon, *where(at), Estimator.G) / exact(VALUES, epsilon, *where(at), Estimator.C_HAT)
            for at in steps
        )
        curves.append(Curve(label=f"epsilon = {epsilon}, exact", x=x, y=ratio, style=style, group=epsilon))
        label = f"epsilon = {epsilon}, simulated"
        curves.append(_points(results, VALUES, epsilon, steps, where, "ratio", label, group=epsilon))
    epsilon = MANY_EPSILONS[0]
    paper = tuple(
        exact(VALUES, epsilon, *where(at), Estimator.G) / claimed(VALUES, epsilon, *where(at)) for at in steps
    )
    return Panel(
        title=f"100 values, {fixed}",
        x_label=x_label,
        y_label="variance of g over that of c_hat",
        curves=(
            *curves,
            Curve(label=f"epsilon = {epsilon}, by equation 6", x=x, y=paper, style="dotted", group="paper"),
        ),
    )


def _points(  # noqa: PLR0913, PLR0917 - one argument a choice
    results: Results,
    values: int,
    epsilon: str,
    steps: Sequence[str],
    where: Where,
    what: str,
    label: str,
    group: str | None = None,
) -> Curve:
    """Return the simulated points among the steps, with their errors."""
    by_step = {at: results.get(variance_key(values, epsilon, *where(at))) for at in steps}
    points = [(float(at), *one[what]) for at, one in by_step.items() if one is not None]
    x, y, error = (tuple(column) for column in zip(*points, strict=True))
    low, high = (tuple(m + sign * _ERRORS * e for m, e in zip(y, error, strict=True)) for sign in (-1, 1))
    return Curve(label=label, x=x, y=y, low=low, high=high, style="points", group=group or what)
