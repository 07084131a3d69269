"""A curator's table on disk, CSV or Parquet, read in batches: only the columns asked for, and never the whole file.

Columns of categories come dictionary-encoded (each distinct value of a batch once), all others as text. Errors of the
file itself are raised here; the parser's messages are never passed on, because they quote the data.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from veiltab.common.errors import InvalidInputError

FIRST_ROW = 2
"""File row number of the first respondent: the header is row 1, and empty lines are not counted."""

_BLOCK_BYTES = 1 << 20
_BATCH_ROWS = 1 << 16
_CODED = pa.dictionary(pa.int32(), pa.string())
_UTF8 = "Save the file as comma-separated UTF-8 text."


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Some consecutive rows of a table.

    Args:
        rows: number of rows.
        texts: column -> plain text, null where absent.
        coded: column -> dictionary-encoded text, null where absent.
    """

    rows: int
    texts: Mapping[str, pa.Array]
    coded: Mapping[str, pa.DictionaryArray]


def read_batches(path: Path, texts: Collection[str], coded: Collection[str]) -> Iterator[Batch]:
    """Read the columns of a table, batch by batch, in file order.

    Args:
        path: a .csv file with a header line, or a .parquet file.
        texts: columns wanted as text (ids).
        coded: columns wanted dictionary-encoded (attributes).

    Returns:
        Batches that together hold every row.

    Raises:
        InvalidInputError: if the file is absent, unreadable, of another kind, lacks a column or is malformed. Rows with
            too few or too many values are counted to the end of the file and raised there.
    """
    read = _csv_batches if _is_csv(path) else _parquet_batches
    with _refusals(path):
        yield from read(path, frozenset(texts), frozenset(coded))


def read_header(path: Path) -> dict[str, str]:
    """Return the columns of a table, without white space around their names, in file order.

    Args:
        path: a .csv file with a header line, or a .parquet file.

    Returns:
        column -> the type that keeps it from being read as an attribute; "" if it can be read.

    Raises:
        InvalidInputError: as `read_batches`; two columns have one name.
    """
    is_csv = _is_csv(path)
    with _refusals(path):
        if is_csv:
            parsing = pacsv.ParseOptions(newlines_in_values=True, invalid_row_handler=lambda _: "skip")
            with pacsv.open_csv(path, parse_options=parsing) as reader:
                columns = [(name.strip(), "") for name in reader.schema.names]
        else:
            with pq.ParquetFile(path) as file:
                columns = [
                    (field.name.strip(), "" if _is_readable(field.type, as_id=False) else str(field.type))
                    for field in file.schema_arrow
                ]
    for name, times in Counter(name for name, _ in columns).items():
        if times > 1:
            raise _refusal(path, f"{times} columns are named {name!r}", "Give each column a name of its own.")
    return dict(columns)


def _is_csv(path: Path) -> bool:
    """Return whether a file is CSV, or else Parquet; refuse any other kind, and what cannot be read at all."""
    suffix = path.suffix.lower()
    if suffix not in {".csv", ".parquet"}:
        raise _refusal(path, f"unsupported file type {path.suffix!r}", "Give a .csv or a .parquet file.")
    _check_readable(path)
    return suffix == ".csv"


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    """Turn the errors of the disk and the parsers into refusals that name the file and quote nothing of it."""
    try:
        yield
    except OSError:
        raise _refusal(path, "the file cannot be read to its end", "Check the disk and the file's rights.") from None
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise _translated(path, str(error)) from None


def _check_readable(path: Path) -> None:
    """Refuse anything but a readable, regular, non-empty file."""
    if path.is_dir():
        raise _refusal(path, "this is a directory", "Give the table's file.")
    try:
        with path.open("rb") as file:
            start = file.read(4096)
    except OSError as error:
        raise _refusal(path, f"the file cannot be read ({error.strerror})", "Check the path and its rights.") from None
    if not start:
        raise _refusal(path, "the file is empty", "Give a table with a header and at least one row.")
    if path.suffix.lower() == ".csv" and b"\0" in start:
        raise _refusal(path, "the file is not UTF-8 text", _UTF8)


def _csv_batches(path: Path, texts: frozenset[str], coded: frozenset[str]) -> Iterator[Batch]:
    """Parse a CSV file block by block; rows of a wrong length are counted and raised at the end."""
    ragged: list[int] = []

    def count(row: pacsv.InvalidRow) -> str:
        ragged.append(row.number)
        return "skip"

    reading = pacsv.ReadOptions(
        block_size=_BLOCK_BYTES, use_threads=False
    )  # row numbers are known without threads only
    parsing = pacsv.ParseOptions(newlines_in_values=True, invalid_row_handler=count)
    with pacsv.open_csv(path, read_options=reading, parse_options=parsing) as reader:
        found = _columns(path, reader.schema.names, texts | coded)
    ragged.clear()
    types = {found[name]: _CODED if name in coded and name not in texts else pa.string() for name in texts | coded}
    converting = pacsv.ConvertOptions(include_columns=list(types), column_types=types, strings_can_be_null=False)
    with pacsv.open_csv(path, read_options=reading, parse_options=parsing, convert_options=converting) as reader:
        for batch in reader:
            yield _batch(batch, found, texts, coded)
    if ragged:
        raise _refusal(
            path,
            f"{len(ragged)} rows have more or fewer values than the header{first_rows(ragged)}",
            "Correct them; a value that holds a comma stands in double quotes.",
        )


def _parquet_batches(path: Path, texts: frozenset[str], coded: frozenset[str]) -> Iterator[Batch]:
    """Read a Parquet file batch by batch; numbers, dates and truth values are taken as their text."""
    with pq.ParquetFile(path) as file:
        found = _columns(path, file.schema_arrow.names, texts | coded)
        for name, actual in found.items():
            _check_type(path, name, file.schema_arrow.field(actual).type, as_id=name in texts)
    with pq.ParquetFile(path, read_dictionary=[found[name] for name in coded - texts]) as file:
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=list(found.values()), use_threads=False):
            yield _batch(batch, found, texts, coded)


def _batch(batch: pa.RecordBatch, found: Mapping[str, str], texts: frozenset[str], coded: frozenset[str]) -> Batch:
    """Give the columns their study names and their form; a column may be wanted in both."""
    columns = {name: batch.column(batch.schema.get_field_index(actual)) for name, actual in found.items()}
    return Batch(
        rows=batch.num_rows,
        texts={name: _text(columns[name]) for name in texts},
        coded={name: _encoded(columns[name]) for name in coded},
    )


def _text(column: pa.Array) -> pa.Array:
    """Return a column as plain text."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def _encoded(column: pa.Array) -> pa.Array:
    """Return a column as dictionary-encoded text."""
    if pa.types.is_dictionary(column.type) and pa.types.is_string(column.type.value_type):
        return column
    return _text(column).dictionary_encode()


def _columns(path: Path, names: Sequence[str], wanted: frozenset[str]) -> dict[str, str]:
    """Return the header's spelling of each wanted column: white space around a header name does not count."""
    found: dict[str, str] = {}
    for name in sorted(wanted):
        spellings = [actual for actual in names if actual.strip() == name]
        if len(spellings) != 1:
            times = "is not in the header" if not spellings else f"is {len(spellings)} times in the header"
            raise _refusal(
                path, f"column {name!r} {times}", f"The study needs the columns {', '.join(sorted(wanted))}."
            )
        found[name] = spellings[0]
    return found


def _check_type(path: Path, name: str, kind: pa.DataType, *, as_id: bool) -> None:
    """Refuse Parquet types without one plain text a value."""
    if not _is_readable(kind, as_id=as_id):
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        raise _refusal(path, f"column {name!r} has the type {kind}", "Store it as text or as whole numbers.")


def _is_readable(kind: pa.DataType, *, as_id: bool) -> bool:
    """Return whether values of a type have one plain text each; ids as floating-point numbers have several."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
    exact = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_date)
    known = (*texts, *exact) if as_id else (*texts, *exact, pa.types.is_floating)
    return any(test(kind) for test in known)


def _translated(path: Path, message: str) -> InvalidInputError:
    """Return the refusal for a parser's message, without the message: it may quote the data."""
    if "UTF8" in message or "utf-8" in message:
        return _refusal(path, "the file is not UTF-8 text", _UTF8)
    if "Empty CSV" in message:
        return _refusal(path, "the file has no rows", "Give a table with a header and at least one row.")
    if "straddl" in message:
        return _refusal(path, "a row is longer than 1 MiB", "Look for a double quote that is never closed.")
    if path.suffix.lower() == ".csv":
        return _refusal(path, "the file is not well-formed CSV", _UTF8)
    return _refusal(path, "the file is not a readable Parquet file", "Write it again, as Parquet or as CSV.")


def first_rows(rows: Sequence[int]) -> str:
    """Return ", first in rows 2, 7" for up to five file row numbers."""
    return f", first in rows {', '.join(str(row) for row in rows[:5])}" if rows else ""


def _refusal(path: Path, problem: str, remedy: str) -> InvalidInputError:
    """Return a refusal that names the file."""
    return InvalidInputError(problem, where=str(path), remedy=remedy)
