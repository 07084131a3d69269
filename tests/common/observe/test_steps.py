import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from veiltab.common.errors import BudgetExceededError, NotReadyError, UnavailableError
from veiltab.common.observe.sinks import HEARD, listening
from veiltab.common.observe.steps import release_ended, state_left, step
from veiltab.common.process.logs import JsonFormatter, log_to_stderr
from veiltab.common.rpc.call_id import begin_request, current_request

ID = "ab" * 16


class Heard(logging.Handler):
    """Keeps what it hears, as the log on stderr would have it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(JsonFormatter().format(record)))


@pytest.fixture
def heard() -> Iterator[list[dict[str, Any]]]:
    sink = Heard()
    with listening(sink):
        yield sink.lines


def test_a_step_is_told_once_it_is_done(heard: list[dict[str, Any]]) -> None:
    with step("encrypt", release_id=ID, attribute="sex", size=400):
        assert heard == []
    (line,) = heard
    assert (line.pop("seconds") >= 0, line.pop("time")[:2]) == (True, "20")
    assert line == {
        "level": "info",
        "logger": "veiltab.common.observe.steps",
        "message": "step",
        "step": "encrypt",
        "release": ID,
        "attribute": "sex",
        "bytes": 400,
        "outcome": "done",
    }


def test_what_is_known_at_the_end_is_told(heard: list[dict[str, Any]]) -> None:
    with step("count reports", round_id=ID) as measured:
        measured.bytes, measured.reports = 7, 3
    assert (heard[0]["round"], heard[0]["bytes"], heard[0]["reports"]) == (ID, 7, 3)
    assert "release" not in heard[0]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (BudgetExceededError("id 4711", where="4711", remedy="4711"), "BUDGET_EXCEEDED"),
        (ValueError("id 4711"), "ValueError"),
    ],
)
def test_a_failure_is_named_without_its_text(heard: list[dict[str, Any]], error: Exception, reason: str) -> None:
    with pytest.raises(type(error)), step("plan", release_id=ID):
        raise error
    (line,) = heard
    assert (line["outcome"], line["reason"]) == ("failed", reason)
    assert "4711" not in json.dumps(line)


@pytest.mark.parametrize("error", [NotReadyError("not yet"), UnavailableError("no answer"), asyncio.CancelledError()])
def test_what_will_be_tried_again_is_not_told(heard: list[dict[str, Any]], error: BaseException) -> None:
    with pytest.raises(type(error)), step("toss", release_id=ID):
        raise error
    assert heard == []


def test_states_and_ends_are_told(heard: list[dict[str, Any]]) -> None:
    state_left("charged", release_id=ID, seconds=1.25)
    release_ended("denied", release_id=ID, seconds=2.5)
    assert (heard[0]["state"], heard[0]["release"], heard[0]["seconds"]) == ("charged", ID, 1.25)
    assert (heard[1]["step"], heard[1]["outcome"], heard[1]["seconds"]) == ("release", "denied", 2.5)


def test_nobody_listens_unless_asked(caplog: pytest.LogCaptureFixture) -> None:
    levels = [logging.getLogger(name).level for name in HEARD]
    with listening(Heard()):
        assert all(logging.getLogger(name).isEnabledFor(logging.INFO) for name in HEARD)
    assert [logging.getLogger(name).level for name in HEARD] == levels
    assert not any(logging.getLogger(name).handlers for name in HEARD)
    with caplog.at_level(logging.WARNING), step("plan", release_id=ID):
        pass
    assert not caplog.records


@pytest.mark.parametrize("verbose", [False, True])
def test_stderr_shows_steps_only_if_asked_whoever_else_listens(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, verbose: bool
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    before = (root.level, logging.getLogger("grpc").level)
    try:
        log_to_stderr(verbose=verbose)
        with listening(Heard()), step("plan", release_id=ID):
            pass
    finally:
        root.setLevel(before[0])
        logging.getLogger("grpc").setLevel(before[1])
    assert capsys.readouterr().err.count("\n") == verbose


async def test_each_call_has_an_id_of_its_own_and_what_it_starts_has_it_too(heard: list[dict[str, Any]]) -> None:
    async def call() -> str:
        mine = begin_request()
        await asyncio.sleep(0)
        assert current_request() == mine
        with step("encrypt"):
            await asyncio.to_thread(lambda: None)
        assert await asyncio.to_thread(current_request) == mine
        return mine

    ids = await asyncio.gather(call(), call())
    assert len({*ids}) == 2
    assert all(len(one) == 16 and int(one, 16) >= 0 for one in ids)
    assert sorted(line["request"] for line in heard) == sorted(ids)
    assert current_request() == ""
