"""Spans to a collector of this test, and to files."""

import logging
from collections.abc import Callable, Iterator
from concurrent import futures
from contextvars import copy_context
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as collected
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)

from veiltab.common.errors import InvalidInputError
from veiltab.common.observe.sinks import listening
from veiltab.common.observe.steps import release_ended, state_left, step
from veiltab.common.observe.tracing import Spans, root_of
from veiltab.common.rpc.call_id import begin_request
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.deploy.operate.spans import Span, read_spans

ID, OTHER = "ab" * 16, "cd" * 16
ROSA = Party(study="survey", role=Role.RESEARCHER, name="rosa")
ALICE = Party(study="survey", role=Role.CURATOR, name="alice")


class Collector(TraceServiceServicer):
    def __init__(self) -> None:
        self.resources: list[Any] = []

    def Export(self, request: Any, context: object) -> collected.ExportTraceServiceResponse:  # noqa: ANN401, N802 - the product's name
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
    with listening(Spans(ALICE, to_collector=True)):
        with step("encrypt", release_id=ID, attribute="sex", size=400):
            pass
        state_left("charged", release_id=ID, seconds=0.5)
        with step("load table"):
            pass
    with listening(Spans(ROSA, to_collector=True)):
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
    with (
        listening(Spans(ALICE, to_collector=True)),
        pytest.raises(ValueError, match="4711"),
        step("plan", release_id=ID),
    ):
        raise ValueError("id 4711")
    ((_, span),) = collector.spans()
    assert (span.status.code, span.status.message) == (2, "ValueError")
    assert b"4711" not in span.SerializeToString()


def test_a_collector_that_is_away_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr("veiltab.common.observe.tracing._EXPORT_SECONDS", 0.2)
    with (
        caplog.at_level(logging.CRITICAL, "opentelemetry"),
        listening(Spans(ALICE, to_collector=True)),
        step("plan", release_id=ID),
    ):
        pass


def test_known_answers() -> None:
    """Parties name the same spans without asking one another."""
    assert root_of(ID) == "d4f282d828f84cf7" != root_of(OTHER)


# Files


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., tuple[Span, ...]]:
    def spans(work: Callable[[], object], party: Party = ALICE) -> tuple[Span, ...]:
        with listening(Spans(party, file=tmp_path / "spans.jsonl")):
            work()
        return read_spans([tmp_path / "spans.jsonl"])

    return spans


Written = Callable[..., tuple[Span, ...]]


def stepped(name: str = "encrypt", **about: Any) -> Callable[[], None]:  # noqa: ANN401 - of a step
    def work() -> None:
        with step(name, **about):
            pass

    return work


def test_a_file_has_what_the_collector_gets(collector: Collector, tmp_path: Path) -> None:
    path = tmp_path / "both.jsonl"
    with listening(Spans(ALICE, file=path, to_collector=True)):
        stepped(release_id=ID, attribute="sex", size=400)()
        state_left("charged", release_id=ID, seconds=0.25)
    told = {span.span_id.hex(): span for _, span in collector.spans()}
    spans = read_spans([path])
    assert {span.span for span in spans} == told.keys()
    assert all(span.start == told[span.span].start_time_unix_nano for span in spans)
    (state,) = (span for span in spans if span.name == "state charged")
    assert (state.trace, state.parent, state.seconds) == (ID, root_of(ID), 0.25)
    (encrypt,) = (span for span in spans if span.name == "encrypt")
    assert (encrypt.party, encrypt.facts) == ("curator alice", {"outcome": "done", "attribute": "sex", "bytes": 400})


def test_a_round_is_a_trace_and_its_opening_the_root(written: Written) -> None:
    (opened,) = written(stepped("open round", round_id=ID))
    _, counted = written(stepped("count reports", round_id=ID, reports=5))
    assert (opened.trace, opened.parent, counted.parent) == (ID, "", opened.span)
    assert counted.facts["reports"] == 5


def test_the_call_is_named_in_the_span(written: Written) -> None:
    def call() -> str:
        request = begin_request()
        stepped("take column", release_id=ID)()
        return request

    requests: list[str] = []
    (span,) = written(lambda: requests.append(copy_context().run(call)))
    assert [span.facts["request"]] == requests


@pytest.mark.parametrize("name", ["", "short", "g" * 32, ID.upper(), f"{ID}\n"])
def test_what_belongs_to_no_release_is_no_span(written: Written, name: str) -> None:
    assert written(stepped(release_id=name)) == ()


def test_a_file_is_added_to_and_nobody_else_reads_it(written: Written, tmp_path: Path) -> None:
    written(stepped(release_id=ID))
    assert len(written(stepped(release_id=OTHER))) == 2
    assert (tmp_path / "spans.jsonl").stat().st_mode & 0o077 == 0


def test_a_file_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="cannot be written"):
        Spans(ALICE, file=tmp_path / "absent" / "trace")


def test_a_full_disk_stops_the_trace_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    with listening(Spans(ALICE, file=Path("/dev/full"))):
        for _ in range(3):
            stepped(release_id=ID)()
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [record.getMessage() for record in warned] == ["the trace file could not be written; it is not complete"]
