"""Spans to an OpenTelemetry collector, over gRPC; the packages of the extra `otel` are needed for this alone."""

import logging
from importlib.metadata import version

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import NonRecordingSpan, SpanContext, Status, StatusCode, TraceFlags, set_span_in_context

from veiltab.common.observe.spans import Span, span_of
from veiltab.common.observe.steps import FAILED
from veiltab.common.rpc.parties.identity import Party

_EXPORT_SECONDS = 5.0
"""Timeout of an export: an unreachable collector must not keep a party from stopping."""


class OtlpSpans(logging.Handler):
    """Exports the spans of a party's steps, from a thread of its own; what cannot be sent is dropped.

    The collector's address and options are OpenTelemetry's own environment variables.

    Args:
        party: the reporting party.
    """

    def __init__(self, party: Party) -> None:
        super().__init__()
        self._party = str(party)
        self._ids = _GivenIds()
        resource = Resource.create(
            {
                "service.namespace": "veiltab",
                "service.name": party.role.value,
                "service.instance.id": party.uri,
                "service.version": version("veiltab"),
            }
        )
        self._provider = TracerProvider(resource=resource, id_generator=self._ids, shutdown_on_exit=False)
        exporter = OTLPSpanExporter(timeout=_EXPORT_SECONDS)
        self._provider.add_span_processor(BatchSpanProcessor(exporter, export_timeout_millis=1000 * _EXPORT_SECONDS))
        self._tracer = self._provider.get_tracer("veiltab")

    def emit(self, record: logging.LogRecord) -> None:
        """Hand the span of a record to the exporter; logging lets one thread in at a time."""
        span = span_of(record, self._party)
        if span is not None:
            self._ids.span = span
            self._export(span)

    def _export(self, span: Span) -> None:
        parent = None
        if span.parent:
            above = SpanContext(int(span.trace, 16), int(span.parent, 16), True, TraceFlags(TraceFlags.SAMPLED))  # noqa: FBT003 - no keyword
            parent = set_span_in_context(NonRecordingSpan(above))
        attributes = {f"veiltab.{name}": fact for name, fact in span.facts.items()}
        told = self._tracer.start_span(
            span.name, parent, start_time=span.start, attributes={"veiltab.party": span.party, **attributes}
        )
        if span.facts.get("outcome") == FAILED:
            told.set_status(Status(StatusCode.ERROR, str(span.facts.get("reason", ""))))
        told.end(span.end)

    def close(self) -> None:
        """Send the remaining spans while the collector answers."""
        self._provider.shutdown()
        super().close()


class _GivenIds(IdGenerator):
    """Ids that the spans already have."""

    def __init__(self) -> None:
        self.span: Span | None = None

    def generate_span_id(self) -> int:
        """Return the id of the span at hand."""
        return int(self._given.span, 16)

    def generate_trace_id(self) -> int:
        """Return the trace of the span at hand."""
        return int(self._given.trace, 16)

    @property
    def _given(self) -> Span:
        if self.span is None:
            raise AssertionError
        return self.span
