"""A curator releases match rates: charged once, kept with their noise, refused beyond the budget or for others."""

import json
import os
import shutil
import stat
import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from tests.conftest import reserve
from tests.curator.made_curators import Make, Terminal, terminal_fixture  # noqa: F401 - fixtures
from veiltab.common.errors import BudgetExceededError, ConflictError, InvalidInputError, NotReadyError
from veiltab.common.linkage.match_rates import Below, below_by_key, rates_of
from veiltab.common.privacy.pricing.price import price_of_pure_epsilon
from veiltab.curator.budget.coalitions import bounds_of_charges
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.linkage.linkage_report import LegCount, LinkageReport, MatchRate, PassCount
from veiltab.curator.linkage.linkages import Linkages, LinkedSample
from veiltab.curator.officer import rates_release
from veiltab.curator.planning.checks import check_shown_ledger

IDENTITY = b"""
[identity]
fields = ["given", "family", "birth", "sex", "postcode"]
"""
COLUMNS = b'identity = { given = "g", family = "f", birth = "b", sex = "s", postcode = "p" }'
ROWS, LINKED = (700, 300), (650,)
"""Of sex, whose second category no row of a linked person has."""


@pytest.fixture(name="world")
def world_fixture(terminal: Terminal) -> Terminal:
    """A spoke of a study with identity fields, as after a linkage."""
    text = terminal.study.read_bytes()
    terminal.study.write_bytes(text.replace(b'id_columns = ["id"]', COLUMNS) + IDENTITY)
    linked(terminal)
    return terminal


def linked(world: Terminal, rows: tuple[int, ...] = ROWS, links: tuple[int, ...] = LINKED, session: str = "a") -> None:
    links += (0,) * (len(rows) - len(links))
    report = LinkageReport(
        is_hub=False,
        rows=sum(rows),
        hub_rows=2000,
        links=sum(links),
        passes=(PassCount(key="given family birth sex", runs=True, matches=0, linked=sum(links), left=0),),
        legs=(LegCount(curator="bob", links=sum(links), elements=0),),
        rates=(MatchRate(attribute="sex", rows=rows, linked=links),),
    )
    store = world.store()
    linkages = Linkages(store.connection, store.audit)
    linkages.handle_key(session * 32, bytes(32))
    sample = LinkedSample(rows=np.empty(0, np.int64), content_digest="")
    linkages.record(session * 32, report.text, {"bob": (sum(links), 0)}, sample)
    store.close()


def ask(world: Terminal, *more: str, epsilon: str = "0.2", name: str = "rates.json") -> tuple[int, str, str]:
    out = str(world.folder / name)
    return world.run("match-rates", "--attribute", "sex", "--epsilon", epsilon, "--out", out, *more)


def entries(world: Terminal) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.json("ledger")["entries"]
    return found


def test_a_table_is_charged_and_written_once(world: Terminal) -> None:
    code, said, _ = ask(world)
    assert (code, entries(world), (world.folder / "rates.json").exists()) == (0, [], False)
    assert "takes 20.00% of the budget; after it one more release may have epsilon 0.8" in said
    assert "Nothing is charged or written; say --yes" in said
    code, said, _ = ask(world, "--yes", "--person", "Ana Diaz")
    assert code == 0
    path = world.folder / "rates.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    rates = rates_of(path.read_text("utf-8"), "rates.json")
    (entry,) = entries(world)
    assert (entry["linked"], entry["unlinked"]) == (list(rates.linked), list(rates.unlinked))
    assert (entry["epsilon"], entry["share"], entry["attributes"]) == (0.2, 0.2, ["sex"])
    assert json.loads(path.read_text("utf-8"))["protects"] == {
        "one row's attribute, given the links": "0.2",
        "a row of a spoke that is added or removed": "0.4",
        "other identifiers in a row of a spoke": "0.6",
    }
    assert "Epsilon 0.2 is charged: 20.00% of the budget." in said
    assert "up to 2 rows of the table (epsilon 0.4), other identifiers in one up to 3 (0.6)" in said
    assert [one["person"] for one in world.json("audit")["entries"][-1:]] == ["Ana Diaz"]
    # Again, and to another place: the same noise, and no charge.
    assert "was charged before; it is written again without a charge" in ask(world)[1]
    code, said, _ = ask(world, "--yes", name="again.json")
    assert (code, "Epsilon 0.2 was charged before" in said, len(entries(world))) == (0, True, 1)
    assert (world.folder / "again.json").read_bytes() == path.read_bytes()
    assert "match rates  sex  epsilon 0.200000  charge 20.00%" in world.run("ledger")[1]


def test_a_copy_from_before_the_table_makes_the_same_one_and_other_counts_have_other_noise(
    world: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, copy = world.folder / "state", world.folder / "copy"
    shutil.copytree(state, copy)
    keys = list[bytes]()

    def keyed(key: bytes) -> Below:
        keys.append(key)
        return below_by_key(key)

    monkeypatch.setattr(rates_release, "below_by_key", keyed)

    def made(name: str, epsilon: str = "0.2") -> bytes:
        assert ask(world, "--yes", name=name, epsilon=epsilon)[0] == 0
        return (world.folder / name).read_bytes()

    def restored() -> None:
        shutil.rmtree(state)
        shutil.copytree(copy, state)

    first = made("first.json")
    restored()
    assert made("second.json") == first
    restored()
    linked(world, links=(640,), session="b")
    made("other.json")
    restored()
    made("finer.json", epsilon="0.25")
    (copy / "curator.sqlite").unlink()
    restored()
    linked(world)
    made("state.json")
    assert keys[0] == keys[1]
    assert len(set(keys)) == len(keys) - 1


def test_a_table_of_an_earlier_linkage_is_said_to_be(world: Terminal) -> None:
    assert "earlier linkage" not in ask(world, "--yes")[1] + ask(world, "--yes")[1] + ask(world)[1]
    linked(world, links=(640,), session="b")
    for more in ((), ("--yes",)):
        code, said, _ = ask(world, *more)
        assert (code, "It is of an earlier linkage, of 650 people" in said) == (0, True)


def test_the_noise_is_about_the_counts_and_covers_categories_without_rows(world: Terminal) -> None:
    ask(world, "--yes", epsilon="1")
    rates = rates_of((world.folder / "rates.json").read_text("utf-8"), "")
    truth = np.array([[650, 0], [50, 300]])
    assert np.abs(np.array([rates.linked, rates.unlinked]) - truth).max() < 20 * rates.sd
    assert len(rates.categories) == len(rates.linked) == 2


KILLED = """
import os, sys
import veiltab.common.storage.files as files
def kill(path): os._exit(9)
files.written_whole = kill
from veiltab.common.command.cli import run
from veiltab.curator.cli import curator
sys.exit(run(curator))
"""


def test_a_curator_that_is_killed_after_the_charge_writes_the_same_table_later(world: Terminal) -> None:
    path = world.folder / "rates.json"
    options = ("match-rates", world.study, "--state", world.folder / "state", "--attribute", "sex")
    command = [sys.executable, "-c", KILLED, *map(str, (*options, "--epsilon", "0.2", "--out", path, "--yes"))]
    assert subprocess.run(command, check=False, env=dict(os.environ)).returncode == 9
    (before,) = entries(world)
    assert not path.exists()
    assert ask(world, "--yes")[0] == 0
    assert entries(world) == [before]
    assert list(rates_of(path.read_text("utf-8"), "").linked) == before["linked"]


def test_what_the_budget_does_not_hold_is_refused(world: Terminal, make_spec: Make) -> None:
    assert "takes 101.00% of the budget; that is more than is left." in ask(world, epsilon="1.01")[1]
    code, _, said = ask(world, "--yes", epsilon="1.01")
    assert (code, entries(world), (world.folder / "rates.json").exists()) == (BudgetExceededError.exit_code, [], False)
    assert "of the budget of 1 there is 1.000000 left" in said
    assert ask(world, "--yes", epsilon="0.95")[0] == 0
    # A later release finds less.
    store = world.store()
    with pytest.raises(BudgetExceededError, match=r"there is 0\.050000 left"):
        reserve(Ledger(store.connection, Decimal(1)), make_spec(epsilon=Decimal("0.1")))
    store.close()


def test_another_epsilon_for_the_same_attribute_is_refused(world: Terminal) -> None:
    ask(world, "--yes")
    code, _, said = ask(world, "--yes", epsilon="0.1")
    assert (code, len(entries(world))) == (ConflictError.exit_code, 1)
    assert "released before, at epsilon 0.2" in said
    # After another linkage as well: the others count one table for each attribute in a ledger that they are shown.
    assert ask(world, "--yes", epsilon="0.20")[0] == 0
    check_shown_ledger((1, bytes(32)), "alice", 0, own=1)
    with pytest.raises(InvalidInputError, match="shows a ledger of 2 entries"):
        check_shown_ledger((2, bytes(32)), "alice", 0, own=1)


def test_a_table_keeps_the_categories_by_which_it_was_counted(world: Terminal) -> None:
    assert ask(world, "--yes")[0] == 0
    before = (world.folder / "rates.json").read_bytes()
    world.study.write_bytes(world.study.read_bytes().replace(b'["f", "m"]', b'["m", "f"]'))
    assert ask(world, "--yes", name="again.json")[0] == 0
    assert (world.folder / "again.json").read_bytes() == before


def test_counts_that_the_linkage_did_not_make_are_not_made_up(world: Terminal) -> None:
    code, _, said = ask(world, "--yes", "--attribute", "age")
    assert (code, entries(world)) == (NotReadyError.exit_code, [])
    assert "did not count age by the categories of this study file" in said
    linked(world, rows=(700, 200, 100), session="b")
    assert (ask(world, "--yes")[0], entries(world)) == (NotReadyError.exit_code, [])
    linked(world, links=(0,), session="c")  # a ledger with a table of nobody could not be shown
    assert (ask(world, "--yes")[0], entries(world)) == (NotReadyError.exit_code, [])


def test_three_times_an_epsilon_of_many_digits_is_not_rounded(world: Terminal) -> None:
    epsilon = f"0.1{'3' * 40}"
    said = ask(world, "--yes", epsilon=epsilon)[1]
    protects = json.loads((world.folder / "rates.json").read_text("utf-8"))["protects"]
    assert [*protects.values()] == [epsilon, f"0.2{'6' * 40}", f"0.3{'9' * 40}"]
    assert protects["other identifiers in a row of a spoke"] in said


def test_a_folder_in_the_place_of_the_file_charges_nothing(world: Terminal) -> None:
    (world.folder / "rates.json").mkdir()
    code, _, said = ask(world, "--yes")
    assert (code, entries(world)) == (InvalidInputError.exit_code, [])
    assert "is a directory" in said


def test_another_file_in_its_place_stays_and_nothing_is_charged(world: Terminal) -> None:
    assert ask(world, "--yes", name="sex.json")[0] == 0
    of_another = (world.folder / "sex.json").read_text("utf-8").replace('"sex"', '"age"')
    charged = entries(world)
    for other in ("[study]", of_another):
        (world.folder / "rates.json").write_text(other, "utf-8")
        code, _, said = ask(world, "--yes")
        assert (code, entries(world)) == (InvalidInputError.exit_code, charged)
        assert "another file is there" in said
        assert (world.folder / "rates.json").read_text("utf-8") == other


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--attribute", "wage"), "is no attribute of this curator"),
        (("--epsilon", "0"), "epsilon must be a number above 0"),
        (("--epsilon", "11"), "adds no noise to speak of"),
        (("--out", "nowhere/rates.json"), "there is no such folder"),
        (("--person", " "), "the person's name has no letters"),
    ],
)
def test_mistakes_charge_nothing(world: Terminal, options: tuple[str, ...], said: str) -> None:
    code, _, errors = ask(world, *options, "--yes")
    assert (code, entries(world)) == (InvalidInputError.exit_code, [])
    assert said in errors


def test_several_persons_agree_where_the_policy_asks_for_them(world: Terminal) -> None:
    store = world.store()
    store.served.set_served_policy(None, 0, None, persons=2)
    store.close()
    for persons in ((), ("--person", "Ana Diaz"), ("--person", "Ana Diaz", "--person", "ana  diaz")):
        code, _, said = ask(world, "--yes", *persons)
        assert (code, entries(world)) == (InvalidInputError.exit_code, [])
        assert "asks for 2 different persons" in said
    assert ask(world, "--yes", "--person", "Ana Diaz", "--person", "Ben Ode")[0] == 0
    assert [one["person"] for one in world.json("audit")["entries"][-2:]] == ["Ana Diaz", "Ben Ode"]


def test_a_study_that_links_nobody_or_has_not_yet_is_refused(terminal: Terminal) -> None:
    terminal.store().close()
    code, _, said = ask(terminal, "--yes")
    assert (code, "the study has ids, and links nobody" in said) == (InvalidInputError.exit_code, True)
    text = terminal.study.read_bytes()
    terminal.study.write_bytes(text.replace(b'id_columns = ["id"]', COLUMNS) + IDENTITY)
    code, _, said = ask(terminal, "--yes")
    assert (code, "is not linked yet" in said) == (NotReadyError.exit_code, True)


@pytest.mark.parametrize("delta", [None, Decimal("1e-6")])
def test_everybody_but_this_curator_faces_the_epsilon_of_the_table(world: Terminal, delta: Decimal | None) -> None:
    epsilon = Decimal("0.2")
    store = world.store()
    empty = Ledger(store.connection, Decimal(5), delta)
    assert bounds_of_charges(empty) == ()
    store.close()
    ask(world, "--yes")
    store = world.store()
    ledger = Ledger(store.connection, Decimal(5), delta)
    bounds = {one.roles: one for one in bounds_of_charges(ledger)}
    for roles in (("analyst",), ("desk",), ("desk", "server"), ("analyst", "curators"), ("desk", "curators")):
        found = bounds[roles].epsilon
        assert found is not None
        assert epsilon * Decimal("0.999") <= found <= epsilon * Decimal("1.000001"), roles
    assert ledger.budget.spent == epsilon
    if delta is not None:
        assert ledger.budget.spent_price.mu == price_of_pure_epsilon(epsilon).mu
    store.close()


def test_a_table_and_a_release_add_up_to_more_than_either(world: Terminal, make_spec: Make) -> None:
    ask(world, "--yes")
    store = world.store()
    ledger = Ledger(store.connection, Decimal(5), Decimal("1e-6"))
    reserve(ledger, make_spec(epsilon=Decimal(1)))
    ledger.charge(make_spec().release_id)
    for bound in bounds_of_charges(ledger)[:2]:
        assert bound.epsilon is not None
        assert Decimal("0.2") < bound.epsilon <= Decimal("1.21")
    assert ledger.budget.left.epsilon > 1
    ledger.chain.verify()
    store.close()
