"""The filter theorem on tiny mechanisms: the worst adversary who chooses each release after seeing the results.

Every strategy is followed to its end, so that delta is exact: the largest sum over transcripts of (P - e Q)_+. The sum
of squared prices keeps its bound. Exact composition as a ledger ("run it if what ran so far, with it, keeps the budget
as if chosen beforehand") does not.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import log

import numpy as np
import pytest

from veiltab.common.core.numbers.elementary import Floats
from veiltab.common.privacy.domination import least_mu
from veiltab.common.privacy.pricing.price import Price, composed_price

Law = tuple[tuple[Fraction, Fraction], ...]
"""The two probabilities of each result, on either table."""

Rule = Callable[[Sequence[Law]], bool]
"""Whether the releases that ran and the next may run."""


def response(ratio: Fraction) -> Law:
    """Randomised response with a likelihood ratio."""
    high, low = ratio / (1 + ratio), 1 / (1 + ratio)
    return ((high, low), (low, high))


def leak(probability: Fraction) -> Law:
    """The table itself, with a probability."""
    return ((probability, Fraction(0)), (Fraction(0), probability), (1 - probability, 1 - probability))


def together(laws: Sequence[Law]) -> Law:
    """Releases that were chosen beforehand."""
    joint: Law = ((Fraction(1), Fraction(1)),)
    for law in laws:
        joint = tuple((p * a, q * b) for (p, q), (a, b) in product(joint, law))
    return joint


def delta(law: Law, e: Fraction) -> Fraction:
    """The hockey-stick divergence; all laws here are symmetric, and so have one for both directions."""
    return sum((max(p - e * q, Fraction(0)) for p, q in law), Fraction(0))


def worst(kinds: Sequence[Law], rule: Rule, e: Fraction, depth: int) -> Fraction:
    """The largest delta of all strategies: whatever is chosen next may depend on the results so far."""

    def best(ran: tuple[Law, ...], p: Fraction, q: Fraction) -> Fraction:
        stop = max(p - e * q, Fraction(0))
        if len(ran) == depth:
            return stop
        options = [law for law in kinds if rule((*ran, law))]
        return max([stop, *(sum((best((*ran, law), p * a, q * b) for a, b in law), Fraction(0)) for law in options)])

    return best((), Fraction(1), Fraction(1))


def priced(law: Law, slack: float) -> Price:
    """The price of a tiny mechanism, from its exact profile."""

    def profile(epsilons: Floats) -> Floats:
        return np.array([float(delta(law, Fraction(float(np.exp(epsilon))))) for epsilon in epsilons]) * (1 + 1e-12)

    ratios = [p / q for p, q in law if q]
    found = least_mu(
        profile, slack=lambda _: slack, pure_epsilon=log(max(ratios)) + 1e-9 if len(ratios) == len(law) else 50.0
    )
    return Price(mu=Decimal(found), slack=Decimal(slack))


KINDS: tuple[Law, ...] = (
    response(Fraction(2)),
    response(Fraction(3, 2)),
    together([response(Fraction(5, 4))] * 2),
    together([response(Fraction(6, 5)), leak(Fraction(1, 2000))]),
)
SLACK = 1 / 1500


@pytest.mark.parametrize("most", [(0, 1), (0, 0, 1), (1, 1, 2), (2, 3)])
@pytest.mark.parametrize("e", [Fraction(1), Fraction(3, 2), Fraction(2), Fraction(14, 5)])
def test_no_adversary_exceeds_the_budget_of_squares(most: tuple[int, ...], e: Fraction) -> None:
    prices = {law: priced(law, SLACK) for law in KINDS}
    # The budget is what some releases take together; others fit into it in many ways.
    budget = composed_price([prices[KINDS[kind]] for kind in most])

    def fits(ran: Sequence[Law]) -> bool:
        spent = composed_price([prices[law] for law in ran])
        return spent.mu <= budget.mu and spent.slack <= budget.slack

    found = worst(KINDS, fits, e, len(most))
    assert found <= Fraction(budget.delta(log(e)))
    # The strategy that the budget was made for is one of them.
    assert found >= delta(together([KINDS[kind] for kind in most]), e)


def test_pure_epsilons_are_a_filter_beside_the_squares() -> None:
    # The lemma: a rule that admits nothing more once it refused may stand beside another at no cost.
    prices = {law: priced(law, SLACK) for law in KINDS[:3]}
    pure = {law: max(p / q for p, q in law) for law in KINDS[:3]}
    budget = composed_price([prices[KINDS[0]], prices[KINDS[1]]])

    def squares(ran: Sequence[Law]) -> bool:
        return composed_price([prices[law] for law in ran]).mu <= budget.mu

    def pures(ran: Sequence[Law]) -> bool:
        ratio = Fraction(1)
        for law in ran:
            ratio *= pure[law]
        return ratio <= 3

    for e in (Fraction(3), Fraction(7, 2)):
        found = worst(KINDS[:3], lambda ran: squares(ran) or pures(ran), e, 3)
        assert found <= Fraction(budget.delta(log(e)))
