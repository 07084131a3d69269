"""`veiltab lab privacy`, as one types it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from veiltab.common.errors import VeiltabError
from veiltab.deploy.cli import veiltab


def run(line: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text(f"{line} --json"))
    return found


def text(line: str) -> str:
    result = CliRunner().invoke(veiltab, ["lab", "privacy", *line.split()], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(line: str) -> str:
    result = CliRunner().invoke(veiltab, ["lab", "privacy", *line.split()])
    assert isinstance(result.exception, VeiltabError) or result.exit_code == 2, result.output
    return str(result.exception) if isinstance(result.exception, VeiltabError) else result.output


SIZES = "--population 1000 --sample 400"
ADULT = "--population 45222 --sample 45222 --cells 24"


def test_amplify() -> None:
    laplace = "--stage 500 --mechanism laplace --epsilon 0.5 --ratio 0.25"
    found = run(f"amplify --scheme must.ow {SIZES} {laplace}")
    assert set(found) == {"eta", "epsilon", "delta", "attained", "base", "class", "relation"}
    assert 0 < found["attained"] <= found["epsilon"]
    assert (round(found["epsilon"], 3), round(found["delta"], 3)) == (0.164, 0.003)
    assert found["class"] == "type-I weak"
    assert run(f"amplify {SIZES} --epsilon 1")["class"] == "strong"


def test_amplify_backwards() -> None:
    base = run(f"amplify {SIZES} --epsilon 0.5 --inverse")
    assert base["epsilon"] == pytest.approx(0.5)
    assert base["epsilon"] <= 0.5
    assert base["base"]["epsilon"] > 0.9


def test_a_sample_is_never_used_twice(tmp_path: Path) -> None:
    file = tmp_path / "releases.json"
    one = {"population": 400, "sample": 300, "cells": 6, "gamma": 9, "sample_id": "a"}
    for releases in ([one, one], [one | {"count": 2}]):
        file.write_text(json.dumps(releases))
        assert "one sample never serves two releases" in refused(f"compose {file} --delta 1e-5")


def test_certify_both_ways_and_calibrate() -> None:
    at = run(f"certify {ADULT} --gamma 356.78 --epsilon 0.5")
    assert at["delta"] == pytest.approx(9.98105e-7, rel=1.5e-6)
    back = run(f"certify {ADULT} --gamma 356.78 --delta {at['delta']}")
    assert back["epsilon"] == pytest.approx(0.5, rel=1e-5)
    found = run(f"calibrate {ADULT} --epsilon 0.5 --delta 1e-6")
    assert set(found) >= {"gamma", "epsilon", "delta", "pure_epsilon", "local_epsilon"}
    assert found["delta"] <= 1e-6
    assert found["gamma"] >= 356.78
    capped = run(f"calibrate {ADULT} --epsilon 0.5 --delta 1e-6 --max-local-epsilon 3")
    assert capped["local_epsilon"] <= 3


def test_certify_says_both_only_where_both_say_something() -> None:
    large, small = (text(f"certify {ADULT} --gamma 4 --delta {delta}") for delta in ("0.9", "1e-6"))
    assert ["(0, 0.9)" in large, "not below 1/n" in large] == [True, True]
    assert ["both hold" in small, "not below 1/n" in small] == [True, False]
    assert "both hold" not in text(f"certify {ADULT} --gamma 4 --epsilon 2")


def test_a_delta_below_all_floats_is_not_said_to_be_zero() -> None:
    line = "certify --population 48 --sample 48 --cells 10000000 --gamma 1.5 --epsilon 0.4054"
    assert run(line)["delta"] == 1e-283
    assert "(0.4054, below 1e-283), and purely" in text(line)


def test_compose(tmp_path: Path) -> None:
    file = tmp_path / "releases.json"
    file.write_text(json.dumps([{"population": 400, "sample": 300, "cells": 6, "gamma": 9, "count": 2}]))
    found = run(f"compose {file} --delta 1e-5")
    assert 0 < found["attained"] <= found["epsilon"] <= found["pure_epsilon"]
    assert found["zcdp"] == {"rho": pytest.approx(found["gdp"]["mu"] ** 2 / 2), "delta": found["gdp"]["delta"]}
    assert found["epsilon"] < 1.01 * found["attained"]
    assert "a guarantee is no smaller" in text(f"compose {file} --delta 1e-5")
    steps = "--mechanism gaussian --scheme wr --population 1000 --sample 50"
    upper = run(f"compose {steps} --noise-multiplier 4 --steps 100 --epsilon 1")
    assert 0 < upper["delta_upper"] < 1
    assert 0 < upper["attained"] <= 1


def test_gain(tmp_path: Path) -> None:
    mean = run("gain --statistic mean --population 10001 --rate 0.1 --epsilon 1 --range 1 --variance 0.01")
    assert mean["gains"] is False
    assert mean["noise_ratio"] < 1
    values = tmp_path / "values.txt"
    values.write_text("\n".join(str(x / 100) for x in range(101)))
    of = f"gain --statistic median --epsilon 0.5 --values {values} --low 0 --high 1"
    median = run(f"{of} --rate 0.5 --trials 20")
    assert median["sample"]["total"] == pytest.approx(median["sample"]["sampling"] + median["sample"]["noise"])
    assert "unless the values are public" in median["warning"]
    best = run(f"{of} --trials 5 --mechanism exponential")
    assert (best["mechanism"], best["sample"]["delta"]) == ("exponential", 0)
    assert best["population"]["total"] == pytest.approx(median["exponential"])
    assert best["sample"]["total"] <= best["population"]["total"] * (1 + 1e-9)


def test_any_base_mechanism() -> None:
    asked = f"amplify {SIZES} --mechanism any --epsilon 1"
    one = run(f"{asked} --guarantee 1 1e-6")
    assert one["delta"] == pytest.approx(0.4e-6)
    assert one["base"] == {"epsilon": 1, "delta": pytest.approx(1e-6)}
    assert one["attained"] is None
    repeated = run(f"{asked} --scheme wr --guarantee 1 1e-6 --guarantee 0.5 1e-5")
    assert repeated["delta"] > one["delta"]
    assert "--guarantee" in refused(asked)
    assert "delta from 0" in refused(f"{asked} --guarantee 1 1.5")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"amplify {SIZES} --epsilon nan", "epsilon"),
        (f"amplify --scheme must.ow {SIZES} --epsilon 1", "first stage"),
        (f"amplify --scheme must.wo {SIZES} --stage 300 --epsilon 1", "without replacement"),
        (f"amplify {SIZES} --mechanism laplace --epsilon 1", "--ratio"),
        (f"amplify {SIZES} --mechanism gamma-diagonal --epsilon 1 --gamma 0.5 --cells 4", "gamma"),
        (f"certify {ADULT} --gamma 9", "either --epsilon or --delta"),
        (f"certify {ADULT} --gamma 9 --delta 1.5", "delta"),
        ("certify --population 10 --sample 11 --cells 2 --gamma 9 --delta 0.1", "1 to n = 10"),
        (f"calibrate {ADULT} --epsilon 0 --delta 1e-6", "epsilon"),
        ("compose missing.json --delta 1e-6", "cannot be read"),
        ("compose --delta 1e-6", "name a file"),
    ],
)
def test_what_means_nothing_is_refused_by_name(line: str, message: str) -> None:
    assert message in refused(line)
