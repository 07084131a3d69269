"""Spans to a collector of this test."""

import logging
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any

import pytest

from tests.common.observe.collector import Collector, Span, collecting
from tests.worlds.parties import ALICE, ROSA
from veiltab.common.observe.sinks import listening
from veiltab.common.observe.steps import release_ended, state_left, step
from veiltab.common.observe.tracing import Spans, root_of
from veiltab.common.rpc.call_id import begin_request

ID, OTHER = "ab" * 16, "cd" * 16


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        yield collector


Sent = Callable[..., tuple[Span, ...]]


@pytest.fixture
def sent(collector: Collector) -> Sent:
    """Do some work as a party; return the spans that the collector then has."""

    def spans(work: Callable[[], object]) -> tuple[Span, ...]:
        with listening(Spans(ALICE)):
            work()
        return collector.spans()

    return spans


def stepped(name: str = "encrypt", **about: Any) -> Callable[[], None]:  # noqa: ANN401 - of a step
    def work() -> None:
        with step(name, **about):
            pass

    return work


def test_one_release_of_two_parties_is_one_trace(collector: Collector) -> None:
    with listening(Spans(ALICE)):
        stepped(release_id=ID, attribute="sex", size=400)()
        state_left("charged", release_id=ID, seconds=0.5)
        stepped("load table")()
    with listening(Spans(ROSA)):
        release_ended("ready", release_id=ID, seconds=1.5)
    found = {span.name: span for span in collector.spans()}
    assert set(found) == {"encrypt", "state charged", "release"}
    assert {span.trace for span in found.values()} == {ID}
    assert (found["release"].span, found["release"].parent) == (root_of(ID), "")
    assert {found[name].parent for name in ("encrypt", "state charged")} == {root_of(ID)}
    encrypt = found["encrypt"]
    assert (encrypt.resource["service.name"], encrypt.resource["service.instance.id"]) == ("curator", ALICE.uri)
    assert (encrypt.party, encrypt.facts) == ("curator alice", {"outcome": "done", "attribute": "sex", "bytes": 400})
    assert (found["state charged"].seconds, found["release"].seconds) == (0.5, 1.5)


def test_a_step_that_failed_is_an_error_with_its_reason(collector: Collector) -> None:
    with listening(Spans(ALICE)), pytest.raises(ValueError, match="4711"), step("plan", release_id=ID):
        raise ValueError("id 4711")
    (span,) = collector.spans()
    assert span.status == (2, "ValueError")
    assert b"4711" not in b"".join(collector.messages)


def test_a_collector_that_is_away_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr("veiltab.common.observe.tracing._EXPORT_SECONDS", 0.2)
    with caplog.at_level(logging.CRITICAL, "opentelemetry"), listening(Spans(ALICE)):
        stepped("plan", release_id=ID)()


def test_known_answers() -> None:
    """Parties name the same spans without asking one another."""
    assert root_of(ID) == "d4f282d828f84cf7" != root_of(OTHER)


def test_a_round_is_a_trace_and_its_opening_the_root(sent: Sent) -> None:
    (opened,) = sent(stepped("open round", round_id=ID))
    _, counted = sent(stepped("count reports", round_id=ID, reports=5))
    assert (opened.trace, opened.parent, counted.parent) == (ID, "", opened.span)
    assert counted.facts["reports"] == 5


def test_the_call_is_named_in_the_span(sent: Sent) -> None:
    def call() -> str:
        request = begin_request()
        stepped("take column", release_id=ID)()
        return request

    requests: list[str] = []
    (span,) = sent(lambda: requests.append(copy_context().run(call)))
    assert [span.facts["request"]] == requests


@pytest.mark.parametrize("name", ["", "short", "g" * 32, ID.upper(), f"{ID}\n"])
def test_what_belongs_to_no_release_is_no_span(sent: Sent, name: str) -> None:
    assert sent(stepped(release_id=name)) == ()
