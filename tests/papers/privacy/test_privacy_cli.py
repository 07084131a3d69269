"""`veiltab lab privacy`, as one types it."""

import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from veiltab.common.errors import VeiltabError
from veiltab.deploy.cli import veiltab
from veiltab.papers.privacy import attained


@pytest.fixture(scope="module", autouse=True)
def attained_once() -> Iterator[None]:
    """Compute what a pair of tables attains once, for a command's text and for its JSON."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("attained_by_releases", "attained_by_steps", "attained_by_sample"):
            patch.setattr(attained, name, remembered(getattr(attained, name)))
        yield


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    known = dict[str, Any]()

    def found(*asked: object, **more: object) -> Any:  # noqa: ANN401 - what it returns
        key = f"{asked}{more}"
        if key not in known:
            known[key] = function(*asked, **more)
        return known[key]

    return found


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
    found = run(f"certify {ADULT} --epsilon 0.5 --delta 1e-6")
    assert set(found) >= {"gamma", "epsilon", "delta", "pure_epsilon", "local_epsilon"}
    assert found["delta"] <= 1e-6
    assert found["gamma"] >= 356.78
    capped = run(f"certify {ADULT} --epsilon 0.5 --delta 1e-6 --max-local-epsilon 3")
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
        (f"amplify {SIZES} --mechanism laplace --epsilon 1", "--ratio"),
        (f"certify {ADULT} --gamma 9", "either --epsilon or --delta"),
        ("compose missing.json --delta 1e-6", "cannot be read"),
        ("compose --delta 1e-6", "name a file"),
    ],
)
def test_what_means_nothing_is_refused_by_name(line: str, message: str) -> None:
    assert message in refused(line)


NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.]*\d)")
BOUNDS = {"epsilon", "delta", "delta_upper", "pure_epsilon", "local_epsilon", "gdp", "zcdp", "slack"}
LITTLE = {"population": 10**9, "sample": 1000, "cells": 65_536, "gamma": 1.000001}
TWO = [
    {"population": 45_222, "sample": 45_222, "cells": 24, "gamma": 356.78, "count": 3},
    {"population": 30, "sample": 30, "cells": 4, "gamma": 3, "count": 2},
]


def bounds(data: Any, name: str = "") -> Iterator[Decimal]:  # noqa: ANN401 - what JSON holds
    if isinstance(data, dict):
        for key, value in data.items():
            yield from bounds(value, key) if key not in {"attained", "base"} else ()
    elif name in BOUNDS and data is not None:
        yield Decimal(str(data))


@pytest.mark.parametrize(
    "words",
    [
        "amplify --scheme must.ow --population 997 --sample 391 --stage 500 --mechanism laplace --epsilon 1 --ratio .3",
        "certify --population 1000 --sample 1000 --cells 24 --gamma 1.0000001 --delta 1e-6",
        "certify --population 45222 --sample 45222 --cells 24 --gamma 356.78 --epsilon .5 --noise-split 0",
        "certify --population 45222 --sample 4522 --cells 24 --gamma 1e6 --delta 1.2345e-7",
        "certify --population 1003 --sample 1003 --cells 7 --epsilon .77 --delta 3.3e-5",
        "compose --mechanism gaussian --population 991 --sample 97 --steps 20 --noise-multiplier 3 --epsilon 1",
    ],
)
def test_no_number_is_printed_below_its_bound(words: str) -> None:
    check_printed(words)


@pytest.mark.parametrize("releases", [[LITTLE], TWO])
def test_no_number_of_releases_together_is_printed_below_its_bound(
    releases: list[dict[str, float]], tmp_path: Path
) -> None:
    (tmp_path / "releases.json").write_text(json.dumps(releases), "utf-8")
    check_printed(f"compose {tmp_path / 'releases.json'} --delta 1.2345e-6")


def check_printed(words: str) -> None:
    """Find every bound of the JSON in the text: a number that is a little above, and none that is a little below."""
    printed = [Decimal(one) for one in NUMBER.findall(text(words).split("A pair of tables")[0])]
    for bound in bounds(run(words)):
        near = [one for one in printed if abs(one - bound) <= bound / 50]
        assert bound == 0 or near, (bound, printed)
        assert min(near, default=Decimal(0)) >= bound or bound in near, (bound, near)


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (f"certify {ADULT} --gamma 4 --epsilon -0.0", "(0, "),
        ("gain --statistic mean --population 101 --rate .1 --epsilon 1 --range 1 --variance -0.0", "= 0 sampling"),
    ],
)
def test_no_zero_has_a_sign(words: str, printed: str) -> None:
    found = text(words)
    assert printed in found
    assert "-0" not in f"{found}{run(words)}".replace("e-0", "")


def test_poisson_and_a_mechanism_of_rows_have_no_guarantee_by_the_expected_size() -> None:
    words = "amplify --scheme poisson --population 2 --sample 1 --epsilon 1.1 --gamma 3 --cells 4"
    assert "--scheme" in refused(f"{words} --mechanism gamma-diagonal")


def test_the_part_of_the_curators_is_that_of_a_plan() -> None:
    certified = run(f"certify {ADULT} --epsilon 0.5 --delta 1e-6 --noise-split .5")
    planned = CliRunner().invoke(
        veiltab, "plan --population 45222 --cells 24 --epsilon 0.5 --delta 1e-6 --json", catch_exceptions=False
    )
    assert certified["local_epsilon"] == json.loads(planned.stdout)["local_epsilon"]
