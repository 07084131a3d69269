"""Tables 9 and 10: different rows of a subset, and the time to draw one."""

from collections.abc import Mapping
from math import log, pi, sqrt

from veiltab.papers.experiment import Comparison, Curve, Figure, Findings, Panel, Plain, Settings, Verdict
from veiltab.papers.must.comparing import exact, simulated
from veiltab.papers.must.designs import LABELS
from veiltab.papers.must.efficiency import BATCH, DESIGNS, distinct_key, time_key
from veiltab.papers.must.printed import PAPER, SAVED_BY_MUST_WW, TABLE_9, TABLE_10

_SWAPPED = "minimum and mean are interchanged in the paper: the mean lies between the extremes"
_CLOCK = "R's sample and rbinom on the authors' machine; numpy here: times depend on program and machine"
_TEXT = "; the paper's text says 305"
_EXTREME = pi / sqrt(12 * log(BATCH))
"""Standard deviation of the extreme of 10,000 normal values, over theirs: 0.30 (Gumbel)."""


def findings(settings: Settings, results: Mapping[str, Plain]) -> Findings:
    """Return both tables' numbers and one figure."""
    del settings
    comparisons = [*_table_9(results), _saving(results), *_table_10(results)]
    return Findings(figures=(_figure(results),), comparisons=tuple(comparisons))


def _table_9(results: Mapping[str, Plain]) -> list[Comparison]:
    numbers = []
    for number, rows in TABLE_9.items():
        for scheme, (least, mean, most) in rows.items():
            result, where = results[distinct_key(number, scheme)], _where(number, scheme)
            reason = _SWAPPED if float(mean) < float(least) else ""
            extreme = _EXTREME * result["spread"] * sqrt(1 + 1 / len(result["min"]))
            table, mean_error = "Table 9", result["spread"] / sqrt(BATCH)
            numbers += [
                simulated(f"least different rows, {where}", table, least, _mean(result["min"]), extreme, reason),
                simulated(f"mean different rows, {where}", table, mean, result["expected"], mean_error, reason),
                simulated(f"most different rows, {where}", table, most, _mean(result["max"]), extreme),
            ]
    return numbers


def _where(number: int, scheme: str) -> str:
    return f"{LABELS[scheme]}, experiment {number}"


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _saving(results: Mapping[str, Plain]) -> Comparison:
    """Compare what is saved where work goes by different rows."""
    saved = 100 * (DESIGNS[2].sample / results[distinct_key(3, "must.ww")]["expected"] - 1)
    what = "gain of MUST.WW over WOR in different rows, experiment 3, per cent"
    return exact(what, "Section 4.3", SAVED_BY_MUST_WW, saved)


def _table_10(results: Mapping[str, Plain]) -> list[Comparison]:
    return [
        exact(
            f"time of a subset over WOR, per cent, {_where(number, scheme)}",
            "Table 10",
            printed,
            results[time_key(number)][scheme],
            _CLOCK + (_TEXT if printed == "350.00" else ""),
            Verdict.CLOCK,
        )
        for number, row in TABLE_10.items()
        for scheme, printed in row.items()
    ]


def _figure(results: Mapping[str, Plain]) -> Figure:
    return Figure(
        name="must-table-9",
        title=f"{PAPER}, Table 9: different rows of a subset",
        panels=(_rows_panel(results),),
        caption="MUST.OW and MUST.WW hold a quarter fewer different rows, as printed (bars end at least and largest of"
        " 10,000). The times of Table 10 are among the numbers only: they depend on the clock.",
    )


def _rows_panel(results: Mapping[str, Plain]) -> Panel:
    numbers = tuple(float(number) for number in TABLE_9)
    curves = []
    for scheme in LABELS:
        summaries = [results[distinct_key(number, scheme)] for number in TABLE_9]
        sizes = [design.sample for design in DESIGNS]
        curves.append(
            Curve(
                label=LABELS[scheme],
                x=numbers,
                y=tuple(one["expected"] / m for one, m in zip(summaries, sizes, strict=True)),
                low=tuple(_mean(one["min"]) / m for one, m in zip(summaries, sizes, strict=True)),
                high=tuple(_mean(one["max"]) / m for one, m in zip(summaries, sizes, strict=True)),
                style="bars",
                group=scheme,
            )
        )
    return Panel(
        title="different rows", x_label="experiment", y_label="share of the m rows of a subset", curves=tuple(curves)
    )
