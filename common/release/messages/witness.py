"""The longest ledgers that curators showed to another party, which remembers them: (entries, head) by curator.

Anyone who remembers a ledger tells its owner, who compares it with what it has. So a ledger that was rolled back is
noticed as long as one party that saw more of it was not rolled back with it.
"""

from veiltab.common.core.texts.message_fields import whole_from_proto
from veiltab.common.errors import InvalidInputError
from veiltab.common.storage.database import Connection
from veiltab.v1.release_pb2 import LedgerHead

WITNESS_TABLE = "CREATE TABLE witness (curator TEXT PRIMARY KEY, length INTEGER NOT NULL, head BLOB NOT NULL)"
NONE_SEEN = (0, b"")
HEAD_BYTES = 32

Witnessed = tuple[int, bytes]
Shown = tuple[str, Witnessed]
"""A curator, and a ledger that it showed."""


def longest_ledger(connection: Connection, curator: str) -> Witnessed:
    """Return the longest ledger that a curator ever showed."""
    row = connection.execute("SELECT length, head FROM witness WHERE curator = ?", [curator]).fetchone()
    return NONE_SEEN if row is None else (row["length"], bytes(row["head"]))


def remember_ledger(connection: Connection, curator: str, ledger: Witnessed) -> None:
    """Record a curator's ledger if it is longer than the recorded one."""
    connection.execute(
        "INSERT INTO witness VALUES (?, ?, ?) ON CONFLICT (curator) DO UPDATE SET"
        " length = excluded.length, head = excluded.head WHERE excluded.length > witness.length",
        [curator, *ledger],
    )


def check_head(ledger: Witnessed, where: str) -> None:
    """Refuse what is not a head of a ledger.

    Raises:
        InvalidInputError: the number of entries is none, or the digest has another length.
    """
    whole_from_proto(ledger[0], where)
    if len(ledger[1]) != HEAD_BYTES:
        raise InvalidInputError(f"the head of the ledger does not have {HEAD_BYTES} bytes", where=where)


def ledger_to_proto(ledger: Witnessed) -> LedgerHead | None:
    """Encode a ledger; None if there is nothing to tell."""
    return LedgerHead(length=ledger[0], head=ledger[1]) if ledger[1] else None


def ledger_from_proto(message: LedgerHead, where: str) -> Witnessed:
    """Decode a ledger that may be absent.

    Raises:
        InvalidInputError: as `check_head`.
    """
    ledger = message.length, message.head
    if ledger != NONE_SEEN:
        check_head(ledger, where)
    return ledger
