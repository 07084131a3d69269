"""The privacy ledger: what was spent on whom, charged durably before anything leaves, never forgotten.

Entries form a hash chain; peers remember its head, so an edited, truncated or rolled-back ledger is found at start-up.
Relation: substitution of one respondent's row over all columns of all curators. Every curator charges every release of
its study, whichever columns it releases, so each ledger bounds the loss of a respondent's whole row (basic
composition).
"""

import hashlib
import json
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import reduce

from common.database import Database, transaction
from common.errors import BudgetExceededError, IntegrityError
from common.privacy.card import upward
from common.release import ReleaseSpec

# An epsilon may have more digits than the default context keeps; what does not fit 100 digits is rounded against us.
_UP = Context(prec=100, rounding=ROUND_CEILING)
_DOWN = Context(prec=100, rounding=ROUND_FLOOR)
_GENESIS = hashlib.sha256(b"veiltab ledger").digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One charge: the plain facts of a release, and its pure epsilon (nats, upper bound)."""

    number: int
    release_id: str
    facts: dict[str, object]
    epsilon: Decimal


class Ledger:
    """All charges of one curator, over all researchers, against one budget.

    Args:
        connection: the curator's database.
        budget: most that may ever be spent, in nats, pure, by basic composition.

    Raises:
        IntegrityError: the chain is broken.
    """

    def __init__(self, connection: Database, budget: Decimal) -> None:
        self._connection = connection
        self.budget = budget
        self.verify()

    def verify(self) -> None:
        """Recompute the chain from its beginning."""
        head = _GENESIS
        rows = self._connection.execute("SELECT * FROM ledger ORDER BY number").fetchall()
        for number, row in enumerate(rows, start=1):
            head = _chained(head, number, row["release_id"], row["entry"], row["epsilon"])
            if row["number"] != number or bytes(row["digest"]) != head:
                raise IntegrityError(
                    f"the ledger was altered at entry {number}",
                    where="ledger",
                    remedy="Restore it from a backup and compare with the other curators; see docs/operations.md.",
                )

    def verify_against(self, witness: tuple[int, bytes], curator: str) -> None:
        """Check that this ledger still contains what a peer remembers of it.

        Raises:
            IntegrityError: entries are missing or differ: the ledger was rolled back.
        """
        length, head = witness
        if length == 0:
            return
        row = self._connection.execute("SELECT digest FROM ledger WHERE number = ?", [length]).fetchone()
        if row is None or bytes(row["digest"]) != head:
            raise IntegrityError(
                f"the ledger lacks entries that curator {curator} has seen",
                where="ledger",
                remedy="It was rolled back, perhaps by restoring an old backup; see docs/operations.md.",
            )

    @property
    def head(self) -> tuple[int, bytes]:
        """Number of entries and the digest of the last."""
        row = self._connection.execute("SELECT number, digest FROM ledger ORDER BY number DESC LIMIT 1").fetchone()
        return (0, _GENESIS) if row is None else (row["number"], bytes(row["digest"]))

    @property
    def spent(self) -> Decimal:
        """Sum of all charges, in nats."""
        return self._sum("SELECT epsilon FROM ledger")

    @property
    def remaining(self) -> Decimal:
        """What is neither spent nor kept for a release under way, in nats."""
        kept = self._sum("SELECT epsilon FROM reservation")
        return _DOWN.subtract(self.budget, _UP.add(self.spent, kept)) or Decimal(0)  # and never -0

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All charges, oldest first."""
        rows = self._connection.execute("SELECT * FROM ledger ORDER BY number")
        return tuple(
            Entry(
                number=row["number"],
                release_id=row["release_id"],
                facts=json.loads(row["entry"]),
                epsilon=Decimal(row["epsilon"]),
            )
            for row in rows
        )

    def reserve(self, spec: ReleaseSpec) -> None:
        """Keep a release's epsilon for it; once only, however often it is asked, and for the plan that came last.

        Raises:
            BudgetExceededError: the budget does not hold it; nothing is kept or charged.
        """
        with transaction(self._connection) as db:
            if self.is_charged(spec.release_id):
                return
            # A crash may part a plan from its reservation, and the next plan may differ.
            db.execute("DELETE FROM reservation WHERE release_id = ?", [spec.release_id])
            epsilon = spec.guaranteed_epsilon
            if epsilon > self.remaining:
                raise BudgetExceededError(
                    f"the release needs epsilon {upward(epsilon)}; of the budget of {self.budget}"
                    f" there is {max(self.remaining, Decimal(0)):.6f} left",
                    where="privacy budget",
                    remedy="Ask for a smaller epsilon.",
                )
            db.execute(
                "INSERT INTO reservation VALUES (?, ?, ?)", [spec.release_id, json.dumps(_facts(spec)), str(epsilon)]
            )

    def charge(self, release_id: str) -> None:
        """Turn what is kept for a release into a charge; once only, however often it is asked.

        Raises:
            IntegrityError: nothing is kept for this release.
        """
        with transaction(self._connection) as db:
            if self.is_charged(release_id):
                return
            row = db.execute("SELECT * FROM reservation WHERE release_id = ?", [release_id]).fetchone()
            if row is None:
                raise IntegrityError("nothing is reserved for this release", where=f"release {release_id}")
            length, head = self.head
            values = [length + 1, release_id, row["entry"], row["epsilon"]]
            db.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", [*values, _chained(head, *values)])
            db.execute("DELETE FROM reservation WHERE release_id = ?", [release_id])

    def cancel(self, release_id: str) -> None:
        """Give back what is kept for a release that ended before it was charged."""
        self._connection.execute("DELETE FROM reservation WHERE release_id = ?", [release_id])

    def is_reserved(self, release_id: str) -> bool:
        """Whether epsilon is kept for a release."""
        return self._exists("SELECT 1 FROM reservation WHERE release_id = ?", release_id)

    def is_charged(self, release_id: str) -> bool:
        """Whether a release is charged."""
        return self._exists("SELECT 1 FROM ledger WHERE release_id = ?", release_id)

    def _exists(self, query: str, release_id: str) -> bool:
        return self._connection.execute(query, [release_id]).fetchone() is not None

    def _sum(self, query: str) -> Decimal:
        charges = (Decimal(row["epsilon"]) for row in self._connection.execute(query).fetchall())
        return reduce(_UP.add, charges, Decimal(0))


def _chained(head: bytes, number: int, release_id: str, entry: str, epsilon: str) -> bytes:
    fields = json.dumps([number, release_id, entry, epsilon]).encode()
    return hashlib.sha256(head + fields).digest()


def _facts(spec: ReleaseSpec) -> dict[str, object]:
    return {
        "mechanism": "gamma-diagonal",
        "relation": "substitution",
        "scheme": spec.scheme,
        "population": spec.population,
        "sample": spec.sample,
        "cells": spec.cells,
        "replacement": spec.replacement,
        "researcher": spec.researcher,
        "attributes": [column.attribute for column in spec.columns],
    }
