"""A budget of (epsilon, delta): releases are composed, and together stay inside."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from veiltab.common.errors import BudgetExceededError
from veiltab.common.privacy.composition import compose
from veiltab.common.privacy.planning import plan_release
from veiltab.common.release.spec import ReleaseSpec
from veiltab.curator.ledger import Ledger
from veiltab.curator.store import CuratorStore

Make = Callable[..., Any]
DELTA = Decimal("1e-5")


def spec_of(make_spec: Make, number: int, epsilon: str) -> ReleaseSpec:
    plan = plan_release(population=1000, cells=4, epsilon=Decimal(epsilon), delta=Decimal("1e-6"))
    spec: ReleaseSpec = make_spec(
        release_id=f"{number:032x}",
        sample=1000,
        epsilon=Decimal(epsilon),
        delta=Decimal("1e-6"),
        replacement=plan.mechanism.replacement,
    )
    return spec


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Any]:
    store = CuratorStore(tmp_path / "curator.sqlite")
    yield store.connection
    store.close()


def test_releases_are_admitted_while_their_composition_stays_inside(connection: Any, make_spec: Make) -> None:  # noqa: ANN401
    ledger = Ledger(connection, Decimal("0.7"), DELTA)
    for number in (1, 2):
        ledger.reserve(spec_of(make_spec, number, "0.5"))
        ledger.charge(f"{number:032x}")
    spec = spec_of(make_spec, 1, "0.5")
    together = compose([(spec.description, 2)], float(DELTA)).epsilon
    assert together < 0.7  # less than the two epsilons added
    assert float(ledger.spent) == pytest.approx(together, abs=1e-8)
    assert float(ledger.spent) >= together
    with pytest.raises(BudgetExceededError, match=r"the total would be epsilon .* at delta 0.00001"):
        ledger.reserve(spec_of(make_spec, 3, "0.5"))
    assert len(ledger.entries) == 2


def test_a_pure_budget_counts_the_pure_epsilon_and_says_so(connection: Any, make_spec: Make) -> None:  # noqa: ANN401
    ledger = Ledger(connection, Decimal(1))
    with pytest.raises(BudgetExceededError, match="ask without --delta"):
        ledger.reserve(spec_of(make_spec, 1, "0.5"))
    assert ledger.remaining == 1


def test_what_is_reserved_counts(connection: Any, make_spec: Make) -> None:  # noqa: ANN401
    ledger = Ledger(connection, Decimal("0.6"), DELTA)
    ledger.reserve(spec_of(make_spec, 1, "0.5"))
    with pytest.raises(BudgetExceededError):
        ledger.reserve(spec_of(make_spec, 2, "0.5"))
    ledger.cancel(f"{1:032x}")
    ledger.reserve(spec_of(make_spec, 2, "0.5"))
