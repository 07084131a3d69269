"""Which passes run: by the hub's table alone, as the rule of the ladder says, however its keys are counted."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tests.curator.linking.registers import FIELDS, Person, identity, people, table_of
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.linkage.ladder import default_ladder
from veiltab.common.linkage.row_keys import normal_rows, pass_keys
from veiltab.common.linkage.self_match import self_matches
from veiltab.curator.alignment.linking.agreement import HubLine, PassLine, read_hub_line, stated
from veiltab.curator.alignment.linking.oblivious import digests
from veiltab.curator.alignment.linking.own_keys import OwnRows, SpokeKeys, matching_rows

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
    every = np.arange(len(rows))
    line = stated(RULE, len(rows), 0, lambda step: matching_rows(own.records(step, every, "a", tmp_path)))
    wanted = self_matches(RULE, normal_rows(RULE, "ymd", list(zip(*rows, strict=True))))
    assert [line.share(number) for number in range(1, 18)] == [one.share for one in wanted]
    assert [one.runs for one in line.passes] == [one.does_run for one in wanted]
    assert read_hub_line(line.text.encode(), RULE, "alice") == line
    assert line.running(RULE) == tuple(one.step for one in wanted if one.does_run)
    if twins == 6:
        assert not all(one.runs for one in line.passes)


def line_of(*matches: int, rows: int = 1000) -> HubLine:
    """Return a statement whose decisions follow the rule."""
    seen = iter(matches)
    numbers = iter(range(10**6))

    def fresh(_: object) -> set[int]:
        return {next(numbers) for _ in range(next(seen))}

    return stated(identity(), rows, 0, fresh)


def test_the_limit_itself_still_runs() -> None:
    """s = .005 runs and more does not; the sum of shares times 1/2 is .002 at most, as exact fractions."""
    assert [one.runs for one in line_of(4, 0, 1).passes] == [True, True, False]
    assert [one.runs for one in line_of(5, 4, 0).passes] == [False, True, True]
    assert [one.runs for one in line_of(1, 3, 0).passes] == [True, True, True]
    assert line_of(4, 0, 0).share(1) == Fraction(4, 1000)


def test_a_statement_that_does_not_follow_the_rule_is_refused() -> None:
    line = line_of(4, 0, 1)
    for number in range(3):
        passes = list(line.passes)
        passes[number] = replace(passes[number], runs=not passes[number].runs)
        with pytest.raises(IntegrityError, match="does not decide by the rule"):
            read_hub_line(replace(line, passes=tuple(passes)).text.encode(), identity(), "alice")
    with pytest.raises(IntegrityError, match="other fields or keys"):
        read_hub_line(line.text.encode(), identity(hub="bob"), "alice")
    with pytest.raises(IntegrityError, match="cannot be read"):
        read_hub_line(line.text.encode() + b" ", identity(), "alice")
    none = HubLine(
        identity=identity().description(),
        rows=10,
        dated=0,
        passes=tuple(PassLine(key=step.name, matches=10, runs=False) for step in identity().ladder),
    )
    with pytest.raises(InvalidInputError, match="no pass runs"):
        read_hub_line(none.text.encode(), identity(), "alice")


def test_keys_are_asked_in_a_secret_order(tmp_path: Path) -> None:
    """Under another key it is another order; in that of digests, a list of names would say which is whose."""
    rows = people(300, 1)
    own = OwnRows(RULE, "ymd", table_of(rows, "x").respondents, tmp_path)
    records = own.records(RULE.ladder[0], np.arange(300), "a", tmp_path)
    first, second = (SpokeKeys(records, tmp_path, 64, bytes(31) + bytes([number])) for number in range(2))
    texts = [digests_of(keys) for keys in (first, second)]
    assert sorted(texts[0]) == sorted(texts[1])
    assert len({*map(tuple, texts), tuple(sorted(texts[0]))}) == 3
    for keys, text in zip((first, second), texts, strict=True):
        handles = np.frombuffer(b"".join(text), np.uint8).reshape(-1, 32)[:, :16]
        found, named = keys.candidates(np.ones(len(text), np.bool_), handles)
        assert found.tolist() == list(range(300))
        for row, handle in zip(found, named, strict=True):
            (key,) = pass_keys(RULE.ladder[0], normal_rows(RULE, "ymd", [[value] for value in rows[row]]))[0]
            assert handle.tobytes() == digests([key], "a")[:16]


def digests_of(keys: SpokeKeys) -> list[bytes]:
    """Return the digests in the order in which they are asked about."""
    data = b"".join(keys.digests.read(start) for start in range(0, keys.digests.count, 64))
    return [data[at : at + 32] for at in range(0, len(data), 32)]
