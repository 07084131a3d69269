"""A round and its status as text and as plain data for JSON."""

from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veiltab.common.collection.round import Round, RoundStatus


def by_stratum_name(status: "RoundStatus", numbers: Sequence[int]) -> dict[str, int]:
    """Return one number a stratum, keyed by the stratum's name."""
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
    """Return a round's status for JSON."""
    return {
        **spec_dict(status.round),
        "state": status.state.value,
        "enrolled": by_stratum_name(status, status.enrolled),
        "reports": by_stratum_name(status, status.reports),
    }


def status_text(status: "RoundStatus") -> str:
    """Return a round's status for people."""
    spec = status.round
    moment = status.closed or spec.deadline
    when = f"{'since' if status.closed else 'until'} {datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M} UTC"
    lines = [f"{spec.round_id}  {status.state.value} {when}  {spec.question} ({spec.oracle}, epsilon {spec.epsilon})"]
    lines += [
        f"  {s.name}: {s.population:,} nodes, rate {s.rate}, {enrolled:,} tokens, {reports:,} reports"
        for s, enrolled, reports in zip(spec.strata, status.enrolled, status.reports, strict=True)
    ]
    return "\n".join(lines)
