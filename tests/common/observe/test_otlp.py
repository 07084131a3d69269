"""Spans over the wire, to a collector of this test."""

import logging
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as collected
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)

from veiltab.common.observe.otlp import OtlpSpans
from veiltab.common.observe.sinks import listening
from veiltab.common.observe.spans import root_of
from veiltab.common.observe.steps import release_ended, state_left, step
from veiltab.common.rpc.parties.identity import Party, Role

ID = "ab" * 16
ROSA = Party(study="survey", role=Role.RESEARCHER, name="rosa")
ALICE = Party(study="survey", role=Role.CURATOR, name="alice")


class Collector(TraceServiceServicer):
    def __init__(self) -> None:
        self.resources: list[Any] = []

    def Export(self, request: Any, context: object) -> collected.ExportTraceServiceResponse:  # noqa: ANN401, N802
        del context
        self.resources.extend(request.resource_spans)
        return collected.ExportTraceServiceResponse()

    def spans(self) -> list[tuple[dict[str, str], Any]]:
        """Return every span with what is said of its party."""
        return [
            ({item.key: item.value.string_value for item in resource.resource.attributes}, span)
            for resource in self.resources
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    collector = Collector()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call] # has no types
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
    yield collector
    server.stop(0).wait()


def test_one_release_of_two_parties_is_one_trace(collector: Collector) -> None:
    with listening(OtlpSpans(ALICE)):
        with step("encrypt", release_id=ID, attribute="sex", size=400):
            pass
        state_left("charged", release_id=ID, seconds=0.5)
        with step("load table"):
            pass
    with listening(OtlpSpans(ROSA)):
        release_ended("ready", release_id=ID, seconds=1.5)
    found = {span.name: (about, span) for about, span in collector.spans()}
    assert set(found) == {"encrypt", "state charged", "release"}
    assert {span.trace_id.hex() for _, span in found.values()} == {ID}
    assert found["release"][1].span_id.hex() == root_of(ID)
    assert found["release"][1].parent_span_id == b""
    assert {found[name][1].parent_span_id.hex() for name in ("encrypt", "state charged")} == {root_of(ID)}
    assert found["encrypt"][0]["service.name"] == "curator"
    assert found["encrypt"][0]["service.instance.id"] == ALICE.uri
    attributes = {item.key: item.value for item in found["encrypt"][1].attributes}
    assert attributes["veiltab.attribute"].string_value == "sex"
    assert attributes["veiltab.bytes"].int_value == 400
    release = found["release"][1]
    assert release.end_time_unix_nano - release.start_time_unix_nano == 1_500_000_000


def test_a_step_that_failed_is_an_error_with_its_reason(collector: Collector) -> None:
    with listening(OtlpSpans(ALICE)), pytest.raises(ValueError, match="4711"), step("plan", release_id=ID):
        raise ValueError("id 4711")
    ((_, span),) = collector.spans()
    assert (span.status.code, span.status.message) == (2, "ValueError")
    assert b"4711" not in span.SerializeToString()


def test_a_collector_that_is_away_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr("veiltab.common.observe.otlp._EXPORT_SECONDS", 0.2)
    with (
        caplog.at_level(logging.CRITICAL, "opentelemetry"),
        listening(OtlpSpans(ALICE)),
        step("plan", release_id=ID),
    ):
        pass
