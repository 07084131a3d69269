"""What plans promise of the server: where it is tested enough, careless servers are caught, smallest tables first."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import prod

import numpy as np
import pytest

from tests.common.release import lying_servers as lies
from tests.common.release.changed_canaries import noise_tests
from tests.common.release.lying_servers import Rows, Sent, Server, played
from veiltab.common.core.mechanism import UNIT, GammaDiagonal
from veiltab.common.core.numbers.counts import is_accepted
from veiltab.common.core.randomness import KEY_BYTES, CipherStream
from veiltab.common.core.symbols import CHUNK
from veiltab.common.privacy.planning.planning import plan_release
from veiltab.common.release.receipts.canary_plan import HowTested, planned_canaries, shown_by
from veiltab.common.release.receipts.noise_tests import JOINT_LEVEL, levels
from veiltab.play.demos.cheating_server import Cheat, perturb_dishonestly


def cheating(cheat: Cheat) -> Server:
    """Return what a server of `veiltab demo table --server` does."""

    def server(sent: Sent) -> Rows:
        mechanism = GammaDiagonal(cells=prod(sent.sizes), replacement=int(sent.r * UNIT))
        sources = lies.symbols_of(sent.rows, sent.sizes)
        outputs, stream = [np.empty_like(source) for source in sources], CipherStream(sent.coins.bytes(KEY_BYTES))
        for chunk, start in enumerate(range(0, len(sent.rows), CHUNK)):
            inputs, made = ([column[start : start + CHUNK] for column in columns] for columns in (sources, outputs))
            perturb_dishonestly(inputs, sent.sizes, mechanism, stream, made, chunk=chunk, cheat=cheat)
        return np.stack(outputs, axis=1).astype(np.int64)

    server.__name__ = cheat.value
    return server


Record = Callable[[str, object], None]
LIES: tuple[Server, ...] = (*map(cheating, Cheat), lies.first_column_raw, lies.first_column_raw_in_half_the_rows)
"""Those of the demonstration, and a column that is left as it came while the others have their noise."""
PLANS = [(100, (2, 2), "1"), (1_000, (2, 2), "2"), (3_000, (2, 2), "2"), (3_000, (2, 3), "5"), (20_046, (2, 12), "1")]


def missed(population: int, sizes: tuple[int, ...], epsilon: Decimal) -> list[str] | None:
    """Return which careless servers pass, and "honest" if an honest one fails; None if it is not tested enough."""
    plan = plan_release(population=population, cells=prod(sizes), epsilon=epsilon, delta=Decimal("1e-5"))
    server = plan.mechanism.server
    canaries, r = planned_canaries(server, sizes, plan.sample), Fraction(1 - server.retention)
    if shown_by(server, sizes, canaries).tested is not HowTested.ENOUGH:
        return None

    def is_caught(lie: Server, number: int) -> bool:
        coins = np.random.default_rng([population, number])
        one = played(lie, sizes, rows=100, canaries=canaries, r=r, coins=coins)
        return any(
            not is_accepted(test.law, test.count, *levels(test.family, sizes, JOINT_LEVEL))
            for test in noise_tests(one.changes, one.orders, r)
        )

    passed = [lie.__name__ for number, lie in enumerate(LIES) if not is_caught(lie, number)]
    return passed + ["honest"] * is_caught(lies.honest, len(LIES))


@pytest.mark.parametrize(("population", "sizes", "epsilon"), PLANS, ids=str)
def test_where_the_plan_says_enough_every_careless_server_is_caught(
    population: int, sizes: tuple[int, ...], epsilon: str
) -> None:
    assert missed(population, sizes, Decimal(epsilon)) == []


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_of_random_plans_no_more_careless_servers_pass_than_the_plan_says(record_property: Record) -> None:
    chance = np.random.default_rng(21)
    passed: list[str] = []
    enough = 0
    for _ in range(400):
        population = int(10 ** chance.uniform(1.5, 6))
        sizes = tuple(int(size) for size in chance.integers(2, 8, size=chance.integers(2, 5)))
        one = missed(population, sizes, Decimal(f"{10 ** chance.uniform(-1, 0.9):.3f}"))
        enough += one is not None
        passed += one or []
    record_property(
        "figure", f"{enough} of 400 plans test the server enough; of {enough * len(LIES)} lies {len(passed)} pass"
    )
    assert enough > 300
    assert len(passed) <= 11, passed  # each passes with .001 at the most, so more than 11 do so with 1e-4
