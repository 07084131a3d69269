"""The choice of an oracle at one central guarantee, in Python and on the command line."""

import json
from decimal import Decimal

import pytest
from click.testing import CliRunner

from tests.conftest import refuses
from veiltab.common.errors import InvalidInputError
from veiltab.deploy.cli import veiltab
from veiltab.researcher.collection.central_choice import choose_centrally
from veiltab.researcher.collection.plan_cli import plan
from veiltab.researcher.collection.shuffling import certificate_of

DELTA = Decimal("1e-6")


@pytest.mark.long
def test_each_oracle_has_the_largest_epsilon_of_a_report_that_keeps_the_guarantee() -> None:
    central = Decimal("0.05")
    choice = choose_centrally(
        100, Decimal(4), central=central, delta=DELTA, crowds=[(50_000, 50_000)], population=50_000, rate=1.0
    )
    assert choice.best.oracle.name == "krr"
    for one in choice.candidates:
        reached = certificate_of(one.oracle, 50_000, 50_000).epsilon(1e-6)
        assert 0.9999 * float(central) < reached <= float(central) * (1 + 1e-9)
        assert one.oracle.epsilon <= 4


def test_no_report_exceeds_the_cap_and_the_worst_stratum_counts() -> None:
    capped = choose_centrally(
        10, Decimal(1), central=Decimal(1), delta=DELTA, crowds=[(100, 50), (1000, 500)], population=1100, rate=0.5
    )
    assert all(one.oracle.epsilon == 1 for one in capped.candidates)
    crowds = [(200, 100), (5000, 100)]
    both, worst = (
        choose_centrally(
            10, Decimal(3), central=Decimal("0.3"), delta=DELTA, crowds=some, population=5200, rate=0.1, among=["oue"]
        )
        for some in (crowds, crowds[:1])
    )
    assert both.best.oracle == worst.best.oracle


def test_what_cannot_be_asked_for_is_refused() -> None:
    def asked(**changes: object) -> object:
        numbers = {"central": Decimal("0.1"), "delta": DELTA, "crowds": [(10, 10)], "population": 10, "rate": 1.0}
        return choose_centrally(10, Decimal(1), **(numbers | changes))  # type: ignore[arg-type]

    with refuses(InvalidInputError, where="epsilon"):
        asked(central=Decimal(0))
    with refuses(InvalidInputError, where="delta"):
        asked(delta=Decimal(1))
    with pytest.raises(InvalidInputError, match="at least one oracle"):
        asked(among=())


@pytest.mark.long
def test_a_plan_says_the_guarantee_of_every_candidate() -> None:
    sizes = ["--domain", "100", "--epsilon", "2", "--population", "50000"]
    found = json.loads(
        CliRunner().invoke(veiltab, ["--json", "collect", "plan", *sizes], catch_exceptions=False).stdout
    )
    assert len(found["candidates"]) == 4
    for one in found["candidates"]:
        guarantee = one["guarantee"]
        keys = {"local_epsilon", "pure_epsilon", "delta", "epsilon", "epsilon_if_participation_is_known"}
        assert set(guarantee) == keys
        assert 0 < guarantee["epsilon"] <= guarantee["epsilon_if_participation_is_known"] < 0.04
    central = [*sizes, "--rate", "0.5", "--central-epsilon", "0.02"]
    chosen = json.loads(
        CliRunner().invoke(veiltab, ["--json", "collect", "plan", *central], catch_exceptions=False).stdout
    )
    assert all(0.0199 < one["guarantee"]["epsilon"] <= 0.02 for one in chosen["candidates"][:1])
    text = CliRunner().invoke(plan, central, catch_exceptions=False).stdout
    assert "the epsilon of a report, of the counts" in text
