"""Steps as spans of traces: one release is one trace over all parties, although no party sends its spans to another.

A trace's id is the release's (or the round's): both have 128 bits. The root span's id is a hash of it, so every party
derives it by itself.
"""

import hashlib
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.call_id import current_request

ROOTS = frozenset({"release", "open round"})
"""The root steps of traces: the researcher's release, and the server's opening of a round."""

_TRACE, _SPAN = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{16}")
_FACTS = ("outcome", "reason", "attribute", "bytes", "reports")
_NANO = 1_000_000_000

Fact = str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One step of one party.

    Args:
        trace: id of the release or round, 32 hexadecimal digits.
        span: id of the span, 16 hexadecimal digits.
        parent: id of its parent span; empty for the root.
        name: the step, or "state ..." for the time a release was in a state.
        party: role and name, as in "curator alice".
        start: nanoseconds since 1970, by the party's own clock.
        end: the same, not before the start.
        facts: outcome, reason, attribute, bytes, reports, request.

    Raises:
        InvalidInputError: no such span can be.
    """

    trace: str
    span: str
    parent: str
    name: str
    party: str
    start: int
    end: int
    facts: Mapping[str, Fact] = field(default_factory=dict)

    def __post_init__(self) -> None:
        spans = (self.span, self.parent or self.span)
        ids = _TRACE.fullmatch(self.trace) and all(_SPAN.fullmatch(span) for span in spans)
        if not ids or not 0 < self.start <= self.end:
            raise InvalidInputError("this is no span of a trace")

    @property
    def seconds(self) -> float:
        """Its duration."""
        return (self.end - self.start) / _NANO

    def to_json(self) -> str:
        """Return the span as one line of a trace file."""
        plain = {name: getattr(self, name) for name in ("trace", "span", "parent", "name", "party", "start", "end")}
        return json.dumps(plain | dict(self.facts))

    @classmethod
    def from_json(cls, line: str) -> "Span":
        """Return the span of a line of a trace file.

        Raises:
            InvalidInputError: it is none.
        """
        try:
            plain = json.loads(line)
            own = {name: str(plain.pop(name)) for name in ("trace", "span", "parent", "name", "party")}
            start, end = int(plain.pop("start")), int(plain.pop("end"))
            facts = {name: fact for name, fact in plain.items() if isinstance(fact, str | int)}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise InvalidInputError("this is no span of a trace") from None
        return cls(**own, start=start, end=end, facts=facts)


def root_of(trace: str) -> str:
    """Return the id of a trace's root span, which every party derives by itself."""
    return hashlib.sha256(b"veiltab trace root" + trace.encode()).hexdigest()[:16]


def span_of(record: logging.LogRecord, party: str) -> Span | None:
    """Return the span of a log record, or None if the record is not a step of a release or round.

    Args:
        record: as `step`, `state_left` and `release_ended` make it.
        party: the reporting party.
    """
    told = record.__dict__
    trace, seconds = told.get("release") or told.get("round"), told.get("seconds")
    if not isinstance(trace, str) or not _TRACE.fullmatch(trace) or not isinstance(seconds, float):
        return None
    name = str(told.get("step") or f"state {told.get('state')}")
    end = round(record.created * _NANO)
    start = end - round(seconds * _NANO)
    root = name in ROOTS
    facts: dict[str, Fact] = {key: told[key] for key in _FACTS if told.get(key) is not None}
    if request := current_request():
        facts["request"] = request
    return Span(
        trace=trace,
        span=root_of(trace) if root else _id(trace, party, name, told.get("attribute"), start, end),
        parent="" if root else root_of(trace),
        name=name,
        party=party,
        start=start,
        end=end,
        facts=facts,
    )


def _id(*parts: object) -> str:
    """Return the id of a span; it depends on its content only."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
