"""`veiltab collect`: ask thousands of nodes for one randomised value each."""

import csv
import io
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from common.cli import EXIT_CODES, emit, json_option, note
from common.errors import ConflictError, InvalidInputError
from common.party_options import identity_option, name_option, study_argument
from researcher.collection.plan_cli import plan
from researcher.collection.simulate_cli import simulate

if TYPE_CHECKING:
    from common.collection.round import Round, RoundStatus
    from researcher.collection.client import Rounds

_CONNECTION = "study.toml --name rosa --identity pki/researcher-rosa"
_ESTIMATORS = ("c", "g", "c_hat", "T", "hajek", "horvitz_thompson")

round_option = click.option("--round", "round_id", required=True, help="Id of the round.")
confidence_option = click.option(
    "--confidence",
    default=0.95,
    show_default=True,
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Of each interval.",
)
estimator_option = click.option(
    "--estimator",
    type=click.Choice(_ESTIMATORS),
    help="By default hajek if all nodes report at one rate, else horvitz_thompson.",
)


@click.group(epilog=EXIT_CODES)
def collect() -> None:
    """Ask thousands of nodes for one randomised value each, and estimate how many hold which value.

    Example: veiltab collect open study.toml --name rosa --identity pki/researcher-rosa --epsilon 2 --rate 0.5
    --population 2000
    """


@collect.command(
    "open",
    epilog=f"Example: veiltab collect open {_CONNECTION} --epsilon 2 --rate north=0.2,south=0.5"
    " --population north=4000,south=6000",
)
@study_argument
@name_option
@identity_option
@click.option("--question", help="A question of the study; needed if it has several.")
@click.option("--epsilon", required=True, help="Most that a report costs its node, nats, pure.")
@click.option("--rate", required=True, help="Probability of reporting: one for all, or stratum=rate,stratum=rate.")
@click.option("--population", required=True, help="Nodes: one number for every stratum, or stratum=nodes,...")
@click.option(
    "--oracle",
    type=click.Choice(["auto", "krr", "oue", "olh", "ss"]),
    default="auto",
    show_default=True,
    help="The local randomiser; auto takes the one with the least expected variance.",
)
@click.option(
    "--lifetime-hours",
    default=24.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True, max=8760),
    help="Until the round closes by itself.",
)
@json_option
def open_round(  # noqa: PLR0913, PLR0917 - one argument an option
    study_path: Path,
    name: str,
    identity_folder: Path,
    question: str | None,
    epsilon: str,
    rate: str,
    population: str,
    oracle: str,
    lifetime_hours: float,
    as_json: bool,  # noqa: FBT001 - an option
) -> None:
    """Open a round; it prints the round's id, which nodes need."""
    from researcher.collection.strata import by_stratum  # noqa: PLC0415 - --help stays light

    with _rounds(study_path, identity_folder, name) as rounds:
        strata = rounds.strata
        asked = question or rounds.only_question
        rates = by_stratum(rate, strata, Decimal, "--rate")
        populations = by_stratum(population, strata, int, "--population")
        chosen, why = _oracle(rounds, asked, epsilon, rates, populations, oracle)
        spec = rounds.open(
            asked,
            epsilon=epsilon,
            rates={stratum: str(value) for stratum, value in rates.items()},
            populations=populations,
            oracle=chosen,
            lifetime_seconds=round(lifetime_hours * 3600),
        )
    note(why)
    emit(as_json, {**_spec_dict(spec), "why": why}, _spec_text(spec))


def _oracle(  # noqa: PLR0913, PLR0917 - what a choice depends on
    rounds: "Rounds",
    question: str,
    epsilon: str,
    rates: dict[str, Decimal],
    populations: dict[str, int],
    oracle: str,
) -> tuple[str, str]:
    """Return an oracle's name, and why it is this one."""
    from common.collection.choosing import choose  # noqa: PLC0415 - --help stays light
    from common.privacy.rounding import parse_epsilon  # noqa: PLC0415

    if oracle != "auto":
        return oracle, f"{oracle}, as you asked."
    total = sum(populations.values())
    if total < 1 or any(not 0 < rate <= 1 for rate in rates.values()):
        raise InvalidInputError("rates must be above 0 and at most 1, and populations at least 1")
    harmonic = total / sum(populations[name] / float(rate) for name, rate in rates.items())
    size = rounds.study.question(question).attribute.size
    choice = choose(size, parse_epsilon(epsilon), population=total, rate=min(1.0, harmonic))
    return choice.best.oracle.name, choice.reason


@collect.command(epilog=f"Example: veiltab collect enrol {_CONNECTION} --round ID --nodes 10000 --out tokens.csv")
@study_argument
@name_option
@identity_option
@round_option
@click.option("--nodes", required=True, help="How many tokens: one number for every stratum, or stratum=number,...")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="New CSV file for the tokens.")
@json_option
def enrol(  # noqa: PLR0913, PLR0917 - one argument an option
    study_path: Path,
    name: str,
    identity_folder: Path,
    round_id: str,
    nodes: str,
    out: Path,
    as_json: bool,  # noqa: FBT001 - an option
) -> None:
    """Make one-time tokens, one for each node; the server gets their digests only.

    Hand every node one line of the file, in an order of your own. Who has a token can spend it.
    """
    from common.files import written_whole  # noqa: PLC0415 - --help stays light
    from researcher.collection.strata import by_stratum  # noqa: PLC0415

    if out.exists():
        raise ConflictError("this file is there already", where=str(out), remedy="Name a new one for these tokens.")
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("stratum", "token"))
    with _rounds(study_path, identity_folder, name) as rounds:
        numbers = by_stratum(nodes, rounds.strata, int, "--nodes")
        if any(number < 1 for number in numbers.values()):
            raise InvalidInputError("at least one token is made for a stratum", where="--nodes")
        for stratum, number in numbers.items():
            for token in rounds.enrol(round_id, stratum, number):
                table.writerow((stratum, token.hex()))
        status = rounds.status(round_id)
    with written_whole(out) as file:
        file.write(text.getvalue().encode())
    made = sum(numbers.values())
    emit(
        as_json,
        {"round": round_id, "made": made, "enrolled": _named(status, status.enrolled), "out": out},
        f"{made} tokens: {out}. Keep it like a key, and hand each node one line.",
    )


@collect.command(epilog=f"Example: veiltab collect status {_CONNECTION} --round ID")
@study_argument
@name_option
@identity_option
@click.option("--round", "round_id", help="Id of one round; by default all are listed.")
@json_option
def status(
    study_path: Path,
    name: str,
    identity_folder: Path,
    round_id: str | None,
    as_json: bool,  # noqa: FBT001 - an option
) -> None:
    """Say how rounds stand: open or closed, tokens, reports."""
    with _rounds(study_path, identity_folder, name) as rounds:
        found = [rounds.status(one) for one in ([round_id] if round_id else rounds.rounds())]
    text = "\n".join(_status_text(one) for one in found) or "No rounds yet."
    emit(as_json, _status_dict(found[0]) if round_id else {"rounds": [_status_dict(one) for one in found]}, text)


@collect.command(epilog=f"Example: veiltab collect close {_CONNECTION} --round ID")
@study_argument
@name_option
@identity_option
@round_option
@json_option
def close(
    study_path: Path,
    name: str,
    identity_folder: Path,
    round_id: str,
    as_json: bool,  # noqa: FBT001 - an option
) -> None:
    """Close a round for good: later reports are refused, and its counts can be fetched."""
    with _rounds(study_path, identity_folder, name) as rounds:
        closed, already = rounds.close_round(round_id)
        found = rounds.status(round_id)
    when = f"{datetime.fromtimestamp(closed, UTC):%Y-%m-%d %H:%M:%S} UTC"
    emit(
        as_json,
        _status_dict(found) | {"already": already},
        f"The round {'was closed already, at' if already else 'is closed since'} {when},"
        f" with {sum(found.reports)} reports.",
    )


@collect.command(epilog=f"Example: veiltab collect estimate {_CONNECTION} --round ID --out age.csv")
@study_argument
@name_option
@identity_option
@round_option
@estimator_option
@confidence_option
@click.option("--out", type=click.Path(path_type=Path), help="Also write the table here (.csv, .parquet or .json).")
@json_option
def estimate(  # noqa: PLR0913, PLR0917 - one argument an option
    study_path: Path,
    name: str,
    identity_folder: Path,
    round_id: str,
    estimator: str | None,
    confidence: float,
    out: Path | None,
    as_json: bool,  # noqa: FBT001 - an option
) -> None:
    """Estimate how many nodes hold each value, with standard errors and intervals; the round must be closed."""
    from researcher.collection.guarantee import card, centre, centre_text  # noqa: PLC0415 - scipy is slow to load
    from researcher.collection.results import to_frame, to_records  # noqa: PLC0415
    from researcher.frequency.estimation import estimate as estimated  # noqa: PLC0415
    from researcher.table import write  # noqa: PLC0415

    with _rounds(study_path, identity_folder, name) as rounds:
        known = rounds.status(round_id)
        found = estimated(rounds.tally(round_id), estimator, confidence)
    frame = to_frame(found)
    if out is not None:
        write(frame, out)
    rows = card(known)
    warnings = [sentence for sentence in (found.biased, found.warning) if sentence]
    data = {
        **_status_dict(known),
        "estimator": found.estimator.value,
        "confidence": confidence,
        "biased": found.biased,
        "warning": found.warning,
        "values": to_records(found),
        "card": [list(row) for row in rows],
        "out": out,
    }
    lines = [
        frame.to_string(index=False, float_format=lambda number: f"{number:.5g}"),
        "",
        (
            f"{found.estimator} over {sum(known.reports)} reports of {found.population} nodes. Intervals at"
            f" {confidence:.0%}."
        ),
        *warnings,
        *(f"  {who}: {faces}" for who, faces in rows),
        centre_text(centre(known, found)),
        *([] if out is None else [f"Written: {out}"]),
    ]
    emit(as_json, data, "\n".join(lines))


@collect.command(epilog=f"Example: veiltab collect report {_CONNECTION} --round ID --out age.html")
@study_argument
@name_option
@identity_option
@round_option
@estimator_option
@confidence_option
@click.option("--out", required=True, type=click.Path(path_type=Path), help="HTML file to write.")
@json_option
def report(  # noqa: PLR0913, PLR0917 - one argument an option
    study_path: Path,
    name: str,
    identity_folder: Path,
    round_id: str,
    estimator: str | None,
    confidence: float,
    out: Path,
    as_json: bool,  # noqa: FBT001 - an option
) -> None:
    """Write one self-contained HTML page with the picture, the guarantee and every number."""
    from researcher.collection.report import report_page  # noqa: PLC0415 - matplotlib is slow to load

    with _rounds(study_path, identity_folder, name) as rounds:
        page = report_page(rounds.study, rounds.status(round_id), rounds.tally(round_id), estimator, confidence)
    try:
        out.write_text(page, "utf-8")
    except OSError as error:
        raise InvalidInputError(f"the report cannot be written ({error.strerror})", where=str(out)) from None
    emit(as_json, {"round": round_id, "report": out}, f"Report: {out}")


@collect.command(
    epilog=f"Example: veiltab collect adapt {_CONNECTION} --round ID --budget 3000\n\n"
    "Then open the second round with the rates that it prints."
)
@study_argument
@name_option
@identity_option
@round_option
@click.option("--budget", required=True, type=click.IntRange(min=1), help="Expected reports of the second round.")
@click.option(
    "--goal",
    type=click.Choice(["largest", "sum"]),
    default="largest",
    show_default=True,
    help="What shall be least: the largest variance of a value, or the sum over all values.",
)
@json_option
def adapt(  # noqa: PLR0913, PLR0917 - one argument an option
    study_path: Path,
    name: str,
    identity_folder: Path,
    round_id: str,
    budget: int,
    goal: str,
    as_json: bool,  # noqa: FBT001 - an option
) -> None:
    """From a closed round, say at which rates the strata should report in a second one.

    A node that answers both rounds pays both epsilons.
    """
    from researcher.collection.allocation import Objective, allocate  # noqa: PLC0415 - scipy is slow to load

    with _rounds(study_path, identity_folder, name) as rounds:
        first = rounds.tally(round_id)
    found = allocate(first, budget=budget, objective=Objective(goal))
    rates = {stratum: f"{float(rate):.6f}" for stratum, rate in zip(first.strata, found.rates, strict=True)}
    # The largest variance is what one round can be judged by; at one rate for all it would be this.
    best, equal = (float(variances.max()) ** 0.5 for variances in (found.variances, found.equal_rate_variances))
    option = ",".join(f"{stratum}={rate}" for stratum, rate in rates.items())
    emit(
        as_json,
        {
            "round": round_id,
            "goal": goal,
            "rates": rates,
            "expected_reports": float(found.expected_reports),
            "largest_standard_error": best,
            "largest_standard_error_at_one_rate": equal,
        },
        f"--rate {option}\nExpected reports: {float(found.expected_reports):,.0f}. Largest standard error of a count:"
        f" {best:,.1f} nodes; at one rate for all {equal:,.1f}.",
    )


def _rounds(study_path: Path, identity_folder: Path, name: str) -> "Rounds":
    from researcher.collection.client import Rounds  # noqa: PLC0415 - --help stays light

    return Rounds(study_path, identity=identity_folder, name=name)


def _named(status: "RoundStatus", numbers: Sequence[int]) -> dict[str, int]:
    return dict(zip((stratum.name for stratum in status.round.strata), numbers, strict=True))


def _spec_dict(spec: "Round") -> dict[str, object]:
    return {
        "round": spec.round_id,
        "question": spec.question,
        "size": spec.size,
        "epsilon": spec.epsilon,
        "guaranteed_epsilon": spec.randomiser.epsilon,
        "oracle": spec.oracle,
        "parameters": dict(spec.parameters),
        "population": spec.population,
        "strata": [{"name": s.name, "population": s.population, "rate": s.rate} for s in spec.strata],
        "deadline": f"{datetime.fromtimestamp(spec.deadline, UTC):%Y-%m-%dT%H:%M:%SZ}",
    }


def _spec_text(spec: "Round") -> str:
    expected = sum((Fraction(s.rate) * s.population for s in spec.strata), Fraction(0))
    return (
        f"{spec.round_id}\n  {spec.question}: {spec.size} values, {spec.oracle} at epsilon {spec.epsilon},"
        f" {spec.population:,} nodes, about {float(expected):,.0f} reports,"
        f" open until {datetime.fromtimestamp(spec.deadline, UTC):%Y-%m-%d %H:%M} UTC"
    )


def _status_dict(status: "RoundStatus") -> dict[str, object]:
    return {
        **_spec_dict(status.round),
        "state": status.state.value,
        "enrolled": _named(status, status.enrolled),
        "reports": _named(status, status.reports),
    }


def _status_text(status: "RoundStatus") -> str:
    spec = status.round
    lines = [f"{spec.round_id}  {status.state.value}  {spec.question} ({spec.oracle}, epsilon {spec.epsilon})"]
    lines += [
        f"  {s.name}: {s.population:,} nodes, rate {s.rate}, {enrolled:,} tokens, {reports:,} reports"
        for s, enrolled, reports in zip(spec.strata, status.enrolled, status.reports, strict=True)
    ]
    return "\n".join(lines)


collect.add_command(plan)
collect.add_command(simulate)
