"""Wrong links are undone in what the commands and a program read, over real processes."""

import json
from pathlib import Path

import pytest

from tests.protocol.test_linked_release import DELTA, command
from tests.protocol.world import World

PAIR = ("region, income",)


@pytest.fixture(scope="module")
def label(village: World) -> str:
    """A release of a pair of two curators and of one of Alice's alone."""
    label = village.label()
    tables = ("--tables", "region,income", "region,smoker", "--epsilon", "4", "--advanced", "canaries=20")
    asked = command(village, "request", *tables, "--delta", DELTA, "--label", label, "--wait", "--timeout", "60")
    assert asked.code == 0, asked.errors
    return label


def test_estimates_are_corrected_by_command_and_by_program(village: World, label: str, tmp_path: Path) -> None:
    common = ("--release", label, *PAIR)
    plain, none = (command(village, "estimate", *common, *words) for words in ((), ("--linkage-error", "none")))
    assert plain.code == 0, plain.errors
    assert plain.data == none.data
    assert "links" not in plain.data
    one, wide = (command(village, "estimate", *common, "--linkage-error", text) for text in ("0.1:0.02", "0.1:0"))
    assert one.code == wide.code == 0, one.errors + wide.errors
    assert one.data["links"][0] == (
        "Corrected for wrong links: of the links with bob a share of 0.1, standard deviation 0.02."
    )
    for before, after, hull in zip(plain.data["rows"], one.data["rows"], wide.data["rows"], strict=True):
        assert after["estimate"] != before["estimate"]
        assert after["estimate"] == pytest.approx(hull["estimate"], abs=1e-12)
        assert hull["low"] <= before["estimate"] <= hull["high"]
    with village.client() as client:
        release = client.release(label)
        assert release.estimate(["region", "income"], linkage_error="0.1:0.02").raw.tolist() == pytest.approx(
            [cell["estimate"] for cell in one.data["rows"]], abs=1e-15
        )
        # Of one curator alone nothing comes by links.
        same = release.estimate(["region", "smoker"], linkage_error="0.1:0.02")
        assert same.raw.tolist() == release.estimate(["region", "smoker"]).raw.tolist()
    report = tmp_path / "links.json"
    report.write_text(json.dumps({"lambda": 0.1, "lambda_chance": 0.0, "sd": 0.0}))
    told = command(village, "estimate", *common, "--linkage-error", report, as_json=False)
    assert told.code == 0, told.errors
    assert "a share of 0 to 0.1. Of a range the estimate is that of the whole share" in told.text.replace("\n", " ")
    asked = ("--linkage-error", "0.1:0", "--linkage-error", "hub=bob", "share of income given region")
    shares = command(village, "estimate", *common[:2], *asked, as_json=False)
    assert shares.code == 0, shares.errors
    assert "of the links with alice a share of 0 to 0.1" in shares.text
    refused = command(village, "estimate", *common, "--linkage-error", "hub=bob")
    assert (refused.code, refused.data["error"]["where"]) == (2, "linkage error")
