"""Releases in the databases of parties: the queries that their stores have in common.

A table of releases has the columns id, state, created and since: `created` is when the release was recorded, and
`since` when it came into its state, in Unix seconds.
"""

from collections.abc import Sequence
from typing import Any

from veiltab.common.release.state import ReleaseState
from veiltab.common.storage.database import Connection

IS_FINISHED, IS_UNFINISHED = (
    f"state IN ({', '.join(repr(state.value) for state in ReleaseState if state.finished == finished)})"
    for finished in (True, False)
)
"""The conditions that a release is over, and that it is under way; an index finds either."""


def latest_rows(connection: Connection, table: str, finished: int) -> Sequence[Any]:
    """Return the rows of the releases that are not over, and of the last `finished` that are; oldest first."""
    return connection.execute(
        f"SELECT * FROM {table} WHERE {IS_UNFINISHED} OR id IN"  # noqa: S608 - the program's own words
        f" (SELECT id FROM {table} WHERE {IS_FINISHED} ORDER BY since DESC, id LIMIT ?) ORDER BY created, id",
        [finished],
    ).fetchall()


def state_counts(connection: Connection, table: str) -> dict[str, int]:
    """Return how many releases are in each state."""
    rows = connection.execute(f"SELECT state, COUNT(*) AS number FROM {table} GROUP BY state").fetchall()  # noqa: S608 - as above
    return {row["state"]: row["number"] for row in rows}
