"""The card of all releases, what the ledger says is spent, and what one more release may have: one story."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from tests.conftest import reserve, spec_with
from veiltab.common.errors import BudgetExceededError
from veiltab.common.privacy.cards.all_releases import bounds_together
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.privacy.coalitions import Coalition
from veiltab.common.privacy.planning.planning import Plan, plan_release
from veiltab.common.privacy.pricing.price import price
from veiltab.common.release.guarantees import two_sided_release
from veiltab.common.release.table_spec import TableSpec
from veiltab.curator.budget import view_prices
from veiltab.curator.budget.allowance import Allowance, Charge, Sums
from veiltab.curator.budget.coalitions import bounds_of_charges
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.budget.ledger_text import spent_text
from veiltab.curator.budget.remaining import Kind, Rest, kind_of, rest_for
from veiltab.curator.records.store import CuratorStore

T = TypeVar("T")


SEEDS = [range(start, start + 50) for start in range(0, 1000, 50)]


def one_of(rng: np.random.Generator, some: Sequence[T]) -> T:
    return some[int(rng.integers(len(some)))]


BUDGETS = (("4", "1e-6"), ("1", "1e-6"), ("0.7", "1e-5"), ("2", "1e-9"))
KINDS = tuple(
    (population, epsilon, delta)
    for population in (30, 1000)
    for epsilon, delta in (("0.1", "1e-6"), ("0.5", "1e-7"), ("1", "1e-6"), ("2.5", "1e-7"), ("0.05", None))
)


@cache
def spec_of(population: int, epsilon: str, delta: str | None) -> TableSpec:
    plan = plan_release(
        population=population, cells=4, epsilon=Decimal(epsilon), delta=None if delta is None else Decimal(delta)
    )
    return spec_with(
        population=population,
        sample=plan.sample,
        epsilon=plan.epsilon,
        delta=plan.delta,
        server_replacement=plan.mechanism.server_replacement,
        curator_replacement=plan.mechanism.curator_replacement,
    )


def charged(folder: Path, budget: tuple[str, str], kinds: Sequence[tuple[int, str, str | None]]) -> Ledger:
    """Charge releases, whatever the budget holds: entries of an earlier version may be above it."""
    connection = CuratorStore(folder / "curator.sqlite").connection
    whole = Ledger(connection, Decimal(100))
    for number, kind in enumerate(kinds):
        spec = spec_of(*kind)
        one = TableSpec.from_json(spec.to_json().replace(spec.release_id, f"{number:032x}"))
        reserve(whole, one)
        whole.charge(one.release_id)
    return Ledger(connection, Decimal(budget[0]), Decimal(budget[1]))


def check_one_story(ledger: Ledger, kinds: Sequence[tuple[int, str, str | None]]) -> None:
    delta = ledger.budget.delta
    assert delta is not None
    bounds = {bound.roles: bound for bound in bounds_of_charges(ledger)}
    by_prices = bounds_together([two_sided_release(spec_of(*kind)) for kind in kinds], delta, pricing=known_price)
    (other,) = (bound.epsilon for bound in by_prices if bound.roles == Coalition.DESK.roles)
    assert other is not None
    # The sharpest of the sums at the ledger's own prices, at a small slack, and pure.
    assert ledger.budget.spent <= ledger.budget.allowance.spent(ledger.budget.sums())
    assert ledger.budget.spent <= other + Decimal("1e-9")
    assert ledger.budget.spent <= ledger.budget.pure_spent
    for who in (Coalition.ANALYST, Coalition.DESK):
        bound = bounds[who.roles]
        assert bound.epsilon == ledger.budget.spent
        assert bound.delta in {0, delta}
        assert bound.delta == delta or bound.epsilon == ledger.budget.pure_spent
    shown = f"{ledger.budget.spent.quantize(Decimal('1e-6'), rounding='ROUND_CEILING'):f}"
    assert f"Spent epsilon {shown} at delta {delta_text(delta)}" in spent_text(ledger)
    assert shown in bounds[Coalition.DESK.roles].in_full


known_price = lru_cache(maxsize=None)(price)


@pytest.fixture(autouse=True)
def known_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_prices, "price", known_price)


@pytest.mark.long
@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_the_card_says_what_the_ledger_says_is_spent(seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        rng = np.random.default_rng(seed)
        kinds = [one_of(rng, KINDS) for _ in range(one_of(rng, [1, 1, 2, 3, 5, 12]))]
        check_one_story(charged(tmp_path / str(seed), one_of(rng, BUDGETS), kinds), kinds)


def test_a_large_release_beside_small_ones_shows_one_number(tmp_path: Path) -> None:
    # At a small slack the large one costs much more than by its share of the budget's slack.
    kinds = [(1000, "0.5", "1e-7"), (1000, "1", "1e-6"), (1000, "2.5", "1e-7")]
    ledger = charged(tmp_path, ("4", "1e-6"), kinds)
    check_one_story(ledger, kinds)
    (desk,) = (bound for bound in bounds_of_charges(ledger) if bound.roles == Coalition.DESK.roles)
    assert desk.epsilon is not None
    assert desk.epsilon <= ledger.budget.allowance.spent(ledger.budget.sums()) < 4


def test_charges_that_come_later_are_added(tmp_path: Path) -> None:
    kinds = [(1000, "0.5", "1e-7")]
    ledger = charged(tmp_path, ("4", "1e-6"), kinds)
    alone = ledger.budget.spent
    later = TableSpec.from_json(spec_of(*KINDS[7]).to_json().replace("0" * 31 + "1", "f" * 32))
    reserve(ledger, later)
    ledger.charge(later.release_id)
    assert alone < ledger.budget.spent
    check_one_story(ledger, [*kinds, KINDS[7]])


# What one more release may have


def asked(left: Rest, kind: Kind, split: str) -> Plan:
    return plan_release(
        population=kind.population, cells=kind.cells, epsilon=left.epsilon, delta=left.delta, noise_split=Decimal(split)
    )


def charge_of(plan: Plan, allowance: Allowance) -> Charge:
    return allowance.charge(plan.description, plan.pure_epsilon)


def check_left(allowance: Allowance, others: Sums, kind: Kind, split: str) -> Rest:
    left = rest_for(allowance, others, kind)
    if left.epsilon > 0:
        assert allowance.holds(charge_of(asked(left, kind, split), allowance), others=others)
    return left


def check_drawn(rng: np.random.Generator) -> None:
    """Draw a budget, the releases of it and one more, and see that what is left for it is admitted."""
    epsilon, delta = map(Decimal, one_of(rng, BUDGETS))
    allowance = Allowance(epsilon=epsilon, delta=delta)
    population = one_of(rng, [5, 30, 300, 1000, 45222])
    kind, others = Kind(population=population, cells=one_of(rng, [2, 4, 24, 700])), Sums()
    for _ in range(one_of(rng, [0, 1, 2, 4])):
        part = (epsilon * Decimal(rng.uniform(0.02, 0.8))).quantize(Decimal("1e-3")) + Decimal("1e-3")
        asked_delta = one_of(rng, [delta, delta / 10, None])
        cells = one_of(rng, [2, 4, 24, 700])
        charge = charge_of(plan_release(population=population, cells=cells, epsilon=part, delta=asked_delta), allowance)
        if allowance.holds(charge, others=others):
            others = others.plus(charge)
    check_left(allowance, others, kind, one_of(rng, ["0", "0.5", "0.9"]))


@pytest.mark.long
@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_what_one_more_release_may_have_is_admitted(seeds: range) -> None:
    for seed in seeds:
        check_drawn(np.random.default_rng(seed))


@pytest.mark.parametrize("cells", [24, 700])
def test_more_than_one_more_release_may_have_is_refused(cells: int) -> None:
    allowance, kind = Allowance(epsilon=Decimal(1), delta=Decimal("1e-6")), Kind(population=1000, cells=cells)
    first = plan_release(population=1000, cells=cells, epsilon=Decimal("0.6"), delta=Decimal("1e-6"))
    others = Sums().plus(charge_of(first, allowance))
    left = check_left(allowance, others, kind, "0.5")
    assert (left.delta, left.cells) == (Decimal("1e-6"), cells)
    assert str(left) == f"epsilon {left.epsilon.normalize():f} at delta 1e-6 for a table of {cells} cells"
    more = Rest(epsilon=left.epsilon * Decimal("1.01"), delta=left.delta)
    assert not allowance.holds(charge_of(asked(more, kind, "0.5"), allowance), others=others)


def test_less_is_said_where_the_kind_is_not_known() -> None:
    allowance = Allowance(epsilon=Decimal(1), delta=Decimal("1e-6"))
    others = Sums().plus(allowance.charge_of_pure_epsilon(Decimal("0.25")))
    assert rest_for(allowance, others, None) == Rest(epsilon=Decimal("0.75"))
    assert str(rest_for(allowance, others, None)) == "epsilon 0.75"
    tables = [{"population": 9, "cells": 4}, {"population": 9, "cells": 24}]
    assert kind_of({"tables": tables}) == Kind(population=9, cells=24)


def test_the_whole_budget_is_left_before_the_first_release(tmp_path: Path) -> None:
    ledger = charged(tmp_path, ("1", "1e-6"), [])
    assert ledger.budget.rest == Rest(epsilon=Decimal(1), delta=Decimal("1e-6"))
    for population in (30, 45222):
        check_left(ledger.budget.allowance, Sums(), Kind(population=population, cells=24), "0.5")
    reserve(ledger, spec_of(1000, "0.5", "1e-7"))
    assert ledger.budget.rest.cells == 4


def test_nothing_that_cannot_be_planned_is_promised() -> None:
    allowance = Allowance(epsilon=Decimal("1e-4"), delta=Decimal("1e-6"))
    others = Sums().plus(allowance.charge_of_pure_epsilon(Decimal("0.00009")))
    check_left(allowance, others, Kind(population=3, cells=4), "0.5")


def test_a_refusal_says_what_part_of_the_budget_is_left(tmp_path: Path) -> None:
    ledger = charged(tmp_path, ("0.7", "1e-5"), [(1000, "0.5", "1e-7")])
    with pytest.raises(BudgetExceededError, match=r"% is left") as refused:
        reserve(ledger, spec_of(1000, "1", "1e-6"))
    free = Fraction(str(refused.value).split(", and ")[1].split("%")[0]) / 100
    assert 1 - Fraction(ledger.budget.share) - Fraction(1, 10_000) < free <= 1 - Fraction(ledger.budget.share)
