"""A trace file: one JSON object a line, for machines without a collector."""

import logging
import os
from collections.abc import Iterable
from pathlib import Path

from veiltab.common.errors import InvalidInputError
from veiltab.common.observe.spans import Span, span_of
from veiltab.common.rpc.parties.identity import Party

_log = logging.getLogger(__name__)
_REMEDY = "Name files that parties wrote with --trace-file."


class TraceFile(logging.Handler):
    """Adds the spans of a party's steps to a file.

    Args:
        path: the file; made if missing, readable by its owner only.
        party: the reporting party.

    Raises:
        InvalidInputError: the file cannot be written.
    """

    def __init__(self, path: Path, party: Party) -> None:
        super().__init__()
        self._party = str(party)
        self._complete = True
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            raise InvalidInputError(
                f"the trace file cannot be written ({error.strerror})",
                where=str(path),
                remedy="Name a file in a folder that is there.",
            ) from None

    def emit(self, record: logging.LogRecord) -> None:
        """Write the span of a record; a full disk stops only the trace."""
        span = span_of(record, self._party)
        if span is None:
            return
        line = span.to_json().encode() + b"\n"
        try:
            written = os.write(self._file, line) == len(line)
        except OSError:
            written = False
        if self._complete and not written:
            _log.warning("the trace file could not be written; it is not complete")
        self._complete = self._complete and written

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
        super().close()


def read_spans(paths: Iterable[Path]) -> tuple[Span, ...]:
    """Return the spans of some trace files, ordered by their start.

    A full disk or a crash may leave a line cut short; such lines are skipped.

    Raises:
        InvalidInputError: a file cannot be read, or has lines and none is a span.
    """
    spans = [span for path in paths for span in _spans(path)]
    return tuple(sorted(spans, key=lambda span: (span.start, -span.end, span.party, span.name)))


def _spans(path: Path) -> list[Span]:
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InvalidInputError(
            f"the trace file cannot be read ({error.strerror})", where=str(path), remedy=_REMEDY
        ) from None
    spans = [span for span in map(_span, lines) if span is not None]
    if lines and not spans:
        raise InvalidInputError("this is no trace file", where=str(path), remedy=_REMEDY)
    return spans


def _span(line: str) -> Span | None:
    try:
        return Span.from_json(line)
    except InvalidInputError:
        return None
