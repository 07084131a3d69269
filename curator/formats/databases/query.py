"""Queries of databases: one statement that reads. Each database holds to that itself; here it is said early."""

import re
from collections.abc import Sequence

from veiltab.curator.formats.columns.refusals import refusal

_COMMENTS = re.compile(r"\s+|--[^\n]*(?:\n|$)|/\*.*?\*/", re.DOTALL)
_READS = ("select", "with", "values", "table", "from")


def reading_query(where: str, query: str) -> str:
    """Return a query without the semicolon at its end.

    Raises:
        InvalidInputError: it does not begin like one that reads.
    """
    rest = query
    while (comment := _COMMENTS.match(rest)) and comment.end():
        rest = rest[comment.end() :]
    word = re.match(r"[A-Za-z]*", rest)
    if word is None or word[0].lower() not in _READS:
        raise refusal(where, "the query is not a statement that reads", 'Write it like "select id, sex from people".')
    return query.rstrip().rstrip(";").rstrip()


def query_of_file(where: str, kind: str, tables: Sequence[str], table: str, query: str) -> tuple[str, str]:
    """Return (what to read of a database file, what that is, for people).

    Args:
        kind: of the file, such as "a SQLite file".
        table: the one to read whole; "" for the only one.
        query: what to read instead; "" for a table.

    Raises:
        InvalidInputError: the query does not begin like one that reads, or the table is not there, or not named among
            several.
    """
    if query:
        reading = reading_query(where, query)
        return reading, f"a query of {kind}{unordered(reading)}"
    return _query_of_table(where, tables, table), f"a table of {kind}"


def quoted(name: str) -> str:
    """Return the name of a table or a column as a query has it."""
    return '"{}"'.format(name.replace('"', '""'))


def unordered(query: str) -> str:
    """Return what to say of a query whose rows may come in another order next time; "" if they are ordered."""
    if re.search(r"\border\s+by\b", query, re.IGNORECASE):
        return ""
    return ", in the database's own order (`order by` keeps it the same)"


def _query_of_table(where: str, tables: Sequence[str], name: str) -> str:
    names = ", ".join(repr(table[:40]) for table in tables[:20]) or "none"
    if name and name not in tables:
        raise refusal(where, f"there is no table {name!r}", f"Tables: {names}.")
    if not name and len(tables) != 1:
        remedy = 'Name one behind a #, such as data.db#people, or give --query "select ...".'
        raise refusal(where, f"the database has {len(tables)} tables: {names}", remedy)
    return f"select * from {quoted(name or tables[0])}"  # noqa: S608 - a table of that database
