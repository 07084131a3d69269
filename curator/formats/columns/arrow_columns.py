"""Arrow columns in the form that a batch has them, what their types are, and the refusals of files that hold them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from veiltab.curator.formats.columns import arrow_functions as pc
from veiltab.curator.formats.columns.arrow_buffers import string_buffers
from veiltab.curator.formats.columns.refusals import changed_meanwhile, refusal, too_long
from veiltab.curator.formats.columns.source import BATCH_ROWS, LONGEST, Batch, Column, ColumnKind, Selection

_TEXT_BYTES = 1 << 26
"""Most bytes of the texts of a column that are made at once."""

_EXACT_BITS = {16: 11, 32: 24, 64: 53}
"""Width of a floating-point type -> bits of the whole numbers that it keeps apart."""


def header_of(schema: pa.Schema) -> list[Column]:
    """Return the columns of a schema."""
    return [
        Column(spelling=field.name, kind=kind_of(field.type), type_name=_name(field.type), has_grouped_points=True)
        for field in schema
    ]


def kind_of(type_: pa.DataType) -> ColumnKind:
    """Return what the values of an Arrow type are."""
    plain = type_.value_type if pa.types.is_dictionary(type_) else type_
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    exact = (pa.types.is_null, pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal)
    times = (pa.types.is_date, pa.types.is_timestamp)
    if any(test(plain) for test in texts):
        return ColumnKind.WRITTEN
    if any(test(plain) for test in (*exact, *times)):
        return ColumnKind.EXACT
    return ColumnKind.FLOATING if pa.types.is_floating(plain) else ColumnKind.OTHER


@contextmanager
def errors_refused(where: str, kind: str, remedy: str) -> Iterator[None]:
    """Turn errors of the disk and of the format into refusals that quote nothing of a file.

    Args:
        remedy: what to do if it is not.
    """
    try:
        yield
    except OSError:
        disk = "Check the disk and the file's rights."
        raise refusal(where, "the file cannot be read to its end", disk) from None
    except pa.ArrowException:
        raise refusal(where, f"the file is not a readable {kind}", remedy) from None
    except KeyError:  # a column that was there before
        raise changed_meanwhile(where) from None


def batches_of(where: str, batch: pa.RecordBatch, selection: Selection) -> Iterator[Batch]:
    """Give the columns of a record batch their study names and their form, few rows at once if values are long.

    Raises:
        InvalidInputError: one is not there any more, or twice, or holds a value longer than `LONGEST`.
    """
    places = {name: batch.schema.get_field_index(spelling) for name, spelling in selection.spellings.items()}
    if min(places.values(), default=0) < 0:
        raise changed_meanwhile(where)
    columns = {name: batch.column(place) for name, place in places.items()}
    rows = rows_at_once(where, columns)
    for start in range(0, batch.num_rows, rows):
        piece = {name: column.slice(start, rows) for name, column in columns.items()}
        yield formed(min(rows, batch.num_rows - start), piece, selection)


def rows_at_once(where: str, columns: Mapping[str, pa.Array]) -> int:
    """Return of how many rows the memory holds the texts, were each as long as the longest of its column.

    Many rows may have one long value that is stored once.

    Raises:
        InvalidInputError: a value is longer than `LONGEST`.
    """
    longest = {name: _longest(column) for name, column in columns.items()}
    for name, size in longest.items():
        if size > LONGEST:
            raise too_long(where, name)
    return min(BATCH_ROWS, _TEXT_BYTES // max([1, *longest.values()]))


def formed(rows: int, columns: Mapping[str, pa.Array], selection: Selection) -> Batch:
    """Return columns in the forms that are wanted; a column may be wanted in both."""
    return Batch(
        rows=rows,
        texts={name: _id_text(columns[name]) for name in selection.texts},
        coded={name: _encoded(columns[name]) for name in selection.coded},
    )


def _longest(column: pa.Array) -> int:
    """Return the bytes of the longest text of a column, by its offsets; 0 if it holds no texts."""
    texts = column.dictionary if pa.types.is_dictionary(column.type) else column
    if pa.types.is_string_view(texts.type):
        # A view is 16 bytes and begins with the length.
        views = np.frombuffer(texts.buffers()[1], np.int32).reshape(-1, 4)[texts.offset :][: len(texts)]
        return int(views[texts.is_valid().to_numpy(zero_copy_only=False), 0].max(initial=0))
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        return 0
    return int(np.diff(string_buffers(texts.drop_null() if texts.null_count else texts)[0]).max(initial=0))


def _name(type_: pa.DataType) -> str:
    return str(type_.value_type if pa.types.is_dictionary(type_) else type_)


def _text(column: pa.Array) -> pa.Array:
    """Return a column as plain text."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def _id_text(column: pa.Array) -> pa.Array:
    """Return a column as plain text; of floating-point numbers, only those that are exact look whole, as 1234.0."""
    if not pa.types.is_floating(column.type):
        return _text(column)
    numbers = column.cast(pa.float64())
    numbers = pc.if_else(pc.is_nan(numbers), None, numbers)
    exact = 2.0 ** _EXACT_BITS[column.type.bit_width]
    is_whole = pc.and_(pc.equal(numbers, pc.floor(numbers)), pc.less(pc.abs(numbers), exact))
    whole = pc.if_else(is_whole, numbers, None).cast(pa.int64()).cast(pa.string())
    return pc.coalesce(_joined(whole, ".0"), _joined(numbers.cast(pa.string()), "e0"))


def _joined(texts: pa.Array, end: str) -> pa.Array:
    return pc.binary_join_element_wise(texts, pa.scalar(end), "")


def _encoded(column: pa.Array) -> pa.Array:
    """Return a column as dictionary-encoded text."""
    type_ = column.type
    # Numbers of 64 bits without a sign count nothing in numpy.
    if pa.types.is_dictionary(type_) and pa.types.is_string(type_.value_type) and type_.index_type != pa.uint64():
        return column
    return _text(column).dictionary_encode()
