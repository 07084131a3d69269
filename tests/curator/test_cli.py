""""""

from decimal import Decimal
from enum import Enum

import pytest

from tests.common.release.other import GOES_WITH, OTHER_REQUEST
from tests.conftest import TO_SPOKE, request_with, spec_with
from tests.curator.made_curators import ID, OTHER, Terminal, terminal_fixture  # noqa: F401 - fixtures
from veiltab.common.release.spec import release_of
from veiltab.common.release.state import ReleaseState


def test_check_tells_what_is_in_a_table(terminal: Terminal) -> None:
    table = terminal.folder / "alice.csv"
    table.write_text("id,sex,age\n1,f,young\n2,m,old\n3,m,\n")
    found = terminal.json("check", "--table", str(table))
    assert (found["rows"], found["respondents"], found["dropped"]) == (3, 2, 1)
    code, out, err = terminal.run("check", "--table", str(table))
    assert (code, "sex" in out, err) == (0, True, "")
    table.write_text("id,sex,age\n1,f,young\n1,x,old\n")
    assert terminal.json("check", "--table", str(table), code=2)["problems"]
    assert terminal.run("check", "--table", str(table), name="mallory")[:2] == (2, "")


def test_a_folder_without_a_curator_is_refused_and_not_made(terminal: Terminal) -> None:
    for command in ("requests", "ledger"):
        code, out, err = terminal.run(command)
        assert (code, out) == (2, "")
        assert "there is no such folder. Give the folder that the curator serves with, as --state." in err
    assert not (terminal.folder / "state").exists()
    with terminal.store():
        pass
    (terminal.folder / "state").rename(terminal.folder / "state-alice")
    said = terminal.run("requests")[2]
    assert "Did you mean 'state-alice'? Folders of curators beside it: state-alice." in said
    (terminal.folder / "state").mkdir()
    assert "no curator has run on this folder" in terminal.run("requests")[2]


def test_where_nothing_waits_for_a_person_approve_all_says_what_to_look_at(terminal: Terminal) -> None:
    with terminal.store():
        pass
    assert "No requests." in terminal.run("requests")[1]
    assert "--name: the state of curator alice is not that of 'bob'" in terminal.run("requests", "--name", "bob")[2]
    code, out, err = terminal.run("approve", "--all", "--person", "Ana Diaz", "--name", "alice")
    assert (code, out) == (4, "")
    assert "no request waits for a person. `veiltab curator requests` lists what has arrived" in err


def test_requests_show_the_card_the_error_and_the_budget(terminal: Terminal) -> None:
    terminal.hold(request_with(), "sex")
    (before,) = terminal.json("requests")["requests"]
    assert before["card"] == []
    assert "not aligned yet" in before["note"]
    terminal.align()
    (after,) = terminal.json("requests")["requests"]
    assert (after["release"], after["state"], after["own"]) == (ID, "requested", {"sex": "held"})
    analyst = after["card"][0]
    assert (analyst["coalition"], analyst["other"]) == (["analyst"], {"epsilon": 0.1, "delta": 0.0})
    assert (analyst["epsilon"] < 0.1, analyst["delta"]) == (True, 1e-6)
    assert 0 < after["root_mse"] < 1
    assert after["cell_root_mse"] == pytest.approx(after["root_mse"] / 2), "one of four cells"
    out = terminal.run("requests")[1]
    for text in (
        "rosa asks for sex, salary at epsilon 0.1",
        "decision here: sex held",
        "; epsilon 0.10 without a delta)",
        "1.000000 left",
        f"expected root-mean-square error of each share: {after['cell_root_mse']:.3g}",
    ):
        assert text in out
    assert "do not add up" not in out


@pytest.mark.parametrize("is_hub", [True, False])
def test_a_request_says_its_rows_and_to_a_spoke_how_many_are_its_own(terminal: Terminal, *, is_hub: bool) -> None:
    if not is_hub:
        for old, new in TO_SPOKE:
            terminal.study.write_bytes(terminal.study.read_bytes().replace(old, new))
    terminal.hold(request_with(), "sex")
    terminal.align(1199, 1000)
    (asked,) = terminal.json("requests")["requests"]
    assert (asked["n"], asked.get("matched")) == (1199, None if is_hub else 1000)
    rows = "  rows: 1,199" if is_hub else "  rows: 1,199, 1,000 of people in the table here"
    assert rows in terminal.run("requests")[1].splitlines()


def test_a_request_that_the_budget_does_not_hold_says_so_before_anybody_decides(terminal: Terminal) -> None:
    terminal.hold(request_with(epsilon=Decimal("1.5")), "sex")
    terminal.align()
    (asked,) = terminal.json("requests")["requests"]
    assert asked["budget_note"].startswith("The budget does not hold it now")
    assert f"budget: {asked['budget_note']}" in terminal.run("requests")[1]


def test_a_request_whose_own_certificate_keeps_the_budget_says_why_it_fits(terminal: Terminal) -> None:
    text = terminal.study.read_bytes()
    terminal.study.write_bytes(text.replace(b"[budget]\nepsilon = 1\n", b"[budget]\nepsilon = 3\ndelta = 1e-6\n"))
    terminal.hold(request_with(epsilon=Decimal(5), delta=Decimal("1e-7"), sample=None), "sex")
    terminal.align(1_847_987)
    (asked,) = terminal.json("requests")["requests"]
    assert (asked["charge"] > 1, asked["remaining_after"]) == (True, 0)
    assert asked["budget_note"].startswith("Its price is more than the budget, which holds it all the same")


def test_whatever_is_asked_for_is_shown_to_who_decides(terminal: Terminal) -> None:
    others = {name: value for name, value in OTHER_REQUEST.items() if name not in GOES_WITH}
    terminal.hold(request_with(**others), "sex")
    (asked,) = terminal.json("requests")["requests"]
    code, out, _ = terminal.run("requests")
    assert code == 0
    plain = {name: value.value if isinstance(value, Enum) else value for name, value in others.items()}
    plain |= {
        "release": plain.pop("release_id"),
        "deadline": "2033-05-18T03:33:21+00:00",
        "attributes": ["salary", "sex"],
    }
    assert {name: asked[name] for name in plain} == {
        name: float(value) if isinstance(value, Decimal) else value for name, value in plain.items()
    }
    headline = {
        "release": "f" * 32,
        "researcher": "rita asks",
        "attributes": "salary, sex",
        "epsilon": "epsilon 0.2",
        "delta": "at delta 1e-6",
    }
    for name, value in plain.items():
        assert headline.get(name, f"  {name.replace('_', ' ')}: {'yes' if value is True else value}\n") in out, name


def test_what_waits_for_a_person_comes_first_and_what_has_ended_is_counted(terminal: Terminal) -> None:
    ended, under_way, waiting = (f"{number:032x}" for number in (1, 2, 3))
    for release_id in (ended, under_way, waiting):
        terminal.hold(request_with(release_id=release_id, attributes=("sex",)), "sex")
    with terminal.store() as store:
        store.releases.set_state(ended, ReleaseState.FAILED, "why it failed")
        store.releases.set_state(under_way, ReleaseState.PLANNED)
        store.releases.set_waiting(under_way, "curator bob")
    blocks = terminal.run("requests")[1].rstrip("\n").split("\n\n")
    assert blocks[0].startswith("Budget 1")
    assert blocks[1].startswith(f"{waiting}  requested  rosa asks for sex at epsilon 0.1\n  purpose: wage gap\n")
    assert blocks[2:] == [
        f"Under way:\n{under_way}  planned  rosa asks for sex at epsilon 0.1; waits for curator bob",
        "Ended: 1; --all shows them.",
    ]
    blocks = terminal.run("requests", "--all")[1].split("\n\n")
    assert [block.split()[0] for block in blocks[1:]] == [waiting, under_way, ended]
    assert all("decision here: sex" in block for block in blocks[1:])
    assert [one["release"] for one in terminal.json("requests")["requests"]] == [ended, under_way, waiting]


def test_a_request_that_cannot_be_planned_does_not_hide_the_others(terminal: Terminal) -> None:
    terminal.hold(request_with(sample=5000), "sex")
    terminal.hold(request_with(release_id=OTHER), "sex")
    terminal.align()
    first, second = terminal.json("requests")["requests"]
    assert "1 to n = 1000 rows, not 5000" in first["note"]
    assert second["card"]


def test_a_planned_release_shows_its_own_card(terminal: Terminal) -> None:
    terminal.hold(request_with(), "sex")
    with terminal.store() as store:
        store.releases.set_planned(release_of(spec_with(epsilon=Decimal("0.05"))))
        store.releases.set_state(ID, ReleaseState.FAILED, "why it failed")
    (found,) = terminal.json("requests")["requests"]
    assert found["card"][0]["other"] == {"epsilon": 0.05, "delta": 0.0}
    assert "failed: why it failed" in terminal.run("requests", "--all")[1]
