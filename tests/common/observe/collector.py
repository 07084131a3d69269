"""An OpenTelemetry collector for tests: it keeps the spans that parties send over OTLP/gRPC."""

from collections.abc import Iterator, Mapping
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as collected
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)


@dataclass(frozen=True, kw_only=True)
class Span:
    """A span, with `facts` for its attributes without "veiltab.", and what is said of the process that sent it."""

    trace: str
    span: str
    parent: str
    name: str
    party: str
    start: int
    end: int
    facts: Mapping[str, str | int]
    status: tuple[int, str]
    resource: Mapping[str, str]

    @property
    def seconds(self) -> float:
        return (self.end - self.start) / 1e9


class Collector(TraceServiceServicer):
    """Keeps what parties send; `port` is where they reach it on the loopback interface."""

    port: int

    def __init__(self) -> None:
        self.messages: list[bytes] = []

    def Export(self, request: Any, context: object) -> collected.ExportTraceServiceResponse:  # noqa: ANN401, N802 - OTLP's
        del context
        self.messages.append(request.SerializeToString())
        return collected.ExportTraceServiceResponse()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def spans(self) -> tuple[Span, ...]:
        """Return every span, ordered by its start."""
        resources = [
            resource
            for message in self.messages
            for resource in collected.ExportTraceServiceRequest.FromString(message).resource_spans
        ]
        spans = [
            _span(span, {item.key: item.value.string_value for item in resource.resource.attributes})
            for resource in resources
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        return tuple(sorted(spans, key=lambda span: (span.start, -span.end, span.party, span.name)))


def _span(one: Any, resource: Mapping[str, str]) -> Span:  # noqa: ANN401 - OTLP's
    facts: dict[str, Any] = {
        item.key.removeprefix("veiltab."): getattr(item.value, item.value.WhichOneof("value"))
        for item in one.attributes
    }
    return Span(
        trace=one.trace_id.hex(),
        span=one.span_id.hex(),
        parent=one.parent_span_id.hex(),
        name=one.name,
        party=facts.pop("party"),
        start=one.start_time_unix_nano,
        end=one.end_time_unix_nano,
        facts=facts,
        status=(one.status.code, one.status.message),
        resource=resource,
    )


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector for a block."""
    collector, server = Collector(), grpc.server(futures.ThreadPoolExecutor(2))
    add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call] # has no types
    collector.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield collector
    server.stop(0).wait()
