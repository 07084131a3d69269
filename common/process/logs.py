"""Logs as one JSON object a line on stderr: events and their release, never data, ids, keys or ciphertext."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

from veiltab.common.rpc.call_id import current_request

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Writes a record and its extra fields as JSON; an exception as its type and place, without its values."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request := current_request():
            line["request"] = request
        extra = {name: value for name, value in record.__dict__.items() if name not in _STANDARD}
        line |= {name: value for name, value in extra.items() if value is not None}
        if record.exc_info and record.exc_info[0]:
            line["exception"] = record.exc_info[0].__name__
        return json.dumps(line, default=str)


class _StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to stderr, and loses a line that it cannot write: logging's own report would quote the values at fault."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's names
        """Say nothing."""


def log_to_stderr(*, verbose: bool = False) -> None:
    """Send the logs of this process to stderr."""
    level = logging.INFO if verbose else logging.WARNING
    handler = _StderrHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    # The handler needs a level of its own: for metrics and traces some loggers emit more than stderr shows.
    handler.setLevel(level)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # gRPC's own errors may quote what a peer sent.
    logging.getLogger("grpc").setLevel(logging.CRITICAL)
