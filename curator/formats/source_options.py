"""The options by which a command is told where a table is."""

import functools
from collections.abc import Callable
from typing import TypeVar

import click

from veiltab.curator.formats.address import TableAddress

T = TypeVar("T")

_TABLE = functools.partial(
    click.option,
    "--table",
    "table_location",
    metavar="PLACE",
    help="A file (.csv, .tsv, .txt, .json, .ndjson, .gz, .parquet, .feather, .xlsx, .xls, .ods, .sqlite, .duckdb), a"
    " folder or pattern of Parquet files, FILE#SHEET, FILE#TABLE, or postgresql://HOST/DATABASE.",
)
_READING = (
    click.option(
        "--query", default="", metavar="SQL", help="What to read: one statement; of a file `select ... from t`."
    ),
    click.option("--encoding", default="", help="Of a text file whose beginning does not show it; see docs/tables.md."),
    click.option(
        "--decimal",
        default="",
        type=click.Choice(["", "point", "comma"]),
        metavar="[point|comma]",
        help="How numbers are written that may be read in two ways, such as 1,234.",
    ),
)


def table_options(command: Callable[..., T]) -> Callable[..., T]:
    """Give a command the options of a table; it takes them as `table`, a TableAddress."""
    return _with_table(command, is_required=True)


def optional_table_options(command: Callable[..., T]) -> Callable[..., T]:
    """Give a command the options of a table that may be left out; `table` is None then."""
    return _with_table(command, is_required=False)


def _with_table(command: Callable[..., T], *, is_required: bool) -> Callable[..., T]:
    @functools.wraps(command)
    def with_table(*, table_location: str | None, query: str, encoding: str, decimal: str, **options: object) -> T:
        table = None
        if table_location is not None:
            table = TableAddress(location=table_location, query=query, encoding=encoding, decimal=decimal)
        return command(table=table, **options)

    decorated: Callable[..., T] = with_table
    for option in reversed((_TABLE(required=is_required), *_READING)):
        decorated = option(decorated)
    return decorated
