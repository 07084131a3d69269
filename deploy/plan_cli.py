"""`veiltab plan`: what error an epsilon buys."""

from fractions import Fraction

import click

from common.cli import EXIT_CODES, emit, json_option
from common.errors import InvalidInputError
from common.planning import Plan, paper_bound, paper_sample, plan_release
from common.privacy.card import EpsilonCard, upward
from common.privacy.rounding import parse_epsilon


@click.command(epilog=f"Example: veiltab plan --population 45222 --cells 24 --epsilon 1\n{EXIT_CODES}")
@click.option("--population", required=True, type=click.IntRange(min=1), help="Respondents that all curators share, n.")
@click.option("--cells", required=True, type=click.IntRange(min=2), help="Cells of the joint table, K.")
@click.option("--epsilon", required=True, help="Pure epsilon against the researcher, in nats.")
@click.option("--sample", type=click.IntRange(min=1), help="Rows to sample; by default the best.")
@click.option(
    "--sum-of-squares",
    help="Sum of the squared cell probabilities, if public sources tell; by default 1/K, which is the worst.",
)
@json_option
def plan(  # noqa: PLR0913, PLR0917 - one argument an option
    population: int,
    cells: int,
    epsilon: str,
    sample: int | None,
    sum_of_squares: str | None,
    as_json: bool,  # noqa: FBT001 - an option
) -> None:
    """Say how many rows to sample, how much to perturb, and what error to expect."""
    squares = _sum_of_squares(sum_of_squares, cells)
    wanted = parse_epsilon(epsilon)
    best = plan_release(population=population, cells=cells, epsilon=wanted, sample=sample, sum_of_squares=squares)
    star = paper_sample(population=population, cells=cells, epsilon=wanted)
    paper = plan_release(population=population, cells=cells, epsilon=wanted, sample=star)
    spread = None if squares is None else float(squares)
    data = {
        "m": best.sample,
        "gamma": best.gamma,
        "epsilon": best.epsilon,
        "root_mse": best.root_mse(spread),
        "local_epsilon": best.local_epsilon,
        "replacement_probability": best.mechanism.replacement / 2**64,
        "paper": {
            "m": star,
            "root_mse": paper.root_mse(spread),
            "bound": paper_bound(sample=star, cells=cells, gamma=paper.gamma),
        },
    }
    emit(as_json, data, _text(best, paper, spread))


def _sum_of_squares(text: str | None, cells: int) -> Fraction | None:
    if text is None:
        return None
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(-1)
    if not Fraction(1, cells) <= value <= 1:
        raise InvalidInputError(f"must lie between 1/K = {1 / cells:.6g} and 1", where="--sum-of-squares")
    return value


def _text(best: Plan, paper: Plan, spread: float | None) -> str:
    rows = "\n".join(f"  {who}: {faces}" for who, faces in _card(best).rows())
    return (
        f"Sample m = {best.sample} of n = {best.population} rows; replace a row with probability"
        f" {best.mechanism.replacement / 2**64:.6f} (gamma = {best.gamma:.4f}, K = {best.mechanism.cells} cells).\n"
        f"Expected root-mean-square error of the joint distribution: {best.root_mse(spread):.5f}"
        f" (the paper's m* = {paper.sample}: {paper.root_mse(spread):.5f}).\n"
        f"Guarantee: epsilon = {upward(best.epsilon)}\n{rows}"
    )


def _card(plan: Plan) -> EpsilonCard:
    return EpsilonCard(epsilon=plan.epsilon, local_epsilon=plan.local_epsilon)
