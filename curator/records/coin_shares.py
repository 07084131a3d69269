"""The coins that curators toss together: shares, commitments, openings, and releases that a curator spoiled."""

from collections import Counter

from veiltab.common.errors import ConflictError
from veiltab.common.storage.database import Database, erase_traces, transaction, value_of
from veiltab.curator.audit.log import AuditLog, Event


class CoinShares:
    """This curator's shares of coins, and what the others did about theirs."""

    def __init__(self, connection: Database, audit: AuditLog) -> None:
        self._connection = connection
        self._audit = audit
        self.has_traces = True
        """Whether the database's log may have coins that were forgotten; an earlier process may have left some."""

    def own_share(self, coin_id: str, fresh: bytes) -> bytes:
        """Return this curator's share of a coin: `fresh` the first time, the same ever after."""
        self._connection.execute("INSERT INTO coin (id, share) VALUES (?, ?) ON CONFLICT DO NOTHING", [coin_id, fresh])
        return bytes(value_of(self._connection, "SELECT share FROM coin WHERE id = ?", coin_id))

    def knows_coin(self, coin_id: str) -> bool:
        """Whether this curator has, or had, a share of a coin."""
        return value_of(self._connection, "SELECT 1 FROM coin WHERE id = ?", coin_id) is not None

    def commit(self, coin_id: str, curator: str, commitment: bytes) -> None:
        """Record a commitment; the first one counts, and another one is refused."""
        query = "SELECT commitment FROM commitment WHERE coin_id = ? AND curator = ?"
        add = "INSERT INTO commitment VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        is_new = self._connection.execute(add, [coin_id, curator, commitment]).rowcount
        if not is_new and value_of(self._connection, query, coin_id, curator) != commitment:
            raise ConflictError("a curator changed its commitment", where=f"curator {curator}")

    def commitments(self, coin_id: str) -> dict[str, bytes]:
        """Return the commitments to a coin by curator."""
        rows = self._connection.execute("SELECT curator, commitment FROM commitment WHERE coin_id = ?", [coin_id])
        return {row["curator"]: bytes(row["commitment"]) for row in rows}

    def set_opening_given(self, coin_id: str, curator: str) -> None:
        """Record that a curator gets this one's share of a coin, before it leaves."""
        self._connection.execute(
            "INSERT INTO opening (coin_id, curator, given) VALUES (?, ?, 1)"
            " ON CONFLICT (coin_id, curator) DO UPDATE SET given = 1",
            [coin_id, curator],
        )

    def set_opening_received(self, coin_id: str, curator: str) -> None:
        """Record that a curator opened its share of a coin here; it does so again where this is undone."""
        self._connection.execute_unsynced(
            "INSERT INTO opening (coin_id, curator, received) VALUES (?, ?, 1)"
            " ON CONFLICT (coin_id, curator) DO UPDATE SET received = 1",
            [coin_id, curator],
        )

    def openings_received(self, coin_id: str) -> frozenset[str]:
        """Return the curators that opened their share of a coin here."""
        return self._openings(coin_id, "received = 1")

    def openings_withheld(self, coin_id: str) -> frozenset[str]:
        """Return the curators that have this one's share of a coin, and did not open theirs."""
        return self._openings(coin_id, "given = 1 AND received = 0")

    def _openings(self, coin_id: str, condition: str) -> frozenset[str]:
        rows = self._connection.execute(f"SELECT curator FROM opening WHERE coin_id = ? AND {condition}", [coin_id])  # noqa: S608 - the program's own words
        return frozenset(row["curator"] for row in rows)

    def coin_value(self, coin_id: str) -> bytes | None:
        """Return a coin's value once it is tossed, and until it is forgotten."""
        return value_of(self._connection, "SELECT value FROM coin WHERE id = ?", coin_id) or None

    def set_coin_value(self, coin_id: str, value: bytes) -> None:
        """Record a coin's value; the same shares give the same one again."""
        self._connection.execute_unsynced("UPDATE coin SET value = ? WHERE id = ?", [value, coin_id])

    def forget_coin(self, coin_id: str) -> None:
        """Erase a coin that nobody needs any more, and those of two curators that are named after it.

        Their commitments stay, so that they are never tossed again.

        Its traces are there until `erase_traces`.
        """
        self.has_traces = True
        self._connection.execute_unsynced(
            "UPDATE coin SET share = x'', value = x'' WHERE id = ? OR id BETWEEN ? AND ?",
            [coin_id, f"{coin_id}/", f"{coin_id}/~"],  # by the index; names of curators are letters, digits and "-"
        )

    def is_forgotten(self, coin_id: str) -> bool:
        """Whether a coin was tossed and is erased."""
        return bool(value_of(self._connection, "SELECT share FROM coin WHERE id = ?", coin_id) == b"")

    def forget_unmade(self, most: int) -> list[str]:
        """Delete the parts of alignments that were begun and not made, but for the latest of them; return these."""
        with transaction(self._connection) as db:
            begun = db.execute("SELECT substr(id, 11) FROM coin WHERE id LIKE 'alignment/%' ORDER BY rowid DESC")
            made = {row["id"] for row in db.execute("SELECT id FROM alignment")}
            unmade = [name for (name,) in begun if name not in made]
            old = [[name] for name in unmade[most:]]
            db.executemany("DELETE FROM coin WHERE id = 'alignment/' || ?", old)
            db.executemany("DELETE FROM commitment WHERE coin_id = 'alignment/' || ?", old)
            db.executemany("DELETE FROM opening WHERE coin_id = 'alignment/' || ?", old)
            db.executemany("DELETE FROM join_session WHERE alignment_id = ? AND NOT failed", old)
        return unmade[:most]

    def erase_traces(self) -> None:
        """Erase coins that were forgotten from the database's log too; it waits for the disk several times."""
        # Before that, as another thread may forget one meanwhile.
        self.has_traces = False
        if not erase_traces(self._connection):
            self.has_traces = True

    def add_aborted(self, release_id: str, party: str, why: str, *, is_claim: bool = False) -> None:
        """Count a charged release without a result against a party, such as "curator bob", or with it.

        Args:
            is_claim: whether it is a curator that says that the server failed.
        """
        self._connection.execute(
            "INSERT INTO aborted_toss VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", [release_id, party, is_claim, why]
        )

    def aborted(self, *, claims: bool = False) -> Counter[str]:
        """Return how many charged releases without a result are counted against each party.

        Args:
            claims: of those that ended as a curator says that the server failed, how many by each curator.
        """
        rows = self._connection.execute(
            "SELECT party, COUNT(*) AS number FROM aborted_toss WHERE is_claim = ? GROUP BY party", [claims]
        )
        return Counter({row["party"]: row["number"] for row in rows})

    def why_aborted(self, party: str) -> str:
        """Return why the last release ended that is counted against a party; empty if none is."""
        query = "SELECT why FROM aborted_toss WHERE party = ? ORDER BY rowid DESC LIMIT 1"
        return value_of(self._connection, query, party) or ""

    def clear_aborted(self, party: str, *, person: str) -> int:
        """Forget the releases that are counted against a party, as a person decided; return their number."""
        with transaction(self._connection) as db:
            cleared = db.execute("DELETE FROM aborted_toss WHERE party = ?", [party]).rowcount
            self._audit.record(Event.TOSSES_CLEARED, person=person, party=party, tosses=cleared)
        return cleared
