"""`veiltab demo linked`: many tables of two curators under one charge, and microdata beside the truth."""

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.command.cli import emit, listed, note, wants_json
from veiltab.common.core.numbers.rounding import parse_delta, parse_epsilon
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.play.local.command import end_parties_on_sigterm, out_option, verbose_option
from veiltab.play.local.printing import (
    ROWS_SHOWN,
    analysis_records,
    analysis_rows,
    check_line,
    console_of,
    print_card,
    print_costs,
    print_more,
    print_table,
)

if TYPE_CHECKING:
    from veiltab.play.demos.linked import LinkedResult

_NEXT = """Next:
  half the epsilon, and what it costs              veiltab demo linked --epsilon 0.5
  one small table, each party's view of it         veiltab demo table --verbose
  a server that cheats, and is caught              veiltab demo table --server lazy
  thousands of nodes with one value each           veiltab demo collect"""


@click.command(
    short_help="Every pair of 14 attributes of two curators, and microdata of them all.",
    epilog="Example: veiltab demo linked --epsilon 0.5",
)
@click.option("--epsilon", default="1", show_default=True, help="Epsilon of all tables together, nats.")
@click.option("--delta", default="1e-6", show_default=True, help="Delta of all tables together.")
@click.option("--attributes", help="Only these attributes of the census, separated by commas; by default all 14.")
@click.option("--people", type=int, default=48_842, show_default=True, help="People whom both curators hold.")
@click.option("--seed", default="census", show_default=True, help="Of the microdata.")
@out_option("veiltab-demo")
@verbose_option
def linked(epsilon: str, delta: str, attributes: str | None, people: int, seed: str, out: Path, verbose: bool) -> None:
    """Release every pair of the linked census here, draw microdata, and show the truth beside them.

    Alice holds seven attributes of 48,842 people, Bob seven others. Every pair of the fourteen is released under one
    epsilon, forty of them a second time; a model of all tables gives a file of rows that anybody may analyse.
    """
    from veiltab.play.demos.linked import LinkedOptions, run_linked

    options = LinkedOptions(
        out=out,
        attributes=listed(attributes) if attributes else (),
        people=people,
        epsilon=parse_epsilon(epsilon),
        delta=parse_delta(delta),
        seed=seed,
    )
    end_parties_on_sigterm()
    result = run_linked(options, note)
    if wants_json():
        emit(_as_dict(result), "")
    else:
        _print(result, options.out, verbose=verbose)


def _as_dict(result: "LinkedResult") -> dict[str, object]:
    workload = result.workload
    return {
        "release": {
            "id": workload.release_id,
            "n": workload.population,
            "tables": sum(result.phases),
            "epsilon": workload.epsilon,
            "delta": workload.delta,
            "mu": result.mu,
            "phases": list(result.phases),
        },
        "errors": {"pairs": result.pairs, "triples": result.triples, "expected_pairs": result.expected.pairs},
        "expected": {"pairs": result.expected.pairs},
        "shares": {"title": result.shares.title, "rows": result.shares.records()},
        "means": _means(result),
        "linear": _linear(result),
        "seconds": result.seconds,
        "bytes": result.status.bytes,
        "microdata": result.microdata,
        "certificate": result.certificate,
        "report": result.report,
        "card": [bound.as_dict() for bound in result.card.bounds],
    }


def _means(result: "LinkedResult") -> list[dict[str, object]]:
    """Return a record for each mean; none if no attribute has numbers."""
    if result.numbers is None:
        return []
    ours, truth = result.numbers.means
    names = {"attribute": result.numbers.attribute, "given": result.numbers.given}
    return [{**names, **record} for record in analysis_records(ours, truth, "group")]


def _linear(result: "LinkedResult") -> dict[str, object] | None:
    """Return the linear model; None if no attribute has numbers."""
    if result.numbers is None:
        return None
    return {"formula": result.numbers.formula, "coefficients": analysis_records(*result.numbers.linear, "name")}


def _print(result: "LinkedResult", out: Path, *, verbose: bool) -> None:
    console, workload = console_of(), result.workload
    rows = _shares(result)
    lines = rows if verbose else rows[:ROWS_SHOWN]
    console.print(
        f"{sum(result.phases)} noisy tables about {workload.population:,} people keep epsilon {workload.epsilon} at"
        f" delta {delta_text(workload.delta)} together. One of them:\n"
    )
    title = f"{result.shares.title.capitalize()}, the shortest intervals first"
    print_table(console, title, ("cell", "estimate", "95% interval", "projected", "truth"), lines)
    print_more(console, len(rows) - len(lines))
    console.print(
        f"Microdata: {result.pairs:.4f} from the true table of a pair on average ({result.expected.pairs:.4f} expected"
        f" without the truth), {result.triples:.4f} of three attributes (total variation).\n"
    )
    for analysis, truth in (result.numbers.means, result.numbers.linear) if result.numbers else ():
        title, headings = analysis.title.capitalize(), ("", "estimate", "95% interval", "truth")
        print_table(console, title, headings, analysis_rows(analysis, truth))
    print_card(console, result.card, verbose=verbose)
    if verbose:
        print_costs(console, result.status.bytes, result.seconds.items())
    # Not by the console, which would wrap lines that are to be copied.
    click.echo(f"Report with pictures: {result.report}\nMicrodata: {result.microdata}")
    click.echo(f"{check_line(result.certificate, out)}\nEverything else: {out}/\n\n{_NEXT}")


def _shares(result: "LinkedResult") -> list[tuple[str, ...]]:
    """Return a line for each share, the shortest interval first; of two that sum to 1, the second."""
    shares, truth = result.shares, result.true_shares
    categories = list(shares.labels.values())[-1]
    places = [row for row, category in enumerate(categories) if len(set(categories)) > 2 or category == categories[-1]]
    projected = shares.estimate if shares.projected is None else shares.projected
    widths = shares.high - shares.low
    rows: list[tuple[str, ...]] = []
    # What cannot be said has no width, and stands last.
    for row in sorted(places, key=lambda row: (isnan(widths[row]), widths[row])):
        text = shares.notes[row] or f"{shares.low[row]:.4f} to {shares.high[row]:.4f}"
        values = ["-" if shares.notes[row] else f"{value[row]:.4f}" for value in (shares.estimate, projected)]
        rows.append((shares.names[row], values[0], text, values[1], f"{truth.estimate[row]:.4f}"))
    return rows
