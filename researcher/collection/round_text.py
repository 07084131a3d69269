"""A round and its status as text and as plain data for JSON."""

from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from math import ceil, sqrt
from typing import TYPE_CHECKING

from veiltab.common.core.texts.record_fields import same_fields

if TYPE_CHECKING:
    from veiltab.common.collection.round import Round, RoundStatus
    from veiltab.researcher.frequency.tally import Tally

_DEVIATIONS = 6
"""Standard deviations above the mean from which counts are warned of: about one honest round in 10^9 comes there."""


def by_stratum_name(status: "RoundStatus", numbers: Sequence[int]) -> dict[str, int]:
    """Return one number a stratum, keyed by the stratum's name."""
    return dict(zip((stratum.name for stratum in status.round.strata), numbers, strict=True))


def spec_dict(spec: "Round") -> dict[str, object]:
    """Return a round's description for JSON."""
    return {
        "round": spec.round_id,
        **same_fields(spec, ("study_digest", "question", "size", "epsilon", "oracle", "population")),
        "guaranteed_epsilon": spec.randomiser.epsilon,
        "parameters": dict(spec.parameters),
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


def weight_of_a_lie(status: "RoundStatus") -> float:
    """Return for how many nodes one report that lies counts at most, over the values that it chooses together.

    A report that supports k values adds (1 - q) / ((p - q) pi) to each of them: k is 1 under k-ary randomised response,
    w under subset selection, and up to d under unary encoding and local hashing, which fix no number.
    """
    oracle = status.round.randomiser
    most = {"krr": 1, "ss": oracle.parameters.get("w", 1)}.get(status.round.oracle, oracle.size)
    rate = min(stratum.probability for stratum in status.round.strata)
    return float(most * (1 - oracle.q) / ((oracle.p - oracle.q) * rate))


def weight_text(status: "RoundStatus") -> str:
    """Write the weight of a lie for people."""
    return (
        f"A node that lies counts for up to {ceil(weight_of_a_lie(status)):,} nodes, over all values that it chooses,"
        " and is not noticed."
    )


def excess_text(tally: "Tally") -> str:
    """Return a warning if the reports support more values than those of honest nodes do; empty if they do not.

    An honest report supports p + (d - 1) q values on average, whatever its node holds, with a variance of
    p (1 - p) + (d - 1) q (1 - q) where values are supported independently, and of less under the other randomisers.
    """
    reports, others = int(tally.reports.sum()), tally.values - 1
    p, q = float(tally.p), float(tally.q)
    usual, variance = reports * (p + others * q), reports * (p * (1 - p) + others * q * (1 - q))
    count = int(tally.counts.sum())
    if count <= usual + _DEVIATIONS * sqrt(variance) + 1:
        return ""
    return (
        f"Warning: the reports support {count:,} values together, and those of honest nodes {usual:,.0f} +- "
        f"{sqrt(variance):,.0f}: some are made to count more. Do not use the estimates before you know whose they are."
    )
