"""A table in a text file: values separated by commas, semicolons, tabs or bars; compressed by gzip or not."""

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.csv as pacsv

from veiltab.common.errors import InvalidInputError
from veiltab.curator.formats.columns.arrow_columns import batches_of
from veiltab.curator.formats.columns.refusals import NotedRows, first_rows, refusal, row_count, rows_have
from veiltab.curator.formats.columns.source import Batch, Column, ColumnKind, Selection
from veiltab.curator.formats.files.quoting import WatchedText
from veiltab.curator.formats.files.sniffing import HEAD_BYTES, TextForm, sniff

_BLOCK_BYTES = 1 << 20
_CODED = pa.dictionary(pa.int32(), pa.string())
_ROW = re.compile(r"Row #(\d+)")
_NO_ROWS = "Give a table with a header and at least one row."


class TextFile:
    """A text file with a header line.

    Args:
        path: the file; a name that ends in .gz says that it is compressed.
        encoding: what a person says it is; "" to look.

    Raises:
        InvalidInputError: it cannot be read, or its form cannot be found.
    """

    rows = None

    def __init__(self, path: Path, encoding: str = "") -> None:
        self._path = path
        self.where = str(path)
        self.lines: int | None = None
        self._long_rows = NotedRows()
        self._form = self._sniffed(encoding)
        try:
            self._names = self._header(HEAD_BYTES)
        except InvalidInputError:  # of a long header, or of what a longer block also refuses
            self._names = self._header(_BLOCK_BYTES)

    def _header(self, block: int) -> list[str]:
        with self._open(None, NotedRows(), block) as (reader, _):
            return list(reader.schema.names)

    @property
    def description(self) -> str:
        """How the file is written."""
        long = self._long_rows
        several = f", {row_count(long.count)} with a value of several lines{first_rows(long.first)}"
        compressed = ", compressed by gzip" if self._is_compressed else ""
        return f"{self._form.description}{compressed}{several if long.count else ''}"

    @property
    def _is_compressed(self) -> bool:
        return self._path.suffix.lower() == ".gz"

    @property
    def columns(self) -> list[Column]:
        """Return the header."""
        is_other = self._form.separator != ","
        kind = ColumnKind.WRITTEN
        return [Column(spelling=name, kind=kind, has_grouped_points=is_other) for name in self._names]

    def batches(self, selection: Selection) -> Iterator[Batch]:
        """Parse the file block by block; rows of a wrong length are counted and raised at the end."""
        ragged = NotedRows()
        types = {
            spelling: _CODED if name in selection.coded and name not in selection.texts else pa.string()
            for name, spelling in selection.spellings.items()
        }
        converting = pacsv.ConvertOptions(include_columns=list(types), column_types=types, strings_can_be_null=False)
        with self._open(converting, ragged, _BLOCK_BYTES) as (reader, watched):
            for batch in reader:
                yield from batches_of(self.where, batch, selection)
            while watched.read():  # the parser may end before the file does
                pass
            self.lines, self._long_rows = watched.lines, watched.long_rows
        if ragged.count:
            raise refusal(
                self.where,
                f"{rows_have(ragged.count)} more or fewer values than the header{first_rows(ragged.first)}"
                f" ({self.description})",
                "Correct them; a value that holds the separator stands in double quotes.",
            )

    @contextmanager
    def _open(
        self, converting: pacsv.ConvertOptions | None, ragged: NotedRows, block: int
    ) -> Iterator[tuple[pacsv.CSVStreamingReader, WatchedText]]:
        def count(row: pacsv.InvalidRow) -> str:
            ragged.note(row.number)
            return "skip"

        # Row numbers are known without threads only.
        reading = pacsv.ReadOptions(block_size=block, use_threads=False, encoding=self._form.encoding)
        parsing = pacsv.ParseOptions(
            delimiter=self._form.separator,
            quote_char=self._form.quote,
            newlines_in_values=True,
            invalid_row_handler=count,
        )
        with self._refusals(), self._bytes() as file:
            file.read(self._form.skipped)
            watched = WatchedText(self.where, file, self._form)
            try:
                with pacsv.open_csv(
                    pa.PythonFile(watched, "r"), read_options=reading, parse_options=parsing, convert_options=converting
                ) as reader:
                    yield reader, watched
            except pa.ArrowException:
                if watched.refused is not None:
                    raise watched.refused from None
                raise

    def _sniffed(self, encoding: str) -> TextForm:
        try:
            with self._refusals():
                head = self._start(HEAD_BYTES)
            if not head:
                raise refusal(self.where, "the file is empty", _NO_ROWS)
            return sniff(head, encoding)
        except InvalidInputError as error:
            raise refusal(self.where, error.problem, error.remedy) from None

    def _without_rows(self) -> InvalidInputError:
        """Return the refusal of a file whose first MiB has no whole row."""
        start = self._start(_BLOCK_BYTES + 1)
        if len(start) <= _BLOCK_BYTES:
            return refusal(self.where, "the file has no rows", _NO_ROWS)
        columns = start.count(self._form.separator.encode())
        problem = f"the header is longer than 1 MiB, with more than {columns:,} columns"
        return refusal(self.where, problem, "Give a table with the columns that the study uses, and few others.")

    def _start(self, size: int) -> bytes:
        with self._bytes() as file:
            return file.read(size)

    def _bytes(self) -> BinaryIO:
        return cast("BinaryIO", gzip.open(self._path)) if self._is_compressed else self._path.open("rb")

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Turn the errors of the disk and the parsers into refusals that quote nothing of the file."""
        try:
            yield
        except (OSError, EOFError, zlib.error):
            remedy = "Check the disk and the file's rights, and that it was copied whole."
            raise refusal(self.where, "the file cannot be read to its end", remedy) from None
        except (pa.ArrowException, UnicodeError) as error:
            raise self._translated(str(error)) from None

    def _translated(self, message: str) -> InvalidInputError:
        """Return the refusal for a parser's message, without the message: it may quote the data."""
        if "UTF8" in message or "codec can't decode" in message:
            row = _ROW.search(message)
            place = f"in row {row[1]}, " if row else ""
            return refusal(
                self.where,
                f"{place}the file is not {self._form.encoding.upper()} text, which its beginning looks like",
                "Save the file as UTF-8, or say --encoding windows-1252 if that is what it is.",
            )
        if "Empty CSV" in message:
            return self._without_rows()
        if "straddl" in message:
            return refusal(self.where, "a row is longer than 1 MiB", "Look for a double quote that is never closed.")
        problem = f"the file is not well-formed ({self.description})"
        return refusal(self.where, problem, "Save it again as comma-separated UTF-8 text.")
