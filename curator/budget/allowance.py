"""What a curator may spend, and what releases take of it: the rule that admits each of them; pure.

**Budget without delta.** Pure epsilons are added up, and the sum stays within the budget.

**Budget (eps_B, delta_B).** Every release has a price (mu, delta0), and the budget holds mu_B and delta0_B (see
common/privacy/pricing/price.py). A release runs if one of three rules admits it, with all that is charged or reserved
counted:

1. squares: the sum of mu^2 is at most mu_B^2, and the sum of delta0 at most delta0_B (the filter theorem);
2. pure: the pure epsilons add up to at most eps_B;
3. alone: nothing else is charged or reserved, and the certificate of the release itself says delta(eps_B) <= delta_B.

All releases together are then (eps_B, delta_B)-private, though each may be chosen after seeing the results of others.
*Proof.* Take the releases that run in the order of their reservations; one that was cancelled has read no row. The sums
over each part of this order are within one of the rules, and they only grow: a rule that such a sum exceeds admits no
more. The first request does not depend on the data. (a) The squares admit the first
release. Then rule 3 admits nothing that the squares do not admit, and the squares are a filter for (eps_B, delta_B) and
pure epsilons one for (eps_B, 0): at the end one of the two has admitted everything. Let L be the privacy loss of the
transcript, and L_i that of an adversary who follows it and stops before the first release that exceeds rule i. Then
delta = E(1 - e^(eps_B - L))_+ <= sum_i E(1 - e^(eps_B - L_i))_+ <= delta_B + 0. (b) They do not. Then the squares admit
nothing for ever. Either the first release runs alone, with delta_B, or rule 2 admits all the others as well: again
delta <= delta_B + 0. QED.

Relation: substitution of one respondent's row. Against: the researchers of the study together. Source:
docs/accounting.md.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import cached_property, lru_cache
from math import inf

from veiltab.common.dataclass import dataclass, replace
from veiltab.common.privacy.coalitions import order_epsilon
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.pricing.price import (
    Price,
    is_certified,
    price_budget,
    price_of_pure_epsilon,
    price_within,
    share,
)

# An epsilon may have more digits than the default context keeps; what does not fit 100 digits is rounded against us.
_UP = Context(prec=100, rounding=ROUND_CEILING)
_DOWN = Context(prec=100, rounding=ROUND_FLOOR)
_MU_DIGITS = Decimal("1e-8")
_EPSILON_DIGITS = Decimal("1e-9")
_SHARE_DIGITS = Decimal("1e-12")


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What one release takes.

    Args:
        epsilon: its pure epsilon, nats.
        price: its price; None where the budget has no delta.
        is_enough_alone: whether its certificate keeps the whole budget (rule 3), where no other rule could admit it.
    """

    epsilon: Decimal
    price: Price | None = None
    is_enough_alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """What several releases take together.

    Args:
        count: how many.
        epsilon: sum of their pure epsilons, nats.
        squares: sum of mu^2 of those that have a price.
        slack: sum of delta0 of the same.
    """

    count: int = 0
    epsilon: Decimal = Decimal(0)
    squares: Decimal = Decimal(0)
    slack: Decimal = Decimal(0)

    def plus(self, charge: Charge) -> "Sums":
        """Return the sums with one release more."""
        price = charge.price or Price(mu=Decimal(0), slack=Decimal(0))
        return Sums(
            count=self.count + 1,
            epsilon=_UP.add(self.epsilon, charge.epsilon),
            squares=_UP.add(self.squares, _UP.multiply(price.mu, price.mu)),
            slack=_UP.add(self.slack, price.slack),
        )


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """A budget, with the rule above.

    Args:
        epsilon: most that may ever be spent, nats.
        delta: None adds up pure epsilons; otherwise all releases together stay inside (epsilon, delta).

    Raises:
        InvalidInputError: an epsilon and delta so small that they leave no price at all.
    """

    epsilon: Decimal
    delta: Decimal | None

    def __post_init__(self) -> None:
        self.price  # noqa: B018 - an allowance that exists has a price

    @cached_property
    def price(self) -> Price | None:
        """The price of the whole budget; None without a delta."""
        return None if self.delta is None else price_budget(self.epsilon, self.delta)

    def charge(self, release: ReleaseDescription, epsilon: Decimal) -> Charge:
        """Price a release; once for every kind, as it takes about 50 ms.

        Args:
            epsilon: its pure epsilon, nats.
        """
        charge = Charge(epsilon=epsilon, price=None if self.price is None else priced(release, self.price))
        return replace(charge, is_enough_alone=self.share(charge) > 1 and self.is_enough_alone(release))

    def charge_of_pure_epsilon(self, epsilon: Decimal) -> Charge:
        """Return a charge that covers every release of a pure epsilon (nats), at once."""
        return Charge(epsilon=epsilon, price=None if self.price is None else price_of_pure_epsilon(epsilon))

    def is_enough_alone(self, release: ReleaseDescription) -> bool:
        """Whether the certificate of a release keeps the whole budget (rule 3)."""
        return self.delta is not None and _certified(release, self.epsilon, self.delta)

    def holds(self, charge: Charge, *, others: Sums) -> bool:
        """Whether one of the rules admits a release.

        Args:
            others: all that is charged or reserved beside it.
        """
        together = others.plus(charge)
        by_sums = together.epsilon <= self.epsilon or self._holds_squares(together)
        return by_sums or (charge.is_enough_alone and others.count == 0)

    def _holds_squares(self, sums: Sums) -> bool:
        if self.price is None:
            return False
        return sums.squares <= _DOWN.multiply(self.price.mu, self.price.mu) and sums.slack <= self.price.slack

    def share(self, charge: Charge) -> Decimal:
        """Return what part of the budget a release takes, rounded up; shares of a budget with delta are of mu^2."""
        if self.price is None or charge.price is None:
            return _part(charge.epsilon, self.epsilon)
        return share(charge.price, self.price)

    def spent(self, sums: Sums, only: ReleaseDescription | None = None) -> Decimal:
        """Return the epsilon of releases together, nats, rounded up: of their prices or their sum, whichever is less.

        That of prices is at the budget's delta, and it is that of a plan made beforehand: for what was chosen on the
        way, the budget is what holds. Where there is one release alone, its own certificate counts too.

        Args:
            only: the release, where it is the only one.
        """
        if self.delta is None or sums.count == 0:
            return sums.epsilon
        composed = inf if sums.slack >= self.delta else self.spent_price(sums).epsilon(float(self.delta))
        least = sums.epsilon
        if composed != inf:
            least = min(least, Decimal(composed).quantize(_EPSILON_DIGITS, context=_UP))
        if only is None:
            return least
        return min(least, _alone(only, self.delta) or least, self.epsilon if self.is_enough_alone(only) else least)

    def spent_price(self, sums: Sums) -> Price:
        """Return the price of releases together, as they were charged; of a plan made beforehand, as `spent` is.

        Without a delta it is that of the sum of their pure epsilons.
        """
        if self.price is None:
            return price_of_pure_epsilon(sums.epsilon)
        return Price(mu=_UP.sqrt(sums.squares).quantize(_MU_DIGITS, context=_UP), slack=sums.slack)

    def spent_share(self, sums: Sums, only: ReleaseDescription | None = None) -> Decimal:
        """Return what part of the budget releases take together, rounded up, by the rule that finds least."""
        least = _part(sums.epsilon, self.epsilon)
        if self.price is not None:
            squares = _part(sums.squares, _DOWN.multiply(self.price.mu, self.price.mu))
            least = min(least, max(squares, _part(sums.slack, self.price.slack)))
        return min(least, Decimal(1)) if only is not None and self.is_enough_alone(only) else least

    def pure_left(self, sums: Sums) -> Decimal:
        """Return the pure epsilon beside others, nats, rounded down; below 0 where their pure epsilons exceed it."""
        return _DOWN.subtract(self.epsilon, sums.epsilon) or Decimal(0)  # and never -0

    def most_price(self, sums: Sums) -> Price | None:
        """Return the largest price that the squares admit beside others, rounded down; None where there is none."""
        if self.price is None:
            return None
        squares = _DOWN.subtract(_DOWN.multiply(self.price.mu, self.price.mu), sums.squares)
        slack = _DOWN.subtract(self.price.slack, sums.slack)
        if squares < 0 or slack < 0:
            return None
        return Price(mu=_DOWN.sqrt(squares).quantize(_MU_DIGITS, context=_DOWN), slack=slack)


@lru_cache(maxsize=4096)
def priced(release: ReleaseDescription, budget: Price) -> Price:
    """Return the price of a release in one currency with a budget; worked out once for every kind."""
    return price_within(release, budget)


@lru_cache(maxsize=256)
def _certified(release: ReleaseDescription, epsilon: Decimal, delta: Decimal) -> bool:
    return is_certified(release, epsilon, delta)


@lru_cache(maxsize=256)
def _alone(release: ReleaseDescription, delta: Decimal) -> Decimal | None:
    """Return the epsilon of a release by itself at a delta, nats, rounded up; None without a certificate."""
    epsilon = order_epsilon(release, delta)
    return None if epsilon is None else epsilon.quantize(_EPSILON_DIGITS, context=_UP)


def _part(some: Decimal, whole: Decimal) -> Decimal:
    return _UP.divide(some, whole).quantize(_SHARE_DIGITS, context=_UP)
