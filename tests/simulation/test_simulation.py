"""Whole deployments on virtual clocks and a virtual network, by seed; a failing one is repeated as its message says."""

import logging
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.simulation.deployment import Deployment, Outcome

QUICK = 24
BATCHES, EACH = 10, 100


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Keep the parties' logs, which are long, from being formatted."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def run(seed: int) -> Outcome:
    """Run a deployment; say how to run a failing one again."""
    try:
        return Deployment(seed=seed).run()
    except Exception as error:
        error.add_note(f"again: python -m tests.simulation {seed} --trace")
        raise


@pytest.mark.parametrize("seed", range(QUICK))
def test_a_deployment_keeps_its_promises(seed: int) -> None:
    run(seed)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_thousand_deployments_keep_their_promises(batch: int) -> None:
    happened, ends = Counter[str](), Counter[str]()
    for seed in range(QUICK + batch * EACH, QUICK + (batch + 1) * EACH):
        outcome = run(seed)
        happened += outcome.happened
        ends += Counter(outcome.ends.values())
    # Each fault befalls somebody, and releases end well nevertheless.
    assert set(happened) >= FAULTS
    assert ends["ready"] > EACH / 2


FAULTS = {
    "lost request", "lost reply", "cut", "repeat", "slow", "kill", "kill at a step", "stop", "full disk",
    "hostile answer", "restored server",
}  # fmt: skip


def test_the_same_seed_is_the_same_run() -> None:
    seed = random.Random(3).randrange(1 << 30)  # noqa: S311 - any seed
    first, second = run(seed), run(seed)
    assert first.trace == second.trace
    assert len(first.trace) > 100
