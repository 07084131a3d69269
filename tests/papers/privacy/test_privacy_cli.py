"""`veiltab lab privacy`, as one types it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from veiltab.common.errors import VeiltabError
from veiltab.deploy.cli import veiltab


def run(*words: str) -> dict[str, Any]:
    result = CliRunner().invoke(veiltab, [*words, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def text(*words: str) -> str:
    result = CliRunner().invoke(veiltab, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*words: str) -> str:
    result = CliRunner().invoke(veiltab, list(words))
    assert isinstance(result.exception, VeiltabError) or result.exit_code == 2, result.output
    return str(result.exception) if isinstance(result.exception, VeiltabError) else result.output


SIZES = ("--population", "1000", "--sample", "400")
ADULT = ("--population", "45222", "--sample", "45222", "--cells", "24")


def test_amplify() -> None:
    found = run(
        "lab",
        "privacy",
        "amplify",
        "--scheme",
        "must.ow",
        *SIZES,
        "--stage",
        "500",
        "--mechanism",
        "laplace",
        "--epsilon",
        "0.5",
        "--ratio",
        "0.25",
    )
    assert set(found) == {"eta", "epsilon", "delta", "attained", "base", "class", "relation"}
    assert 0 < found["attained"] <= found["epsilon"]
    assert (round(found["epsilon"], 3), round(found["delta"], 3)) == (0.164, 0.003)
    assert found["class"] == "type-I weak"
    assert run("lab", "privacy", "amplify", *SIZES, "--epsilon", "1")["class"] == "strong"


def test_amplify_backwards() -> None:
    base = run("lab", "privacy", "amplify", *SIZES, "--epsilon", "0.5", "--inverse")
    assert base["epsilon"] == pytest.approx(0.5)
    assert base["epsilon"] <= 0.5
    assert base["base"]["epsilon"] > 0.9


def test_a_sample_is_never_used_twice(tmp_path: Path) -> None:
    file = tmp_path / "releases.json"
    one = {"population": 400, "sample": 300, "cells": 6, "gamma": 9, "sample_id": "a"}
    for releases in ([one, one], [one | {"count": 2}]):
        file.write_text(json.dumps(releases))
        assert "one sample never serves two releases" in refused(
            "lab", "privacy", "compose", str(file), "--delta", "1e-5"
        )


def test_certify_both_ways_and_calibrate() -> None:
    at = run("lab", "privacy", "certify", *ADULT, "--gamma", "356.78", "--epsilon", "0.5")
    assert at["delta"] == pytest.approx(9.98105e-7, rel=1.5e-6)
    back = run("lab", "privacy", "certify", *ADULT, "--gamma", "356.78", "--delta", str(at["delta"]))
    assert back["epsilon"] == pytest.approx(0.5, rel=1e-5)
    found = run("lab", "privacy", "calibrate", *ADULT, "--epsilon", "0.5", "--delta", "1e-6")
    assert set(found) >= {"gamma", "epsilon", "delta", "pure_epsilon", "local_epsilon"}
    assert found["delta"] <= 1e-6
    assert found["gamma"] >= 356.78
    capped = run(
        "lab", "privacy", "calibrate", *ADULT, "--epsilon", "0.5", "--delta", "1e-6", "--max-local-epsilon", "3"
    )
    assert capped["local_epsilon"] <= 3


def test_certify_says_both_only_where_both_say_something() -> None:
    adult = ("lab", "privacy", "certify", *ADULT, "--gamma")
    assert run(*adult, "4", "--delta", "0.9")["epsilon"] == 0
    assert "(0, 0.9)" in text(*adult, "4", "--delta", "0.9")
    assert "not below 1/n" in text(*adult, "4", "--delta", "0.9")
    assert "both hold" in text(*adult, "4", "--delta", "1e-6")
    assert "not below 1/n" not in text(*adult, "4", "--delta", "1e-6")
    assert "both hold" not in text(*adult, "4", "--epsilon", "2")


def test_a_delta_below_all_floats_is_not_said_to_be_zero() -> None:
    sizes = ("--population", "48", "--sample", "48", "--cells", "10000000")
    words = ("lab", "privacy", "certify", *sizes, "--gamma", "1.5", "--epsilon", "0.4054")
    assert run(*words)["delta"] == 1e-283
    assert "(0.4054, below 1e-283), and purely" in text(*words)


def test_compose_says_which_size_a_poisson_release_has() -> None:
    assert "the size that came out" in " ".join(text("lab", "privacy", "compose", "--help").split())


def test_compose(tmp_path: Path) -> None:
    file = tmp_path / "releases.json"
    file.write_text(json.dumps([{"population": 400, "sample": 300, "cells": 6, "gamma": 9, "count": 2}]))
    found = run("lab", "privacy", "compose", str(file), "--delta", "1e-5")
    assert 0 < found["attained"] <= found["epsilon"] <= found["pure_epsilon"]
    assert found["zcdp"] == {"rho": pytest.approx(found["gdp"]["mu"] ** 2 / 2), "delta": found["gdp"]["delta"]}
    assert found["epsilon"] < 1.01 * found["attained"]
    assert "a guarantee is no smaller" in text("lab", "privacy", "compose", str(file), "--delta", "1e-5")
    steps = ("--mechanism", "gaussian", "--scheme", "wr", "--population", "1000", "--sample", "50")
    upper = run("lab", "privacy", "compose", *steps, "--noise-multiplier", "4", "--steps", "100", "--epsilon", "1")
    assert 0 < upper["delta_upper"] < 1
    assert 0 < upper["attained"] <= 1


def test_gain(tmp_path: Path) -> None:
    mean = run(
        "lab",
        "privacy",
        "gain",
        "--statistic",
        "mean",
        "--population",
        "10001",
        "--rate",
        "0.1",
        "--epsilon",
        "1",
        "--range",
        "1",
        "--variance",
        "0.01",
    )
    assert mean["gains"] is False
    assert mean["noise_ratio"] < 1
    values = tmp_path / "values.txt"
    values.write_text("\n".join(str(x / 100) for x in range(101)))
    median = run(
        "lab",
        "privacy",
        "gain",
        "--statistic",
        "median",
        "--rate",
        "0.5",
        "--epsilon",
        "0.5",
        "--values",
        str(values),
        "--low",
        "0",
        "--high",
        "1",
        "--trials",
        "20",
    )
    assert median["sample"]["total"] == pytest.approx(median["sample"]["sampling"] + median["sample"]["noise"])
    assert "unless the values are public" in median["warning"]
    best = run(
        "lab",
        "privacy",
        "gain",
        "--statistic",
        "median",
        "--epsilon",
        "0.5",
        "--values",
        str(values),
        "--low",
        "0",
        "--high",
        "1",
        "--trials",
        "5",
        "--mechanism",
        "exponential",
    )
    assert (best["mechanism"], best["sample"]["delta"]) == ("exponential", 0)
    assert best["population"]["total"] == pytest.approx(median["exponential"])
    assert best["sample"]["total"] <= best["population"]["total"] * (1 + 1e-9)


def test_any_base_mechanism() -> None:
    asked = (
        "lab",
        "privacy",
        "amplify",
        "--population",
        "1000",
        "--sample",
        "400",
        "--mechanism",
        "any",
        "--epsilon",
        "1",
    )
    one = run(*asked, "--guarantee", "1", "1e-6")
    assert one["delta"] == pytest.approx(0.4e-6)
    assert one["base"] == {"epsilon": 1, "delta": pytest.approx(1e-6)}
    assert one["attained"] is None
    repeated = run(*asked, "--scheme", "wr", "--guarantee", "1", "1e-6", "--guarantee", "0.5", "1e-5")
    assert repeated["delta"] > one["delta"]
    assert "--guarantee" in refused(*asked)
    assert "delta from 0" in refused(*asked, "--guarantee", "1", "1.5")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("lab", "privacy", "amplify", *SIZES, "--epsilon", "nan"), "epsilon"),
        (("lab", "privacy", "amplify", "--scheme", "must.ow", *SIZES, "--epsilon", "1"), "first stage"),
        (
            ("lab", "privacy", "amplify", "--scheme", "must.wo", *SIZES, "--stage", "300", "--epsilon", "1"),
            "without replacement",
        ),
        (("lab", "privacy", "amplify", *SIZES, "--mechanism", "laplace", "--epsilon", "1"), "--ratio"),
        (
            (
                "lab",
                "privacy",
                "amplify",
                *SIZES,
                "--mechanism",
                "gamma-diagonal",
                "--epsilon",
                "1",
                "--gamma",
                "0.5",
                "--cells",
                "4",
            ),
            "gamma",
        ),
        (("lab", "privacy", "certify", *ADULT, "--gamma", "0.9", "--epsilon", "1"), "gamma"),
        (("lab", "privacy", "certify", *ADULT, "--gamma", "9"), "either --epsilon or --delta"),
        (("lab", "privacy", "certify", *ADULT, "--gamma", "9", "--delta", "1.5"), "delta"),
        (("lab", "privacy", "certify", *ADULT, "--gamma", "9", "--epsilon", "-1"), "epsilon"),
        (
            (
                "lab",
                "privacy",
                "certify",
                "--population",
                "10",
                "--sample",
                "11",
                "--cells",
                "2",
                "--gamma",
                "9",
                "--delta",
                "0.1",
            ),
            "1 to n = 10",
        ),
        (
            (
                "lab",
                "privacy",
                "certify",
                "--population",
                "1000000001",
                "--sample",
                "1000000001",
                "--cells",
                "2",
                "--gamma",
                "9",
                "--delta",
                "0.1",
            ),
            "computed for",
        ),
        (("lab", "privacy", "calibrate", *ADULT, "--epsilon", "0", "--delta", "1e-6"), "epsilon"),
        (("lab", "privacy", "compose", "missing.json", "--delta", "1e-6"), "cannot be read"),
        (("lab", "privacy", "compose", "--delta", "1e-6"), "name a file"),
    ],
)
def test_what_means_nothing_is_refused_by_name(words: tuple[str, ...], message: str) -> None:
    assert message in refused(*words)
