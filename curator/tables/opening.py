"""Opens a table by what its address looks like: each ending of a name stands for one kind of source."""

from pathlib import Path

from veiltab.curator.tables.address import TableAddress
from veiltab.curator.tables.parquet import ParquetFile
from veiltab.curator.tables.refusals import refusal
from veiltab.curator.tables.source import Source
from veiltab.curator.tables.text_file import TextFile

_TEXTS = (".csv", ".tsv", ".tab", ".txt")


def open_table(table: TableAddress | Path) -> Source:
    """Open a table far enough to know its header.

    Args:
        table: its address.

    Raises:
        InvalidInputError: it is absent, unreadable, of no known kind, or malformed at its beginning.
    """
    address = TableAddress.of(table)
    path = address.path
    name = path.name.lower()
    if not (name.removesuffix(".gz").endswith(_TEXTS) or name.endswith(".parquet")):
        problem = f"unsupported file type {''.join(path.suffixes[-2:])!r}"
        raise refusal(address.shown, problem, "Give a .csv, .tsv or .txt file, compressed (.gz) or not, or .parquet.")
    _check_readable(path)
    if name.endswith(".parquet"):
        return ParquetFile(path)
    return TextFile(path, address.encoding)


def _check_readable(path: Path) -> None:
    """Refuse anything but a readable, regular, non-empty file."""
    where = str(path)
    if path.is_dir():
        raise refusal(where, "this is a directory", "Give the table's file.")
    try:
        with path.open("rb") as file:
            start = file.read(1)
    except OSError as error:
        raise refusal(where, f"the file cannot be read ({error.strerror})", "Check the path and its rights.") from None
    if not start:
        raise refusal(where, "the file is empty", "Give a table with a header and at least one row.")
