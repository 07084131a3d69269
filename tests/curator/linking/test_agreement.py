"""Which passes run: by the hub's table alone, as the rule of the ladder says, however its keys are counted."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import refuses
from tests.curator.linking.registers import FIELDS, Person, identity, people, table_of
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.linkage.ladder import default_ladder
from veiltab.common.linkage.row_keys import normal_rows
from veiltab.common.linkage.self_match import self_matches
from veiltab.curator.alignment.linking.agreement import HubLine, PassLine, read_hub_line, state_line
from veiltab.curator.alignment.linking.own_keys import OwnRows, matching_rows

RULE = identity(keys=default_ladder(dict(FIELDS), 5))


def register(twins: int, seed: int) -> list[Person]:
    """Return people with twins and triplets, of whom only the former agree with exactly one other."""
    rows = people(900, seed)
    rows += [(f"x{one[0][1:]}", *one[1:]) for one in rows[:twins]]
    rows += [(f"y{one[0][1:]}", *one[1:]) for one in rows[: twins // 3]]
    return rows


@pytest.mark.parametrize("twins", [0, 1, 2, 6])
def test_counts_on_disk_are_those_of_the_rule(tmp_path: Path, twins: int) -> None:
    rows = register(twins, twins)
    own = OwnRows(RULE, "ymd", table_of(rows, "x").respondents, tmp_path)
    line = state_line(RULE, len(rows), 5, 0, lambda step: matching_rows(own.all_records(step, "a")))
    wanted = self_matches(RULE, normal_rows(RULE, "ymd", list(zip(*rows, strict=True))))
    assert [Fraction(one.matches, len(rows)) for one in line.passes] == [one.share for one in wanted]
    assert [one.runs for one in line.passes] == [one.does_run for one in wanted]
    assert read_hub_line(line.text.encode(), RULE, len(rows), "alice") == line
    assert line.running(RULE) == tuple(one.step for one in wanted if one.does_run)
    assert twins < 6 or not all(one.runs for one in line.passes)
    for name in "ab":
        kept, made = own.all_records(RULE.ladder[0], name), own.records(RULE.ladder[0], np.arange(len(rows)), name)
        assert [part.tobytes() for part in kept.parts()] == [part.tobytes() for part in made.parts()]


def line_of(*matches: int, rows: int = 1000) -> HubLine:
    """Return a statement whose decisions follow the rule."""
    seen, numbers = iter(matches), iter(range(10**6))
    return state_line(identity(), rows, rows, 0, lambda _: {next(numbers) for _ in range(next(seen))})


def test_the_limit_itself_still_runs() -> None:
    """s = .005 runs and more does not; the sum of shares times 1/2 is .002 at most, as exact fractions."""
    assert [one.runs for one in line_of(4, 0, 1).passes] == [True, True, False]
    assert [one.runs for one in line_of(5, 4, 0).passes] == [False, True, True]
    assert [one.runs for one in line_of(1, 3, 0).passes] == [True, True, True]


def test_a_statement_that_does_not_follow_the_rule_is_refused() -> None:
    line = line_of(4, 0, 1)
    for number in range(3):
        passes = list(line.passes)
        passes[number] = replace(passes[number], runs=not passes[number].runs)
        with pytest.raises(IntegrityError, match="does not decide by the rule"):
            read_hub_line(replace(line, passes=tuple(passes)).text.encode(), identity(), 1000, "alice")
    with pytest.raises(IntegrityError, match="other fields or keys"):
        read_hub_line(line.text.encode(), identity(hub="bob"), 1000, "alice")
    with pytest.raises(IntegrityError, match="cannot be read"):
        read_hub_line(line.text.encode() + b" ", identity(), 1000, "alice")
    for other in (replace(line, rows=999), replace(line, complete=1001), replace(line, dated=1001)):
        with pytest.raises(IntegrityError, match="more or fewer rows than it takes part with"):
            read_hub_line(other.text.encode(), identity(), 1000, "alice")
    none = HubLine(
        identity=identity().description(),
        rows=1000,
        complete=1000,
        dated=0,
        passes=tuple(PassLine(key=step.name, matches=10, runs=False) for step in identity().ladder),
    )
    with refuses(InvalidInputError, where="linkage"):
        read_hub_line(none.text.encode(), identity(), 1000, "alice")
