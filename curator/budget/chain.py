"""The chain of a ledger's entries: each covers the one before it, so that none is altered or taken away unseen."""

import json
import sqlite3
from collections.abc import Iterator
from decimal import Decimal

from veiltab.common.errors import IntegrityError
from veiltab.common.release.messages.witness import Witnessed
from veiltab.common.storage.database import Database, value_of
from veiltab.curator.audit.log import AuditHead
from veiltab.curator.budget.allowance import Allowance, Sums
from veiltab.curator.budget.bounded_set import BoundedSet
from veiltab.curator.budget.doubts import Doubts
from veiltab.curator.budget.entries import (
    GENESIS,
    Entry,
    charge_of,
    covered_audit_head,
    fields_of,
    line_of,
    linked,
    price_of,
    prices_of,
)

_STANDING = (
    "SELECT EXISTS (SELECT 1 FROM reservation WHERE release_id = ?1), EXISTS (SELECT 1 FROM ledger WHERE"
    " release_id = ?1 OR release_id = (SELECT part_of FROM release WHERE id = ?1 AND part_of <> ''))"
)
_ENTRIES = "SELECT * FROM ledger LEFT JOIN price USING (release_id) WHERE number > ? ORDER BY number"


class Chain:
    """The entries of a ledger: read, counted, checked.

    Args:
        allowance: the budget, by which an entry takes its share.

    Raises:
        IntegrityError: the chain is broken.
    """

    def __init__(self, connection: Database, allowance: Allowance) -> None:
        self.connection = connection
        self.allowance = allowance
        self.doubts = Doubts(connection)
        # Releases that were seen to be charged: a charge is never taken back.
        self._charged = BoundedSet()
        self.verify()

    def verify(self) -> None:
        """Recompute the chain from its beginning."""
        for _ in self.lines():
            pass

    def lines(self) -> Iterator[str]:
        """Return the line of each entry that its digest covers, oldest first, and recompute the chain on the way.

        Raises:
            IntegrityError: an entry was altered, or one is missing.
        """
        head, sums = GENESIS, Sums()
        for number, row in enumerate(self.rows_after(0), start=1):
            sums = sums.plus(charge_of(row))
            digest = bytes(row["digest"])
            lines = (line_of(*fields_of(row)), line_of(*fields_of(row), *prices_of(row, sums)))
            line = next((one for one in lines if linked(head, one) == digest), None)
            if row["number"] != number or line is None:
                raise IntegrityError(
                    f"the ledger was altered at entry {number}",
                    where="ledger",
                    remedy="See docs/operations/back-up.md: the other curators hold the same charges.",
                )
            yield line
            head = digest

    def verify_against(self, witnessed: Witnessed, who: str) -> None:
        """Check that this ledger still contains what another party remembers of it.

        Args:
            who: the party, as messages name it.

        Raises:
            IntegrityError: entries are missing or differ, and no person has set that aside.
        """
        length, head = witnessed
        if length == 0 or value_of(self.connection, "SELECT digest FROM ledger WHERE number = ?", length) == head:
            return
        if not self.doubts.is_set_aside(who, length, head):
            raise IntegrityError(
                f"the ledger lacks entries that {who} has seen",
                where="ledger",
                remedy="It was rolled back, perhaps by restoring an old backup, or somebody showed another one under"
                " this curator's name; see docs/operations/back-up.md and `veiltab curator repair`.",
            )

    @property
    def head(self) -> tuple[int, bytes]:
        """Number of entries and the digest of the last."""
        row = self.connection.execute("SELECT number, digest FROM ledger ORDER BY number DESC LIMIT 1").fetchone()
        return (0, GENESIS) if row is None else (row["number"], bytes(row["digest"]))

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All charges, oldest first."""
        return self.entries_after(0)

    def entries_after(self, number: int) -> tuple[Entry, ...]:
        """Return the charges that came after one, oldest first."""
        return tuple(map(self._entry, self.rows_after(number)))

    @property
    def audit_heads(self) -> tuple[AuditHead, ...]:
        """Where the audit log stood at each charge, oldest first."""
        return tuple(entry.audit for entry in self.entries if entry.audit is not None)

    def standing(self, release_id: str) -> tuple[bool, bool]:
        """Return whether epsilon is kept for a release, and whether it is charged, which takes the place of that."""
        if release_id in self._charged:
            return False, True
        is_reserved, is_charged = map(bool, self.connection.execute(_STANDING, [release_id]).fetchone())
        if is_charged:
            self._charged.add(release_id)
        return is_reserved, is_charged

    def is_charged(self, release_id: str) -> bool:
        """Whether a release is charged: itself, or the one that it is a table of."""
        return self.standing(release_id)[1]

    def _entry(self, row: sqlite3.Row) -> Entry:
        fields = json.loads(row["entry"])
        audit = covered_audit_head(fields)
        fields.pop("audit", None)
        return Entry(
            number=row["number"],
            release_id=row["release_id"],
            facts=fields,
            audit=audit,
            epsilon=Decimal(row["epsilon"]),
            price=price_of(row),
            share=self.allowance.share(charge_of(row)),
        )

    def rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """Return what a query finds in the ledger's tables."""
        return self.connection.execute(query, values).fetchall()

    def rows_after(self, number: int) -> list[sqlite3.Row]:
        """Return the rows of the entries that came after one, with their prices, oldest first."""
        return self.rows(_ENTRIES, number)
