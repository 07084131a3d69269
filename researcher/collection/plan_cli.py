"""`veiltab collect plan`: the best randomiser, its error and its guarantee, before any round."""

from typing import TYPE_CHECKING

import click

from veiltab.common.command.cli import emit
from veiltab.common.core.numbers.rounding import parse_delta, parse_epsilon, upward
from veiltab.common.privacy.cards.guarantee_text import delta_text

if TYPE_CHECKING:
    from decimal import Decimal

    from veiltab.common.collection.choosing import Choice
    from veiltab.researcher.collection.shuffling import CentralGuarantee


@click.command(epilog="Example: veiltab collect plan --domain 100 --epsilon 2 --population 50000 --rate 0.1")
@click.option("--domain", required=True, type=click.IntRange(2, 65_536), help="Number of values d.")
@click.option("--epsilon", required=True, help="Largest epsilon of a report, nats, pure.")
@click.option("--population", required=True, type=click.IntRange(1, 10**9), help="Nodes.")
@click.option("--rate", default="1", show_default=True, help="Probability that a node reports.")
@click.option("--delta", help="Delta against an adversary who sees only counts; by default the advised one.")
@click.option(
    "--central-epsilon",
    help="Rank at this epsilon against an adversary who sees only counts: each randomiser with the largest epsilon of a"
    " report, up to --epsilon, that keeps it.",
)
def plan(domain: int, epsilon: str, population: int, rate: str, delta: str | None, central_epsilon: str | None) -> None:
    """Rank the local randomisers by expected error, and say what each guarantees against who sees only counts."""
    from veiltab.common.collection.choosing import choose
    from veiltab.common.privacy.cards.card import advised_delta
    from veiltab.researcher.collection.central_choice import choose_centrally
    from veiltab.researcher.collection.shuffling import central_guarantee, gaussian_standard_error
    from veiltab.researcher.collection.strata import rate_of

    epsilon_asked, share = parse_epsilon(epsilon), rate_of(rate)
    at = advised_delta(max(population, 2)) if delta is None else parse_delta(delta)
    expected = max(1, int(share * population))
    if central_epsilon is None:
        choice = choose(domain, epsilon_asked, population=population, rate=float(share))
    else:
        choice = choose_centrally(
            domain,
            epsilon_asked,
            central=parse_epsilon(central_epsilon, what="--central-epsilon"),
            delta=at,
            crowds=[(population, expected)],
            population=population,
            rate=float(share),
        )
    guarantees = [central_guarantee([population], [expected], oracle=one.oracle, delta=at) for one in choice.candidates]
    best = guarantees[0]
    centre = gaussian_standard_error(best.epsilon, at) if best.epsilon else None
    data = {
        **choice.as_dict(),
        "expected_reports": expected,
        "gaussian_histogram_standard_error_nodes": centre,
        "candidates": [
            {**one.as_dict(), "guarantee": _facts(central)}
            for one, central in zip(choice.candidates, guarantees, strict=True)
        ],
    }
    emit(data, _text(choice, guarantees, expected, centre))


def _facts(central: "CentralGuarantee") -> dict[str, object]:
    return {
        "local_epsilon": central.local_epsilon,
        "pure_epsilon": central.pure_epsilon,
        "delta": central.delta,
        "epsilon": central.epsilon,
        "epsilon_if_participation_is_known": central.known_epsilon,
    }


def _text(choice: "Choice", guarantees: "list[CentralGuarantee]", expected: int, centre: float | None) -> str:
    rows = [
        f"  {one.oracle.name:<5} {100 * one.standard_error:>12.4f} {one.standard_error * choice.population:>10,.1f}"
        f" {one.report_bytes:>10,} {upward(central.local_epsilon):>12} {_epsilon_text(central.epsilon):>12}"
        f" {_epsilon_text(central.known_epsilon):>12}"
        for one, central in zip(choice.candidates, guarantees, strict=True)
    ]
    best, first = guarantees[0], choice.best
    lines = [
        "Expected standard error of one value's frequency; what a report sends; the epsilon of a report, of the counts",
        f"at delta {delta_text(best.delta)}, and of the counts against who knows which nodes reported:",
        f"  {'':<5} {'% of nodes':>12} {'nodes':>10} {'bytes':>10} {'report':>12} {'counts':>12} {'known':>12}",
        *rows,
        choice.reason,
        "",
        f"{first.oracle.name}, about {expected:,} reports, if all {choice.population:,} nodes toss their coins:",
        *(f"  {who}: {faces}" for who, faces in best.rows()),
    ]
    if centre is not None and best.epsilon is not None:
        lines.append(
            f"  At ({upward(best.epsilon)}, {delta_text(best.delta)}) a trusted centre's Gaussian histogram would have"
            f" a standard error of {centre:,.4g} nodes; {first.oracle.name} has"
            f" {first.standard_error * choice.population:,.4g}."
        )
    return "\n".join(lines)


def _epsilon_text(epsilon: "Decimal | None") -> str:
    return "-" if epsilon is None else str(upward(epsilon))
