"""`veiltab collect estimate`: the results of a closed round, and the rates of a second one."""

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.command.cli import emit, note
from veiltab.common.command.new_files import NEW_FILE, force_option
from veiltab.common.core.numbers.confidence import CONFIDENCE
from veiltab.common.core.numbers.rounding import bound_text
from veiltab.common.errors import ConflictError, InvalidInputError
from veiltab.researcher.collection.round_options import CONNECTION, round_option, with_rounds
from veiltab.researcher.collection.round_text import excess_text, status_dict, weight_of_a_lie, weight_text
from veiltab.researcher.frequency.estimators import Estimator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veiltab.common.collection.round import RoundStatus
    from veiltab.researcher.collection.rounds_client import Rounds
    from veiltab.researcher.frequency.frequencies import Frequencies
    from veiltab.researcher.frequency.tally import Tally

confidence_option = click.option(
    "--confidence",
    default=CONFIDENCE,
    show_default=True,
    type=click.FloatRange(0.01, 0.999999),
    help="Confidence of each interval.",
)
estimator_option = click.option(
    "--estimator",
    type=click.Choice([estimator.value for estimator in Estimator]),
    help="By default hajek if all nodes report at one rate, else horvitz_thompson.",
)


@click.command(
    epilog=f"Example: veiltab collect estimate {CONNECTION} --round ID --out age.csv\n\n"
    "Two rounds together: --round FIRST --with SECOND\n\n"
    "The rates of a second round: --round ID --second-round 3000"
)
@with_rounds
@round_option
@click.option(
    "--with",
    "others",
    multiple=True,
    metavar="ID",
    help="Another round of the question about the same nodes: the best linear combination of all.",
)
@estimator_option
@confidence_option
@click.option("--balance", is_flag=True, help="Add what a sample with each value reported equally often would hold.")
@click.option(
    "--second-round",
    metavar="REPORTS",
    type=click.IntRange(min=1),
    help="Add the rates at which the strata should report in a second round of so many expected reports.",
)
@click.option(
    "--goal",
    type=click.Choice(["largest", "sum"]),
    default="largest",
    show_default=True,
    help="What a second round makes least: the largest variance of a value, or the sum over all values.",
)
@click.option("--out", type=NEW_FILE, help="Also write the table here (.csv, .parquet or .json).")
@click.option("--report", "page", type=NEW_FILE, help="Also write one self-contained HTML page with the picture.")
@force_option
def estimate(
    rounds: "Rounds",
    round_id: str,
    others: tuple[str, ...],
    estimator: str | None,
    confidence: float,
    balance: bool,
    second_round: int | None,
    goal: str,
    out: Path | None,
    page: Path | None,
) -> None:
    """Estimate how many nodes hold each value, with standard errors and intervals; the round must be closed.

    Several rounds are combined with weights that make the sum of the variances least; a node that answered them all
    paid all their epsilons.
    """
    from veiltab.researcher.collection.guarantee import bounds, centre, centre_text
    from veiltab.researcher.collection.results.results import values_frame, values_records, values_text
    from veiltab.researcher.estimates.table import check_table_path, write
    from veiltab.researcher.frequency.frequencies import estimate as estimated

    if others and (balance or second_round or page is not None):
        raise InvalidInputError(
            "a page, a balanced sample and a second round follow from one round", where="--with", remedy="Leave it out."
        )
    if out is not None:
        check_table_path(out)
    first, counted = rounds.result(round_id)
    more = [rounds.result(rounds.whole_id(other)) for other in others]
    excess = [text for tally in (counted, *(one for _, one in more)) if (text := excess_text(tally))]
    if more:
        frequencies = _combined([(first, counted), *more], estimator, confidence)
    else:
        frequencies = estimated(counted, estimator, confidence)
    codebook = {first.round.question: list(frequencies.labels)}
    if out is not None:
        _check_no_tokens(out)
        frame = values_frame(frequencies)
        frame.attrs |= {"study_digest": first.round.study_digest, "codebook": codebook}
        write(frame, out)
    statuses = [first, *(status for status, _ in more)]
    card = [(status.round.round_id, bound) for status in statuses for bound in bounds(status)]
    paid = _together(statuses) if more else {}
    warnings = [sentence for sentence in (frequencies.biased, frequencies.warning, *excess) if sentence]
    data = {
        **status_dict(first),
        "study": rounds.study.title,
        "codebook": codebook,
        "estimator": frequencies.estimator.value,
        "confidence": confidence,
        "biased": frequencies.biased,
        "warning": frequencies.warning,
        "excess": excess,
        "weight_of_a_lie": [weight_of_a_lie(status) for status in statuses],
        "values": values_records(frequencies),
        "rounds": [status.round.round_id for status in statuses],
        "card": [{"round": one, **bound.as_dict()} for one, bound in card],
        "together": paid or None,
        "out": out,
        "report": page,
    }
    more_lines: list[str] = []
    if balance:
        data["balance"], more_lines = _balance(counted, frequencies)
    if second_round:
        data["second_round"], following = _second_round(counted, second_round, goal)
        more_lines += following
    lines = [
        values_text(frequencies),
        "",
        *more_lines,
        (
            f"{frequencies.estimator} over {sum(sum(status.reports) for status in statuses)} reports of"
            f" {frequencies.population} nodes{f', {len(statuses)} rounds together' if more else ''}. Intervals at"
            f" {100 * confidence:g}%."
        ),
        *warnings,
        *(f"  {f'round {one[:8]}, ' if more else ''}{bound.name}: {bound.faces}" for one, bound in card),
        _together_text(paid) if paid else centre_text(centre(first, frequencies)),
        *(weight_text(status) for status in statuses),
        f"Study: {rounds.study.title}.",
        *([] if out is None else [f"Written: {out}"]),
        *([] if page is None else [f"Report: {page}"]),
    ]
    if page is not None:
        from veiltab.common.web.document import write_page
        from veiltab.researcher.collection.results.round_report import report_page

        write_page(report_page(rounds.study, first, counted, estimator, confidence), page)
    emit(data, "\n".join(lines))


def _combined(parts: "Sequence[tuple[RoundStatus, Tally]]", estimator: str | None, confidence: float) -> "Frequencies":
    """Return the combined estimates of rounds of one question."""
    from veiltab.researcher.frequency.combining import WHICH, combine

    if estimator not in {None, WHICH.value}:
        raise InvalidInputError(f"rounds are combined by {WHICH}", where="--estimator", remedy="Leave it out.")
    ids = [status.round.round_id for status, _ in parts]
    if len(set(ids)) < len(ids):
        raise InvalidInputError("a round is combined with itself", where="--with", remedy="Name another round.")
    if len({status.round.question for status, _ in parts}) > 1:
        raise InvalidInputError("the rounds asked different questions", where="--with")
    return combine([tally for _, tally in parts], confidence)


def _together(statuses: "Sequence[RoundStatus]") -> "dict[str, Decimal | None]":
    """Return what a node that answered all rounds faces, as plain data."""
    from veiltab.researcher.collection.guarantee import together

    note("composing what the rounds tell together")
    pure, epsilon, delta = together(statuses)
    return {"pure_epsilon": pure, "epsilon": epsilon, "delta": None if epsilon is None else delta}


def _together_text(paid: "dict[str, Decimal | None]") -> str:
    sentence = f"A node that answered all of these rounds paid epsilon {paid['pure_epsilon']:f} against everybody"
    if paid["epsilon"] is None:
        return f"{sentence}. What the counts alone tell of it has no certificate."
    return f"{sentence}; the counts alone guarantee ({bound_text(paid['epsilon'])}, {bound_text(paid['delta'] or 0)})."


def _balance(tally: "Tally", frequencies: "Frequencies") -> tuple[dict[str, object], list[str]]:
    """Return what a sample of the reports with each value equally often would hold, and its lines.

    Thinning reports costs no privacy. But reports are randomised: that each value is reported as often does not mean
    that as many of the nodes hold it.
    """
    from veiltab.researcher.frequency.balancing import balance

    sample = balance(tally, frequencies.shares(frequencies.projected))
    rows = [
        {"value": label, "kept": part, "held": share, "bias": bias}
        for label, part, share, bias in zip(
            tally.labels, sample.kept_shares.tolist(), sample.value_shares.tolist(), sample.bias.tolist(), strict=True
        )
    ]
    lines = [f"{'value':<24}{'reports kept':>14}{'nodes that hold it':>20}"]
    lines += [f"{row['value']:<24}{row['kept']:>14.1%}{row['held']:>20.1%}" for row in rows]
    lines.append(
        f"{sample.each} reports of each value, {sample.size} in all. Balanced nodes would hold each value in"
        f" {1 / tally.values:.1%}; the farthest is {abs(sample.bias).max():.1%} off."
    )
    return {"each": sample.each, "size": sample.size, "values": rows}, lines


def _check_no_tokens(path: Path) -> None:
    """Refuse to overwrite a file of tokens: there is no other copy."""
    try:
        with path.open("rb") as file:
            head = file.readline(100)
    except OSError:
        return
    if b"token" in head:
        raise ConflictError("this file holds tokens", where=str(path), remedy="Give another file for the result.")


def _second_round(first: "Tally", budget: int, goal: str) -> tuple[dict[str, object], list[str]]:
    from veiltab.researcher.collection.allocation import Objective, allocate

    allocation = allocate(first, budget=budget, objective=Objective(goal))
    rates = {stratum: f"{float(rate):.6f}" for stratum, rate in zip(first.strata, allocation.rates, strict=True)}
    best, at_one_rate = (
        float(variances.max()) ** 0.5 for variances in (allocation.variances, allocation.equal_rate_variances)
    )
    plain = {
        "goal": goal,
        "rates": rates,
        "expected_reports": float(allocation.expected_reports),
        "largest_standard_error": best,
        "largest_standard_error_at_one_rate": at_one_rate,
    }
    option = ",".join(f"{stratum}={rate}" for stratum, rate in rates.items())
    line = (
        f"A second round: --rate {option}\nExpected reports: {float(allocation.expected_reports):,.0f}. Largest"
        f" standard error of a count: {best:,.1f} nodes; at one rate for all {at_one_rate:,.1f}. A node that"
        " answers both rounds pays both epsilons."
    )
    return plain, [line]
