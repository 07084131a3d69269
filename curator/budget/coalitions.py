"""What each coalition faces of all releases that this curator's ledger charged."""

from dataclasses import replace
from decimal import Decimal

from veiltab.common.privacy.cards.all_releases import bounds_together
from veiltab.common.privacy.cards.card import Bound, advised_delta
from veiltab.common.privacy.coalitions import Coalition
from veiltab.curator.budget.charged_releases import releases_of
from veiltab.curator.budget.ledger import Ledger


def bounds_of_charges(ledger: Ledger) -> tuple[Bound, ...]:
    """Return one bound a coalition, at the delta of the budget or else the advised one.

    Returns:
        Upper bounds, that of the analyst and the desk as the ledger says what is spent; none if nothing is charged.
    """
    releases = [release for entry in ledger.chain.entries for release in releases_of(entry.facts)]
    if not releases:
        return ()
    delta = ledger.budget.delta or advised_delta(max(one.candidates[0].scheme.population for one in releases))
    bounds = bounds_together(releases, delta, pricing=ledger.budget.view_prices)
    return tuple(_as_spent(bound, ledger) if bound.roles in _RESEARCHERS else bound for bound in bounds)


_RESEARCHERS = {Coalition.ANALYST.roles, Coalition.DESK.roles}
"""Whom the budget is about."""


def _as_spent(bound: Bound, ledger: Ledger) -> Bound:
    """Return the bound with the epsilon that the ledger says is spent, at the delta of both."""
    pure, delta = ledger.budget.pure_spent, ledger.budget.delta or bound.delta
    spent = bound.epsilon if ledger.budget.delta is None else ledger.budget.spent
    if spent is None or spent >= pure:
        return replace(bound, epsilon=pure, delta=Decimal(0), other=None)
    return replace(bound, epsilon=spent, delta=delta, other=(pure, Decimal(0)) if delta else None)
