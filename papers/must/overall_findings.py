"""What whole runs give away: the figure of supplement S7, and the one that the paper lacks for its experiments."""

from collections.abc import Mapping, Sequence
from typing import Literal

from veiltab.papers.experiment import Curve, Figure, Findings, Panel, Plain, Settings
from veiltab.papers.must.designs import FIXED_SIZE, LABELS, PRINTED
from veiltab.papers.must.overall import CASES, PAIRED, case_key, growth_key
from veiltab.papers.must.printed import PAPER

Style = Literal["line", "dashed", "dotted"]

_VISIBLE = 1e-9
_KINDS: Mapping[str, tuple[str, Style]] = {
    "sound": ("sound bound: Theorem 5 made sharper, composed", "line"),
    "attained": ("attained by a pair of data sets", "dotted"),
    "paper": ("the paper's pair", "dashed"),
}
_TITLES = {
    "experiment-2/paper": "experiment 2, the paper's noise",
    "experiment-2/corrected": "experiment 2, noise as needed",
    "experiment-3/paper": "experiment 3, the paper's noise",
    "experiment-3/corrected": "experiment 3, noise as needed",
}


def findings(settings: Settings, results: Mapping[str, Plain]) -> Findings:
    """Return both figures; the paper's own numbers have lost their powers of ten."""
    del settings
    return Findings(figures=(_growth_figure(results), _runs_figure(results)), comparisons=())


def _growth_figure(results: Mapping[str, Plain]) -> Figure:
    return Figure(
        name="must-figure-s2",
        title=f"{PAPER}, Figure S2: delta at epsilon = 1 of k steps; (n, b, m) = (10000, 118, 200)",
        panels=tuple(_growth_panel(scheme, results[growth_key(scheme)]) for scheme in ("poisson", *FIXED_SIZE)),
        caption="With noise of 4 clipping norms delta grows with the number of steps, as in the paper; but the paper's"
        " pair (equations 6 and 7, dashed) lies below what one pair of data sets attains (dotted), for MUST more than"
        " 200 times. The bound of a sharper Theorem 5, composed (solid), lies above both. The pair's exact delta lies"
        " in the shaded band. Poisson, with half the noise, as one row is added or removed: the bound is attained.",
        shared_y=True,
    )


def _growth_panel(scheme: str, result: Plain) -> Panel:
    counts = result["steps"]
    return Panel(
        title=LABELS[scheme] + (", noise of 2 clipping norms" if scheme == "poisson" else ""),
        x_label="k, steps",
        y_label="delta at epsilon = 1",
        curves=tuple(
            _visible(label, counts, result[kind], style, kind, low=result["attained_low"] if kind == "attained" else ())
            for kind, (label, style) in _KINDS.items()
            if kind in result
        ),
        y_log=True,
    )


def _runs_figure(results: Mapping[str, Plain]) -> Figure:
    return Figure(
        name="must-overall",
        title=f"{PAPER}, Section 4.2: what all steps of DP-SGD give away together (experiment 2: epsilon' = 0.01)",
        panels=tuple(_runs_panel(case, results) for case in CASES),
        caption="Solid: sound bounds (Poisson: exact, one row added or removed; others: one row replaced); dotted:"
        " attained by a pair of data sets; dashed: the paper's pair, which claims too little. With the paper's noise"
        " MUST protects nobody in experiment 3. With the noise that epsilon' needs a whole run has epsilon 0.4 or 0.03"
        " at delta = 1e-8, and MUST, which gets more noise, gives away least.",
    )


def _runs_panel(case: str, results: Mapping[str, Plain]) -> Panel:
    curves = []
    for scheme in PRINTED:
        result = results[case_key(case, scheme)]
        curves.append(_visible(LABELS[scheme], result["epsilons"], result["sound"], "line", scheme))
        if scheme in PAIRED:
            attained, paper = result["attained"], result["paper"]
            curves.append(_visible(f"{LABELS[scheme]}, attained", result["epsilons"], attained, "dotted", scheme))
            curves.append(_visible(f"{LABELS[scheme]}, paper's pair", result["epsilons"], paper, "dashed", scheme))
    return Panel(
        title=_TITLES[case],
        x_label="epsilon, nats, of the whole run",
        y_label="delta",
        curves=tuple(curves),
        y_log=True,
    )


def _visible(  # noqa: PLR0913 - what to draw, and how
    label: str, x: Sequence[float], y: Sequence[float], style: Style, group: str, *, low: Sequence[float] = ()
) -> Curve:
    """Leave out what is smaller than the discretisation's own errors; `low` is the lower end of a band, if any."""
    places = [place for place, value in enumerate(y) if value >= _VISIBLE]
    ordinates = tuple(float(y[place]) for place in places)
    return Curve(
        label=label,
        x=tuple(float(x[place]) for place in places),
        y=ordinates,
        low=tuple(float(low[place]) for place in places) if low else None,
        high=ordinates if low else None,
        style=style,
        group=group,
    )
