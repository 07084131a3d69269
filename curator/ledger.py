"""The privacy ledger: what was spent on whom, charged durably before anything leaves, never forgotten.

Entries form a hash chain; peers remember its head, so an edited, truncated or rolled-back ledger is found at start-up.
Relation: substitution of one respondent's row over all columns of all curators. Every curator charges every release of
its study, whichever columns it releases, so each ledger bounds the loss of a respondent's whole row (basic
composition).
"""

import hashlib
import json
import sqlite3
from collections import Counter
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache, reduce

from veiltab.common.core.rounding import upward
from veiltab.common.errors import BudgetExceededError, IntegrityError
from veiltab.common.privacy.composition import compose
from veiltab.common.privacy.description import ReleaseDescription, description_of
from veiltab.common.privacy.planning import Plan
from veiltab.common.release.guarantees import guaranteed_epsilon
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.storage.database import Database, transaction

# An epsilon may have more digits than the default context keeps; what does not fit 100 digits is rounded against us.
_UP = Context(prec=100, rounding=ROUND_CEILING)
_DOWN = Context(prec=100, rounding=ROUND_FLOOR)
_ALL = "SELECT entry, epsilon FROM ledger UNION ALL SELECT entry, epsilon FROM reservation"
_OTHERS = (
    "SELECT release_id, entry, epsilon FROM ledger WHERE release_id <> ? UNION ALL"
    " SELECT release_id, entry, epsilon FROM reservation WHERE release_id <> ?"
)
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
        budget: most that may ever be spent, in nats.
        delta: None: pure epsilons are added up. Otherwise releases are composed, and together stay inside (budget,
            delta).

    Raises:
        IntegrityError: the chain is broken.
    """

    def __init__(self, connection: Database, budget: Decimal, delta: Decimal | None = None) -> None:
        self._connection = connection
        self.budget = budget
        self.delta = delta
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
                    remedy="See docs/operations.md: the other curators hold the same charges.",
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
        """Epsilon of all charges together, in nats: their sum, or composed at the budget's delta."""
        return self._total(self._rows("SELECT entry, epsilon FROM ledger"))

    @property
    def remaining(self) -> Decimal:
        """What is neither spent nor kept for a release under way, in nats."""
        return _DOWN.subtract(self.budget, self._total(self._rows(_ALL))) or Decimal(0)  # and never -0

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
        # Composing takes a while, so it happens outside the transaction, again if the ledger has moved meanwhile.
        epsilon, total, seen = guaranteed_epsilon(spec), Decimal(0), None
        while True:
            with transaction(self._connection) as db:
                if self.is_charged(spec.release_id):
                    return
                others = self._rows(_OTHERS, spec.release_id, spec.release_id)
                if seen == [row["release_id"] for row in others]:
                    self._check_budget(epsilon, spec.delta, total)
                    # A crash may part a plan from its reservation, and the next plan may differ.
                    db.execute("DELETE FROM reservation WHERE release_id = ?", [spec.release_id])
                    values = [spec.release_id, json.dumps(_facts(spec)), str(epsilon)]
                    db.execute("INSERT INTO reservation VALUES (?, ?, ?)", values)
                    return
            total, seen = self._total(others, (epsilon, spec.description)), [row["release_id"] for row in others]

    def check(self, plan: Plan) -> None:
        """Refuse a release that the budget does not hold now, before anybody decides about it.

        Raises:
            BudgetExceededError: with the numbers.
        """
        total = self._total(self._rows(_ALL), (plan.pure_epsilon, plan.description))
        self._check_budget(plan.pure_epsilon, plan.delta, total)

    def fits_what_is_charged(self, spec: ReleaseSpec) -> bool:
        """Whether the budget would hold a release if nothing were reserved for others."""
        charged = self._rows("SELECT entry, epsilon FROM ledger WHERE release_id <> ?", spec.release_id)
        return self._total(charged, (guaranteed_epsilon(spec), spec.description)) <= self.budget

    def _check_budget(self, epsilon: Decimal, delta: Decimal | None, total: Decimal) -> None:
        if total <= self.budget:
            return
        left = f"there is {max(self.remaining, Decimal(0)):.6f} left"
        if self.delta is None:
            raise BudgetExceededError(
                f"the release needs epsilon {upward(epsilon)}; of the budget of {self.budget} {left}",
                where="privacy budget",
                remedy="Ask for a smaller epsilon."
                if delta is None
                else "The study's budget has no delta, so the release's pure epsilon counts; ask without --delta.",
            )
        raise BudgetExceededError(
            f"with the release the total would be epsilon {upward(total)} at delta {self.delta}; of the budget of"
            f" {self.budget} {left}",
            where="privacy budget",
            remedy="Ask for a smaller epsilon.",
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

    def _rows(self, query: str, *values: str) -> list[sqlite3.Row]:
        return self._connection.execute(query, values).fetchall()

    def _total(self, rows: list[sqlite3.Row], more: tuple[Decimal, ReleaseDescription] | None = None) -> Decimal:
        """Return the epsilon of some entries, and of one more release, together."""
        charges = [Decimal(row["epsilon"]) for row in rows] + ([more[0]] if more else [])
        if self.delta is None or not charges:
            return reduce(_UP.add, charges, Decimal(0))
        releases = [description_of(json.loads(row["entry"]), "ledger") for row in rows]
        return composed_epsilon((*releases, *([more[1]] if more else [])), self.delta)


@lru_cache(maxsize=64)
def composed_epsilon(releases: tuple[ReleaseDescription, ...], delta: Decimal) -> Decimal:
    """Return the epsilon of releases together at a delta, rounded up."""
    counted = Counter(releases)
    ordered = sorted(counted.items(), key=lambda item: repr(item[0]))
    return Decimal(compose(ordered, float(delta)).epsilon).quantize(Decimal("1e-9"), rounding=ROUND_CEILING)


def _chained(head: bytes, number: int, release_id: str, entry: str, epsilon: str) -> bytes:
    fields = json.dumps([number, release_id, entry, epsilon]).encode()
    return hashlib.sha256(head + fields).digest()


def _facts(spec: ReleaseSpec) -> dict[str, object]:
    return {
        **spec.description.as_dict(),
        "replacement": spec.replacement,
        "delta": None if spec.delta is None else str(spec.delta),
        "researcher": spec.researcher,
        "attributes": [column.attribute for column in spec.columns],
    }
