"""How rounds are described on the command line, and the way to them that its commands share."""

import functools
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.command.options import identity_option, name_option, study_argument

if TYPE_CHECKING:
    from veiltab.common.collection.round import Round, RoundStatus

CONNECTION = "study.toml --name rosa --identity pki/researcher-rosa"
"""How the examples of --help connect."""

round_option = click.option("--round", "round_id", required=True, help="Id of the round.")


def with_rounds(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command Rounds as its argument `rounds`, of the researcher whom its options name."""

    @study_argument
    @name_option
    @identity_option
    @functools.wraps(command)
    def connected(study_path: Path, name: str, identity_folder: Path, **options: object) -> None:
        from veiltab.researcher.collection.client import Rounds  # noqa: PLC0415 - --help stays light

        with Rounds(study_path, identity=identity_folder, name=name) as rounds:
            command(rounds=rounds, **options)

    return connected


def named(status: "RoundStatus", numbers: Sequence[int]) -> dict[str, int]:
    """Return numbers by stratum, under their names."""
    return dict(zip((stratum.name for stratum in status.round.strata), numbers, strict=True))


def spec_dict(spec: "Round") -> dict[str, object]:
    """Return a round's description for JSON."""
    return {
        "round": spec.round_id,
        "study_digest": spec.study_digest,
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


def spec_text(spec: "Round") -> str:
    """Return a round's description for people."""
    expected = sum((Fraction(s.rate) * s.population for s in spec.strata), Fraction(0))
    return (
        f"{spec.round_id}\n  {spec.question}: {spec.size} values, {spec.oracle} at epsilon {spec.epsilon},"
        f" {spec.population:,} nodes, about {float(expected):,.0f} reports,"
        f" open until {datetime.fromtimestamp(spec.deadline, UTC):%Y-%m-%d %H:%M} UTC"
    )


def status_dict(status: "RoundStatus") -> dict[str, object]:
    """Return how a round stands for JSON."""
    return {
        **spec_dict(status.round),
        "state": status.state.value,
        "enrolled": named(status, status.enrolled),
        "reports": named(status, status.reports),
    }


def status_text(status: "RoundStatus") -> str:
    """Return how a round stands for people."""
    spec = status.round
    moment = status.closed or spec.deadline
    when = f"{'since' if status.closed else 'until'} {datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M} UTC"
    lines = [f"{spec.round_id}  {status.state.value} {when}  {spec.question} ({spec.oracle}, epsilon {spec.epsilon})"]
    lines += [
        f"  {s.name}: {s.population:,} nodes, rate {s.rate}, {enrolled:,} tokens, {reports:,} reports"
        for s, enrolled, reports in zip(spec.strata, status.enrolled, status.reports, strict=True)
    ]
    return "\n".join(lines)
