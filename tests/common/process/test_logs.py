import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from veiltab.common.process.logs import JsonFormatter, log_to_stderr


def formatted(message: str = "released", *args: object, **values: Any) -> dict[str, Any]:  # noqa: ANN401 - of any kind
    record = logging.LogRecord(
        "veiltab.test", logging.WARNING, __file__, 1, message, args, values.pop("exc_info", None)
    )
    record.__dict__.update(values)
    text = JsonFormatter().format(record)
    assert "\n" not in text
    line: dict[str, Any] = json.loads(text)
    return line


def test_a_line_is_one_object_with_the_extra_fields() -> None:
    line = formatted("release %s", "ended", release="ab", state="expired", number=3)
    assert datetime.fromisoformat(line.pop("time")).tzinfo is not None
    assert line == {
        "level": "warning",
        "logger": "veiltab.test",
        "message": "release ended",
        "release": "ab",
        "state": "expired",
        "number": 3,
    }


def test_line_ends_stay_inside() -> None:
    assert formatted("two\nlines\x1b[2J")["message"] == "two\nlines\x1b[2J"


def test_an_exception_is_named_without_its_values() -> None:
    try:
        int("id 4711")
    except ValueError:
        line = formatted("failed", exc_info=sys.exc_info())
    assert line["exception"] == "ValueError"
    assert "4711" not in json.dumps(line)


def test_what_is_no_json_is_written_as_text() -> None:
    assert formatted(path=Path("a/b"))["path"] == "a/b"


@pytest.fixture
def loggers() -> Iterator[None]:
    root, grpc = logging.getLogger(), logging.getLogger("grpc")
    before = (root.handlers[:], root.level, grpc.level)
    yield
    root.handlers[:], level, grpc_level = before
    root.setLevel(level)
    grpc.setLevel(grpc_level)


@pytest.mark.usefixtures("loggers")
def test_the_level_is_a_choice() -> None:
    for verbose, level in ((False, logging.WARNING), (True, logging.INFO)):
        log_to_stderr(verbose=verbose)
        assert logging.getLogger().level == level
        assert len(logging.getLogger().handlers) == 1
        assert not logging.getLogger("grpc._cython").isEnabledFor(logging.ERROR)


def test_logs_go_to_stderr_alone() -> None:
    script = (
        "import logging, veiltab.common.process.logs as l; l.log_to_stderr(verbose=True); logging.info('%s', 'here')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    assert not done.stdout
    assert json.loads(done.stderr)["message"] == "here"


def test_a_line_that_cannot_be_written_is_lost_without_a_word_of_the_values_at_fault() -> None:
    script = """
import logging, os, sys
from veiltab.common.process.logs import log_to_stderr
stderr, sys.stderr = sys.stderr, open("/dev/full", "w")
log_to_stderr()
sys.stderr = stderr
try:
    int("id 4711")
except ValueError:
    logging.warning("no figures")
os._exit(0)  # /dev/full could not be closed
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    assert (done.stdout, done.stderr) == ("", "")
