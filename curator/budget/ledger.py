"""The privacy ledger: what was spent on whom, charged durably before anything leaves, never forgotten.

Entries form a hash chain; peers remember its head, so an edited, truncated or rolled-back ledger is found at start-up.
Relation: substitution of one respondent's row over all columns of all curators. Every curator charges every release of
its study, whichever columns it releases, so each ledger bounds the loss of a respondent's whole row.

Where the budget has a delta, every charge has a price, and what the budget holds is decided by sums of prices (see
allowance.py). Whoever reserves has worked it out before; no transaction waits for that. Entries of an
earlier version have none; they get one when the ledger is opened. Their links of the chain stay as they were. A link of
an entry that was charged with a price covers the price, and the sums of all prices up to it. An entry covers the head
that the audit log had before it.
"""

import hashlib
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import reduce
from typing import Any

from veiltab.common.core.numbers.rounding import upward
from veiltab.common.errors import BudgetExceededError, IntegrityError, InvalidInputError, NotReadyError
from veiltab.common.privacy.cards.all_releases import price_for_desk
from veiltab.common.privacy.cards.words import delta_text
from veiltab.common.privacy.description import ReleaseDescription, description_of
from veiltab.common.privacy.pricing.price import Price, price_of_pure_epsilon
from veiltab.common.release.messages.witness import Witnessed
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.workload import WorkloadSpec
from veiltab.common.storage.database import Database, transaction
from veiltab.curator.audit.log import AuditHead, AuditLog, Event
from veiltab.curator.budget.allowance import Allowance, Charge, Sums
from veiltab.curator.budget.bounded_set import BoundedSet
from veiltab.curator.budget.charged_releases import releases_of
from veiltab.curator.budget.doubts import Doubts
from veiltab.curator.budget.remaining import Kind, Left, kind_of, left_for
from veiltab.curator.budget.view_prices import ViewPrices

_ENTRIES = "SELECT * FROM ledger LEFT JOIN price USING (release_id) WHERE number > ? ORDER BY number"
_LAST_CHARGED = "SELECT entry FROM ledger ORDER BY number DESC LIMIT 1"
_RESERVED = "SELECT entry FROM reservation LIMIT 1"
_RESERVATION = "SELECT * FROM reservation LEFT JOIN price USING (release_id) WHERE release_id"
_UNPRICED = (
    "SELECT release_id, entry, epsilon FROM (SELECT release_id, entry, epsilon FROM ledger UNION ALL"
    " SELECT release_id, entry, epsilon FROM reservation) WHERE release_id NOT IN (SELECT release_id FROM price)"
)

_HUNDREDTH = Decimal("1e-4")
"""A hundredth of a percent."""

GENESIS = hashlib.sha256(b"veiltab ledger").digest()
"""The head of an empty ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One charge.

    Args:
        number: its place in the ledger, from 1.
        release_id: what was charged.
        facts: the plain facts of the release; those of an earlier version lack the epsilon asked for, and the time of
            the reservation (Unix seconds).
        audit: where the audit log stood at the charge; None in an entry of an earlier version.
        epsilon: its pure epsilon, nats, an upper bound.
        price: its price; None where the budget had no delta.
        share: what part of the budget it takes.
    """

    number: int
    release_id: str
    facts: dict[str, object]
    audit: AuditHead | None
    epsilon: Decimal
    price: Price | None
    share: Decimal

    @property
    def attributes(self) -> tuple[str, ...]:
        """What was released, as far as it was recorded."""
        names = self.facts.get("attributes", [])
        return tuple(map(str, names)) if isinstance(names, list) else ()

    @property
    def tables(self) -> int:
        """How many tables were charged together, second runs counted; 0 for a release of one table."""
        kinds, repeats = self.facts.get("tables", []), self.facts.get("repeats", 0)
        if not isinstance(kinds, list) or not isinstance(repeats, int):
            return 0
        return sum(int(kind["count"]) for kind in kinds) + repeats


class Ledger:
    """All charges of one curator, over all researchers, against one budget.

    Args:
        connection: the curator's database.
        budget: most that may ever be spent, in nats.
        delta: None: pure epsilons are added up. Otherwise all releases together stay inside (budget, delta).

    Raises:
        IntegrityError: the chain is broken.
        InvalidInputError: a budget so small that it leaves no price at all.
    """

    def __init__(self, connection: Database, budget: Decimal, delta: Decimal | None = None) -> None:
        self._connection = connection
        self._audit = AuditLog(connection)
        self.doubts = Doubts(connection)
        self.allowance = Allowance(epsilon=budget, delta=delta)
        self.verify()
        if delta is not None:
            self._price_old_entries()
        self.view_prices = ViewPrices(connection)
        self._running = (0, Sums())
        self._for_desk = (0, Sums())
        self._sums()
        # Releases that were seen to be charged: a charge is never taken back.
        self._charged = BoundedSet()

    @property
    def budget(self) -> Decimal:
        """Most that may ever be spent, in nats."""
        return self.allowance.epsilon

    @property
    def delta(self) -> Decimal | None:
        """Delta of the budget; None adds up pure epsilons."""
        return self.allowance.delta

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
        for number, row in enumerate(self._rows(_ENTRIES, 0), start=1):
            sums = sums.plus(_charge_of(row))
            digest = bytes(row["digest"])
            lines = (_line(*_facts_of(row)), _line(*_facts_of(row), *_prices_of(row, sums)))
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
            witnessed: what it remembers.
            who: the party, as messages name it.

        Raises:
            IntegrityError: entries are missing or differ, and no person has set that aside.
        """
        length, head = witnessed
        row = self._connection.execute("SELECT digest FROM ledger WHERE number = ?", [length]).fetchone()
        if length == 0 or (row is not None and bytes(row["digest"]) == head):
            return
        if not self.doubts.is_set_aside(who, length, head):
            raise IntegrityError(
                f"the ledger lacks entries that {who} has seen",
                where="ledger",
                remedy="It was rolled back, perhaps by restoring an old backup, or somebody showed another one under"
                " this curator's name; see docs/operations/back-up.md and `veiltab curator witness`.",
            )

    @property
    def head(self) -> tuple[int, bytes]:
        """Number of entries and the digest of the last."""
        row = self._connection.execute("SELECT number, digest FROM ledger ORDER BY number DESC LIMIT 1").fetchone()
        return (0, GENESIS) if row is None else (row["number"], bytes(row["digest"]))

    @property
    def spent(self) -> Decimal:
        """The least epsilon of all charges together that is proved, nats: at the budget's delta, or their sum.

        It is also what analyst and desk face.
        """
        charged, for_desk = self._sums(), self._sums_for_desk()
        by_charges = self.allowance.spent(charged, self._only_release())
        return by_charges if for_desk is None else min(by_charges, self.allowance.spent(for_desk))

    @property
    def pure_spent(self) -> Decimal:
        """The sum of the pure epsilons of all charges, nats."""
        return self._sums().epsilon

    @property
    def share(self) -> Decimal:
        """What part of the budget all charges take together."""
        return self.allowance.spent_share(self._sums(), self._only_release())

    @property
    def left(self) -> Left:
        """What one more release of the last one's kind may have, beside all that is charged or reserved."""
        return left_for(self.allowance, self._sums_beside(), self._last_kind())

    @property
    def remaining(self) -> Decimal:
        """The epsilon of what is left, nats."""
        return self.left.epsilon

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All charges, oldest first."""
        return self.entries_after(0)

    def entries_after(self, number: int) -> tuple[Entry, ...]:
        """Return the charges that came after one, oldest first."""
        return tuple(map(self._entry, self._rows(_ENTRIES, number)))

    @property
    def audit_heads(self) -> tuple[AuditHead, ...]:
        """Where the audit log stood at each charge, oldest first."""
        return tuple(entry.audit for entry in self.entries if entry.audit is not None)

    def reserve(self, spec: ReleaseSpec | WorkloadSpec, charge: Charge) -> None:
        """Keep a release's price for it; once only, however often it is asked, and for the plan that came last.

        Args:
            spec: the release.
            charge: what it takes of this budget.

        Raises:
            BudgetExceededError: the budget does not hold it; nothing is kept or charged.
        """
        facts = _facts_of_tables(spec) if isinstance(spec, WorkloadSpec) else _facts(spec)
        values = [spec.release_id, json.dumps(facts | {"time": int(time.time())}), str(charge.epsilon)]
        with transaction(self._connection) as db:
            if self.is_charged(spec.release_id):
                return
            others = self._sums_beside(spec.release_id)
            if is_held := self.allowance.holds(charge, others=others):
                # A crash may part a plan from its reservation, and the next plan may differ.
                self._forget_reservation(spec.release_id)
                db.execute("INSERT INTO reservation VALUES (?, ?, ?)", values)
                self._keep_price(spec.release_id, charge.price)
        if not is_held:
            raise self._refusal(charge, spec.delta, others)

    def check(self, charge: Charge, delta: Decimal | None) -> None:
        """Refuse a release that the budget does not hold now, before anybody decides about it.

        Args:
            charge: what it takes.
            delta: what was asked for with its epsilon.

        Raises:
            BudgetExceededError: with the numbers.
        """
        if not self.holds(charge):
            raise self._refusal(charge, delta, self._sums_beside())

    def check_others_share(self, release_id: str, charge: Charge, own: Collection[str], most: Decimal) -> None:
        """Refuse a release without own attributes if all of them together would take too much of the budget.

        Args:
            release_id: of the release.
            charge: what it takes.
            own: the curator's attributes.
            most: part of the budget that they may take together.

        Raises:
            NotReadyError: those that are charged leave it enough, but not those that are reserved.
            BudgetExceededError: those that are charged do not.
        """
        charged = self._of_others(self._rows(_ENTRIES, 0), own, Sums().plus(charge))
        if self.is_charged(release_id) or (
            self.allowance.spent_share(self._of_others(self._rows(f"{_RESERVATION} <> ?", release_id), own, charged))
            <= most
        ):
            return
        if self.allowance.spent_share(charged) <= most:
            raise NotReadyError("what is left of its budget for releases without its attributes is reserved for others")
        raise BudgetExceededError(
            f"releases without this curator's attributes may take {percent(most)} of its budget, and with this one they"
            f" would take {percent(self.allowance.spent_share(charged))}",
            where="privacy budget",
            remedy="Ask for a smaller epsilon, or ask the curator for a larger `others_share` in its policy.",
        )

    @staticmethod
    def _of_others(rows: Iterable[sqlite3.Row], own: Collection[str], sums: Sums) -> Sums:
        """Return sums and, added to them, what those of some charges take that have none of some attributes."""
        for row in rows:
            if not set(own).intersection(json.loads(row["entry"]).get("attributes", ())):
                sums = sums.plus(_charge_of(row))
        return sums

    def holds(self, charge: Charge) -> bool:
        """Whether the budget holds a release now, beside all that is charged or reserved."""
        return self.allowance.holds(charge, others=self._sums_beside())

    def fits_what_is_charged(self, release_id: str, charge: Charge) -> bool:
        """Whether the budget would hold a release if nothing were reserved for others."""
        return self.is_charged(release_id) or self.allowance.holds(charge, others=self._sums())

    def left_after(self, charge: Charge, kind: Kind) -> Left:
        """Return what one more release of the same kind could have after a release."""
        return left_for(self.allowance, self._sums_beside().plus(charge), kind)

    def _refusal(self, charge: Charge, delta: Decimal | None, others: Sums) -> BudgetExceededError:
        if self.delta is None:
            left = left_for(self.allowance, others, None).epsilon
            return BudgetExceededError(
                f"the release needs epsilon {upward(charge.epsilon)}; of the budget of {self.budget} there is"
                f" {left:.6f} left",
                where="privacy budget",
                remedy="Ask for a smaller epsilon."
                if delta is None
                else "The study's budget has no delta, so the release's pure epsilon counts; ask without --delta.",
            )
        total = self.allowance.spent(others.plus(charge))
        free = max(1 - self.allowance.spent_share(others), Decimal(0)).quantize(_HUNDREDTH, rounding=ROUND_FLOOR)
        return BudgetExceededError(
            f"with the release the total would be epsilon {upward(total)} at delta {delta_text(self.delta)}; the"
            f" release takes {percent(self.allowance.share(charge))} of the budget of {self.budget}, and"
            f" {percent(free)} is left",
            where="privacy budget",
            remedy="Ask for a smaller epsilon."
            if delta is None or delta <= self.delta
            else f"Ask for a smaller delta first: {delta_text(delta)} is above the budget's.",
        )

    def charge(self, release_id: str) -> None:
        """Turn what is kept for a release into a charge; once only, however often it is asked.

        Raises:
            IntegrityError: nothing is kept for this release.
        """
        with transaction(self._connection) as db:
            if self.is_charged(release_id):
                return
            if not (rows := self._rows(f"{_RESERVATION} = ?", release_id)):
                raise IntegrityError("nothing is reserved for this release", where=f"release {release_id}")
            (row,) = rows
            length, head = self.head
            audit = self._audit.head
            covered = {"audit": {"length": audit.length, "digest": audit.digest.hex()}}
            entry = json.dumps(json.loads(row["entry"]) | covered)
            fields = [length + 1, release_id, entry, row["epsilon"]]
            prices = () if self.delta is None else _prices_of(row, self._sums().plus(_charge_of(row)))
            digest = _chained(head, *fields, *prices)
            db.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", [*fields, digest])
            db.execute("DELETE FROM reservation WHERE release_id = ?", [release_id])
            self._audit.record(Event.CHARGE, release=release_id, number=length + 1, ledger=digest.hex())

    def cancel(self, release_id: str) -> None:
        """Give back what is kept for a release that ended before it was charged."""
        with transaction(self._connection):
            self._forget_reservation(release_id)

    def is_reserved(self, release_id: str) -> bool:
        """Whether epsilon is kept for a release; a charge takes its place."""
        return release_id not in self._charged and self._exists(
            "SELECT 1 FROM reservation WHERE release_id = ?", release_id
        )

    def is_charged(self, release_id: str) -> bool:
        """Whether a release is charged: itself, or the one that it is a table of."""
        if release_id in self._charged:
            return True
        query = (
            "SELECT 1 FROM ledger WHERE release_id = ?1"
            " OR release_id = (SELECT part_of FROM release WHERE id = ?1 AND part_of <> '')"
        )
        if not self._exists(query, release_id):
            return False
        self._charged.add(release_id)
        return True

    def _entry(self, row: sqlite3.Row) -> Entry:
        facts = json.loads(row["entry"])
        audit = covered_audit_head(facts)
        facts.pop("audit", None)
        return Entry(
            number=row["number"],
            release_id=row["release_id"],
            facts=facts,
            audit=audit,
            epsilon=Decimal(row["epsilon"]),
            price=_price_of(row),
            share=self.allowance.share(_charge_of(row)),
        )

    def _exists(self, query: str, release_id: str) -> bool:
        return self._connection.execute(query, [release_id]).fetchone() is not None

    def _rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        return self._connection.execute(query, values).fetchall()

    def _sums(self) -> Sums:
        """Return the sums of all charges; only those are read that have come since the last call."""
        number, sums = self._running
        for row in self._rows(_ENTRIES, number):
            number, sums = row["number"], sums.plus(_charge_of(row))
        self._running = (number, sums)
        return sums

    def _sums_beside(self, release_id: str = "") -> Sums:
        """Return the sums of all charges, and of what is kept for other releases than this one."""
        return reduce(Sums.plus, map(_charge_of, self._rows(f"{_RESERVATION} <> ?", release_id)), self._sums())

    def _sums_for_desk(self) -> Sums | None:
        """Return the sums of all charges by what the desk sees of each; None where an entry says too little of it."""
        number, sums = self._for_desk
        if self.delta is None:
            return None
        for row in self._rows(_ENTRIES, number):
            price = self._price_for_desk(row, self.delta)
            if price is None:
                return None
            sums = sums.plus(Charge(epsilon=Decimal(row["epsilon"]), price=price))
            self._for_desk = row["number"], sums
        return sums

    def _price_for_desk(self, row: sqlite3.Row, delta: Decimal) -> Price | None:
        try:
            return price_for_desk(releases_of(json.loads(row["entry"])), delta, self.view_prices)
        except InvalidInputError:
            return None

    def _last_kind(self) -> Kind | None:
        """Return the kind of what was charged last, or else of what is reserved."""
        rows = self._rows(_LAST_CHARGED) or self._rows(_RESERVED)
        return kind_of(json.loads(rows[0]["entry"])) if rows else None

    def _only_release(self) -> ReleaseDescription | None:
        """Return the release that is charged, if it is the only one."""
        if self._sums().count != 1:
            return None
        (row,) = self._rows(_ENTRIES, 0)
        return _description_of(row)

    def _keep_price(self, release_id: str, price: Price | None) -> None:
        if price is not None:
            self._connection.execute(
                "INSERT INTO price VALUES (?, ?, ?)", [release_id, str(price.mu), str(price.slack)]
            )

    def _forget_reservation(self, release_id: str) -> None:
        rows = self._connection.execute("DELETE FROM reservation WHERE release_id = ?", [release_id]).rowcount
        if rows:
            self._connection.execute("DELETE FROM price WHERE release_id = ?", [release_id])

    def _price_old_entries(self) -> None:
        """Give a price to what an earlier version charged or reserved without one."""
        prices = [
            (row["release_id"], self._price_of_old(_description_of(row), Decimal(row["epsilon"])))
            for row in self._rows(_UNPRICED)
        ]
        with transaction(self._connection) as db:
            for release_id, price in prices:
                values = [release_id, str(price.mu), str(price.slack)]
                db.execute("INSERT INTO price VALUES (?, ?, ?) ON CONFLICT DO NOTHING", values)

    def _price_of_old(self, release: ReleaseDescription | None, epsilon: Decimal) -> Price:
        price = None if release is None else self.allowance.charge(release, epsilon).price
        return price or price_of_pure_epsilon(epsilon)


def percent(share: Decimal) -> str:
    """Write a share for people, rounded up."""
    return f"{(100 * share).quantize(Decimal('0.01'), rounding=ROUND_CEILING)}%"


def _charge_of(row: sqlite3.Row) -> Charge:
    return Charge(epsilon=Decimal(row["epsilon"]), price=_price_of(row))


def _price_of(row: sqlite3.Row) -> Price | None:
    return None if row["mu"] is None else Price(mu=Decimal(row["mu"]), slack=Decimal(row["slack"]))


def covered_audit_head(facts: dict[str, Any]) -> AuditHead | None:
    """Return the head of the audit log that an entry covers, if it covers one."""
    covered = facts.get("audit")
    return covered and AuditHead(length=covered["length"], digest=bytes.fromhex(covered["digest"]))


def _description_of(row: sqlite3.Row) -> ReleaseDescription | None:
    """Return what an entry says of its release; None if only its pure epsilon is known."""
    try:
        return description_of(json.loads(row["entry"]), "ledger")
    except InvalidInputError:
        return None


def _facts_of(row: sqlite3.Row) -> tuple[object, ...]:
    return row["number"], row["release_id"], row["entry"], row["epsilon"]


def _prices_of(row: sqlite3.Row, sums: Sums) -> tuple[object, ...]:
    """Return what a link says of prices: that of its entry, and the sums up to and with it."""
    return row["mu"], row["slack"], str(sums.squares), str(sums.slack)


def linked(head: bytes, line: str) -> bytes:
    """Return the digest of an entry: SHA-256 of the digest before it and of its line."""
    return hashlib.sha256(head + line.encode()).digest()


def _line(*fields: object) -> str:
    return json.dumps(fields)


def _chained(head: bytes, *fields: object) -> bytes:
    return linked(head, _line(*fields))


def _facts(spec: ReleaseSpec) -> dict[str, object]:
    return _mechanism_facts(spec) | _facts_of_request(spec)


def _facts_of_tables(workload: WorkloadSpec) -> dict[str, object]:
    """Return the facts of several tables: those of each kind of them once, with how many there are."""
    return {
        "tables": _kinds(workload.each_table()),
        "repeated": _kinds(workload.each_repeat()),
        "repeats": workload.repeats,
        **_facts_of_request(workload),
    }


def _kinds(tables: Iterable[ReleaseSpec]) -> list[dict[str, object]]:
    kinds = Counter(json.dumps(_mechanism_facts(table)) for table in tables)
    return [json.loads(facts) | {"count": count} for facts, count in kinds.items()]


def _mechanism_facts(spec: ReleaseSpec) -> dict[str, object]:
    return {
        **spec.description.as_dict(),
        "server_replacement": spec.server_replacement,
        "curator_replacement": spec.curator_replacement,
        "sampling": spec.sampling.value,
    }


def _facts_of_request(planned: ReleaseSpec | WorkloadSpec) -> dict[str, object]:
    return {
        "epsilon": str(planned.epsilon),
        "delta": None if planned.delta is None else str(planned.delta),
        "researcher": planned.researcher,
        "attributes": [column.attribute for column in planned.columns],
    }
