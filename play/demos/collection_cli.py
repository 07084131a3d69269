"""`veiltab demo collect`: a round of collection on this machine."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.collection.oracles import ORACLE_NAMES
from veiltab.common.command.cli import emit, note
from veiltab.common.core.numbers.rounding import parse_epsilon
from veiltab.play.local.command import end_parties_on_sigterm, out_option

if TYPE_CHECKING:
    from veiltab.play.demos.collection import CollectionResult

_NEXT = """Next:
  which oracle and which error, beforehand    veiltab collect plan --domain 50 --epsilon 2 --population 9000 --rate 0.5
  the estimators, over many simulated rounds  veiltab collect simulate --help
  the other shape, tables of curators         veiltab demo table"""


@click.command(
    "collect",
    short_help="A round of collection: one value from each of thousands of nodes.",
    epilog="Example: veiltab demo collect --nodes 10000 --domain 12 --epsilon 2 --rate 0.5",
)
@click.option("--nodes", type=click.IntRange(1, 10**6), default=10_000, show_default=True, help="How many nodes.")
@click.option("--domain", type=click.IntRange(2, 65_536), default=12, show_default=True, help="Values 1 to this.")
@click.option("--epsilon", default="2", show_default=True, help="Of one report, nats.")
@click.option("--rate", default="0.5", show_default=True, help="Probability that a node reports.")
@click.option("--distribution", default="", help="Of the values, by default binomial:DOMAIN:0.5.")
@click.option(
    "--oracle",
    type=click.Choice(["auto", *ORACLE_NAMES]),
    default="auto",
    show_default=True,
    help="The local randomiser; auto chooses the one with the least expected variance.",
)
@out_option("veiltab-collection")
def collect(nodes: int, domain: int, epsilon: str, rate: str, distribution: str, oracle: str, out: Path) -> None:
    """Run a round of collection here: server, researcher and a fleet of nodes as processes, over real TLS."""
    from veiltab.play.demos.collection import CollectionOptions, run_collection
    from veiltab.researcher.collection.strata import rate_of

    options = CollectionOptions(
        out=out,
        nodes=nodes,
        domain=domain,
        epsilon=parse_epsilon(epsilon),
        rate=rate_of(rate),
        distribution=distribution,
        oracle=oracle,
    )
    end_parties_on_sigterm()
    result = run_collection(options, note)
    emit(_as_dict(result), _as_text(result))


def _as_dict(result: "CollectionResult") -> dict[str, object]:
    from veiltab.play.demos.collection import foreseen_variation
    from veiltab.researcher.collection.guarantee import bounds

    spec = result.status.round
    return {
        "round": spec.round_id,
        "nodes": spec.population,
        "reported": sum(result.status.reports),
        "parties": result.parties,
        "estimates": {name: one.counts.tolist() for name, one in result.estimates.items()},
        "truth": result.truth.tolist(),
        "oracle": result.choice.best.oracle.name,
        "why": result.choice.reason,
        "total_variation": result.total_variation(),
        "total_variation_projected": result.projected_total_variation(),
        "total_variation_foreseen": foreseen_variation(result.choice),
        "bytes": result.fleet["bytes"],
        "bytes_full_participation": result.fleet["bytes_full_participation"],
        "epsilon": spec.randomiser.epsilon,
        "card": [bound.as_dict() for bound in bounds(result.status)],
        "seconds": round(result.seconds, 3),
        "report": result.report,
    }


def _as_text(result: "CollectionResult") -> str:
    from veiltab.play.demos.collection import foreseen_variation
    from veiltab.researcher.collection.guarantee import bounds

    spec, size, full = result.status.round, result.fleet["bytes"], result.fleet["bytes_full_participation"]
    raw, projected = result.total_variation(), result.projected_total_variation()
    lines = [
        f"{sum(result.status.reports):,} of {spec.population:,} nodes reported.",
        "",
        "Total variation between estimate and truth (half the sum of |difference|):",
        f"  {'':<17} {'raw':>9} {'projected':>9}",
        *(f"  {name:<17} {raw[name]:>9.4f} {projected[name]:>9.4f}{_remark(result, name)}" for name in raw),
        f"  {'foreseen':<17} {foreseen_variation(result.choice):>9.4f}",
        "",
        f"Reports sent: {size:,} bytes; {full:,} if every node had reported.",
        "",
        "Who faces which epsilon (one node's value substituted):",
        *(f"  {bound.name}: {bound.faces}" for bound in bounds(result.status)),
        "",
        f"Picture, intervals and every number: {result.report}",
        f"Study file, certificates, states and logs: {result.report.parent}/",
        "",
        _NEXT,
    ]
    return "\n".join(lines)


def _remark(result: "CollectionResult", name: str) -> str:
    return "  (biased)" if result.estimates[name].biased else ""
