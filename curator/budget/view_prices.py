"""The prices of what coalitions see of releases, worked out once: each takes about 50 ms."""

import json
from decimal import Decimal

from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.pricing.price import Price, price
from veiltab.common.storage.database import Database


class ViewPrices:
    """The prices that one curator has worked out, by view and slack.

    Args:
        connection: the curator's database, which keeps them.
    """

    def __init__(self, connection: Database) -> None:
        self._connection = connection
        self._prices = dict[tuple[ReleaseDescription, Decimal], Price]()

    def __call__(self, view: ReleaseDescription, slack: Decimal) -> Price:
        """Return the price of a view at a slack."""
        price = self._prices.get((view, slack)) or self._look_up(view, slack)
        self._prices[view, slack] = price
        return price

    def _look_up(self, view: ReleaseDescription, slack: Decimal) -> Price:
        key = json.dumps([view.as_dict(), str(slack)], sort_keys=True)
        row = self._connection.execute("SELECT mu FROM view_price WHERE view = ?", [key]).fetchone()
        if row is not None:
            return Price(mu=Decimal(row["mu"]), slack=slack)
        new = price(view, slack)
        values = [key, str(new.mu)]
        self._connection.execute("INSERT INTO view_price VALUES (?, ?) ON CONFLICT DO NOTHING", values)
        return new
