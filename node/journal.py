"""What nodes have decided, kept until it is counted: a node that asks again repeats its answer, it never draws anew.

Two independent randomisations of one value would cost the node epsilon twice.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from common.database import erase_traces, open_database, transaction
from common.errors import ConflictError

_MIGRATIONS = (
    """
    CREATE TABLE decision (
        round_id TEXT NOT NULL, node INTEGER NOT NULL, state TEXT NOT NULL, request BLOB, size INTEGER NOT NULL,
        PRIMARY KEY (round_id, node)) WITHOUT ROWID;
    CREATE TABLE origin (round_id TEXT PRIMARY KEY, digest BLOB NOT NULL)
    """,
)


class State(Enum):
    """Where a node stands in a round."""

    SILENT = "silent"
    WAITING = "waiting"
    COUNTED = "counted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One node's decision in one round.

    Args:
        node: number of the node within this journal.
        state: where it stands.
        request: the encoded report until it is counted; empty otherwise.
        size: bytes of the report, sent or not.
    """

    node: int
    state: State
    request: bytes
    size: int


class Journal:
    """Decisions in SQLite.

    Args:
        folder: the nodes' state folder.
    """

    def __init__(self, folder: Path) -> None:
        self._connection = open_database(folder / "node.sqlite", _MIGRATIONS)

    def close(self) -> None:
        """Erase what was counted from the log too, and close."""
        erase_traces(self._connection)
        self._connection.close()

    def check_origin(self, round_id: str, digest: bytes) -> None:
        """Remember where a round's values came from; refuse others, which would be matched to the wrong nodes."""
        with transaction(self._connection) as db:
            db.execute("INSERT INTO origin VALUES (?, ?) ON CONFLICT DO NOTHING", [round_id, digest])
            (known,) = db.execute("SELECT digest FROM origin WHERE round_id = ?", [round_id]).fetchone()
        if bytes(known) != digest:
            raise ConflictError(
                "this folder has answered the round from other values or tokens",
                where=f"round {round_id}",
                remedy="Give the same files again, or another --state folder with tokens of its own.",
            )

    def decisions(self, round_id: str) -> dict[int, Decision]:
        """Return the decisions of a round by node."""
        rows = self._connection.execute("SELECT * FROM decision WHERE round_id = ?", [round_id]).fetchall()
        return {
            row["node"]: Decision(
                node=row["node"], state=State(row["state"]), request=bytes(row["request"] or b""), size=row["size"]
            )
            for row in rows
        }

    def decide(self, round_id: str, decisions: Iterable[Decision]) -> None:
        """Record decisions durably, before any of them is sent."""
        with transaction(self._connection) as db:
            for decision in decisions:
                db.execute(
                    "INSERT INTO decision VALUES (?, ?, ?, ?, ?)",
                    [round_id, decision.node, decision.state.value, decision.request or None, decision.size],
                )

    def finish(self, round_id: str, nodes: Iterable[int], state: State) -> None:
        """Record that reports were counted, and forget what they said; or refused, and keep them for another token."""
        kept = "NULL" if state is State.COUNTED else "request"
        with transaction(self._connection) as db:
            for node in nodes:
                db.execute(
                    f"UPDATE decision SET state = ?, request = {kept} WHERE round_id = ? AND node = ?",  # noqa: S608 - one of two words
                    [state.value, round_id, node],
                )
