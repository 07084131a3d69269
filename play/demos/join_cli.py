"""`veiltab demo join`: an insurer and hospitals, joined obliviously and released, beside the truth."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from veiltab.common.command.cli import emit, note, wants_json
from veiltab.common.core.numbers.rounding import parse_epsilon
from veiltab.play.local.command import end_parties_on_sigterm, out_option
from veiltab.play.local.printing import CELL_HEADINGS, cell_rows, console_of, print_table

if TYPE_CHECKING:
    from veiltab.play.demos.join import JoinResult


@click.command(
    short_help="An insurer and two hospitals with a common number: nobody learns who is a patient.",
    epilog="Example: veiltab demo join --people 100000",
)
@click.option("--people", type=int, default=20_000, show_default=True, help="Rows of each table, 1,000 to 2,000,000.")
@click.option(
    "--holders",
    type=click.IntRange(0, 40),
    default=0,
    show_default=True,
    help="So many hospitals hold one attribute, each of patients of its own; 0: two with an attribute each.",
)
@click.option("--epsilon", default="1", show_default=True, help="Epsilon of each release, nats; delta 1e-6.")
@out_option("veiltab-demo")
def join(people: int, holders: int, epsilon: str, out: Path) -> None:
    """Join the patients of two hospitals to an insurer's list, release a table of each, and show the truth beside it.

    The insurer is the hub: its list is no secret to the hospitals. Each hospital learns which of its own people the
    insurer has, 90 and 40 in a hundred, and says nothing: the insurer learns of nobody who is a patient.

    With --holders 20 the patients are spread over twenty hospitals, and one attribute is the sum of their columns.
    """
    from veiltab.play.demos.join import JoinOptions, run_join

    options = JoinOptions(out=out, people=people, holders=holders, epsilon=parse_epsilon(epsilon))
    end_parties_on_sigterm()
    result = run_join(options, note)
    if wants_json():
        emit(as_dict(result, people), "")
    else:
        _print(result, out)


def as_dict(result: "JoinResult", people: int) -> dict[str, Any]:
    """Return the result as plain data for JSON."""
    return {
        "join": {
            "hub": people,
            "spokes": [
                {
                    "curator": one.curator,
                    "rows": one.rows,
                    "matched": one.matched,
                    "matched_true": one.matched_true,
                    "hub_learns": {"bytes": sum(one.hub_learns.values()), "sizes": one.hub_learns},
                    "seconds_cpu": one.seconds_cpu,
                }
                for one in result.spokes
            ],
        },
        "seconds_cpu": result.seconds_cpu,
        "tables": [
            {
                "attribute": one.attribute,
                "cells": one.estimate.domain.cells,
                "covered": one.covered,
                "l2_error": one.l2_error,
            }
            for one in result.tables
        ],
    }


def _print(result: "JoinResult", out: Path) -> None:
    console = console_of()
    for one in result.spokes:
        console.print(
            f"\n{one.curator}: {one.matched:,} of its {one.rows:,} people are in the insurer's list; there are"
            f" {one.matched_true:,}. The insurer received {sum(one.hub_learns.values()):,} bytes, whoever they are.\n"
        )
    for table in result.tables:
        title = f"Region and {table.attribute} of the patients, as released"
        print_table(console, title, (*CELL_HEADINGS, "truth"), cell_rows(table.estimate, table.truth))
        console.print(f"{table.covered} of {table.estimate.domain.cells} intervals hold the truth.\n")
    click.echo(f"Everything else: {out}/\nWho learns what: docs/join.md")
