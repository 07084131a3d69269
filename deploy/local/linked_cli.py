"""`veiltab demo linked`: many tables of two curators under one charge, and microdata beside the truth."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.command.cli import EXIT_CODES, emit, json_option, listed, note
from veiltab.common.core.rounding import parse_delta, parse_epsilon
from veiltab.deploy.local.command import end_parties_on_sigterm, out_option
from veiltab.deploy.local.printing import console_of, print_table

if TYPE_CHECKING:
    from veiltab.deploy.local.linked import LinkedResult

_NEXT = """Next:
  half the epsilon, and what it costs              veiltab demo linked --epsilon 0.5
  one small table, each party's view of it         veiltab demo table
  a server that cheats, and is caught              veiltab demo table --server lazy
  thousands of nodes with one value each           veiltab demo collect"""


@click.command(
    short_help="Every pair of 14 attributes of two curators, and microdata of them all.",
    epilog=f"Example: veiltab demo linked --epsilon 0.5\n{EXIT_CODES}",
)
@click.option("--epsilon", default="1", show_default=True, help="Epsilon of all tables together, nats.")
@click.option("--delta", default="1e-6", show_default=True, help="Delta of all tables together.")
@click.option("--attributes", help="Only these attributes of the census, separated by commas; by default all 14.")
@click.option("--people", type=int, default=48_842, show_default=True, help="People whom both curators hold.")
@click.option("--seed", default="census", show_default=True, help="Of the microdata.")
@out_option("veiltab-demo")
@json_option
def linked(epsilon: str, delta: str, attributes: str | None, people: int, seed: str, out: Path, as_json: bool) -> None:
    """Release every pair of the linked census here, draw microdata, and show the truth beside them.

    Alice holds seven attributes of 48,842 people, Bob seven others. Every pair of the fourteen is released under one
    epsilon, forty of them a second time; a model of all tables gives a file of rows that anybody may analyse.
    """
    from veiltab.deploy.local.linked import LinkedOptions, run_linked

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
    if as_json:
        emit(as_json, _as_dict(result), "")
    else:
        _print(result, options.out)


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
        "errors": {"pairs": result.pairs, "triples": result.triples},
        "expected": {"pairs": result.expected.pairs},
        "shares": {"title": result.shares.title, "rows": result.shares.records()},
        "seconds": result.seconds,
        "bytes": result.status.bytes,
        "microdata": result.microdata,
        "report": result.report,
        "card": [bound.as_dict() for bound in result.card.bounds],
    }


def _print(result: "LinkedResult", out: Path) -> None:
    console, workload = console_of(), result.workload
    phases = " and ".join(f"{tables} in phase {phase}" for phase, tables in enumerate(result.phases, 1))
    console.print(
        f"Release {workload.release_id}: {sum(result.phases)} tables ({phases}) about {workload.population:,} people,"
        f" epsilon {workload.epsilon} at delta {workload.delta} for all of them together (mu = {result.mu:.4f})\n"
    )
    errors = [
        ("all pairs", f"{result.pairs:.4f}", f"{result.expected.pairs:.4f}"),
        ("all triples", f"{result.triples:.4f}", ""),
    ]
    title = "Microdata beside the truth: mean total variation distance"
    print_table(console, title, ("tables of", "distance", "expected without the truth"), errors)
    print_table(
        console, result.shares.title.capitalize(), ("cell", "estimate", "95% interval", "truth"), _shares(result)
    )
    print_table(console, "Epsilon card", ("adversary", "faces"), result.card.rows())
    sent = [(link, f"{count:,}") for link, count in sorted(result.status.bytes.items())]
    print_table(console, "Bytes of columns and keys", ("link", "bytes"), sent)
    steps = [(step, f"{taken:.1f}") for step, taken in result.seconds.items()]
    print_table(console, "Seconds", ("step", "seconds"), steps)
    console.print(f"Report with pictures: {result.report}")
    console.print(f"Microdata: {result.microdata}")
    console.print(f"Study file, certificates, tables, states and logs: {out}/")
    # Not by the console, which would wrap lines that are to be copied.
    click.echo(f"\n{_NEXT}")


def _shares(result: "LinkedResult") -> list[tuple[str, ...]]:
    """Return a line for each share; of two that sum to 1, the second."""
    shares, truth = result.shares, result.true_shares
    asked = list(shares.labels.values())[-1]
    shown = [row for row, category in enumerate(asked) if len(set(asked)) > 2 or category == asked[-1]]
    rows: list[tuple[str, ...]] = []
    for row in shown:
        said = shares.notes[row] or f"{shares.low[row]:.4f} to {shares.high[row]:.4f}"
        estimate = "-" if shares.notes[row] else f"{shares.estimate[row]:.4f}"
        rows.append((shares.names[row], estimate, said, f"{truth.estimate[row]:.4f}"))
    return rows
