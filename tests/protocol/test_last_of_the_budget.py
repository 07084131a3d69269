"""Two researchers who ask for the last of a budget at once: exactly one of them has it."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from decimal import ROUND_DOWN, Decimal
from pathlib import Path
from threading import Barrier

import pytest

from tests.protocol.village import THREE, TWO, Rules
from tests.protocol.world import CLOUD, RITA, ROSA, World, made_world
from veiltab.common.errors import DeniedError
from veiltab.common.rpc.parties.identity import Role

NAMES = ("region", "income")
RACES = 10
LONG = [pytest.param(owners, run, marks=pytest.mark.long) for owners in (TWO, THREE) for run in range(10)]


def race(world: World, epsilon: Decimal) -> None:
    """Let both ask, and see that one is ready and charged everywhere, and the other denied and charged nowhere."""
    start = Barrier(2)

    def asked(name: str) -> tuple[str, bool]:
        with world.client(name) as client:
            start.wait()
            release = client.request(NAMES, epsilon=str(epsilon), label=world.label())
            try:
                release.wait(60)
            except DeniedError as refusal:
                assert "privacy budget" in str(refusal)  # noqa: PT017 - one of two may be refused
                return release.id, False
            return release.id, True

    with ThreadPoolExecutor(2) as pool:
        outcomes = dict(pool.map(asked, ("rosa", "rita")))
    assert sorted(outcomes.values()) == [False, True]
    for curator in world.local.tables:
        charged = world.charges(curator)
        assert [release_id in charged for release_id in outcomes] == list(outcomes.values())


@pytest.mark.parametrize(
    ("owners", "run"), [*(pytest.param(owners, -1, marks=pytest.mark.long) for owners in (TWO, THREE)), *LONG]
)
def test_exactly_one_of_two_requests_has_the_last_of_the_budget(
    tmp_path: Path, owners: Mapping[str, str], run: int
) -> None:
    del run
    world = made_world(tmp_path / "world", people=200, owners=owners, rules=Rules(budget="10"))
    with world.local:
        world.start(*((Role.CURATOR, name) for name in world.local.tables), CLOUD, ROSA, RITA)
        left = Decimal(10)
        for _ in range(RACES):
            epsilon = (left * Decimal("0.55")).quantize(Decimal("1e-9"), rounding=ROUND_DOWN)
            race(world, epsilon)
            left -= epsilon
