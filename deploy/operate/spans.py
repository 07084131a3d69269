"""The spans of a release, read from files of OTLP's JSON: those of --trace-file, or of a collector's file exporter."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veiltab.common.errors import InvalidInputError

_TRACE, _SPAN = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{16}")
_OURS = "veiltab."
_REMEDY = "Name files that parties wrote with --trace-file, or a collector with its file exporter."

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
    """

    trace: str
    span: str
    parent: str
    name: str
    party: str
    start: int
    end: int
    facts: Mapping[str, Fact]

    @property
    def seconds(self) -> float:
        """Its duration."""
        return (self.end - self.start) / 1e9


def read_spans(paths: Iterable[Path]) -> tuple[Span, ...]:
    """Return the spans of some files, ordered by their start.

    A full disk or a crash may leave a line cut short; such lines, and spans of other programs, are skipped.

    Raises:
        InvalidInputError: a file cannot be read, or has lines and no span of a party.
    """
    spans = [span for path in paths for span in _of_file(path)]
    return tuple(sorted(spans, key=lambda span: (span.start, -span.end, span.party, span.name)))


def _of_file(path: Path) -> list[Span]:
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError as error:
        problem = f"the trace file cannot be read ({error.strerror})"
        raise InvalidInputError(problem, where=str(path), remedy=_REMEDY) from None
    spans = [span for line in lines for told in _of_line(line) if (span := _span(told)) is not None]
    if lines and not spans:
        raise InvalidInputError("this file has no span of a party", where=str(path), remedy=_REMEDY)
    return spans


def _of_line(line: str) -> Iterator[dict[str, Any]]:
    try:
        for resource in json.loads(line)["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                yield from scope["spans"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return


def _span(told: dict[str, Any]) -> Span | None:
    """Return a span of OTLP's JSON, or None if it is not a party's."""
    try:
        facts = {
            str(one["key"]).removeprefix(_OURS): _fact(one["value"])
            for one in told["attributes"]
            if str(one["key"]).startswith(_OURS)
        }
        span = Span(
            trace=str(told["traceId"]).lower(),
            span=str(told["spanId"]).lower(),
            parent=str(told.get("parentSpanId", "")).lower(),
            name=str(told["name"]),
            party=str(facts.pop("party")),
            start=int(told["startTimeUnixNano"]),
            end=int(told["endTimeUnixNano"]),
            facts=facts,
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None
    are_ids = _TRACE.fullmatch(span.trace) and all(map(_SPAN.fullmatch, (span.span, span.parent or span.span)))
    return span if are_ids and 0 < span.start <= span.end else None


def _fact(value: dict[str, Any]) -> Fact:
    return int(value["intValue"]) if "intValue" in value else str(value["stringValue"])
