"""Wrong links are undone in what the commands and a program read, over real processes."""

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.protocol.test_linked_release import DELTA, command
from tests.protocol.world import World

PAIR = ("--attributes", "region,income")


@pytest.fixture(scope="module")
def label(village: World) -> str:
    """A release of a pair of two curators and of one of Alice's alone."""
    label = village.label()
    tables = ("--tables", "region,income", "region,smoker", "--epsilon", "4", "--delta", DELTA, "--canaries", "20")
    asked = command(village, "request", *tables, "--label", label, "--wait", "--timeout", "60")
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
    for before, after, hull in zip(plain.data["cells"], one.data["cells"], wide.data["cells"], strict=True):
        assert after["estimate"] != before["estimate"]
        assert after["estimate"] == pytest.approx(hull["estimate"], abs=1e-12)
        assert hull["low"] <= before["estimate"] <= hull["high"]
    with village.client() as client:
        release = client.release(label)
        assert release.estimate(PAIR[1].split(","), linkage_error="0.1:0.02").raw.tolist() == pytest.approx(
            [cell["estimate"] for cell in one.data["cells"]], abs=1e-15
        )
        # Of one curator alone nothing comes by links.
        same = release.estimate(["region", "smoker"], linkage_error="0.1:0.02")
        assert same.raw.tolist() == release.estimate(["region", "smoker"]).raw.tolist()
    report = tmp_path / "links.json"
    report.write_text(json.dumps({"lambda": 0.1, "lambda_chance": 0.0, "sd": 0.0}))
    told = command(
        village, "estimate", *common, "--linkage-error", "estimated", "--linkage-report", report, as_json=False
    )
    assert told.code == 0, told.errors
    assert "a share of 0 to 0.1. Of a range the estimate is that of the whole share" in told.text.replace("\n", " ")
    asked = ("--given", "region", "--linkage-error", "0.1:0", "--hub", "bob")
    shares = command(village, "estimate", *common, *asked, as_json=False)
    assert shares.code == 0, shares.errors
    assert "of the links with alice a share of 0 to 0.1" in shares.text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--linkage-error", "5%"), "'5%' is no share of wrong links"),
        (("--linkage-error", "estimated"), "with --linkage-report FILE"),
        (("--linkage-report", "links.json"), "a report was given, and not asked for"),
        (("--linkage-error", "0.1", "--hub", "mars"), "no curator 'mars'"),
        (("--hub", "bob"), "a hub is named, and no wrong links are"),
        (("--linkage-error", "0.1", "--independence", "region"), "a test of independence takes the table as it was"),
    ],
)
def test_what_cannot_be_corrected_is_refused(village: World, label: str, words: tuple[str, ...], said: str) -> None:
    refused = command(village, "estimate", "--release", label, *PAIR, *words)
    assert refused.code == 2
    assert said in refused.errors


def test_microdata_say_which_wrong_links_were_undone(village: World, label: str, tmp_path: Path) -> None:
    common = ("--release", label, "--rows", "200", "--replicates", "2", "--seed", "s")
    written = ("--out", tmp_path / "rows.parquet", "--report", tmp_path / "page.html")
    made = command(village, "synthesise", *common, "--linkage-error", "0.1:0.02", *written, as_json=False)
    assert made.code == 0, made.errors
    said = "Corrected for wrong links: of the links with bob a share of 0.1, standard deviation 0.02."
    assert said in made.text
    assert said in (tmp_path / "page.html").read_text("utf-8")
    frame = pd.read_parquet(tmp_path / "rows.parquet")
    assert frame.attrs["links"] == said
    refused = command(village, "synthesise", *common, "--linkage-error", "0.1:0", "--out", tmp_path / "none.parquet")
    assert refused.code == 2
    assert "the share of wrong links is a range, 0 to 0.1, and a model has one" in refused.errors
    assert not (tmp_path / "none.parquet").exists()
