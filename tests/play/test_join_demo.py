"""The demonstration of a join, over processes: what each party knows, and what the JSON says."""

from pathlib import Path

import pytest

from veiltab.common.errors import InvalidInputError
from veiltab.common.oblivious.store import slots_for
from veiltab.play.demos.join import SHARES, JoinOptions, run_join
from veiltab.play.demos.join_cli import as_dict


def test_two_hospitals_and_an_insurer(tmp_path: Path) -> None:
    people, said = 1000, list[str]()
    plain = as_dict(run_join(JoinOptions(out=tmp_path / "demo", people=people), said.append), people)
    assert [one["curator"] for one in plain["join"]["spokes"]] == list(SHARES)
    for one, share in zip(plain["join"]["spokes"], SHARES.values(), strict=True):
        assert one["matched"] == one["matched_true"] == round(share * people)
        assert one["hub_learns"]["sizes"]["columns"] == 64 * (slots_for(people) + 128)
        assert one["seconds_cpu"] is None or one["seconds_cpu"] > 0
    assert all(table["cells"] == 9 and table["covered"] >= 6 for table in plain["tables"])
    assert "starting every party" in " ".join(said)


def test_tables_of_nobody_and_of_too_many_are_refused(tmp_path: Path) -> None:
    for people in (999, 2_000_001):
        with pytest.raises(InvalidInputError, match="1,000 to 2,000,000 people"):
            JoinOptions(out=tmp_path, people=people)


@pytest.mark.long
def test_hospitals_that_hold_one_attribute(tmp_path: Path) -> None:
    options = JoinOptions(out=tmp_path / "demo", people=1000, holders=3)
    plain = as_dict(run_join(options, lambda _: None), 1000)
    assert [one["matched"] for one in plain["join"]["spokes"]] == [234, 233]
    (table,) = plain["tables"]
    assert (table["attribute"], table["cells"]) == ("illness", 9)
    assert table["covered"] >= 6
    assert table["l2_error"] < 0.1
