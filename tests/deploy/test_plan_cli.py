"""`veiltab plan`, as one types it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran
from veiltab.deploy.cli import veiltab

ADULT = ("--population", "45222", "--cells", "24", "--epsilon", "0.5", "--delta", "1e-6")
FEW = ("--population", "100", "--cells", "4", "--epsilon", "1")

Plan = Callable[..., dict[str, Any]]


@pytest.fixture
def plan(ran: Ran) -> Plan:
    """Return a plan as plain data."""

    def planned(*words: str) -> dict[str, Any]:
        code, out, _ = ran(veiltab, "plan", *words, "--json")
        assert code == 0
        found: dict[str, Any] = json.loads(out)
        return found

    return planned


def test_a_plan_for_a_billion_says_how_small_its_error_is(ran: Ran) -> None:
    many = ("--population", "1000000000", "--cells", "24", "--epsilon", "0.5", "--delta", "1e-10")
    _, out, _ = ran(veiltab, "plan", *many)
    assert "together: 1.1e-07 (the paper's m* = 32547539, pure: 0.00038)" in " ".join(out.split())


@pytest.mark.parametrize(
    ("epsilon", "printed"), [("1e-12", "1 - 1.9e-09 (gamma = 1 + 4.5e-08"), ("100", "1.1e-19 (gamma")]
)
def test_no_noise_is_printed_as_none_or_as_all(ran: Ran, epsilon: str, printed: str) -> None:
    _, out, _ = ran(veiltab, "plan", "--population", "45222", "--cells", "24", "--epsilon", epsilon)
    assert f"replace a row with probability {printed}" in out


def test_cells_that_expect_few_rows_are_warned_of(plan: Plan) -> None:
    few = plan("--population", "45222", "--cells", "200", "--epsilon", "1", "--sample", "172")
    assert "fewer than five noisy rows" in few["warnings"][0]


def test_plan_has_the_promised_keys_and_draws(plan: Plan, tmp_path: Path) -> None:
    picture = tmp_path / "error.svg"
    found = plan(*ADULT, "--plot", str(picture))
    keys = {"m", "gamma", "epsilon", "root_mse", "local_epsilon", "paper", "delta", "mode", "feasible", "advice"}
    assert set(found) >= keys
    assert set(found["paper"]) == {"m", "root_mse", "bound"}
    assert (found["mode"], found["m"], found["feasible"]) == ("order", 45222, True)
    assert picture.read_text().startswith("<?xml")


def test_plan_says_what_pairs_face_and_caps_it(plan: Plan, tmp_path: Path) -> None:
    picture = tmp_path / "card.svg"
    found = plan(*ADULT, "--advanced", "noise-split=0.5", "--card", str(picture))
    assert found["pairs"] == {
        "desk+server": pytest.approx(0.769, abs=1e-3),
        "analyst+curators": pytest.approx(0.783, abs=1e-3),
    }
    assert found["noise_split"] == 0.5
    kept = (1 - found["curator_replacement_probability"]) * (1 - found["server_replacement_probability"])
    assert kept == pytest.approx(1 - found["replacement_probability"])
    needed = found["canaries_at_most"]
    assert 220 < needed * found["server_replacement_probability"] / 2 < 245
    assert (found["canaries_cap"], found["server_test"]["tested"]) == (2**20, "enough")
    assert {tuple(bound["coalition"]) for bound in found["card"]} >= {("analyst",), ("desk", "server", "curator")}
    assert picture.read_text().startswith("<?xml")
    capped = plan(*ADULT, "--advanced", "noise-split=0.5", "--advanced", "max-pair-epsilon=0.5")
    assert 0.499 < max(capped["pairs"].values()) <= 0.5
    # Half of the protection against pairs costs about the square root of two in error.
    assert 1.3 < capped["root_mse"] / found["root_mse"] < 1.6
    assert plan(*ADULT, "--advanced", "noise-split=0")["pairs"]["desk+server"] is None
    assert plan("--population", "45222", "--cells", "24", "--epsilon", "1")["mode"] == "pure"
