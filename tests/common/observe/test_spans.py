import json
import logging
from collections.abc import Callable, Iterator
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from veiltab.common.errors import InvalidInputError
from veiltab.common.observe.sinks import listening
from veiltab.common.observe.spans import Span, root_of, span_of
from veiltab.common.observe.steps import release_ended, state_left, step
from veiltab.common.observe.trace_file import TraceFile, read_spans
from veiltab.common.rpc.call_id import begin_request
from veiltab.common.rpc.parties.identity import Party, Role

ID, OTHER = "ab" * 16, "cd" * 16
ALICE = Party(study="survey", role=Role.CURATOR, name="alice")
SPAN = {
    "trace": ID,
    "span": "12" * 8,
    "parent": root_of(ID),
    "name": "encrypt",
    "party": "curator alice",
    "start": 1_000_000_000,
    "end": 1_500_000_000,
    "attribute": "sex",
    "bytes": 400,
}


@pytest.fixture
def record() -> Iterator[Callable[[], logging.LogRecord]]:
    """The last record that was told."""
    told: list[logging.LogRecord] = []

    class Sink(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record)

    with listening(Sink()):
        yield lambda: told[-1]


def test_all_parties_find_the_same_trace_and_the_same_root(record: Callable[[], logging.LogRecord]) -> None:
    release_ended("ready", release_id=ID, seconds=1.0)
    root = span_of(record(), "researcher rosa")
    with step("encrypt", release_id=ID, attribute="sex"):
        pass
    mine, other = span_of(record(), "curator alice"), span_of(record(), "curator bob")
    state_left("charged", release_id=ID, seconds=0.5)
    state = span_of(record(), "curator alice")
    assert root is not None
    assert mine is not None
    assert other is not None
    assert state is not None
    assert {span.trace for span in (root, mine, other, state)} == {ID}
    assert root.parent == ""
    assert {span.parent for span in (mine, other, state)} == {root.span}
    assert len({span.span for span in (root, mine, other, state)}) == 4
    assert (root.name, root.facts["outcome"], state.name) == ("release", "ready", "state charged")
    assert root.span != root_of(OTHER)


def test_known_answers() -> None:
    """Parties name the same spans without asking one another."""
    assert root_of(ID) == "d4f282d828f84cf7"


def test_a_span_lasts_as_long_as_its_step_and_ends_when_it_was_told(record: Callable[[], logging.LogRecord]) -> None:
    state_left("charged", release_id=ID, seconds=0.25)
    span = span_of(record(), "curator alice")
    assert span is not None
    assert span.end - span.start == 250_000_000
    assert span.end == round(record().created * 1e9)
    assert span == span_of(record(), "curator alice"), "every sink finds the same span"


def test_a_round_is_a_trace_and_its_opening_the_root(record: Callable[[], logging.LogRecord]) -> None:
    with step("open round", round_id=ID):
        pass
    opened = span_of(record(), "server cloud")
    with step("count reports", round_id=ID, reports=5):
        pass
    counted = span_of(record(), "server cloud")
    assert opened is not None
    assert counted is not None
    assert (opened.trace, opened.parent, counted.parent) == (ID, "", opened.span)
    assert counted.facts["reports"] == 5


def test_the_call_is_named_in_the_span(record: Callable[[], logging.LogRecord]) -> None:
    def call() -> None:
        request = begin_request()
        with step("take column", release_id=ID):
            pass
        span = span_of(record(), "server cloud")
        assert span is not None
        assert span.facts["request"] == request

    copy_context().run(call)


@pytest.mark.parametrize("name", ["", "short", "g" * 32, ID.upper(), f"{ID}\n"])
def test_what_belongs_to_no_release_is_no_span(record: Callable[[], logging.LogRecord], name: str) -> None:
    with step("encrypt", release_id=name):
        pass
    assert span_of(record(), "curator alice") is None


def test_a_line_is_read_back_as_the_same_span() -> None:
    span = Span.from_json(json.dumps(SPAN))
    assert Span.from_json(span.to_json()) == span
    assert json.loads(span.to_json()) == SPAN
    assert span.seconds == 0.5


@pytest.mark.parametrize(
    "change",
    [
        {"trace": "x" * 32},
        {"trace": 5},
        {"span": ""},
        {"parent": "12"},
        {"start": 0},
        {"end": 999_999_999},
        {"start": "soon"},
        {"end": None},
        {"start": [1]},
    ],
)
def test_a_line_that_is_no_span_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="no span"):
        Span.from_json(json.dumps(SPAN | change))


@pytest.mark.parametrize("line", ["", "{}", "[]", "null", "7", '{"trace": ', json.dumps(SPAN)[:-1], "[" * 100_000])
def test_another_line_is_refused(line: str) -> None:
    with pytest.raises(InvalidInputError, match="no span"):
        Span.from_json(line)


# Files


def test_a_file_has_the_spans_and_nobody_else_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "alice.jsonl"
    for _ in range(2):  # it is added to
        with listening(TraceFile(path, ALICE)), step("encrypt", release_id=ID, size=3):
            pass
    with listening(TraceFile(path, ALICE)), step("load table"):
        pass
    spans = read_spans([path])
    assert [(span.name, span.party, span.facts["bytes"]) for span in spans] == [("encrypt", "curator alice", 3)] * 2
    assert path.stat().st_mode & 0o077 == 0


def test_spans_of_several_files_are_put_in_order(tmp_path: Path) -> None:
    for place, start in enumerate([3_000_000_000, 1_000_000_000, 2_000_000_000]):
        line = SPAN | {"start": start, "end": 4_000_000_000}
        (tmp_path / f"{place}.jsonl").write_text(json.dumps(line) + "\n")
    spans = read_spans(sorted(tmp_path.iterdir()))
    assert [span.start for span in spans] == [1_000_000_000, 2_000_000_000, 3_000_000_000]


def test_a_line_cut_short_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "alice.jsonl"
    whole = json.dumps(SPAN)
    path.write_text(f"{whole}\n{whole[:40]}{whole}\n{whole[:60]}")
    assert len(read_spans([path])) == 1


def test_a_file_that_is_no_trace_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("server cloud serves on port 1\n")
    with pytest.raises(InvalidInputError, match="no trace file"):
        read_spans([path])
    path.write_bytes(b"\xff\xfe\0")
    with pytest.raises(InvalidInputError, match="no trace file"):
        read_spans([path])
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_spans([tmp_path / "absent"])
    path.write_text("")
    assert read_spans([path]) == ()


def test_a_file_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="cannot be written"):
        TraceFile(tmp_path / "absent" / "trace", ALICE)


def test_a_full_disk_stops_the_trace_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    with listening(TraceFile(Path("/dev/full"), ALICE)):
        for _ in range(3):
            with step("encrypt", release_id=ID):
                pass
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [record.getMessage() for record in warned] == ["the trace file could not be written; it is not complete"]
