"""`veiltab demo link`: two registers without a common number, linked and released, beside the truth."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from veiltab.common.command.cli import emit, note, wants_json
from veiltab.common.command.rare_options import rare_options
from veiltab.common.core.numbers.rounding import parse_delta, parse_epsilon
from veiltab.play.local.command import end_parties_on_sigterm, out_option, verbose_option
from veiltab.play.local.printing import CELL_HEADINGS, cell_rows, console_of, print_table

if TYPE_CHECKING:
    from veiltab.play.linkage.linking import LinkResult


@click.command(
    short_help="Two registers without a common number: linked by names and dates, and released.",
    epilog="Example: veiltab demo link --people 20000 --advanced deletions=5",
)
@click.option("--people", type=int, default=2000, show_default=True, help="Rows of each register, 1,000 to 200,000.")
@rare_options(
    "--advanced",
    click.option(
        "--alignment",
        type=click.Choice(["oblivious", "tokens"]),
        default="oblivious",
        help="oblivious: the clinic can test only names in its own rows; tokens: every name, in a tenth of the time.",
    ),
    click.option("--deletions", type=click.IntRange(0, 5), default=0, help="Deletion passes, 0: more people."),
    click.option("--errors", type=float, default=1.0, help="Factor of the usual errors, 1; 2 is a bad register."),
    click.option("--misfiled", type=float, default=0.1, help="Share of the clinic's rows under another's name, .1."),
)
@click.option("--epsilon", default="2", show_default=True, help="Epsilon of the release, nats.")
@click.option("--delta", default="1e-6", show_default=True, help="Delta of the release.")
@click.option("--seed", default="demo", show_default=True, help="Of the people.")
@out_option("veiltab-demo")
@verbose_option
def link(
    people: int,
    alignment: str,
    deletions: int,
    errors: float,
    misfiled: float,
    epsilon: str,
    delta: str,
    seed: str,
    out: Path,
    verbose: bool,
) -> None:
    """Link the people of two registers here, release a table of both, and show the truth beside it.

    The register of residents and the clinic know people by name, birth date, sex and postcode alone, each with errors
    of its own. A person is linked by the first of twelve keys that names exactly one resident. Some of the
    clinic's rows are filed under another patient's name: a clerk compares a sample of the links, and the intervals
    take wrong links into account.
    """
    from veiltab.play.linkage.linking import LinkOptions, run_link

    options = LinkOptions(
        out=out,
        people=people,
        alignment=alignment,
        deletions=deletions,
        errors=errors,
        misfiled=misfiled,
        epsilon=parse_epsilon(epsilon),
        delta=parse_delta(delta),
        seed=seed,
    )
    end_parties_on_sigterm()
    result = run_link(options, note)
    if wants_json():
        emit(as_dict(result), "")
    else:
        _print(result, out, verbose=verbose)


def as_dict(result: "LinkResult") -> dict[str, Any]:
    """Return the result as plain data for JSON."""
    return {
        "linkage": result.report
        | {f"{name}_true": getattr(result, name) for name in ("precision", "recall")}
        | {
            f"{name}_estimated": None if (one := result.report[f"{name}_estimated"]) is None else one["value"]
            for name in ("precision", "recall")
        },
        "truth": {
            "common": result.common,
            "links": result.links,
            "wrong": result.wrong,
            "twins": result.twins,
            "precision": result.precision,
            "recall": result.recall,
        },
        "clerk": {"tested": result.tested, "wrong": result.tested_wrong},
        "tables": [
            {
                name: {"covered": result.covered(one), "cells": one.domain.cells}
                for name, one in (("with", result.corrected), ("without", result.estimate))
            }
        ],
        "table": [
            {"cell": list(result.estimate.domain.categories_of(cell)), "linked": linked, "truth": true}
            | {name: float(getattr(result.estimate, name)[cell]) for name in ("raw", "low", "high")}
            for cell, (linked, true) in enumerate(zip(result.linked.tolist(), result.truth.tolist(), strict=True))
        ],
    }


def _print(result: "LinkResult", out: Path, *, verbose: bool) -> None:
    console, report = console_of(), result.report
    passes = [
        (one["key"], f"{one['linked']:,}", f"{one['left']:,}") if one["runs"] else (one["key"], "does not run", "")
        for one in report["passes"]
        if verbose or one["linked"]
    ]
    print_table(console, "Keys, each after those above it", ("key", "linked", "left"), passes)
    quality = []
    for name, true in (("precision", result.precision), ("recall", result.recall)):
        estimate = report[f"{name}_estimated"]
        text = "-" if estimate is None else f"{estimate['value']:.4f} (sd {estimate['sd']:.4f})"
        quality.append((name, text, f"{true:.4f}"))
    print_table(console, "Links, as the clinic estimates them", ("", "estimated", "truth"), quality)
    console.print(
        f"{result.common:,} people stand in both registers; {result.links:,} links, {result.wrong:,} of them wrong,"
        f" {result.twins:,} of these between twins.\n"
    )
    headings = (*CELL_HEADINGS, "truth of both registers")
    print_table(console, "Region and illness, as released", headings, cell_rows(result.estimate, result.truth))
    console.print(
        f"A clerk compared {result.tested:,} links with the patients' own papers: {result.tested_wrong:,} are another"
        " patient's. With that share undone:\n"
    )
    print_table(console, "Region and illness, wrong links undone", headings, cell_rows(result.corrected, result.truth))
    console.print(
        f"Of {result.estimate.domain.cells} intervals {result.covered(result.estimate)} hold the truth without the"
        f" correction, and {result.covered(result.corrected)} with it.\n"
    )
    click.echo(f"Everything else: {out}/\nWhat a curator knows: veiltab curator linkage --help")
