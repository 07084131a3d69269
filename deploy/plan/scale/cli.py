"""`veiltab plan scale`: what machines, what hours, and what breaks first."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from veiltab.common.command.cli import EXIT_CODES, PATH, Command, emit, json_option
from veiltab.common.errors import InvalidInputError
from veiltab.deploy.plan.scale.costs import REPORT_COSTS, TABLE_COSTS, Costs, Way
from veiltab.deploy.plan.scale.model import Machine, Need, Scale
from veiltab.researcher.drawing.style import check_picture

if TYPE_CHECKING:
    from veiltab.deploy.plan.scale.works import Rounds, Tables

_DIGITS = re.compile(r"(\d{1,15})(?:\.(\d{1,15}))?(?:[eE]\+?(\d{1,2}))?")
_MOST = 10**12
_NAMED = 3
"""Needs that are named though nothing breaks."""


class _Whole(click.ParamType[int]):
    """A whole number from `least` to 10^12, such as 1000000, 1e6, 2.5e8 or 10^9."""

    name = "number"

    def __init__(self, least: int = 1) -> None:
        self._least = least

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it."""
        if isinstance(value, int):
            return value
        match = _DIGITS.fullmatch(str(value).replace("10^", "1e"))
        if match is None:
            self.fail(f"{value!r} is no whole number; write 1000000, 1e6 or 10^6.", param, ctx)
        digits, fraction, exponent = match[1], match[2] or "", int(match[3] or 0)
        if fraction.rstrip("0")[exponent:]:
            self.fail(f"{value!r} is no whole number.", param, ctx)
        number = int(digits + fraction[:exponent].ljust(exponent, "0"))
        if not self._least <= number <= _MOST:
            self.fail(f"{number:,} is not {self._least:,} to {_MOST:,}.", param, ctx)
        return number


_MACHINE: dict[str, tuple[float, type, float, str]] = {
    "link": (1e6, float, 1000.0, "Of each party, each way, Mbit/s."),
    "latency": (1e-3, float, 20.0, "From party to party and back, ms."),
    "cores": (1, int, 8, "Of each party."),
    "memory": (1e9, float, 16.0, "Of each party, GB."),
    "disk": (1e9, float, 1000.0, "Free at each party, GB."),
    "disk_speed": (1e6, float, 500.0, "Of each party's disk, MB/s."),
}
"""What each party has: factor to the unit of the model, type, default, meaning."""

_OF_TABLES = ("curators", "attributes", "sample", "pairs", "canaries")
_OF_NODES = ("reports_per_node", "over")


def _machine_options(command: Command) -> Command:
    for name, (_, kind, usual, meaning) in reversed(_MACHINE.items()):
        option = f"--{name.replace('_', '-')}"
        command = click.option(option, type=kind, default=usual, show_default=True, help=meaning)(command)
    return command


@click.command(
    epilog="Example: veiltab plan scale --curators 50 --rows 1e9\n\n"
    "Fifty registers of a billion people. A hundred million phones: veiltab plan scale --nodes 1e8\n" + EXIT_CODES
)
@click.option("--curators", type=_Whole(2), default=2, show_default=True, help="Curators that link their tables.")
@click.option("--rows", type=_Whole(), help="Respondents of each table; all are taken to be common.")
@click.option("--attributes", type=_Whole(), default=1, show_default=True, help="Attributes of each curator.")
@click.option("--sample", type=_Whole(), help="Rows of the release; by default everybody.")
@click.option("--pairs", is_flag=True, help="Release every pair of attributes as a table, not one table of all.")
@click.option(
    "--canaries", type=_Whole(0), default=0, help="Canaries of each table, as `veiltab plan` says; none by default."
)
@click.option("--nodes", type=_Whole(), help="Nodes that report one value a round.")
@click.option("--reports-per-node", type=_Whole(), default=1, show_default=True, help="Rounds.")
@click.option(
    "--over",
    type=click.Choice([way.value for way in Way]),
    default=Way.HTTPS.value,
    show_default=True,
    help="How a report comes: on a connection of its own, or on one that is kept.",
)
@_machine_options
@click.option("--picture", type=PATH, help="Draw which stage takes how long, and for what (.svg or .png).")
@json_option
def scale(
    *,
    curators: int,
    rows: int | None,
    attributes: int,
    sample: int | None,
    pairs: bool,
    canaries: int,
    nodes: int | None,
    reports_per_node: int,
    over: str,
    picture: Path | None,
    as_json: bool,
    **machine: float,
) -> None:
    """Say what machines and what hours a study takes, and what breaks first.

    Bytes are counted from the formats, CPU comes from unit costs that were measured, and the rest is arithmetic. Give
    --rows for a release of linked tables, or --nodes for rounds of collection.
    """
    from veiltab.deploy.plan.scale.works import Rounds, Tables, scale_of_rounds, scale_of_tables

    each = Machine(**{name: factor * machine[name] for name, (factor, *_) in _MACHINE.items()})
    if picture is not None:
        check_picture(picture)
    _check_fits(click.get_current_context(), _OF_TABLES if rows is None else _OF_NODES)
    match rows, nodes:
        case int(), None:
            drawn = rows if sample is None else sample
            study = Tables(
                curators=curators, rows=rows, attributes=attributes, sample=drawn, pairs=pairs, canaries=canaries
            )
            title, costs = _tables_title(study), TABLE_COSTS
            found = scale_of_tables(study, costs, each)
        case None, int():
            rounds = Rounds(nodes=nodes, reports=reports_per_node, way=Way(over))
            title, costs = _rounds_title(rounds), REPORT_COSTS[rounds.way]
            found = scale_of_rounds(rounds, costs, TABLE_COSTS, each)
        case _:
            raise InvalidInputError(
                "give the rows of tables or the nodes of a round, and not both",
                where="--rows, --nodes",
                remedy="veiltab plan scale --rows 1e8, for instance.",
            )
    if picture is not None:
        from veiltab.deploy.plan.scale.scale_picture import draw

        draw(title, found, picture)
    emit(as_json, _as_dict(found, costs), _text(title, found, costs))


def _check_fits(context: click.Context, others: Sequence[str]) -> None:
    """Refuse options that say something about a study of another kind."""
    for name in others:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            other = "--rows" if name in _OF_TABLES else "--nodes"
            raise InvalidInputError(
                f"it goes with {other}", where=f"--{name.replace('_', '-')}", remedy=f"Leave it away, or give {other}."
            )


def _tables_title(study: "Tables") -> str:
    release = f"{study.tables:,} tables of two attributes" if study.pairs else "one table of all attributes"
    drawn = "everybody" if study.sample == study.rows else f"{study.sample:,} rows"
    drawn += f", and {study.canaries:,} canaries" if study.canaries else ""
    return (
        f"{study.curators:,} curators, {study.rows:,} respondents, {_counted(study.attributes, 'attribute')} of each;"
        f" a release of {release}, {drawn}"
    )


def _rounds_title(rounds: "Rounds") -> str:
    return f"{rounds.nodes:,} nodes, {_counted(rounds.reports, 'report')} of each, over {rounds.way.value}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _as_dict(found: Scale, costs: Costs) -> dict[str, Any]:
    return {
        "seconds": found.seconds,
        "stages": found.stages,
        "parties": found.parties,
        "needs": [need._asdict() | {"share": need.share} for need in found.needs],
        "unit_costs": costs.as_dict(),
    }


def _text(title: str, found: Scale, costs: Costs) -> str:
    machine = found.machine
    equipment = (
        f"Each party: {machine.cores:,} cores, {_bytes(machine.memory)} of memory, {_bytes(machine.disk)} of disk with"
        f" {_bytes(machine.disk_speed)}/s, a link of {machine.link / 1e6:,.0f} Mbit/s."
    )
    lines = [
        f"{title}.",
        equipment,
        "",
        f"{'':<13} {'CPU':>10} {'lasts':>10} {'memory':>9} {'disk':>9} {'sent':>9} {'received':>9}  waits for",
    ]
    lines += map(_party, found.parties)
    awaited = {work.stage for work in found.works if work.is_awaited}
    before, after = (
        ", ".join(
            f"{name} {_time(seconds)}" for name, seconds in found.stages.items() if (name in awaited) is is_before
        )
        for is_before in (True, False)
    )
    lines += ["", f"From the beginning to the result {_time(found.seconds)}: {before}."]
    lines += [*([f"After it: {after}."] if after else []), ""]
    lines.append("What breaks, the first first:" if found.broken else "Nothing breaks. What is nearest to it:")
    lines += map(_need, found.broken or found.needs[:_NAMED])
    return "\n".join([*lines, "", f"Unit costs: {costs.source}; --json lists them."])


def _party(total: Mapping[str, Any]) -> str:
    times = (f"{_time(total[name]):>10}" for name in ("cpu_seconds", "seconds"))
    sizes = (f"{_bytes(total[f'{name}_bytes']):>9}" for name in ("memory", "disk", "sent", "received"))
    return " ".join((f"{total['party']:<13}", *times, *sizes)) + f"  {total['slowest']}: {total['remedy']}"


def _need(need: Need) -> str:
    value, most = (_amount(size, need.unit) for size in (need.value, need.most))
    return f"  {need.what}: {value} of {most}" + (f". {need.remedy}" if need.share > 1 else "")


def _amount(size: float, unit: str) -> str:
    if unit == "B":
        return _bytes(size)
    return _rounded(size) + (f" {unit}" if unit else "")


def _bytes(size: float) -> str:
    for unit, factor in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{_rounded(size / factor)} {unit}"
    return f"{size:.0f} B"


def _time(seconds: float) -> str:
    for unit, factor in (("days", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * factor:
            return f"{_rounded(seconds / factor)} {unit}"
    return f"{seconds:.3g} s"


def _rounded(number: float) -> str:
    """Return three digits of a number, or all that stand before its point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
