"""The options by which a command is told where a table is."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from veiltab.common.command.cli import PATH
from veiltab.common.command.config import read_party_file
from veiltab.common.errors import InvalidInputError
from veiltab.curator.formats.address import TableAddress

T = TypeVar("T")

_TABLE = click.option(
    "--table",
    "table_location",
    required=True,
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

    @functools.wraps(command)
    def with_table(*, table_location: str, query: str, encoding: str, decimal: str, **options: object) -> T:
        table = TableAddress(location=table_location, query=query, encoding=encoding, decimal=decimal)
        return command(table=table, **options)

    decorated: Callable[..., T] = with_table
    for option in reversed((_TABLE, *_READING)):
        decorated = option(decorated)
    return decorated


def _table_of(_context: click.Context, _option: click.Parameter, path: Path | None) -> TableAddress | None:
    """Return where a curator's file for `serve` says that its table is."""
    if path is None:
        return None
    values, problems = read_party_file(path)
    if problems:
        raise problems[0][1]
    if "table" not in values:
        raise InvalidInputError("this file names no table", where=str(path), remedy="Add its key table.")
    query, encoding, decimal = (str(values.get(key, "")) for key in ("query", "encoding", "decimal"))
    return TableAddress(location=str(values["table"]), query=query, encoding=encoding, decimal=decimal)


config_option = click.option(
    "--config",
    "table",
    type=PATH,
    callback=_table_of,
    metavar="PARTY.toml",
    help="The file of `veiltab curator serve --config`, which says where the table is and how it is read.",
)
