"""Forms of ids in drafts, and the steps that a merge proposes for two registers of the same people."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from veiltab.common.errors import InvalidInputError
from veiltab.common.study.drafts.draft import Draft, draft_from_bytes
from veiltab.common.study.drafts.merging import missing_steps, with_steps
from veiltab.common.study.toml_text import toml_text
from veiltab.curator.check.drafted_table import TableProposal, propose_table
from veiltab.curator.table.ids import normalised_ids

People = list[int]
Write = Callable[[int], str]


Propose = Callable[[Sequence[object]], TableProposal]


@pytest.fixture
def propose(tmp_path: Path) -> Propose:
    def proposed(ids: Sequence[object]) -> TableProposal:
        path = tmp_path / "alice.csv"
        path.write_text("id,x\n" + "".join(f"{one},{row % 2}\n" for row, one in enumerate(ids)))
        return propose_table(path, "alice", id_columns=["id"])

    return proposed


def test_a_draft_says_in_parts_how_ids_are_written_and_names_values_of_few(propose: Propose) -> None:
    ids = [*(f"{row:08}" for row in range(9_999_000, 10_001_000)), "T-12", *range(500_000, 500_400)]
    proposal = propose(ids)
    text = proposal.ids.as_text()
    assert (
        "written as 2,000 as 09999999 ('09999000' in row 2), 400 as 999999 ('500000' in row 2,003), 1 as a-99" in text
    )
    assert "note: id: few are written as a-99, such as 't-12', first in row 2002" in text
    (head,) = [table for name, table in proposal.draft().items() if name == "draft"]
    assert isinstance(head, dict)
    assert head["forms"] == {"id": {"09999999": 2000, "999999": 400, "text": 1}}
    assert head["distinct_after"] == ["integer", "digits", "first", "last"]
    assert "500000" not in toml_text(proposal.draft())


@pytest.mark.parametrize(
    ("ids", "steps"),
    [
        ([f"{row:06}/{year}" for row in range(20) for year in (23, 24)], ["integer", "digits"]),
        ([f"{kind}{row:06}" for row in range(20) for kind in "ns"], ["integer"]),
        ([*range(20), *(f"{row:06}" for row in range(20))], ["digits", "first", "last"]),
        ([f"1-{row}" for row in range(20)], ["integer", "digits", "last"]),
    ],
)
def test_a_draft_lists_steps_that_unite_no_ids(propose: Propose, ids: Sequence[object], steps: Sequence[str]) -> None:
    proposal = propose(ids)
    assert list(proposal.ids.distinct_after) == steps


def check_sign(number: int) -> str:
    return "0123456789k"[sum(int(digit) * (2 + place % 6) for place, digit in enumerate(reversed(str(number)))) % 11]


def year(number: int) -> int:
    return 20 + number * 7 % 5


FORMS: dict[str, Write] = {
    "plain": str,
    "padded": lambda one: f"{one:08}",
    "more padded": lambda one: f"{one:09}",
    "decimals": lambda one: f"{one}.0",
    "prefix": lambda one: f"VN{one:08}",
    "prefix of a part": lambda one: f"{'GP-' if one % 2 else ''}{one:08}",
    "zeros of a part": lambda one: f"{one:08}" if one % 2 else str(one),
    "letter of a place": lambda one: f"{'NS'[one % 2]}{one // 2:06}",
    "check sign": lambda one: f"{one:08}-{check_sign(one)}",
    "check digit": lambda one: f"{one:08}-{one % 9}",
    "joined check digit": lambda one: f"{one:08}{one % 9}",
    "grouped": lambda one: f"{one // 10**5:03}-{one // 10**3 % 100:02}-{one % 1000:03}",
    "grouped otherwise": lambda one: f"{one // 10**5:03} {one // 10**3 % 100:02} {one % 1000:03}",
    "file and year": lambda one: f"{one // 5:06}/{year(one)}",
    "year and file": lambda one: f"{year(one)}-{one // 5}",
    "thousands": lambda one: f'"{one:,}"',
    "exponent": lambda one: f"{one:.7E}",
}


def draft(folder: Path, name: str, write: Write, people: People) -> Draft:
    path = folder / f"{name}.csv"
    path.write_text("id,x\n" + "".join(f"{write(one)},{one % 2}\n" for one in people))
    return draft_from_bytes(toml_text(propose_table(path, name, id_columns=["id"]).draft()).encode(), name)


def normal(made: Draft, write: Write, people: People) -> dict[str | None, int]:
    texts = pa.array([write(one).strip('"') for one in people], pa.large_string())
    return dict(zip(normalised_ids([texts], made.normalise).values.to_pylist(), people, strict=True))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    forms=st.tuples(*[st.sampled_from(sorted(FORMS))] * 2),
    first=st.sampled_from([1, 5000, 10**5, 10**7 - 300]),
    seed=st.integers(0, 99),
)
def test_no_proposal_makes_one_id_of_two_people(tmp_path: Path, forms: tuple[str, str], first: int, seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - rows of a test
    writes = [FORMS[one] for one in forms]
    people = [draw.sample(range(first, first + 600), 300) for _ in forms]
    try:
        drafts = [draft(tmp_path, f"c{place}", *one) for place, one in enumerate(zip(writes, people, strict=True))]
    except InvalidInputError:  # ids that are no ids
        return
    steps = missing_steps(drafts)
    one, other = (
        normal(with_steps(made, steps), write, some) for made, write, some in zip(drafts, writes, people, strict=True)
    )
    if steps:
        assert len(one) == len(other) == 300
        assert all(one[text] == other[text] for text in one.keys() & other.keys())
        assert one.keys() & other.keys()
