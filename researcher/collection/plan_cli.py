"""`veiltab collect plan`: the best randomiser, its error and its guarantee, before any round."""

from typing import TYPE_CHECKING

import click

from veiltab.common.command.cli import emit, json_option
from veiltab.common.core.numbers.rounding import parse_delta, parse_epsilon, upward
from veiltab.common.privacy.cards.words import delta_text

if TYPE_CHECKING:
    from veiltab.common.collection.choosing import Choice
    from veiltab.researcher.collection.shuffling import CentralGuarantee


@click.command(epilog="Example: veiltab collect plan --domain 100 --epsilon 2 --population 50000 --rate 0.1")
@click.option("--domain", required=True, type=click.IntRange(2, 65_536), help="Number of values d.")
@click.option("--epsilon", required=True, help="Largest epsilon of a report, nats, pure.")
@click.option("--population", required=True, type=click.IntRange(1, 10**9), help="Nodes.")
@click.option("--rate", default="1", show_default=True, help="Probability that a node reports.")
@click.option("--delta", help="Delta against an adversary who sees only counts; by default the advised one.")
@json_option
def plan(domain: int, epsilon: str, population: int, rate: str, delta: str | None, as_json: bool) -> None:
    """Rank the local randomisers by expected error, and say what k-ary randomised response guarantees centrally."""
    from veiltab.common.collection.choosing import choose
    from veiltab.common.collection.oracles import oracle_for
    from veiltab.common.privacy.cards.card import advised_delta
    from veiltab.researcher.collection.shuffling import central_guarantee, gaussian_standard_error
    from veiltab.researcher.collection.strata import rate_of

    asked, share = parse_epsilon(epsilon), rate_of(rate)
    at = advised_delta(max(population, 2)) if delta is None else parse_delta(delta)
    choice = choose(domain, asked, population=population, rate=float(share))
    expected = max(1, int(share * population))
    gamma = oracle_for("krr", domain, asked).gamma
    central = central_guarantee([population], [expected], gamma=gamma, values=domain, delta=at)
    centre = gaussian_standard_error(central.epsilon, at) if central.epsilon else None
    data = {
        **choice.as_dict(),
        "expected_reports": expected,
        "krr_guarantee": {
            "local_epsilon": central.local_epsilon,
            "pure_epsilon": central.pure_epsilon,
            "delta": central.delta,
            "epsilon": central.epsilon,
            "epsilon_if_participation_is_known": central.known_epsilon,
            "gaussian_histogram_standard_error_nodes": centre,
        },
    }
    emit(as_json, data, _text(choice, central, expected, centre))


def _text(choice: "Choice", central: "CentralGuarantee", expected: int, centre: float | None) -> str:
    rows = [
        f"  {one.oracle.name:<5} {100 * one.standard_error:>14.4f} {one.standard_error * choice.population:>12,.1f}"
        f" {one.report_bytes:>14,}"
        for one in choice.candidates
    ]
    lines = [
        "Expected standard error of one value's frequency, and what a report sends:",
        f"  {'':<5} {'% of nodes':>14} {'nodes':>12} {'bytes':>14}",
        *rows,
        choice.reason,
        "",
        f"k-ary randomised response, about {expected:,} reports, if all {choice.population:,} nodes toss their coins:",
        *(f"  {who}: {faces}" for who, faces in central.rows()),
    ]
    if centre is not None and central.epsilon is not None:
        krr = next(one for one in choice.candidates if one.oracle.name == "krr").standard_error * choice.population
        lines.append(
            f"  At ({upward(central.epsilon)}, {delta_text(central.delta)}) a trusted centre's Gaussian histogram would"
            f" have a standard error of {centre:,.4g} nodes; krr has {krr:,.4g}."
        )
    return "\n".join(lines)
