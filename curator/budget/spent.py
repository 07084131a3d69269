"""What a curator has spent, and what one more release may have."""

import json
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING

from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.pricing.price import Price
from veiltab.curator.budget.allowance import Charge, Sums
from veiltab.curator.budget.chain import Chain
from veiltab.curator.budget.entries import charge_of, described
from veiltab.curator.budget.view_prices import ViewPrices

if TYPE_CHECKING:
    from veiltab.curator.budget.remaining import Kind, Rest

_LAST_CHARGED = "SELECT entry FROM ledger ORDER BY number DESC LIMIT 1"
_RESERVED = "SELECT entry FROM reservation LIMIT 1"
RESERVATION = "SELECT * FROM reservation LEFT JOIN price USING (release_id) WHERE release_id"


class Budget:
    """A budget: what is spent of it and left, by the sums of its ledger."""

    def __init__(self, chain: Chain) -> None:
        self._chain, self.allowance = chain, chain.allowance
        self.view_prices = ViewPrices(chain.connection)
        self._running = (0, Sums())
        self._for_desk = (0, Sums())

    @property
    def epsilon(self) -> Decimal:
        """Most that may ever be spent, in nats."""
        return self.allowance.epsilon

    @property
    def delta(self) -> Decimal | None:
        """Delta of the budget; None adds up pure epsilons."""
        return self.allowance.delta

    @property
    def spent(self) -> Decimal:
        """The least epsilon of all charges together that is proved, nats: at the budget's delta, or their sum.

        It is also what analyst and desk face.
        """
        charged, for_desk = self.sums(), self._sums_for_desk()
        by_charges = self.allowance.spent(charged, self._only_release())
        return by_charges if for_desk is None else min(by_charges, self.allowance.spent(for_desk))

    @property
    def spent_price(self) -> Price:
        """The price of all charges together, for statements in GDP and zCDP."""
        return self.allowance.spent_price(self.sums())

    @property
    def pure_spent(self) -> Decimal:
        """The sum of the pure epsilons of all charges, nats."""
        return self.sums().epsilon

    @property
    def share(self) -> Decimal:
        """What part of the budget all charges take together."""
        return self.allowance.spent_share(self.sums(), self._only_release())

    @property
    def rest(self) -> "Rest":
        """What one more release of the last one's kind may have, beside all that is charged or reserved."""
        from veiltab.curator.budget.remaining import kind_of, rest_for  # noqa: PLC0415 - not for releases

        rows = self._chain.rows(_LAST_CHARGED) or self._chain.rows(_RESERVED)
        kind = kind_of(json.loads(rows[0]["entry"])) if rows else None
        return rest_for(self.allowance, self.sums_beside(), kind)

    def rest_after(self, charge: Charge, kind: "Kind") -> "Rest":
        """Return what one more release of a kind may have once the budget has a charge more."""
        from veiltab.curator.budget.remaining import rest_for  # noqa: PLC0415 - not for releases

        return rest_for(self.allowance, self.sums_beside().plus(charge), kind)

    @property
    def remaining(self) -> Decimal:
        """The epsilon of what is left, nats."""
        return self.rest.epsilon

    def holds(self, charge: Charge) -> bool:
        """Whether the budget holds a release now, beside all that is charged or reserved."""
        return self.allowance.holds(charge, others=self.sums_beside())

    def fits_what_is_charged(self, release_id: str, charge: Charge) -> bool:
        """Whether the budget would hold a release if nothing were reserved for others."""
        return self._chain.is_charged(release_id) or self.allowance.holds(charge, others=self.sums())

    def sums(self) -> Sums:
        """Return the sums of all charges; only those are read that have come since the last call."""
        number, sums = self._running
        for row in self._chain.rows_after(number):
            number, sums = row["number"], sums.plus(charge_of(row))
        self._running = (number, sums)
        return sums

    def sums_beside(self, release_id: str = "") -> Sums:
        """Return the sums of all charges, and of what is kept for other releases than this one."""
        return reduce(Sums.plus, map(charge_of, self._chain.rows(f"{RESERVATION} <> ?", release_id)), self.sums())

    def _sums_for_desk(self) -> Sums | None:
        """Return the sums of all charges by what the desk sees of each; None without a delta."""
        number, sums = self._for_desk
        if self.delta is None:
            return None
        from veiltab.common.privacy.cards.all_releases import price_for_desk  # noqa: PLC0415 - not without a delta
        from veiltab.curator.budget.charged_releases import releases_of  # noqa: PLC0415 - not without a delta

        for row in self._chain.rows_after(number):
            price = price_for_desk(releases_of(json.loads(row["entry"])), self.delta, self.view_prices)
            sums = sums.plus(Charge(epsilon=Decimal(row["epsilon"]), price=price))
            self._for_desk = row["number"], sums
        return sums

    def _only_release(self) -> ReleaseDescription | None:
        """Return the release that is charged, if it is the only one."""
        if self.sums().count != 1:
            return None
        (row,) = self._chain.rows_after(0)
        return described(row)
