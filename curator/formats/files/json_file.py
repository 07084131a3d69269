"""A table in a JSON file: objects one after the other (as a rule, a line each) or in one list; compressed or not.

Numbers stay the digits that the file has. DuckDB, which reads JSON too, makes binary numbers of those with decimals,
and forgives a comma too many.
"""

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, NoReturn, cast

import pyarrow as pa

from veiltab.curator.formats.columns.arrow_columns import formed
from veiltab.curator.formats.columns.refusals import NotedRows, first_rows, refusal, rows_have
from veiltab.curator.formats.columns.source import FIRST_ROW, LONGEST, Batch, Column, ColumnKind, Selection, cut

_PIECE = 1 << 20

_BLANKS = re.compile(r"[ \t\n\r]*")


_Number = bytes
"""A number as the file writes it: nothing else of JSON is bytes."""

_Value = str | bytes | bool | list[object] | dict[str, object] | None
_Row = Mapping[str, _Value]

_PLAIN: Mapping[type, str] = {str: "texts", _Number: "numbers", bool: "truth values"}
_NESTED: Mapping[type, str] = {list: "list", dict: "object"}


class JsonFile:
    """A JSON file; all objects have the names of the first one, in any order.

    Args:
        path: the file; a name that ends in .gz says that it is compressed.

    Raises:
        InvalidInputError: it cannot be read, or does not begin with an object.
    """

    rows = lines = None

    def __init__(self, path: Path) -> None:
        self._path = path
        self.where = str(path)
        with self._objects() as objects:
            first = next(iter(objects), None)
            self._is_list = objects.is_list
        if first is None:
            raise refusal(self.where, "the file has no rows", "Give a table with at least one row.")
        self.columns = [_column(name, value) for name, value in first.items()]

    @property
    def description(self) -> str:
        """How the file is written."""
        form = "a list of JSON objects" if self._is_list else "JSON objects"
        return form + (", compressed by gzip" if self._is_compressed else "")

    @property
    def _is_compressed(self) -> bool:
        return self._path.suffix.lower() == ".gz"

    def batches(self, selection: Selection) -> Iterator[Batch]:
        """Parse the file by and by; rows with other names are counted and raised at the end."""
        columns = {name: _Values(self.where, name) for name in selection.spellings}
        others = NotedRows()
        start = FIRST_ROW
        with self._objects() as objects:
            rows = self._values(objects, list(selection.spellings.values()), others)
            for batch in cut(rows, lambda _: objects.characters()):
                values = {name: [row[place] for row in batch] for place, name in enumerate(columns)}
                texts = {name: column.texts(values[name], start) for name, column in columns.items()}
                exact = {name: _decimals(values[name]) for name in selection.coded if columns[name].are_numbers}
                yield replace(formed(len(batch), texts, selection), exact=exact)
                start += len(batch)
        if others.count:
            problem = f"{rows_have(others.count)} other names than the first one{first_rows(others.first)}"
            raise refusal(self.where, problem, "Give all rows the same names; write null where a value is absent.")

    def _values(
        self, objects: Iterable[_Row], spellings: Sequence[str], others: NotedRows
    ) -> Iterator[tuple[_Value, ...]]:
        """Yield the wanted values of each object, and note the rows that have other names than the first."""
        names = {column.spelling for column in self.columns}
        for number, row in enumerate(objects, FIRST_ROW):
            if row.keys() != names:
                others.note(number)
            yield tuple(map(row.get, spellings))

    @contextmanager
    def _objects(self) -> Iterator["_Objects"]:
        """Open the file."""
        with gzip.open(self._path) if self._is_compressed else self._path.open("rb") as file:
            yield _Objects(self.where, cast("BinaryIO", file))


class _Objects:
    """The objects of a file, one after the other.

    Args:
        file: where its bytes come from.

    Raises:
        InvalidInputError: while they are read: the disk fails, or the file is not well-formed.
    """

    def __init__(self, where: str, file: BinaryIO) -> None:
        self.is_list = False
        """Whether they stand in a list; known with the first of them."""
        self._where, self._file = where, file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._place, self._row = "", 0, FIRST_ROW
        self._has_more = self._is_utf8 = True
        self._passed = self._counted = 0

    def __iter__(self) -> Iterator[_Row]:
        """Yield them."""
        self.is_list = self._mark() == "["
        self._place += self.is_list
        while (mark := self._mark()) != ("]" if self.is_list else ""):
            if self.is_list and self._row > FIRST_ROW:
                self._require(mark == ",")
                self._place += 1
                mark = self._mark()
            self._require(mark == "{")
            yield self._object()
            self._row += 1
        self._place += self.is_list
        self._require(not self._mark())

    def characters(self) -> int:
        """Return how many characters of the file were passed since this was asked last."""
        before, self._counted = self._counted, self._passed + self._place
        return self._counted - before

    def _mark(self) -> str:
        """Return the next character that is not white space; "" at the end."""
        while True:
            self._place = cast("re.Match[str]", _BLANKS.match(self._text, self._place)).end()
            if self._place < len(self._text) or not self._read():
                return self._text[self._place : self._place + 1]

    def _object(self) -> _Row:
        """Return the object that begins here."""
        while True:
            try:
                # What fails may end in what was not read yet.
                with suppress(ValueError, RecursionError):
                    row, self._place = _DECODER.raw_decode(self._text, self._place)
                    return cast("_Row", row)
            except _RepeatedNameError:
                problem = f"row {self._row} has a name twice"
                raise refusal(self._where, problem, "Give each value of a row a name of its own.") from None
            self._require(len(self._text) - self._place <= LONGEST and self._read())

    def _read(self) -> bool:
        """Read on, and return whether there was more."""
        if not self._is_utf8:
            problem = f"in row {self._row}, the file is not UTF-8 text"
            raise refusal(self._where, problem, "Save the file as UTF-8, as JSON is.")
        if not self._has_more:
            return False
        try:
            data = self._file.read(_PIECE)
        except (OSError, EOFError, zlib.error):
            remedy = "Check the disk and the file's rights, and that it was copied whole."
            raise refusal(self._where, "the file cannot be read to its end", remedy) from None
        self._has_more = bool(data)
        try:
            text = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            self._is_utf8 = False
            text = error.object[: error.start].decode("utf-8")
        self._passed += self._place
        self._text, self._place = self._text[self._place :] + text, 0
        return True

    def _require(self, is_well_formed: bool) -> None:  # noqa: FBT001 - as an assertion
        if not is_well_formed:
            problem = f"row {self._row} is not a well-formed JSON object, or is cut off"
            raise refusal(self._where, problem, "Write the file again; a row has at most 1 MiB.")


class _Values:
    """The values of one column while the file is read: all are of one type."""

    def __init__(self, where: str, name: str) -> None:
        self._where, self._name = where, name
        self._type: type | None = None

    @property
    def are_numbers(self) -> bool:
        """Whether the file has numbers for them, as far as it was read."""
        return self._type is _Number

    def texts(self, values: Sequence[_Value], first_row: int) -> pa.Array:
        """Return the texts of some more of them; `first_row` is the number of the first.

        Raises:
            InvalidInputError: one has values in it, is of another type than those before, or is not a text.
        """
        types = set(map(type, values)) - {type(None)}
        if self._type is None:
            self._type = next((type(value) for value in values if value is not None), None)
        if not types <= {self._type} - _NESTED.keys():
            self._refuse(values, first_row)
        if self._type is bool:
            values = [None if value is None else str(value).lower() for value in values]
        try:
            return pa.array(values, pa.string())
        except UnicodeEncodeError:
            problem = f"column {self._name!r} holds half of a character{first_rows(_halves(values, first_row))}"
            raise refusal(self._where, problem, "Write the file again, as UTF-8.") from None

    def _refuse(self, values: Sequence[_Value], first_row: int) -> NoReturn:
        """Refuse the first value that is of another type."""
        row, type_ = next(
            (row, type(value))
            for row, value in enumerate(values, first_row)
            if value is not None and (type(value) in _NESTED or type(value) is not self._type)
        )
        if type_ in _NESTED:
            problem = f"column {self._name!r} holds a JSON {_NESTED[type_]} in row {row}"
            raise refusal(self._where, problem, "Give each value a name of its own in its row.")
        before = _PLAIN[cast("type", self._type)]
        problem = f"column {self._name!r} holds {before}, and {_PLAIN[type_]} from row {row} on"
        raise refusal(self._where, problem, "Write all of them as texts, or all as numbers.")


class _RepeatedNameError(Exception):
    """An object has a name twice."""


def _decimals(numbers: Sequence[_Value]) -> frozenset[str]:
    """Return those of some numbers that are not written as whole ones."""
    texts = {number.decode() for number in set(numbers) if isinstance(number, _Number)}
    return frozenset(text for text in texts if not text.lstrip("-").isdigit())


def _halves(values: Sequence[_Value], first_row: int) -> list[int]:
    """Return the rows of texts that hold a surrogate, one half of a character beyond 16 bits."""
    return [row for row, value in enumerate(values, first_row) if re.search("[\ud800-\udfff]", str(value))]


def _column(name: str, value: _Value) -> Column:
    """Return a column of the header, by its value in the first object."""
    nested = _NESTED.get(type(value), "")
    kind = ColumnKind.OTHER if nested else ColumnKind.WRITTEN
    return Column(spelling=name, kind=kind, type_name=nested, has_grouped_points=True)


def _named_once(pairs: list[tuple[str, _Value]]) -> dict[str, _Value]:
    """Return the values of an object by name."""
    values = dict(pairs)
    if len(values) != len(pairs):
        raise _RepeatedNameError
    return values


def _no_number(_: str) -> NoReturn:
    """Refuse what Python takes for a number, and JSON does not: NaN and Infinity."""
    raise ValueError


_DECODER = json.JSONDecoder(
    object_pairs_hook=_named_once, parse_int=str.encode, parse_float=str.encode, parse_constant=_no_number
)
