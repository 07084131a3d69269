"""`veiltab demo table`: one release on this machine, compared with the truth."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from veiltab.common.command.cli import PATH, emit, note, wants_json
from veiltab.common.command.options import NOISE_OPTIONS
from veiltab.common.command.rare_options import rare_options
from veiltab.common.core.numbers.rounding import parse_delta, parse_epsilon
from veiltab.common.errors import InvalidInputError
from veiltab.common.release.guarantees import epsilon_card, guaranteed_epsilon, release_facts
from veiltab.common.release.modes import Pad, Sampling
from veiltab.play.local.command import end_parties_on_sigterm, out_option, verbose_option
from veiltab.play.local.printing import (
    CELL_HEADINGS,
    ROWS_SHOWN,
    cell_rows,
    check_line,
    console_of,
    print_card,
    print_costs,
    print_more,
    print_table,
)

if TYPE_CHECKING:
    from rich.console import Console

    from veiltab.play.demos.table import DemoOptions, DemoResult, Outcome


_PAPER_CELLS = 24
"""Cells of the paper's table, all of which are shown."""

_NEXT = """Next:
  two registers, 91 linked tables, microdata       veiltab demo linked    (two minutes)
  each party's view of it, seconds, bytes          veiltab demo table --verbose
  the same far more accurate, with a small delta   veiltab demo table --epsilon 0.5 --delta 1e-6
  a server that cheats, and is caught              veiltab demo table --server lazy
  your own tables, one a curator                   veiltab demo table --table a.csv b.csv
  two hospitals, an insurer who learns of nobody   veiltab demo join
  thousands of nodes with one value each           veiltab demo collect"""


@click.command(
    short_help="A release of the paper's 24 cells, or of your own tables.",
    epilog="Example: veiltab demo table --curators 3 --advanced pad=otp --epsilon 0.5",
)
@click.option(
    "--curators",
    type=click.IntRange(2, 8),
    default=2,
    show_default=True,
    help="Number of curators that split the table; each after the fourth holds one attribute more.",
)
@click.option("--epsilon", default="1", show_default=True, help="Epsilon of the release, nats; pure without a --delta.")
@click.option("--delta", help="Keep (epsilon, delta) by the secret order instead: far more accurate.")
@rare_options(
    "--advanced",
    click.option(
        "--pad",
        type=click.Choice([pad.value for pad in Pad]),
        default="chacha20",
        help="chacha20, or otp: one-time pads.",
    ),
    click.option(
        "--sampling",
        type=click.Choice([way.value for way in Sampling]),
        default="seed",
        help="seed, indices or server.",
    ),
    *NOISE_OPTIONS,
)
@click.option(
    "--grant",
    type=click.Choice(["full", "partial"]),
    default="full",
    show_default=True,
    help="partial: also a second researcher, to whom only the first curator grants anything.",
)
@click.option(
    "--server",
    "behaviour",
    type=click.Choice(["honest", "lazy", "half", "other", "swap", "column", "shift"]),
    default="honest",
    show_default=True,
    help="A server that adds no noise, another amount or kind of it, or that exchanges columns: it is caught.",
)
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="CSV ...",
    type=PATH,
    help="Your own tables, one a curator, with exactly one column in common: the id.",
)
@click.argument("more_tables", nargs=-1, type=PATH, metavar="")
@click.option("--relay", is_flag=True, help="Curators and researchers open no port, and are called through a relay.")
@out_option("veiltab-demo")
@verbose_option
def table(
    curators: int,
    epsilon: str,
    delta: str | None,
    pad: str,
    sampling: str,
    grant: str,
    behaviour: str,
    tables: tuple[Path, ...],
    more_tables: tuple[Path, ...],
    relay: bool,
    out: Path,
    verbose: bool,
    **noise: Any,  # noqa: ANN401 - the options of noise, which are fields of DemoOptions
) -> None:
    """Run a whole release here: every party a process, over real TLS, on the census of the paper.

    Alice holds education and sex of 45,222 people, Bob marital status and salary. The result stands beside the truth.

    With a server that cheats the release fails at the curators and no key leaves: exit code 0 if it was caught, or 1.
    """
    from veiltab.play.demos.table import DemoOptions, run_table_demo

    if more_tables and not tables:
        raise InvalidInputError(
            "tables are given without --table", remedy="Write: veiltab demo table --table a.csv b.csv"
        )
    if behaviour != "honest" and grant == "partial":
        raise InvalidInputError("several releases were asked for of a server that cheats", where="--grant")
    options = DemoOptions(
        out=out,
        curators=curators,
        epsilon=parse_epsilon(epsilon),
        delta=None if delta is None else parse_delta(delta),
        pad=pad,
        sampling=sampling,
        tables=(*tables, *more_tables),
        partial=grant == "partial",
        relay=relay,
        **noise,
    )
    end_parties_on_sigterm()
    if behaviour != "honest":
        _show_cheat(behaviour, options)
        return
    result = run_table_demo(options, note)
    if wants_json():
        emit(_as_dict(result), "")
    else:
        _print(result, options.out, verbose=verbose)


def _show_cheat(cheat: str, options: "DemoOptions") -> None:
    """Run a release whose server cheats, and exit with 1 if it is not caught."""
    from veiltab.play.demos.cheating import run_cheat
    from veiltab.play.demos.cheating_server import Cheat

    outcome = run_cheat(Cheat(cheat), options, note)
    emit(outcome.as_dict(), outcome.as_text())
    if not outcome.is_caught:
        sys.exit(1)


def _as_dict(result: "DemoResult") -> dict[str, object]:
    first = _outcome_dict(result.outcomes[0])
    return {
        "parties": result.parties,
        **first,
        "seconds": {**result.seconds, **result.outcomes[0].status.seconds},
        "seen": result.views,
        "report": result.report,
        "certificate": result.certificate,
        "others": [_outcome_dict(outcome) for outcome in result.outcomes[1:]],
    }


def _outcome_dict(outcome: "Outcome") -> dict[str, object]:
    from veiltab.researcher.estimates.table import to_records

    spec = outcome.spec
    return {
        "researcher": outcome.researcher,
        "granted": list(outcome.status.granted),
        "card": [bound.as_dict() for bound in epsilon_card(spec).bounds],
        "receipts": [receipt.facts() for receipt in outcome.status.receipts],
        "release": {
            "id": spec.release_id,
            "epsilon": guaranteed_epsilon(spec) if spec.delta is None else spec.epsilon,
            "pure_epsilon": guaranteed_epsilon(spec),
            **release_facts(spec),
        },
        "rows": to_records(outcome.estimate, outcome.fractions),
        "l2_error": outcome.l2_error,
        "expected_root_mse": outcome.expected_root_mse,
        "seconds": outcome.status.seconds,
        "bytes": outcome.status.bytes,
    }


def _print(result: "DemoResult", out: Path, *, verbose: bool) -> None:
    console = console_of()
    if verbose:
        print_table(console, "What each party saw", ("party", "what it saw"), list(result.views.items()))
    for outcome in result.outcomes:
        _print_outcome(console, outcome, verbose=verbose)
    if verbose:
        first = result.outcomes[0].status
        print_costs(console, first.bytes, [*result.seconds.items(), *sorted(first.seconds.items())])
    # Not by the console, which would wrap lines that are to be copied.
    click.echo(f"Report with pictures: {result.report}\n{check_line(result.certificate, out)}")
    click.echo(f"Everything else: {out}/\n\n{_NEXT}")


def _print_outcome(console: "Console", outcome: "Outcome", *, verbose: bool) -> None:
    from veiltab.researcher.drawing.pictures import largest

    spec, estimate = outcome.spec, outcome.estimate
    rows = cell_rows(estimate, outcome.fractions)
    lines = rows if verbose or len(rows) <= _PAPER_CELLS else [rows[cell] for cell in largest(estimate.raw, ROWS_SHOWN)]
    about = "" if estimate.design.people == estimate.population else "about "
    title = f"{outcome.researcher}: {', '.join(estimate.domain.names)}, of {about}{estimate.design.people:,.0f} people"
    print_table(console, title, (*CELL_HEADINGS, "truth"), lines)
    print_more(console, len(rows) - len(lines))
    console.print(
        f"Error of the joint distribution: {outcome.l2_error:.5f}"
        f" (expected root mean square: {outcome.expected_root_mse:.5f})\n"
    )
    print_card(console, epsilon_card(spec), verbose=verbose)
    tests = [(receipt.tested_by, receipt.sentence()) for receipt in outcome.status.receipts]
    if verbose and tests:
        print_table(console, "Tests of the server's noise", ("tested by", "result"), tests)
    elif tests:
        console.print(f"The server passed {len(tests)} tests of its noise.\n")
