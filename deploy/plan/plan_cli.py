"""`veiltab plan`: which error an epsilon gives, which epsilon an error needs, and how many people."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.command.cli import emit
from veiltab.common.command.new_files import NEW_FILE, force_option
from veiltab.common.command.options import repeats_option
from veiltab.common.command.rare_options import rare_options
from veiltab.common.core.mechanism import UNIT
from veiltab.common.core.numbers.rounding import parse_delta, parse_epsilon
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.cards.card import N_IS_EXACT, EpsilonCard, card_of
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.privacy.coalitions import PAIRS
from veiltab.common.privacy.planning.noise_split import DEFAULT_SPLIT, parse_split
from veiltab.common.privacy.planning.planning import Plan, paper_bound, paper_sample, plan_release
from veiltab.common.privacy.planning.questions import PlanAnswer, PlanQuestion, answer
from veiltab.common.privacy.shuffle import MAX_CELLS
from veiltab.common.release.receipts.canary_plan import ServerTest, most_planned, planned_canaries, shown_by
from veiltab.deploy.plan.charge import PlanCharges, allowance_of
from veiltab.deploy.plan.workload_plan_cli import TableOptions, show_workload, workload_options

if TYPE_CHECKING:
    from veiltab.deploy.plan.mean_error import MeanError


@click.command(
    epilog="Example: veiltab plan --population 45222 --cells 24 --epsilon 0.5 --delta 1e-6 --plot error.png\n\n"
    "Several tables: veiltab plan --study study.toml --attributes age,education,salary --workload linked"
    " --population 45222 --delta 1e-6 --epsilon 1, or --pair-error .02"
)
@click.option("--population", type=click.IntRange(min=1), help="Respondents that all curators share, n.")
@click.option("--cells", type=click.IntRange(2, MAX_CELLS), help="Cells of the joint table, K.")
@click.option("--epsilon", help="Epsilon against the researcher, nats; pure unless there is a --delta.")
@click.option("--delta", help="Plan for (epsilon, delta) by the secret order.")
@click.option("--least-delta", is_flag=True, help="Ask for the least delta that reaches --error.")
@click.option("--error", type=float, help="Root-mean-square error of the joint distribution to aim at.")
@click.option("--sample", type=click.IntRange(min=1), help="Rows to sample; by default the best.")
@rare_options(
    "--advanced",
    click.option(
        "--max-local-epsilon",
        help="Largest epsilon of a row against who knows its person: ln gamma of the server's noise, nats.",
    ),
    click.option(
        "--sum-of-squares",
        help="Sum of the squared cell probabilities, if known from public sources; by default 1/K, the worst case.",
    ),
    click.option("--noise-split", default=str(DEFAULT_SPLIT), help=f"The curators' part; {DEFAULT_SPLIT} by default."),
    click.option(
        "--max-pair-epsilon", help="Largest epsilon of the desk with the server, and of an analyst with curators, nats."
    ),
    click.option(
        "--spread",
        "spreads",
        multiple=True,
        metavar="A=MEAN,SD",
        help="Foresee the error of the mean of an attribute of numbers, which have this mean and standard deviation.",
    ),
    click.option(
        "--question",
        "sentence",
        help='What will be asked, such as "linear wage ~ hours": propose the twins that it needs.',
    ),
    click.option("--budget", help="Epsilon of a budget, nats: say what it takes of it; by default the study's."),
    click.option("--budget-delta", help="Delta of that budget."),
    repeats_option,
)
@workload_options
@click.option("--plot", type=NEW_FILE, help="Draw the error against m and epsilon (.svg or .png).")
@click.option("--card", type=NEW_FILE, help="Draw who faces which epsilon (.svg or .png).")
@force_option
def plan(
    population: int | None,
    cells: int | None,
    epsilon: str | None,
    delta: str | None,
    least_delta: bool,
    error: float | None,
    sample: int | None,
    max_local_epsilon: str | None,
    sum_of_squares: str | None,
    noise_split: str,
    max_pair_epsilon: str | None,
    spreads: tuple[str, ...],
    sentence: str | None,
    budget: str | None,
    budget_delta: str | None,
    tables: TableOptions,
    plot: Path | None,
    card: Path | None,
) -> None:
    """Plan a release: how many rows to sample, how much to perturb, and what error to expect.

    Leave --epsilon, --population or --cells away and give --error to ask for it, or give --least-delta. The cells of a
    table may come from a study: give --study and --attributes.

    With a budget, of the study or by --advanced budget=EPSILON and budget-delta=DELTA: what part of it the release
    takes, at the delta that is asked for and at a tenth of it.

    Of several tables: what they cost together, the foreseen error of a typical pair, and the bytes over each link;
    leave --epsilon, --delta or --population away and give --pair-error to ask for it.
    """
    if tables.are_of_one_table:
        if cells is not None:
            raise InvalidInputError("the study says how many they are", where="--cells", remedy="Leave it away.")
        cells = tables.cells()
    elif tables.are_given:
        alone = {
            "--cells": cells,
            "--error": error,
            "--least-delta": least_delta or None,
            "--advanced max-local-epsilon": max_local_epsilon,
            "--advanced max-pair-epsilon": max_pair_epsilon,
            "--advanced budget": budget,
            "--advanced budget-delta": budget_delta,
            "--advanced sum-of-squares": sum_of_squares,
            "--advanced spread": spreads or None,
            "--plot": plot,
            "--card": card,
        }
        for name, value in alone.items():
            if value is not None:
                raise InvalidInputError("it is about a release of one table", where=name, remedy="Leave it away.")
        show_workload(
            tables,
            population=population,
            epsilon=epsilon,
            delta=delta,
            sample=sample,
            noise_split=noise_split,
            question=sentence,
        )
        return
    if cells is None and error is None:
        raise click.UsageError(
            "Missing option '--cells', or '--study' with the attributes of a table, or with several tables."
        )
    if least_delta and delta is not None:
        raise click.UsageError("Give --delta, or ask for it with --least-delta.")
    question = PlanQuestion(
        cells=cells,
        asks_delta=least_delta,
        population=population,
        epsilon=None if epsilon is None else parse_epsilon(epsilon),
        delta=None if delta is None else parse_delta(delta),
        error=error,
        sample=sample,
        max_local_epsilon=None if max_local_epsilon is None else parse_epsilon(max_local_epsilon),
        sum_of_squares=_sum_of_squares(sum_of_squares, cells),
        noise_split=parse_split(noise_split),
        max_pair_epsilon=None if max_pair_epsilon is None else parse_epsilon(max_pair_epsilon, what="max_pair_epsilon"),
    )
    allowance = allowance_of(budget, budget_delta, None if tables.study is None else tables.load())
    reply = answer(question)
    if plot is not None:
        from veiltab.deploy.plan.plan_picture import draw

        draw(question, reply.plan, plot)
    if card is not None:
        from veiltab.deploy.plan.card_picture import draw_card

        draw_card(_card(reply.plan), card)
    charges = PlanCharges.of(question, reply, allowance)
    errors, twins = _mean_errors(reply.plan, tables, spreads), tables.lacks([tables.attributes], sentence)
    emit(
        _as_dict(question, reply) | charges.as_dict() | {"means": errors, "twins": twins},
        "\n".join((f"{_text(question, reply)}{charges}", *map(str, errors), *twins)),
    )


def _mean_errors(plan: Plan, tables: TableOptions, spreads: tuple[str, ...]) -> "tuple[MeanError, ...]":
    if not spreads:
        return ()
    if not tables.are_of_one_table:
        raise InvalidInputError(
            "no study says which numbers there are", where="--advanced spread", remedy="Give --study and --attributes."
        )
    from veiltab.deploy.plan.mean_error import mean_errors

    return mean_errors(plan, tables.domain(), spreads)


def _sum_of_squares(text: str | None, cells: int | None) -> Fraction | None:
    if text is None:
        return None
    if cells is None:
        raise InvalidInputError(
            "it is about a table of known cells", where="--advanced sum-of-squares", remedy="Give --cells."
        )
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(-1)
    if not Fraction(1, cells) <= value <= 1:
        raise InvalidInputError(f"must lie between 1/K = {1 / cells:.6g} and 1", where="--advanced sum-of-squares")
    return value


def _card(plan: Plan) -> EpsilonCard:
    return card_of(plan.release, delta=plan.delta, pure=plan.pure_epsilon)


def _paper(plan: Plan) -> Plan:
    """Return the plan at the paper's sample size, which is for a pure epsilon."""
    cells = plan.mechanism.cells
    star = paper_sample(population=plan.population, cells=cells, epsilon=plan.epsilon)
    return plan_release(population=plan.population, cells=cells, epsilon=plan.epsilon, sample=star)


def _test(plan: Plan) -> ServerTest:
    """Return the test that needs most canaries: the attributes have two categories, one of them or all."""
    cells, server = plan.mechanism.cells, plan.mechanism.server
    sizes = (2, max(2, -(-cells // 2))), (2,) * max(1, cells.bit_length() - 1)
    tests = (shown_by(server, some, planned_canaries(server, some, plan.sample)) for some in sizes)
    return max(tests, key=lambda test: (test.canaries, -test.share))


def _as_dict(question: PlanQuestion, reply: PlanAnswer) -> dict[str, object]:
    best, paper = reply.plan, _paper(reply.plan)
    card = _card(best)
    return {
        "population": best.population,
        "m": best.sample,
        "gamma": best.gamma,
        "epsilon": best.epsilon if best.delta is not None else best.pure_epsilon,
        "cells": best.mechanism.cells,
        "delta": best.delta,
        "mode": "pure" if best.delta is None else "order",
        "pure_epsilon": best.pure_epsilon,
        "local_epsilon": best.local_epsilon,
        "root_mse": reply.root_mse,
        "replacement_probability": float(1 - best.mechanism.retention),
        "noise_split": question.noise_split,
        "curator_replacement_probability": best.mechanism.curator_replacement / UNIT,
        "server_replacement_probability": best.mechanism.server_replacement / UNIT,
        "canaries_at_most": _test(best).canaries,
        "canaries_cap": most_planned(best.sample),
        "server_test": _test(best).facts(),
        "pairs": {"+".join(pair.roles): card.bound(pair).epsilon for pair in PAIRS},
        "card": [bound.as_dict() for bound in card.bounds],
        "feasible": reply.feasible,
        "advice": reply.advice,
        "warnings": list(best.warnings),
        "paper": {
            "m": paper.sample,
            "root_mse": question.root_mse(paper),
            "bound": paper_bound(sample=paper.sample, cells=best.mechanism.cells, gamma=paper.gamma),
        },
    }


_LEAST, _NEAR_ONE = Fraction(1, 10**6), Fraction(1, 1000)


def _error(value: float) -> str:
    """Return an error with five decimals, or with two digits where these say too little."""
    return f"{value:.5f}" if value >= 1e-4 else f"{value:.1e}"


def _probability(value: Fraction) -> str:
    """Return a probability with six decimals, or how far from 0 or 1 it is where these say nothing."""
    if 0 < 1 - value < _LEAST:
        return f"1 - {float(1 - value):.2g}"
    return f"{float(value):.2g}" if 0 < value < _LEAST else f"{float(value):.6f}"


def _ratio(gamma: Fraction) -> str:
    """Return gamma with four decimals, or how far from 1 it is where these say nothing."""
    return f"1 + {float(gamma - 1):.2g}" if 0 < gamma - 1 < _NEAR_ONE else f"{float(gamma):.4f}"


def _text(question: PlanQuestion, reply: PlanAnswer) -> str:
    best, paper = reply.plan, _paper(reply.plan)
    rows = "\n".join(f"  {who}: {faces}" for who, faces in _card(best).rows())
    aim = f"epsilon {best.epsilon.normalize():f}" + (
        f", delta {delta_text(best.delta)}" if best.delta is not None else ""
    )
    return (
        f"For {aim}: sample m = {best.sample} of n = {best.population} rows; replace a row with probability"
        f" {_probability(1 - best.mechanism.retention)} (gamma = {_ratio(best.mechanism.gamma)}, K ="
        f" {best.mechanism.cells} cells).\nThe curators replace it with probability"
        f" {_probability(Fraction(best.mechanism.curator_replacement, UNIT))} before they encrypt, the server with"
        f" {_probability(Fraction(best.mechanism.server_replacement, UNIT))} after.\n"
        f"Up to {_test(best).canaries:,} canaries travel with the rows (a plan has at most"
        f" {most_planned(best.sample):,}): {_test(best).sentence}.\n"
        f"Expected root-mean-square error of the joint distribution, all cells together: {_error(reply.root_mse)}"
        f" (the paper's m* = {paper.sample}, pure: {_error(question.root_mse(paper))}).\n"
        + "\n".join((reply.advice, *best.warnings, rows, N_IS_EXACT))
    )
