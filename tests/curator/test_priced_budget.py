"""A budget of (epsilon, delta): every release has a price, and together they stay inside."""

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import product
from math import exp

import pytest

from tests.conftest import FACTS, refuses, reserve, spec_with
from tests.curator.made_records import charge
from tests.curator.test_ledger import name
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.errors import BudgetExceededError, IntegrityError
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.planning.planning import Plan, plan_release
from veiltab.common.privacy.pricing.price import Price, composed_price, price_budget, price_within
from veiltab.common.release.table_spec import TableSpec
from veiltab.curator.budget import allowance
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.records.store import CuratorStore

DELTA = Decimal("1e-5")


@cache
def plan_of(epsilon: str, delta: str | None, population: int) -> Plan:
    asked = None if delta is None else Decimal(delta)
    return plan_release(population=population, cells=4, epsilon=Decimal(epsilon), delta=asked, noise_split=Decimal(0))


def spec_of(number: int, epsilon: str, delta: str | None = "1e-6", population: int = 1000) -> TableSpec:
    plan = plan_of(epsilon, delta, population)
    return spec_with(
        release_id=name(number),
        population=population,
        sample=plan.sample,
        epsilon=plan.epsilon,
        delta=plan.delta,
        server_replacement=plan.mechanism.server_replacement,
    )


def state_of(ledger: Ledger) -> tuple[str, str, str]:
    """What is spent, its share, and what is left."""
    spent, share, left = (
        value.normalize() for value in (ledger.budget.spent, ledger.budget.share, ledger.budget.remaining)
    )
    return f"{spent:f}", f"{share:f}", f"{left:f}"


def test_releases_are_admitted_while_their_prices_stay_inside(store: CuratorStore) -> None:
    ledger = Ledger(store.connection, Decimal("0.7"), DELTA)
    assert state_of(ledger) == ("0", "0", "0.7")
    charge(ledger, spec_of(1, "0.5"), spec_of(2, "0.5"))
    price = price_within(spec_of(1, "0.5").description, price_budget(Decimal("0.7"), DELTA))
    together = composed_price([price, price])
    assert [entry.price for entry in ledger.chain.entries] == [price, price]
    assert ledger.budget.spent < Decimal("0.7")  # less than the two epsilons added
    assert float(ledger.budget.spent) == pytest.approx(together.epsilon(float(DELTA)), abs=1e-8)
    assert float(ledger.budget.spent) >= together.epsilon(float(DELTA))
    assert ledger.budget.share == pytest.approx(
        sum(entry.share for entry in ledger.chain.entries), abs=Decimal("1e-11")
    )
    with pytest.raises(BudgetExceededError, match=r"the total would be epsilon .* at delta 1e-5; .* takes 41.09%"):
        reserve(ledger, spec_of(3, "0.5"))
    assert len(ledger.chain.entries) == 2
    # A release that needs all that is left, and no more, is admitted.
    assert Decimal("0.2") < ledger.budget.remaining < Decimal("0.3")
    charge(ledger, spec_of(3, "0.2"))


def test_a_pure_budget_counts_the_pure_epsilon_and_says_so(store: CuratorStore) -> None:
    ledger = Ledger(store.connection, Decimal(1))
    with pytest.raises(BudgetExceededError, match="ask without --delta"):
        reserve(ledger, spec_of(1, "0.5"))
    assert ledger.budget.remaining == 1


def test_a_delta_above_the_budgets_is_blamed(store: CuratorStore) -> None:
    ledger = Ledger(store.connection, Decimal("0.7"), DELTA)
    charge(ledger, spec_of(1, "0.5"), spec_of(2, "0.5"))
    with pytest.raises(BudgetExceededError, match=r"Ask for a smaller delta first: 0.01 is above the budget's\."):
        reserve(ledger, spec_of(3, "0.5", "0.01"))
    with pytest.raises(BudgetExceededError, match=r"left\. Ask for a smaller epsilon\.$"):
        reserve(ledger, spec_of(3, "0.5"))


def test_the_certificate_counts_where_nothing_else_runs(store: CuratorStore) -> None:
    # Its price is above the budget, though by itself it keeps the budget to the last digit.
    ledger = Ledger(store.connection, Decimal(1), DELTA)
    whole, small = spec_of(1, "1", str(DELTA)), spec_of(2, "0.01", None)
    reserve(ledger, small)
    with pytest.raises(BudgetExceededError):
        reserve(ledger, whole)
    ledger.cancel(small.release_id)
    charge(ledger, whole)
    (entry,) = ledger.chain.entries
    assert entry.share > 1
    assert Decimal("0.99999") < ledger.budget.spent <= 1
    assert ledger.budget.share == 1
    assert ledger.budget.remaining == 0
    for more in (small, spec_of(3, "0.001"), spec_of(4, "1", str(DELTA))):
        with pytest.raises(BudgetExceededError):
            reserve(ledger, more)


def test_pure_epsilons_add_up_where_the_squares_are_used_up(store: CuratorStore) -> None:
    # Ten pure releases of a few rows, which no order hides: their squares take more than the budget, their sum all.
    ledger = Ledger(store.connection, Decimal(1), Decimal("1e-12"))
    charge(ledger, *(spec_of(number, "0.25", None, population=3) for number in range(4)))
    assert sum(entry.share for entry in ledger.chain.entries) > 1
    assert state_of(ledger) == ("1", "1", "0")
    with pytest.raises(BudgetExceededError):
        reserve(ledger, spec_of(9, "0.001", None, population=3))


def test_each_kind_is_priced_once(store: CuratorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: Counter[ReleaseDescription] = Counter()

    def counted(release: ReleaseDescription, budget: Price) -> Price:
        kinds[release] += 1
        return price_within(release, budget)

    monkeypatch.setattr(allowance, "price_within", counted)
    allowance.priced.cache_clear()
    ledger = Ledger(store.connection, Decimal(3), DELTA)
    for number in range(12):
        epsilon = ("0.1", "0.2", "0.3")[number % 3]
        plan = plan_of(epsilon, "1e-6", 997)
        ledger.check_budget(ledger.budget.allowance.charge(plan.description, plan.pure_epsilon), plan.delta)
        charge(ledger, spec_of(number, epsilon, population=997))
    assert list(kinds.values()) == [1, 1, 1]
    # What is charged keeps its price.
    allowance.priced.cache_clear()
    assert Ledger(store.connection, Decimal(3), DELTA).budget.spent == ledger.budget.spent
    assert kinds.total() == 3


# The chain


def old_ledger(store: CuratorStore, *specs: TableSpec) -> tuple[int, bytes]:
    """Charge as an earlier version did: without prices."""
    ledger = Ledger(store.connection, Decimal(100))
    charge(ledger, *specs)
    return ledger.chain.head


def test_entries_of_an_earlier_version_are_priced_and_their_chain_stays(store: CuratorStore) -> None:
    head = old_ledger(store, spec_of(1, "0.3"), spec_of(2, "0.05", None))
    store.connection.execute("INSERT INTO reservation VALUES (?, ?, '0.0125')", [name(3), FACTS])
    ledger = Ledger(store.connection, Decimal("0.7"), DELTA)
    assert ledger.chain.head == head
    budget = price_budget(Decimal("0.7"), DELTA)
    ledger.charge(name(3))
    assert [entry.price for entry in ledger.chain.entries] == [
        price_within(spec_of(1, "0.3").description, budget),
        price_within(spec_of(2, "0.05", None).description, budget),
        price_within(spec_with().description, budget),
    ]
    assert Ledger(store.connection, Decimal("0.7"), DELTA).budget.share == ledger.budget.share
    # A study that gives up its delta, and takes it again.
    pure = Ledger(store.connection, Decimal(100))
    charge(pure, spec_of(4, "0.1"))
    charge(Ledger(store.connection, Decimal("0.7"), DELTA), spec_of(5, "0.1"))
    assert len(Ledger(store.connection, Decimal("0.7"), DELTA).chain.entries) == 5


def test_an_earlier_ledger_above_the_budget_leaves_the_pure_rule_alone(store: CuratorStore) -> None:
    old_ledger(store, *(spec_of(number, "0.5") for number in range(3)))
    ledger = Ledger(store.connection, Decimal("0.7"), DELTA)
    assert ledger.budget.share > 1
    assert ledger.budget.spent > Decimal("0.7")
    assert ledger.budget.remaining == 0
    with pytest.raises(BudgetExceededError):
        reserve(ledger, spec_of(9, "0.001"))


@pytest.mark.parametrize("release", [1, 2, 3])
@pytest.mark.parametrize("change", ["UPDATE price SET {} = '0.00000001'", "UPDATE price SET {0} = '0' || {0}"])
@pytest.mark.parametrize("column", ["mu", "slack"])
def test_an_edited_price_is_noticed(store: CuratorStore, change: str, column: str, release: int) -> None:
    old_ledger(store, spec_of(1, "0.1"))
    charge(Ledger(store.connection, Decimal("0.7"), DELTA), spec_of(2, "0.2"), spec_of(3, "0.3"))
    changed = store.connection.execute(f"{change.format(column)} WHERE release_id = ?", [name(release)])
    assert changed.rowcount == 1
    if release == 1 and "||" in change:
        Ledger(store.connection, Decimal("0.7"), DELTA)  # no link covers how the price of an old entry is spelled
        return
    with refuses(IntegrityError, where="ledger"):
        Ledger(store.connection, Decimal("0.7"), DELTA)


def test_a_price_that_is_gone_is_missed(store: CuratorStore) -> None:
    charge(Ledger(store.connection, Decimal("0.7"), DELTA), spec_of(1, "0.2"))
    store.connection.execute("DELETE FROM price")
    with pytest.raises(IntegrityError, match="altered at entry 1"):
        Ledger(store.connection, Decimal("0.7"), DELTA)


LIMIT, LIMIT_DELTA = Decimal(1), Decimal("0.1")


def tiny(number: int, gamma: str) -> TableSpec:
    """A release of two respondents and four cells."""
    mechanism = GammaDiagonal.from_gamma(4, Fraction(gamma))
    return spec_with(
        release_id=name(number), population=2, sample=2, epsilon=Decimal(5), server_replacement=mechanism.replacement
    )


# Every adversary, on tables of two respondents

Law = tuple[tuple[Fraction, Fraction], ...]
"""The two probabilities of each result, on either table."""


def law(gamma: Fraction, other: int) -> Law:
    """Return the law of a histogram of two respondents; one of them has `other`, and one 0 or 1."""
    keep, change = gamma / (gamma + 3), 1 / (gamma + 3)

    def histogram(first: int) -> dict[tuple[int, ...], Fraction]:
        found: dict[tuple[int, ...], Fraction] = {}
        for a, b in product(range(4), repeat=2):
            key = tuple(sorted((a, b)))
            probability = (keep if a == first else change) * (keep if b == other else change)
            found[key] = found.get(key, Fraction(0)) + probability
        return found

    one, two = histogram(0), histogram(1)
    return tuple((one[key], two[key]) for key in one)


@pytest.fixture(scope="module")
def admitted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[tuple[str, ...]], bool]:
    """Return what real ledgers say: whether the last of some releases runs after the others."""
    folder = tmp_path_factory.mktemp("adversary")

    @cache
    def is_admitted(kinds: tuple[str, ...]) -> bool:
        store = CuratorStore(folder / f"{'-'.join(kinds)}.sqlite")
        try:
            charge(Ledger(store.connection, LIMIT, LIMIT_DELTA), *(tiny(at, kind) for at, kind in enumerate(kinds)))
        except BudgetExceededError:
            return False
        finally:
            store.close()
        return True

    return is_admitted


@pytest.mark.parametrize("other", [0, 2])
def test_no_adversary_exceeds_the_budget_of_a_ledger(admitted: Callable[..., bool], other: int) -> None:
    kinds = ("2", "2.5", "3.5")
    laws = {kind: law(tiny(0, kind).mechanism.gamma, other) for kind in kinds}
    e = Fraction(exp(LIMIT))
    paths: set[tuple[str, ...]] = set()

    def worst(ran: tuple[str, ...], p: Fraction, q: Fraction) -> Fraction:
        """The largest delta of all strategies: what is asked for next may depend on the results so far."""
        paths.add(ran)
        options = [(*ran, kind) for kind in kinds if len(ran) < 4 and admitted((*ran, kind))]
        found = [sum((worst(more, p * a, q * b) for a, b in laws[more[-1]]), Fraction(0)) for more in options]
        return max([max(p - e * q, Fraction(0)), *found])

    found = worst((), Fraction(1), Fraction(1))
    # One release that runs alone, and three that share the budget, are among the ways to spend it.
    assert {("3.5",), ("2", "2", "2"), ("2", "2.5")} <= paths
    assert not any(len(path) > 1 and "3.5" in path for path in paths)
    assert 0 < found <= Fraction(LIMIT_DELTA) * (1 + Fraction(1, 10**12))
