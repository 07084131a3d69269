"""Table 4 and the utility of experiment 1, whose own table (5) the archived text has lost."""

from collections.abc import Mapping, Sequence

from veiltab.papers.experiment import Comparison, Curve, Figure, Findings, Panel, Plain, Settings
from veiltab.papers.must.bootstrap import BOUND, STAGES, TABLE_STAGES, key_of
from veiltab.papers.must.comparing import exact
from veiltab.papers.must.designs import BOOTSTRAP, LABELS, PRINTED
from veiltab.papers.must.printed import PAPER, TABLE_4
from veiltab.papers.must.scales import key_of as scales_key
from veiltab.papers.must.scales import row_of

_WIDTHS = {"mean": 2 * BOUND, "variance": (2 * BOUND) ** 2}
_ENDS = (10.0, 100.0)
_NOISES = {"paper": "the paper's noise", "corrected": "noise as needed"}
_STAGE_LABEL = "b, rows after stage one"


def findings(settings: Settings, results: Mapping[str, Plain]) -> Findings:
    """Return the table's numbers, the scales against b, and the utility against b."""
    stages = TABLE_STAGES if settings.quick else STAGES
    return Findings(
        figures=(_scales_figure(results[scales_key(1)]), _utility_figure(results, stages)),
        comparisons=tuple(_table_4(results[scales_key(1)])),
    )


def _table_4(rows: Plain) -> list[Comparison]:
    numbers = []
    for scheme, columns in TABLE_4.items():
        for quantity, cells in columns.items():
            stages = TABLE_STAGES if len(cells) > 1 else (None,)
            for stage, printed in zip(stages, cells, strict=True):
                row = rows[row_of(scheme, stage=stage)]
                ours = row["delta"] if quantity == "delta" else _WIDTHS[quantity] * row["paper"]
                what = "delta' of a query" if quantity == "delta" else f"sigma of the {quantity}, the paper's Delta"
                numbers.append(exact(f"{what}, {_name(scheme, stage)}", "Table 4", printed, ours))
    return numbers


def _name(scheme: str, stage: int | None) -> str:
    return LABELS[scheme] + (f", b = {stage}" if stage is not None else "")


def _scales_figure(rows: Plain) -> Figure:
    width = _WIDTHS["mean"]
    printed = [
        Curve(
            label=f"{LABELS[scheme]}, printed",
            x=tuple(float(stage) for stage in TABLE_STAGES),
            y=tuple(float(cell) for cell in TABLE_4[scheme]["mean"]),
            style="points",
            group=scheme,
        )
        for scheme in ("must.ow", "must.ww")
    ]
    return Figure(
        name="must-table-4",
        title=f"{PAPER}, Table 4: scale of the noise on a subsample's mean, epsilon' = 0.1, n = 300, m = 30",
        panels=(
            _scale_panel("the paper's: Delta = 8/n, equation 9", rows, "paper", width, printed),
            _scale_panel("as needed for (epsilon', m/n^2): Delta = 8/m", rows, "corrected", width, []),
            _delta_panel(rows),
        ),
        caption="The paper's noise (left) is too small: it divides the range by n = 300, though m = 30 rows are"
        " averaged; where b is 10 or 20 it also takes equation 9 beyond epsilon = 1, up to which that is proved. It"
        " favours MUST by letting it keep a far larger delta' (right); with one (epsilon', delta') for all, MUST needs"
        " the most (middle).",
    )


def _scale_panel(title: str, rows: Plain, calibration: str, width: float, printed: Sequence[Curve]) -> Panel:
    curves = [_against_stage(scheme, rows, calibration, width) for scheme in PRINTED if scheme != "poisson"]
    return Panel(title=title, x_label=_STAGE_LABEL, y_label="sigma", curves=(*curves, *printed))


def _against_stage(scheme: str, rows: Plain, column: str, factor: float = 1.0) -> Curve:
    staged = scheme.startswith("must")
    stages = tuple(float(stage) for stage in STAGES) if staged else _ENDS
    names = [row_of(scheme, stage=int(stage) if staged else None) for stage in stages]
    return Curve(
        label=LABELS[scheme],
        x=stages,
        y=tuple(factor * rows[name][column] for name in names),
        style="line" if staged else "dashed",
        group=scheme,
    )


def _delta_panel(rows: Plain) -> Panel:
    target = rows[row_of("wor")]["target"]
    curves = [_against_stage(scheme, rows, "delta") for scheme in PRINTED if scheme != "poisson"]
    printed = [
        Curve(
            label=f"{LABELS[scheme]}, printed",
            x=tuple(float(stage) for stage in TABLE_STAGES),
            y=tuple(float(cell) for cell in TABLE_4[scheme]["delta"]),
            style="points",
            group=scheme,
        )
        for scheme in ("must.ow", "must.ww")
    ]
    goal = Curve(label="m/n^2", x=_ENDS, y=(target, target), style="dotted", group="target")
    return Panel(
        title="delta' that the paper's noise claims",
        x_label=_STAGE_LABEL,
        y_label="delta' of a query",
        curves=(*curves, *printed, goal),
        y_log=True,
    )


def _utility_figure(results: Mapping[str, Plain], stages: Sequence[int]) -> Figure:
    panels = [
        _utility_panel(results, stages, statistic, noise, place)
        for noise in ("paper", "corrected")
        for statistic, place in (("variance", 0), ("mean", 1), ("variance", 1))
    ]
    return Figure(
        name="must-experiment-1",
        title=f"{PAPER}, experiment 1: mean and variance by 500 private subsamples; n = 300, m = 30, epsilon' = 0.1",
        panels=tuple(panels),
        caption="A small b biases the variance by a factor 1 - 1/b (left). The paper's noise all but vanishes in the"
        " average of 500 (upper row); with the noise that is needed (lower row) the spread grows, and MUST.OW and"
        " MUST.WW are the least stable.",
    )


def _utility_panel(
    results: Mapping[str, Plain], stages: Sequence[int], statistic: str, noise: str, place: int
) -> Panel:
    curves = [_baseline(results, statistic, place)]
    curves += [_utility_curve(results, stages, scheme, statistic, noise, place) for scheme in LABELS]
    quantity = f"{('mean', 'spread')[place]} of the {statistic}s"
    return Panel(
        title=f"{quantity}, {_NOISES[noise]}",
        x_label=_STAGE_LABEL,
        y_label=f"{('mean', 'standard deviation')[place]} over data sets",
        curves=tuple(curves),
    )


def _baseline(results: Mapping[str, Plain], statistic: str, place: int) -> Curve:
    value = results[key_of("poisson", None)][statistic]["none"][place]
    return Curve(label="Poisson, non-private", x=_ENDS, y=(value, value), style="dotted", group="none")


def _utility_curve(  # noqa: PLR0913, PLR0917 - one argument a choice
    results: Mapping[str, Plain], stages: Sequence[int], scheme: str, statistic: str, noise: str, place: int
) -> Curve:
    if not scheme.startswith("must"):
        value = results[key_of(scheme, None)][statistic][noise][place]
        return Curve(label=LABELS[scheme], x=_ENDS, y=(value, value), style="dashed", group=scheme)
    allowed = [stage for stage in stages if scheme != "must.wo" or stage >= BOOTSTRAP.sample]
    return Curve(
        label=LABELS[scheme],
        x=tuple(float(stage) for stage in allowed),
        y=tuple(results[key_of(scheme, stage)][statistic][noise][place] for stage in allowed),
        group=scheme,
    )
