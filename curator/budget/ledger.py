"""The privacy ledger: what was spent on whom, charged durably before anything leaves, never forgotten.

Entries form a hash chain; peers remember its head, so an edited, truncated or rolled-back ledger is found at start-up.
Relation: substitution of one respondent's row over all columns of all curators. Every curator charges every release of
its study, whichever columns it releases, so each ledger bounds the loss of a respondent's whole row.

Where the budget has a delta, every charge has a price, and what the budget holds is decided by sums of prices (see
allowance.py), worked out before it is reserved; no transaction waits for that. What was charged before the budget had
a delta gets its price when the ledger is opened, and its links of the chain stay as they were. A link of an entry that
was charged with a price covers the price, and the sums of all prices up to it. An entry covers the head that the audit
log had before it.
"""

import json
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from decimal import ROUND_FLOOR, Decimal
from typing import Any

from veiltab.common.core.numbers.rounding import upward
from veiltab.common.errors import BudgetExceededError, IntegrityError, NotReadyError
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.pricing.price import Price, price_of_pure_epsilon
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.storage.database import Database, transaction
from veiltab.curator.audit.log import AuditLog, Event
from veiltab.curator.budget.allowance import Allowance, Charge, Sums
from veiltab.curator.budget.chain import Chain
from veiltab.curator.budget.entries import chained, charge_of, described, facts_of, percent, prices_of
from veiltab.curator.budget.spent import RESERVATION, Budget

_UNPRICED = (
    "SELECT release_id, entry, epsilon FROM (SELECT release_id, entry, epsilon FROM ledger UNION ALL"
    " SELECT release_id, entry, epsilon FROM reservation) WHERE release_id NOT IN (SELECT release_id FROM price)"
)

_HUNDREDTH = Decimal("1e-4")
"""A hundredth of a percent."""


class Ledger:
    """All charges of one curator, over all researchers, against one budget.

    Args:
        budget: most that may ever be spent, in nats.
        delta: None: pure epsilons are added up. Otherwise all releases together stay inside (budget, delta).

    Raises:
        IntegrityError: the chain is broken.
        InvalidInputError: a budget so small that it leaves no price at all.
    """

    def __init__(self, connection: Database, budget: Decimal, delta: Decimal | None = None) -> None:
        self._connection = connection
        self.chain = Chain(connection, Allowance(epsilon=budget, delta=delta))
        self.budget = Budget(self.chain)
        self._audit = AuditLog(connection)
        if delta is not None:
            self._price_pure_entries()
        self.budget.sums()

    def reserve(self, spec: ReleaseSpec, charge: Charge) -> None:
        """Keep a release's price for it; once only, however often it is asked, and for the plan that came last.

        Args:
            charge: what it takes of this budget.

        Raises:
            BudgetExceededError: the budget does not hold it; nothing is kept or charged.
        """
        values = [spec.release_id, json.dumps(facts_of(spec) | {"time": int(time.time())}), str(charge.epsilon)]
        with transaction(self._connection) as db:
            if self.chain.is_charged(spec.release_id):
                return
            others = self.budget.sums_beside(spec.release_id)
            if is_held := self.budget.allowance.holds(charge, others=others):
                # A crash may part a plan from its reservation, and the next plan may differ.
                self._forget_reservation(spec.release_id)
                db.execute("INSERT INTO reservation VALUES (?, ?, ?)", values)
                self._keep_price(spec.release_id, charge.price)
        if not is_held:
            raise self._refusal(charge, spec.delta, others)

    def check_budget(self, charge: Charge, delta: Decimal | None) -> None:
        """Refuse a release that the budget does not hold now, before anybody decides about it.

        Args:
            delta: what was asked for with its epsilon.

        Raises:
            BudgetExceededError: with the numbers.
        """
        if not self.budget.holds(charge):
            raise self._refusal(charge, delta, self.budget.sums_beside())

    def check_others_share(self, release_id: str, charge: Charge, own: Collection[str], most: Decimal) -> None:
        """Refuse a release without own attributes if all of them together would take too much of the budget.

        Args:
            most: part of the budget that they may take together.

        Raises:
            NotReadyError: those that are charged leave it enough, but not those that are reserved.
            BudgetExceededError: those that are charged do not.
        """
        self._check_share(
            release_id,
            charge,
            most,
            lambda entry: not set(own).intersection(entry.get("attributes", ())),
            which="without this curator's attributes",
            remedy="or ask the curator for a larger `others_share` in its policy",
        )

    def check_month_share(self, release_id: str, charge: Charge, most: Decimal) -> None:
        """Refuse a release if those of this calendar month (UTC) would take too much of the budget together.

        Args:
            most: part of the budget that they may take together.

        Raises:
            NotReadyError, BudgetExceededError: as `check_others_share`.
        """
        month = _month(time.time())
        self._check_share(
            release_id,
            charge,
            most,
            lambda entry: _month(entry["time"]) == month,
            which=f"of {month} (UTC)",
            remedy="or ask again next month",
        )

    def _check_share(  # noqa: PLR0913 - one argument a part of the rule
        self,
        release_id: str,
        charge: Charge,
        most: Decimal,
        counts: Callable[[Mapping[str, Any]], bool],
        *,
        which: str,
        remedy: str,
    ) -> None:
        """Refuse a release if some releases, those that `counts` says of their entries, would take too much."""
        charged = self._of_some(self.chain.rows_after(0), counts, Sums().plus(charge))
        together = self._of_some(self.chain.rows(f"{RESERVATION} <> ?", release_id), counts, charged)
        if self.chain.is_charged(release_id) or self.budget.allowance.spent_share(together) <= most:
            return
        if self.budget.allowance.spent_share(charged) <= most:
            raise NotReadyError(f"what is left of its budget for releases {which} is reserved for others")
        raise BudgetExceededError(
            f"releases {which} may take {percent(most)} of its budget, and with this one they would take"
            f" {percent(self.budget.allowance.spent_share(charged))}",
            where="privacy budget",
            remedy=f"Ask for a smaller epsilon, {remedy}.",
        )

    @staticmethod
    def _of_some(rows: Iterable[sqlite3.Row], counts: Callable[[Mapping[str, Any]], bool], sums: Sums) -> Sums:
        """Return sums and, added to them, what some charges take."""
        for row in rows:
            if counts(json.loads(row["entry"])):
                sums = sums.plus(charge_of(row))
        return sums

    def _refusal(self, charge: Charge, delta: Decimal | None, others: Sums) -> BudgetExceededError:
        budget, allowance = self.budget, self.budget.allowance
        if budget.delta is None:
            rest = max(allowance.pure_left(others), Decimal(0))
            return BudgetExceededError(
                f"the release needs epsilon {upward(charge.epsilon)}; of the budget of {budget.epsilon} there is"
                f" {rest:.6f} left",
                where="privacy budget",
                remedy="Ask for a smaller epsilon."
                if delta is None
                else "The study's budget has no delta, so the release's pure epsilon counts; ask without --delta.",
            )
        total = allowance.spent(others.plus(charge))
        free = max(1 - allowance.spent_share(others), Decimal(0)).quantize(_HUNDREDTH, rounding=ROUND_FLOOR)
        return BudgetExceededError(
            f"with the release the total would be epsilon {upward(total)} at delta {delta_text(budget.delta)}; the"
            f" release takes {percent(allowance.share(charge))} of the budget of {budget.epsilon}, and"
            f" {percent(free)} is left",
            where="privacy budget",
            remedy="Ask for a smaller epsilon."
            if delta is None or delta <= budget.delta
            else f"Ask for a smaller delta first: {delta_text(delta)} is above the budget's.",
        )

    def charge(self, release_id: str) -> None:
        """Turn what is kept for a release into a charge; once only, however often it is asked.

        Raises:
            IntegrityError: nothing is kept for this release.
        """
        with transaction(self._connection) as db:
            if self.chain.is_charged(release_id):
                return
            if not (rows := self.chain.rows(f"{RESERVATION} = ?", release_id)):
                raise IntegrityError("nothing is reserved for this release", where=f"release {release_id}")
            (row,) = rows
            length, head = self.chain.head
            audit = self._audit.head
            covered = {"audit": {"length": audit.length, "digest": audit.digest.hex()}}
            entry = json.dumps(json.loads(row["entry"]) | covered)
            fields = [length + 1, release_id, entry, row["epsilon"]]
            prices = () if self.budget.delta is None else prices_of(row, self.budget.sums().plus(charge_of(row)))
            digest = chained(head, *fields, *prices)
            db.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", [*fields, digest])
            db.execute("DELETE FROM reservation WHERE release_id = ?", [release_id])
            self._audit.record(Event.CHARGE, release=release_id, number=length + 1, ledger=digest.hex())

    def cancel(self, release_id: str) -> None:
        """Give back what is kept for a release that ended before it was charged."""
        with transaction(self._connection):
            self._forget_reservation(release_id)

    def _keep_price(self, release_id: str, price: Price | None) -> None:
        if price is not None:
            self._connection.execute(
                "INSERT INTO price VALUES (?, ?, ?)", [release_id, str(price.mu), str(price.slack)]
            )

    def _forget_reservation(self, release_id: str) -> None:
        rows = self._connection.execute("DELETE FROM reservation WHERE release_id = ?", [release_id]).rowcount
        if rows:
            self._connection.execute("DELETE FROM price WHERE release_id = ?", [release_id])

    def _price_pure_entries(self) -> None:
        """Give a price to what was charged or reserved before the budget had a delta."""
        prices = [
            (row["release_id"], self._price_of(described(row), Decimal(row["epsilon"])))
            for row in self.chain.rows(_UNPRICED)
        ]
        with transaction(self._connection) as db:
            for release_id, price in prices:
                values = [release_id, str(price.mu), str(price.slack)]
                db.execute("INSERT INTO price VALUES (?, ?, ?) ON CONFLICT DO NOTHING", values)

    def _price_of(self, release: ReleaseDescription | None, epsilon: Decimal) -> Price:
        price = None if release is None else self.budget.allowance.charge(release, epsilon).price
        return price or price_of_pure_epsilon(epsilon)


def _month(seconds: float) -> str:
    """Return the calendar month of a time, such as 2026-11."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m")
