"""Steps as OpenTelemetry's spans: one release is one trace over all parties, though none sends its spans to another.

A trace's id is the release's (or the round's): both have 128 bits. The root span's id is a hash of it, so every party
derives it by itself. Spans go to a collector. Only this needs the packages of the extra `otel`.
"""

import hashlib
import json
import logging
import re
from importlib.metadata import version

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import NonRecordingSpan, SpanContext, Status, StatusCode, TraceFlags, set_span_in_context

from veiltab.common.observe.steps import FAILED
from veiltab.common.rpc.call_id import current_request
from veiltab.common.rpc.parties.identity import Party

ROOTS = frozenset({"release", "open round"})
"""The root steps of traces: the researcher's release, and the server's opening of a round."""

_TRACE = re.compile(r"[0-9a-f]{32}")
_FACTS = ("outcome", "reason", "attribute", "bytes", "reports")
_NANO = 1_000_000_000

_EXPORT_SECONDS = 5.0
"""Timeout of an export: an unreachable collector must not keep a party from stopping."""


class Spans(logging.Handler):
    """Makes a span of each record of a step, a state or a release, and sends it to a collector.

    A thread of its own sends the spans; what cannot be sent is dropped. OpenTelemetry's environment variables say where
    the collector is.
    """

    def __init__(self, party: Party) -> None:
        super().__init__()
        self._party, self._ids = str(party), _GivenIds()
        resource = {
            "service.namespace": "veiltab",
            "service.name": party.role.value,
            "service.instance.id": party.uri,
            "service.version": version("veiltab"),
        }
        self._provider = TracerProvider(
            resource=Resource.create(resource), id_generator=self._ids, shutdown_on_exit=False
        )
        exporter = OTLPSpanExporter(timeout=_EXPORT_SECONDS)
        processor = BatchSpanProcessor(exporter, export_timeout_millis=1000 * _EXPORT_SECONDS)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("veiltab")

    def emit(self, record: logging.LogRecord) -> None:
        """Export the span of a record, if it has one; logging lets one thread in at a time."""
        step = record.__dict__
        trace, seconds = step.get("release") or step.get("round"), step.get("seconds")
        if not isinstance(trace, str) or not _TRACE.fullmatch(trace) or not isinstance(seconds, float):
            return
        name = str(step.get("step") or f"state {step.get('state')}")
        end = round(record.created * _NANO)
        start, root, above = end - round(seconds * _NANO), root_of(trace), None
        self._ids.trace = int(trace, 16)
        self._ids.span = int(root, 16)
        if name not in ROOTS:
            context = SpanContext(self._ids.trace, self._ids.span, True, TraceFlags(TraceFlags.SAMPLED))  # noqa: FBT003 - no keyword
            above = set_span_in_context(NonRecordingSpan(context))
            self._ids.span = int(_hash(json.dumps((trace, self._party, name, step.get("attribute"), start, end))), 16)
        facts = {key: step[key] for key in _FACTS if step.get(key) is not None}
        facts |= {"party": self._party} | ({"request": request} if (request := current_request()) else {})
        attributes = {f"veiltab.{key}": fact for key, fact in facts.items()}
        span = self._tracer.start_span(name, above, start_time=start, attributes=attributes)
        if step.get("outcome") == FAILED:
            span.set_status(Status(StatusCode.ERROR, str(step.get("reason", ""))))
        span.end(end)

    def close(self) -> None:
        """Send the remaining spans while the collector answers."""
        self._provider.shutdown()
        super().close()


def root_of(trace: str) -> str:
    """Return the id of a trace's root span, which every party derives by itself."""
    return _hash(f"veiltab trace root{trace}")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class _GivenIds(IdGenerator):
    """The ids of the span at hand."""

    trace = span = 0

    def generate_span_id(self) -> int:
        """Return the id of the span."""
        return self.span

    def generate_trace_id(self) -> int:
        """Return the id of its trace."""
        return self.trace
