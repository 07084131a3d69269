"""Opens a table by what its address looks like: each ending of a name stands for one kind of source.

A kind of file is a line of `_FILES`; the module of a kind loads when such a table is opened.
"""

from collections.abc import Callable, Mapping
from glob import has_magic
from importlib import import_module
from pathlib import Path
from stat import S_ISREG
from typing import cast

from veiltab.common.core.texts.nearest import nearest
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.columns.refusals import refusal
from veiltab.curator.formats.columns.source import Source

_TEXTS = (".csv", ".tsv", ".tab", ".txt")
_JSON = (".json", ".ndjson", ".jsonl")
_DATABASES = (".db", ".sqlite", ".sqlite3", ".duckdb")
_PARQUET = (".parquet", ".pq")
_SPREADSHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_FILES: Mapping[tuple[str, ...], str] = {
    _PARQUET: "files.parquet:ParquetFile",
    (".arrow", ".feather"): "files.arrow_file:ArrowFile",
}
"""Endings -> the class that reads such a file, given its path."""

_PLAIN = tuple(ending for endings in _FILES for ending in endings)
_KINDS = (
    "Give a .csv, .tsv, .txt, .json or .ndjson file, compressed (.gz) or not, a .parquet file or a folder of them,"
    " .arrow, .feather, .xlsx, .xls, .ods, .sqlite, .duckdb, or postgresql://HOST/DATABASE with --query."
)
_DUCKDB_MARK = slice(8, 12)
_GZIP_MARK = b"\x1f\x8b"


def open_table(table: TableAddress | Path) -> Source:
    """Open a table far enough to know its header.

    Raises:
        InvalidInputError: it is absent, unreadable, of no known kind, or malformed at its beginning.
    """
    address = TableAddress.of(table)
    if address.is_url:
        return _reader("databases.postgresql:PostgresqlQuery")(address)
    path, part = _divided(address.path)
    if address.query and not path.name.lower().endswith(_DATABASES):
        return _reader("databases.duckdb_file:FileQuery")(_opened(address, path, part), address.query)
    return _opened(address, path, part)


def _opened(address: TableAddress, path: Path, part: str) -> Source:
    """Open a file, or several that are one table."""
    name = path.name.lower()
    if path.is_dir() or (has_magic(str(path)) and not path.exists()):
        return _reader("files.parquet_files:parquet_files")(path, _PARQUET, remedy=_KINDS)
    plain_name = name.removesuffix(".gz")
    if not _has_known_ending(path):
        if not path.exists():
            raise refusal(address.label, "no such file or folder", f"{_near(path)}Check the path. {_KINDS}")
        raise refusal(address.label, f"unsupported file type {''.join(path.suffixes[-2:])!r}", _KINDS)
    start = _beginning(path)
    if plain_name.endswith((*_TEXTS, *_JSON)):
        _check_compression(path, start)
        if plain_name.endswith(_TEXTS):
            return _reader("files.text_file:TextFile")(path, address.encoding)
        return _reader("files.json_file:JsonFile")(path)
    for endings, place in _FILES.items():
        if name.endswith(endings):
            return _reader(place)(path)
    if name.endswith(_SPREADSHEETS):
        return _reader("files.spreadsheet:Spreadsheet")(path, part)
    is_duckdb = start[_DUCKDB_MARK] == b"DUCK"
    return _reader("databases.duckdb_file:DuckdbQuery" if is_duckdb else "databases.sqlite:SqliteQuery")(
        path, part, address.query
    )


def _reader(place: str) -> Callable[..., Source]:
    """Import what reads one kind of table; tables of the other kinds do not need it."""
    module, _, name = place.partition(":")
    return cast("Callable[..., Source]", getattr(import_module(f"veiltab.curator.formats.{module}"), name))


def file_of(address: TableAddress) -> Path | None:
    """Return the file of a table, if it is one file and no database."""
    if address.is_url:
        return None
    path, _ = _divided(address.path)
    return path if path.is_file() and not path.name.lower().endswith(_DATABASES) else None


def _divided(path: Path) -> tuple[Path, str]:
    """Return a path, and the sheet or table behind its #, if a file of that kind stands before it."""
    before, mark, part = str(path).rpartition("#")
    if mark and before.lower().endswith((*_SPREADSHEETS, *_DATABASES)) and not path.exists():
        return Path(before), part
    return path, ""


def _check_compression(path: Path, start: bytes) -> None:
    """Refuse a text whose name says that it is compressed by gzip where it is not, or the other way round."""
    is_compressed = start.startswith(_GZIP_MARK)
    if is_compressed == (path.suffix.lower() == ".gz"):
        return
    if is_compressed:
        raise refusal(str(path), "the file is compressed by gzip", f"Name it so: {path.name}.gz.")
    raise refusal(str(path), "the file is not compressed by gzip", "Take .gz off its name.")


def _has_known_ending(path: Path) -> bool:
    """Return whether a name ends as that of a file that can be read."""
    name = path.name.lower()
    texts = name.removesuffix(".gz").endswith((*_TEXTS, *_JSON))
    return texts or name.endswith((*_PLAIN, *_SPREADSHEETS, *_DATABASES))


def _near(path: Path) -> str:
    """Return what can be read beside an absent file and may be meant, as a question; "" if there is nothing."""
    beside = path.parent.iterdir() if path.parent.is_dir() and not path.exists() else ()
    return nearest((one.name for one in beside if one.is_dir() or _has_known_ending(one)), path.name)


def _beginning(path: Path) -> bytes:
    """Return the beginning of a readable, regular file that is not empty."""
    where = str(path)
    try:
        if not S_ISREG(path.stat().st_mode):  # a pipe would be waited for, and read once
            raise refusal(where, "this is not a file that can be read twice", "Give a file that lies on a disk.")
        with path.open("rb") as file:
            start = file.read(_DUCKDB_MARK.stop)
    except OSError as error:
        problem, remedy = f"the file cannot be read ({error.strerror})", f"{_near(path)}Check the path and its rights."
        raise refusal(where, problem, remedy) from None
    if not start:
        raise refusal(where, "the file is empty", "Give a table with a header and at least one row.")
    return start
