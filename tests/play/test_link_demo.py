"""The demonstration of linking: its options, and whole runs over real processes beside the truth."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from veiltab.common.errors import InvalidInputError
from veiltab.play.linkage.linking import HUB, SPOKE, LinkOptions, known_links, prepare, run_link
from veiltab.play.linkage.linking_cli import as_dict, link
from veiltab.play.registers.name_law import family_names, given_names
from veiltab.play.registers.people import ErrorRates, made_registers


@pytest.mark.parametrize(("key", "value"), [("people", 999), ("people", 200_001), ("errors", -1.0), ("errors", 5.5)])
def test_what_is_beyond_the_demonstration_is_refused(tmp_path: Path, key: str, value: float) -> None:
    with pytest.raises(InvalidInputError, match=key if key == "errors" else "people"):
        LinkOptions(out=tmp_path / "out", **{key: value})  # type: ignore[arg-type]


def test_the_same_seed_makes_the_same_registers() -> None:
    one, same, other = (made_registers(500, seed) for seed in ("a", "a", "b"))
    assert (one.hub, one.spoke) == (same.hub, same.spoke)
    assert one.hub != other.hub


def test_registers_are_of_the_stated_laws() -> None:
    made = made_registers(20_000, "laws", ErrorRates().times(0))
    assert made.common() == 16_000
    assert 0.008 < (made.twins >= 0).mean() < 0.013
    people = dict(zip(made.hub_people.tolist(), made.hub, strict=True))
    assert all(
        people[one] == row for one, row in zip(made.spoke_people.tolist(), made.spoke, strict=True) if one in people
    )
    wrong = made_registers(20_000, "laws")
    share = [np.mean([a[k] != b[k] for a, b in zip(made.hub, wrong.hub, strict=True)]) for k in range(5)]
    assert share == pytest.approx([0.047, 0.067, 0.017, 0.004, 0.082], abs=0.008)


def test_names_meet_as_often_as_real_ones() -> None:
    for law, bits in ((family_names(), 10.7), (given_names("f"), 7.2), (given_names("m"), 7.2)):
        shares = np.diff(law.up_to, prepend=0)
        assert -np.log2((shares**2).sum()) == pytest.approx(bits, abs=0.1)
        assert len(set(law.names.tolist())) == len(law.names)


def test_the_rule_in_one_place_links_the_written_tables(tmp_path: Path) -> None:
    registers = made_registers(1000, "demo")
    local, values = prepare(LinkOptions(out=tmp_path / "out", people=1000), registers)
    assert {len(path.read_text("utf-8").splitlines()) for path in local.tables.values()} == {1001}
    assert [len(one) for one in (values.region, values.illness)] == [1000, 1000]
    assert 20 < np.count_nonzero(values.illness != values.true_illness) < 50  # of some 50 that were exchanged
    links = known_links(local, registers)
    wrong = sum(registers.hub_people[hub] != registers.spoke_people[row] for hub, row in links.items())
    assert wrong <= 2
    assert len(links) > 740
    assert local.study.identity is not None
    assert local.study.hub == HUB


def test_two_registers_are_linked_and_released_by_real_processes(tmp_path: Path) -> None:
    said = list[str]()
    options = LinkOptions(out=tmp_path / "out", people=1000, alignment="tokens", epsilon=LinkOptions.epsilon)
    result = run_link(options, said.append)
    assert f"asking {SPOKE} what it knows of its links" in said
    assert result.links == result.report["links"]
    assert sum(one["linked"] for one in result.report["passes"]) == result.links
    assert result.precision > 0.997
    assert result.recall > 0.94
    assert abs(result.report["recall_estimated"]["value"] - result.recall) < 0.06
    assert np.abs(result.linked - result.truth).max() < 0.03
    assert result.covered(result.corrected) >= 5  # of nine, each with probability .95
    found = as_dict(result)
    inside = sum(cell["low"] <= cell["linked"] <= cell["high"] for cell in found["table"])
    assert inside >= 5  # of nine, each with probability .95
    covered = {"with": result.covered(result.corrected), "without": result.covered(result.estimate)}
    assert found["tables"] == [{name: {"covered": number, "cells": 9} for name, number in covered.items()}]
    assert found["linkage"]["precision_true"] == result.precision
    assert json.loads(json.dumps(found)) == found


@pytest.mark.long
def test_intervals_cover_only_because_wrong_links_are_in_them(tmp_path: Path) -> None:
    result = run_link(LinkOptions(out=tmp_path / "out", people=20_000, alignment="tokens"), lambda _: None)
    assert result.covered(result.estimate) <= 3
    assert result.covered(result.corrected) >= 5  # of nine, each with probability .95


@pytest.mark.long
def test_the_command_shows_it_privately(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = CliRunner().invoke(link, ["--people", "1000", "--advanced", "deletions=2", "--out", str(out)])
    assert done.exit_code == 0, done.output
    for text in (
        "Keys, each after those above it",
        "given family birth sex",
        "precision",
        "recall",
        "800 people stand",
    ):
        assert text in done.output
