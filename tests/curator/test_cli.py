import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from tests.common.release.other import GOES_WITH, OTHER_REQUEST
from tests.conftest import reserve
from veiltab.common.command.cli import run
from veiltab.common.errors import ConflictError, IntegrityError
from veiltab.common.privacy.cards.card import N_IS_EXACT
from veiltab.common.privacy.planning.planning import plan_release
from veiltab.common.release.guarantees import epsilon_card
from veiltab.common.release.spec import release_of
from veiltab.common.release.state import ReleaseState
from veiltab.common.study.file import load_study
from veiltab.curator.budget.entries import percent
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.cli import curator
from veiltab.curator.officer.policy import load_policy
from veiltab.curator.progress.progress import APPROVED, DENIED, HELD
from veiltab.curator.progress.release_record import GrantDecision
from veiltab.curator.records.served_files import ServedTable
from veiltab.curator.records.store import CuratorStore

Make = Callable[..., Any]
ID, OTHER = "0" * 31 + "1", "0" * 31 + "2"
WHY = ("--reason", "not agreed")

OFFICER_COMMANDS = (
    ("requests",),
    ("approve", "--release", ID, "--person", "Ana Diaz"),
    ("deny", "--release", ID, "--person", "Ana Diaz", "--reason", "too much"),
    ("ledger",),
    ("audit",),
    ("clear-tosses", "--peer", "bob", "--person", "Ana Diaz"),
    ("allow-alignment", "--peer", "bob", "--person", "Ana Diaz"),
    ("witness",),
    ("console", "--person", "Ana Diaz"),
    ("evidence", "--identity", "nowhere", "--out", "nowhere/evidence.zip", "--person", "Ana Diaz"),
)


class Terminal:
    """A curator's folder, and what its commands print."""

    def __init__(
        self, folder: Path, study: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.study = folder / "study.toml"
        self.study.write_bytes(study)
        self.folder = folder
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def store(self) -> CuratorStore:
        return CuratorStore(self.folder / "state" / "curator.sqlite")

    def run(self, command: str, *args: str, name: str = "alice") -> tuple[int, str, str]:
        state = () if command == "check" else ("--state", str(self.folder / "state"))
        self._monkeypatch.setattr(sys, "argv", ["veiltab", command, str(self.study), "--name", name, *state, *args])
        code = run(curator)
        captured = self._capsys.readouterr()
        return code, captured.out, captured.err

    def group(self, group: str, command: str, *args: str, code: int = 0) -> tuple[Any, str]:
        """Run a command of a group twice: what it says as JSON, and to people."""
        words = ["veiltab", group, command, str(self.study), "--name", "alice", "--state", str(self.folder / "state")]
        self._monkeypatch.setattr(sys, "argv", [*words, *args, "--json"])
        assert run(curator) == code
        found = json.loads(self._capsys.readouterr().out)
        self._monkeypatch.setattr(sys, "argv", [*words, *args])
        assert run(curator) == code
        captured = self._capsys.readouterr()
        return found, captured.out + captured.err

    def json(self, command: str, *args: str, code: int = 0) -> Any:  # noqa: ANN401 - as JSON has it
        found, out, _ = self.run(command, *args, "--json")
        assert found == code
        assert out.count("\n") == 1
        return json.loads(out)


@pytest.fixture
def terminal(
    tmp_path: Path, study_bytes: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    return Terminal(tmp_path, study_bytes, monkeypatch, capsys)


def held(terminal: Terminal, request: Any, *attributes: str) -> None:  # noqa: ANN401 - a request
    store = terminal.store()
    store.releases.add(request, 1)
    store.decisions.decide(
        request.release_id,
        tuple(GrantDecision(attribute=a, verdict=HELD, expires=None, decided_by="policy") for a in attributes),
    )
    store.close()


def verdicts(terminal: Terminal, release_id: str = ID) -> dict[str, tuple[str, str]]:
    store = terminal.store()
    found = {d.attribute: (d.verdict, d.decided_by) for d in store.decisions.decisions(release_id)}
    store.close()
    return found


def test_check_tells_what_is_in_a_table(terminal: Terminal) -> None:
    table = terminal.folder / "alice.csv"
    table.write_text("id,sex,age\n1,f,young\n2,m,old\n3,m,\n")
    found = terminal.json("check", "--table", str(table))
    assert (found["rows"], found["respondents"], found["dropped"]) == (3, 2, 1)
    code, out, err = terminal.run("check", "--table", str(table))
    assert (code, err) == (0, "")
    assert "sex" in out


def test_check_of_a_bad_table_is_bad_input(terminal: Terminal) -> None:
    table = terminal.folder / "alice.csv"
    table.write_text("id,sex,age\n1,f,young\n1,x,old\n")
    assert terminal.json("check", "--table", str(table), code=2)["problems"]
    code, out, _ = terminal.run("check", "--table", str(table), name="mallory")
    assert (code, out) == (2, "")


def test_a_folder_without_a_curator_is_not_made(terminal: Terminal) -> None:
    for command in ("requests", "ledger"):
        code, out, err = terminal.run(command)
        assert (code, out) == (2, "")
        assert "there is no such folder. Give the folder that the curator serves with, as --state." in err
    assert not (terminal.folder / "state").exists()
    assert terminal.json("requests", code=2)["error"]["reason"] == "NOT_FOUND"


def test_another_folder_than_a_curator_s_is_refused_with_the_nearest_that_is_one(terminal: Terminal) -> None:
    terminal.store().close()
    (terminal.folder / "state").rename(terminal.folder / "state-alice")
    said = terminal.run("requests")[2]
    assert "there is no such folder. Give the folder that the curator serves with, as --state." in said
    assert "Did you mean 'state-alice'? Folders of curators beside it: state-alice." in said
    (terminal.folder / "state").mkdir()
    assert "no curator has run on this folder" in terminal.run("requests")[2]


def test_where_nothing_waits_for_a_person_approve_all_says_what_to_look_at(terminal: Terminal) -> None:
    terminal.store().close()
    code, out, err = terminal.run("approve", "--all", "--person", "Ana Diaz")
    assert (code, out) == (4, "")
    assert "no request waits for a person. `veiltab curator requests` lists what has arrived" in err


def test_without_requests(terminal: Terminal) -> None:
    terminal.store().close()
    assert terminal.json("requests") == {
        "budget": 1.0,
        "delta": None,
        "policy": None,
        "spent": 0.0,
        "share": 0.0,
        "remaining": 1.0,
        "remaining_delta": None,
        "remaining_cells": None,
        "requests": [],
    }
    assert "No requests." in terminal.run("requests")[1]


def test_requests_show_the_card_the_error_and_the_budget(terminal: Terminal, make_request: Make) -> None:
    held(terminal, make_request(), "sex")
    (before,) = terminal.json("requests")["requests"]
    assert before["card"] == []
    assert "not aligned yet" in before["note"]
    store = terminal.store()
    store.alignments.set_alignment("a", 1000, "ab" * 16)
    store.close()
    (after,) = terminal.json("requests")["requests"]
    assert (after["release"], after["state"], after["own"]) == (ID, "requested", {"sex": "held"})
    assert (after["researcher"], after["attributes"], after["epsilon"]) == ("rosa", ["sex", "salary"], 0.1)
    assert (after["purpose"], after["deadline"]) == ("wage gap", "2033-05-18T03:33:20+00:00")
    analyst = after["card"][0]
    assert (analyst["coalition"], analyst["epsilon"], analyst["delta"]) == (["analyst"], 0.1, 0.0)
    assert analyst["other"]["epsilon"] < 0.1
    assert analyst["other"]["delta"] == 1e-6
    assert 0 < after["root_mse"] < 1
    assert after["cell_root_mse"] == pytest.approx(after["root_mse"] / 2), "one of four cells"
    code, out, err = terminal.run("requests")
    assert (code, err) == (0, "")
    for text in (
        "rosa asks for sex, salary at epsilon 0.1",
        "wage gap",
        "decision here: sex held",
        "epsilon 0.10; changes anyone's odds by at most the factor 1.11",
        "1.000000 left",
        f"expected root-mean-square error of each share: {after['cell_root_mse']:.3g}",
    ):
        assert text in out
    assert "do not add up" not in out


def test_a_request_that_the_budget_does_not_hold_says_so_before_anybody_decides(
    terminal: Terminal, make_request: Make
) -> None:
    held(terminal, make_request(epsilon=Decimal("1.5")), "sex")
    store = terminal.store()
    store.alignments.set_alignment("a", 1000, "ab" * 16)
    store.close()
    (asked,) = terminal.json("requests")["requests"]
    assert asked["budget_note"].startswith("The budget does not hold it now")
    assert f"budget: {asked['budget_note']}" in terminal.run("requests")[1]


def test_a_request_whose_own_certificate_keeps_the_budget_says_why_it_fits(
    terminal: Terminal, make_request: Make
) -> None:
    text = terminal.study.read_bytes()
    terminal.study.write_bytes(text.replace(b"[budget]\nepsilon = 1\n", b"[budget]\nepsilon = 3\ndelta = 1e-6\n"))
    held(terminal, make_request(epsilon=Decimal(5), delta=Decimal("1e-7"), sample=None), "sex")
    store = terminal.store()
    store.alignments.set_alignment("a", 1_847_987, "ab" * 16)
    store.close()
    (asked,) = terminal.json("requests")["requests"]
    assert (asked["charge"] > 1, asked["remaining_after"]) == (True, 0)
    assert asked["budget_note"].startswith("Its price is more than the budget, which holds it all the same")


def test_whatever_is_asked_for_is_shown_to_who_decides(terminal: Terminal, make_request: Make) -> None:
    others = {name: value for name, value in OTHER_REQUEST.items() if name not in GOES_WITH}
    held(terminal, make_request(**others), "sex")
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


def test_what_waits_for_a_person_comes_first_and_what_has_ended_is_counted(
    terminal: Terminal, make_request: Make
) -> None:
    ended, under_way, waiting = (f"{number:032x}" for number in (1, 2, 3))
    for release_id in (ended, under_way, waiting):
        held(terminal, make_request(release_id=release_id, attributes=("sex",)), "sex")
    store = terminal.store()
    store.releases.set_state(ended, ReleaseState.FAILED, "why it failed")
    store.releases.set_state(under_way, ReleaseState.PLANNED)
    store.releases.set_waiting(under_way, "curator bob")
    store.close()
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


def test_a_request_that_cannot_be_planned_does_not_hide_the_others(terminal: Terminal, make_request: Make) -> None:
    held(terminal, make_request(sample=5000), "sex")
    held(terminal, make_request(release_id=OTHER), "sex")
    store = terminal.store()
    store.alignments.set_alignment("a", 1000, "ab" * 16)
    store.close()
    first, second = terminal.json("requests")["requests"]
    assert "1 to n = 1000 rows, not 5000" in first["note"]
    assert second["card"]


def test_a_planned_release_shows_its_own_card(terminal: Terminal, make_request: Make, make_spec: Make) -> None:
    held(terminal, make_request(), "sex")
    store = terminal.store()
    store.releases.set_planned(release_of(make_spec(epsilon=Decimal("0.05"))))
    store.releases.set_state(ID, ReleaseState.FAILED, "why it failed")
    store.close()
    (found,) = terminal.json("requests")["requests"]
    assert found["card"][0]["epsilon"] == 0.05
    assert "failed: why it failed" in terminal.run("requests", "--all")[1]


def test_approve_decides_all_that_is_held(terminal: Terminal, make_request: Make) -> None:
    held(terminal, make_request(), "sex", "age")
    assert terminal.json("approve", "--release", ID) == {"release": ID, "approved": ["age", "sex"]}
    assert verdicts(terminal) == {"sex": (APPROVED, "person"), "age": (APPROVED, "person")}


def test_approve_decides_one_and_deny_the_other(terminal: Terminal, make_request: Make) -> None:
    held(terminal, make_request(), "sex", "age")
    code, out, _ = terminal.run("approve", "--release", ID, "--attribute", "age", "--expires-days", "2")
    assert (code, out) == (0, "Approved: age\n")
    assert terminal.json("deny", "--release", ID, *WHY) == {"release": ID, "denied": ["sex"]}
    assert verdicts(terminal) == {"age": (APPROVED, "person"), "sex": (DENIED, "person")}
    store = terminal.store()
    expiries = {d.attribute: d.expires for d in store.decisions.decisions(ID)}
    store.close()
    assert expiries["sex"] is None
    assert expiries["age"] is not None


def test_a_key_is_granted_for_no_longer_than_a_calendar_has(terminal: Terminal, make_request: Make) -> None:
    held(terminal, make_request(), "sex")
    for days in ("36501", "10000000", "9" * 20):
        code, _, err = terminal.run("approve", "--release", ID, "--expires-days", days)
        assert (code, "1<=x<=36500" in err) == (2, True), days
    assert terminal.json("approve", "--release", ID, "--expires-days", "36500")["approved"] == ["sex"]
    (found,) = terminal.json("requests")["requests"]
    assert found["decisions"][0]["expires"] > "2100"


def test_two_persons_approve_all_that_waits(terminal: Terminal, make_request: Make) -> None:
    held(terminal, make_request(), "sex")
    held(terminal, make_request(release_id=OTHER), "sex", "age")
    policy = terminal.folder / "policy.toml"
    policy.write_text("persons = 2")
    of_two = ("approve", "--policy", str(policy), "--all", "--person")
    first = terminal.json(*of_two, "Ana Diaz")["releases"]
    assert first == [
        {"release": ID, "approved": [], "missing": {"sex": 1}},
        {"release": OTHER, "approved": [], "missing": {"age": 1, "sex": 1}},
    ]
    code, out, err = terminal.run(*of_two, "ana diaz")
    assert (code, out) == (4, "")
    assert "ana diaz has approved all that waits. Another person must approve it as well." in err
    code, out, _ = terminal.run(*of_two, "Ben Ode", "--reason", "agreed")
    assert (code, out) == (0, f"{ID}  Approved: sex\n{OTHER}  Approved: age, sex\n")
    assert verdicts(terminal, OTHER) == {"sex": (APPROVED, "person"), "age": (APPROVED, "person")}


@pytest.mark.parametrize("command", [one for one in OFFICER_COMMANDS if "--person" in one], ids=lambda one: one[0])
@pytest.mark.parametrize("name", ["", " \t"])
def test_an_empty_name_is_not_the_login_name(
    terminal: Terminal, make_request: Make, command: tuple[str, ...], name: str
) -> None:
    held(terminal, make_request(), "sex")
    code, out, err = terminal.run(*(name if one == "Ana Diaz" else one for one in command))
    assert (code, out) == (2, "")
    assert ("a person's name is" if command[0] == "console" else "--person: the name is empty") in err
    assert verdicts(terminal) == {"sex": (HELD, "policy")}


@pytest.mark.parametrize("reason", [(), ("--reason", " ")])
def test_a_refusal_needs_a_reason(terminal: Terminal, make_request: Make, reason: tuple[str, ...]) -> None:
    held(terminal, make_request(), "sex")
    code, out, err = terminal.run("deny", "--release", ID, "--person", "Ana Diaz", *reason)
    assert (code, out) == (2, "")
    assert "a refusal needs a reason. Write why; in a terminal, by --reason." in err
    assert verdicts(terminal) == {"sex": (HELD, "policy")}


def test_of_several_persons_each_gives_a_name(terminal: Terminal, make_request: Make) -> None:
    held(terminal, make_request(), "sex")
    store = terminal.store()
    store.served.set_served_policy(None, 0, None, persons=2)
    store.close()
    for command in (("approve",), ("deny", "--reason", "too much")):
        code, out, err = terminal.run(*command, "--release", ID)
        assert (code, out) == (2, "")
        assert "the policy asks for 2 different persons. Name the person with --person." in err
    assert verdicts(terminal) == {"sex": (HELD, "policy")}
    assert terminal.run("approve", "--release", ID, "--person", "Ana Diaz")[0] == 0


@pytest.mark.parametrize("choice", [(), ("--all", "--release", ID), ("--all", "--attribute", "sex")])
def test_either_one_request_is_approved_or_all(terminal: Terminal, make_request: Make, choice: tuple[str, ...]) -> None:
    held(terminal, make_request(), "sex")
    assert terminal.run("approve", *choice)[0] == 2
    assert verdicts(terminal) == {"sex": (HELD, "policy")}


def test_who_decides_and_why_is_recorded(
    terminal: Terminal, make_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    held(terminal, make_request(attributes=("sex", "age")), "sex", "age")
    monkeypatch.setattr("getpass.getuser", lambda: "bode")
    assert terminal.run("approve", "--release", ID, "--attribute", "age,")[0] == 2
    assert terminal.run("approve", "--release", ID, "--attribute", "age")[0] == 0
    assert terminal.run("deny", "--release", ID, "--person", "Ana Diaz", "--reason", "too much")[0] == 0
    shown = {one["attribute"]: one for one in terminal.json("requests")["requests"][0]["decisions"]}
    assert (shown["age"]["person"], shown["age"]["reason"]) == ("bode", "")
    assert (shown["sex"]["person"], shown["sex"]["reason"]) == ("Ana Diaz", "too much")
    assert datetime.fromisoformat(shown["sex"]["time"]) <= datetime.now(UTC)
    assert "sex denied; by Ana Diaz: too much" in terminal.run("requests", "--all")[1]

    def fail() -> str:
        raise OSError

    monkeypatch.setattr("getpass.getuser", fail)
    assert "Say it by --person" in terminal.run("deny", "--release", ID, *WHY)[2]


def test_the_beginning_of_an_id_is_enough_if_it_is_the_only_one(terminal: Terminal, make_request: Make) -> None:
    third = "1" + "0" * 31
    for release_id in (ID, OTHER, third):
        held(terminal, make_request(release_id=release_id), "sex")
    assert terminal.json("deny", "--release", " 1", *WHY)["release"] == third
    code, _, err = terminal.run("approve", "--release", "00")
    assert (code, f"2 releases begin so: {ID} (rosa), {OTHER} (rosa)" in err) == (2, True)
    for unknown in ("", "2", "%"):
        said = terminal.run("approve", "--release", unknown)[2]
        assert "no such release here. `veiltab curator requests` lists what has arrived here" in said
    assert verdicts(terminal) == {"sex": (HELD, "policy")}


@pytest.mark.parametrize("command", ["approve", "deny"])
def test_what_is_not_held_is_not_decided(terminal: Terminal, make_request: Make, command: str) -> None:
    held(terminal, make_request(), "sex")
    code, _, err = terminal.run(command, *WHY, "--release", ID, "--attribute", "sex", "--attribute", "salary")
    assert code == 2
    assert "Held: sex" in err
    assert verdicts(terminal) == {"sex": (HELD, "policy")}
    assert terminal.run(command, *WHY, "--release", OTHER)[0] == 2
    assert terminal.run(command, *WHY, "--release", ID)[0] == 0
    decided = verdicts(terminal)
    assert terminal.run("approve", "--release", ID)[0] == 2
    assert terminal.run("deny", "--release", ID, "--attribute", "sex", *WHY)[0] == 2
    assert verdicts(terminal) == decided


@pytest.mark.parametrize("state", [ReleaseState.REQUESTED, ReleaseState.APPROVED, ReleaseState.PLANNED])
def test_a_request_is_denied_in_every_state_before_the_charge(
    terminal: Terminal, make_request: Make, make_spec: Make, state: ReleaseState
) -> None:
    store = terminal.store()
    store.releases.add(make_request(), 1)
    store.releases.set_state(ID, state)
    ledger = Ledger(store.connection, Decimal(1))
    reserve(ledger, make_spec())
    assert terminal.json("deny", "--release", ID, *WHY) == {"release": ID, "denied": []}
    stored = store.releases.release(ID)
    assert (stored.state, stored.failure) == (ReleaseState.DENIED, "a person denied the request")
    assert not ledger.is_reserved(ID)
    with pytest.raises(IntegrityError, match="nothing is reserved"):
        ledger.charge(ID)
    assert terminal.run("deny", "--release", ID, *WHY)[0] == 2
    store.close()


def test_the_tosses_that_a_curator_aborted_are_cleared(terminal: Terminal, make_request: Make) -> None:
    store = terminal.store()
    store.releases.add(make_request(), 1)
    store.coins.add_aborted(ID, "bob")
    assert terminal.json("clear-tosses", "--peer", "bob") == {"peer": "bob", "cleared": 1}
    assert terminal.json("clear-tosses", "--peer", "bob") == {"peer": "bob", "cleared": 0}
    assert not store.coins.aborted()
    store.close()
    assert terminal.run("clear-tosses", "--peer", "zoe")[0] == 2


def test_private_alignments_of_a_curator_are_allowed_again(terminal: Terminal) -> None:
    store = terminal.store()
    store.private.begin("a" * 32, "version", bytes(16))
    store.private.enter("a" * 32, "session", bytes(32), bytes(32), {"bob": b"part"})
    store.private.fail("a" * 32, ["bob"])
    assert terminal.json("allow-alignment", "--peer", "bob") == {"peer": "bob", "began": 1}
    assert terminal.json("allow-alignment", "--peer", "bob") == {"peer": "bob", "began": 0}
    assert store.private.suspects() == ()
    own = store.private.session("a" * 32)
    assert own is not None
    assert own.part != bytes(16)
    assert (own.name, own.scalar, own.seed) == ("", b"", b"")
    store.close()
    assert terminal.run("allow-alignment", "--peer", "zoe")[0] == 2


def test_a_ledger_that_another_party_has_seen_longer_is_listed_and_set_aside(terminal: Terminal) -> None:
    store = terminal.store()
    ledger, seen = Ledger(store.connection, Decimal(1)), (7, b"h" * 32)
    for _ in range(2):
        with pytest.raises(IntegrityError, match="the ledger lacks entries that curator bob has seen"):
            ledger.verify_against(seen, "curator bob")
    lacking = {"who": "curator bob", "entries": 7, "head": "68" * 32, "set_aside": False}
    assert terminal.json("witness") == {"entries": 0, "remembered": {"bob": 0}, "lacking": [lacking]}
    assert "Curator bob has seen a ledger of 7 entries here" in terminal.run("witness")[1]
    assert terminal.run("witness", "--clear", "carol", "--person", "Ana Diaz")[0] == 2
    said = terminal.json("witness", "--clear", "bob", "--person", "Ana Diaz")
    assert said["lacking"] == [lacking | {"set_aside": True}]
    ledger.verify_against(seen, "curator bob")
    *_, last = store.audit.entries()
    assert (last.event, last.person, last.facts["witness"]) == ("witness set aside", "Ana Diaz", "curator bob")
    with pytest.raises(IntegrityError, match="has seen"):  # another one counts anew, and so does another party
        ledger.verify_against((8, b"h" * 32), "curator bob")
    with pytest.raises(IntegrityError, match="server cloud has seen"):
        ledger.verify_against(seen, "server cloud")
    store.close()


def test_a_release_that_is_charged_is_not_denied(terminal: Terminal, make_request: Make, make_spec: Make) -> None:
    store = terminal.store()
    store.releases.add(make_request(), 1)
    store.releases.set_state(ID, ReleaseState.PLANNED)  # a crash came between the charge and the next state
    store.close()
    charge(terminal, make_spec, ID)
    code, _, err = terminal.run("deny", "--release", ID, *WHY)
    assert (code, "the release is planned and charged" in err) == (2, True)


def test_a_release_that_is_over_is_not_decided(terminal: Terminal, make_request: Make) -> None:
    held(terminal, make_request(), "sex")
    store = terminal.store()
    store.releases.set_state(ID, ReleaseState.EXPIRED)
    store.close()
    assert terminal.run("approve", "--release", ID)[0] == 2


def charge(terminal: Terminal, make_spec: Make, *ids: str) -> None:
    store = terminal.store()
    ledger = Ledger(store.connection, Decimal(1))
    for release_id in ids:
        reserve(ledger, make_spec(release_id=release_id))
        ledger.charge(release_id)
    store.close()


def test_the_ledger_shows_every_charge(terminal: Terminal, make_spec: Make) -> None:
    charge(terminal, make_spec, ID, OTHER)
    found = terminal.json("ledger")
    assert (found["budget"], found["spent"], found["remaining"]) == (1.0, 0.2, 0.8)
    assert [(entry["number"], entry["release"]) for entry in found["entries"]] == [(1, ID), (2, OTHER)]
    assert found["entries"][0]["tables"][0]["relation"] == "substitution"
    code, out, _ = terminal.run("ledger")
    assert code == 0
    assert "Spent 0.200000 of 1; 0.800000 left. The chain is whole." in out


def test_the_ledger_says_what_each_coalition_faces_of_all_charges(terminal: Terminal, make_spec: Make) -> None:
    charge(terminal, make_spec, ID, OTHER)
    card = terminal.json("ledger")["card"]
    faced = {tuple(bound["coalition"]): bound for bound in card}
    (one,) = (b for b in epsilon_card(make_spec()).bounds if b.roles == ("desk", "curators"))
    assert one.epsilon is not None
    assert faced["desk", "curators"]["epsilon"] == pytest.approx(2 * float(one.epsilon))
    assert 0 < faced["desk",]["epsilon"] <= 0.2
    out = terminal.run("ledger")[1]
    assert "desk with curators: epsilon " in out
    assert N_IS_EXACT in out
    # The second look uses the prices of the first.
    store = terminal.store()
    store.connection.execute("UPDATE view_price SET mu = '0'")
    store.close()
    (desk,) = (bound for bound in terminal.json("ledger")["card"] if bound["coalition"] == ["desk"])
    assert desk["epsilon"] == 0


def test_the_audit_log_is_listed_and_checked(terminal: Terminal, make_request: Make, make_spec: Make) -> None:
    held(terminal, make_request(), "sex")
    held(terminal, make_request(release_id=OTHER), "sex")
    terminal.run("approve", "--release", ID, "--person", "Ana Díaz", "--reason", "as agreed")
    terminal.run("deny", "--release", OTHER, "--person", "Ben Ode", *WHY)
    charge(terminal, make_spec, ID)
    store = terminal.store()
    store.pads.record_key_given(ID, "sex", "rosa")
    store.close()
    found = terminal.json("audit")
    assert (found["length"], found["matching"], len(found["entries"])) == (9, 9, 9)
    assert [one["event"] for one in found["entries"]][-3:] == ["decision", "charge", "key given"]

    def numbers(*options: str) -> list[int]:
        return [one["number"] for one in terminal.json("audit", *options)["entries"]]

    assert numbers("--release", ID) == [1, 2, 5, 6, 8, 9]
    assert numbers("--person", "ANA DIAZ") == [5, 6]
    assert numbers("--person", "rosa") == [1, 3, 9]
    assert (numbers("--since", "2020-01-01", "--last", "1"), numbers("--since", "2120-01-01")) == ([9], [])
    assert (numbers("--until", "2020-01-01"), len(numbers("--until", "2120-01-01T00:00:00+0100"))) == ([], 9)
    code, out, _ = terminal.run("audit", "--last", "5")
    assert (code, out.splitlines()[0]) == (0, "The newest 5 of 9; --last shows more.")
    assert "approval  by Ana Díaz  attribute sex, reason as agreed" in out
    assert f"9 entries in all; the chain is whole. Head: {found['head']}" in out


def test_an_audit_log_that_was_altered_is_said_to_be(terminal: Terminal, make_request: Make, make_spec: Make) -> None:
    held(terminal, make_request(), "sex")
    charge(terminal, make_spec, ID)
    store = terminal.store()
    store.connection.execute("DROP TRIGGER audit_is_not_cut")
    store.connection.execute("DELETE FROM audit WHERE number > 1")
    store.close()
    assert terminal.json("audit", code=5)["error"]["problem"].startswith("the audit log lacks entries")
    store = terminal.store()
    store.connection.execute("DROP TRIGGER audit_is_not_altered")
    store.connection.execute("UPDATE audit SET line = replace(line, 'rosa', 'rita')")
    store.close()
    assert "altered at entry 1" in terminal.json("audit", code=5)["error"]["problem"]


def test_a_ledger_that_was_altered_is_refused_by_every_command(terminal: Terminal, make_spec: Make) -> None:
    charge(terminal, make_spec, ID, OTHER)
    store = terminal.store()
    store.connection.execute("UPDATE ledger SET epsilon = '0.01' WHERE number = 1")
    store.close()
    for command in ("ledger", "requests"):
        assert terminal.json(command, code=5)["error"]["reason"] == "INTEGRITY"


def test_a_policy_s_smaller_budget_counts(terminal: Terminal, make_spec: Make) -> None:
    charge(terminal, make_spec, ID)
    policy = terminal.folder / "policy.toml"
    for text, budget in (("budget = 0.5", 0.5), ("budget = 2", 1.0)):
        policy.write_text(text)
        assert terminal.json("ledger", "--policy", str(policy))["budget"] == budget
    policy.write_text("budget = x")
    assert terminal.run("ledger", "--policy", str(policy))[0] == 2


def test_the_budget_is_that_of_the_policy_that_is_served(terminal: Terminal, make_spec: Make) -> None:
    charge(terminal, make_spec, ID)
    store = terminal.store()
    store.served.set_served_policy(Path("rules.toml"), 2, Decimal("0.4"))
    store.close()
    found = terminal.json("ledger")
    assert (found["budget"], found["policy"]) == (0.4, str(Path("rules.toml").absolute()))
    assert found["entries"][0]["share"] == 0.25
    other = terminal.folder / "other.toml"
    other.write_text("budget = 0.5")
    found = terminal.json("ledger", "--policy", str(other))
    assert (found["budget"], found["policy"]) == (0.5, str(other))


def test_a_policy_that_was_edited_since_it_is_served_is_noticed(terminal: Terminal) -> None:
    path, store = terminal.folder / "policy.toml", terminal.store()
    path.write_text("budget = 0.5\n")
    policy = load_policy(path, researchers=[], attributes=[])
    store.served.set_served_policy(path, 0, policy.budget, policy.persons, policy.digest)
    store.close()
    assert terminal.run("requests")[2] == ""
    path.write_text("budget = 0.6\n")
    code, out, err = terminal.run("requests")
    assert (code, "Budget 0.5" in out) == (0, True)
    assert f"{path} was edited since the running curator read it" in err
    path.unlink()
    assert "cannot be read any more" in terminal.run("ledger")[2]


@pytest.mark.parametrize("command", OFFICER_COMMANDS, ids=lambda command: command[0])
def test_another_study_file_than_is_served_is_refused(
    terminal: Terminal, make_request: Make, command: tuple[str, ...]
) -> None:
    store, study = terminal.store(), load_study(terminal.study)
    store.releases.add(make_request(), 1, study.digest)
    store.decisions.decide(ID, (GrantDecision(attribute="sex", verdict=HELD, expires=None, decided_by="policy"),))
    store.served.set_served_study(study)
    store.close()
    terminal.study.write_bytes(study.source.replace(b"[budget]\nepsilon = 1\n", b"[budget]\nepsilon = 50\n"))
    code, out, err = terminal.run(*command)
    assert (code, out) == (ConflictError.exit_code, "")
    assert "the curator serves another study file: this one gives another budget epsilon. Give the file" in err
    assert verdicts(terminal) == {"sex": (HELD, "policy")}


def test_a_new_version_of_the_study_counts_once_it_is_served(terminal: Terminal, make_request: Make) -> None:
    store, study = terminal.store(), load_study(terminal.study)
    store.releases.add(make_request(), 1, study.digest)
    store.served.set_served_study(study)
    terminal.study.write_bytes(study.source + b"# a remark\n")
    assert "differs in comments, spacing or spelling alone" in terminal.run("requests")[2]
    store.served.set_served_study(load_study(terminal.study))
    store.close()
    assert terminal.run("requests")[0] == 0
    terminal.study.write_bytes(study.source)
    assert terminal.run("requests")[0] == ConflictError.exit_code


def test_a_table_that_was_changed_since_it_is_served_is_noticed(terminal: Terminal) -> None:
    table, store = terminal.folder / "alice.csv", terminal.store()
    table.write_text("id,sex,age\n1,f,young\n")
    store.served.set_served_table(ServedTable.of(table), 1, "ab")
    assert terminal.run("requests")[2] == ""
    table.write_text("id,sex,age\n1,f,young\n2,m,old\n")
    for expected, command in ((0, ("requests",)), (4, ("approve", "--all", "--person", "Ana Diaz"))):
        code, _, err = terminal.run(*command)
        assert (code, f"{table} was changed since the running curator read it" in err) == (expected, True)
    assert "Restart `veiltab curator serve`" in err
    table.unlink()
    assert f"{table} cannot be read any more" in terminal.run("requests")[2]
    store.served.set_served_table(None, 2, "cd")
    assert terminal.run("requests")[2] == ""
    found = [(one.event, one.facts) for one in store.audit.entries()]
    assert found == [("table loaded", {"rows": 1, "version": "ab"}), ("table loaded", {"rows": 2, "version": "cd"})]
    store.close()


def test_a_charge_at_a_delta_shows_what_was_asked_for(terminal: Terminal, make_spec: Make) -> None:
    text = terminal.study.read_bytes()
    terminal.study.write_bytes(text.replace(b"[budget]\nepsilon = 1\n", b"[budget]\nepsilon = 1\ndelta = 1e-6\n"))
    plan = plan_release(population=1000, cells=4, epsilon=Decimal("0.3"), delta=Decimal("1e-7"), noise_split=Decimal(0))
    spec = make_spec(
        sample=1000,
        server_replacement=plan.mechanism.server_replacement,
        epsilon=plan.epsilon,
        delta=plan.delta,
        release_id=ID,
    )
    store = terminal.store()
    ledger = Ledger(store.connection, Decimal(1), Decimal("1e-6"))
    reserve(ledger, spec)
    ledger.charge(ID)
    (entry,) = ledger.entries
    store.close()
    found = terminal.json("ledger")
    (shown,) = found["entries"]
    assert (shown["researcher"], shown["attributes"]) == ("rosa", ["sex", "salary"])
    assert (shown["epsilon"], shown["delta"], shown["share"]) == (0.3, "1E-7", float(entry.share))
    assert shown["pure_epsilon"] > 0.3
    assert found["share"] == shown["share"]
    assert datetime.fromisoformat(shown["time"]) <= datetime.now(UTC)
    _, out, _ = terminal.run("ledger")
    assert f"epsilon 0.300000 at delta 1e-7  charge {percent(entry.share)}" in out
    assert f"{percent(entry.share)} of the budget of 1; one more release may have epsilon 0.9" in out
    assert (found["remaining_delta"], found["remaining_cells"]) == (1e-6, 4)
    (desk,) = (bound for bound in found["card"] if bound["coalition"] == ["desk"])
    assert (desk["epsilon"], desk["delta"]) == (found["spent"], float(found["delta"]))
    assert f"Spent epsilon {found['spent']:.6f}"[:-2] in out
    assert "those charged, spent and left do not add up" in out
    assert "those charged, spent and left do not add up" in terminal.run("requests")[1]


POLICY = """
[[rule]]
researcher = "rosa"
attributes = "sex"
maximum_charge = 0.2
decision = "approve"
"""


def test_a_policy_is_tried_on_a_request_that_nobody_has_put(terminal: Terminal) -> None:
    terminal.store().close()
    rules = terminal.folder / "rules.toml"
    rules.write_text(POLICY)
    asked = ("test", "--policy", str(rules), "--researcher", "rosa", "--attributes", "sex,salary")
    (found, out) = terminal.group("policy", *asked, "--epsilon", "0.1", "--population", "1000")
    assert found["verdicts"] == {"sex": {"verdict": "approved", "rule": 1}}
    assert (found["charge"], found["remaining"], found["remaining_after"]) == (0.1, 1.0, 0.9)
    assert "sex: approved, by rule 1" in out
    assert "Charge: 10.00% of the budget, for 1000 respondents." in out
    (found, out) = terminal.group("policy", *asked, "--epsilon", "0.5", "--population", "1000")
    assert found["verdicts"] == {"sex": {"verdict": "held", "rule": None}}
    assert "sex: held, as no rule matches" in out
    (found, out) = terminal.group("policy", *asked, "--epsilon", "0.1", "--delta", "0.01", "--population", "1000")
    assert (found["verdicts"], "is above 1/n = 0.001" in found["refusal"]) == ({}, True)
    assert "The request is refused: " in out
    (found, out) = terminal.group("policy", *asked, "--epsilon", "1.5", "--population", "1000")
    assert "of the budget of 1" in found["over_budget"]
    assert "The budget does not hold it: " in out


def test_a_policy_is_not_tried_without_a_population_or_on_a_stranger(terminal: Terminal) -> None:
    store = terminal.store()
    asked = ("test", "--epsilon", "0.1", "--attributes", "sex", "--researcher")
    assert "--population" in terminal.group("policy", *asked, "rosa", code=2)[1]
    assert "not in the study" in terminal.group("policy", *asked, "ross", code=2)[1]
    store.alignments.set_alignment("a" * 32, 1000, "b" * 64)
    store.close()
    found, out = terminal.group("policy", *asked, "rosa")
    assert found["population"] == 1000
    assert "sex: held" in out


def test_another_curator_s_name_is_refused(terminal: Terminal) -> None:
    terminal.store().close()
    code, _, err = terminal.run("requests", name="mallory")
    assert code == 2
    assert "no curator 'mallory'" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--workers", "-1"), "--workers"),
        (("--workers", "many"), "--workers"),
        (("--dask", "tls://localhost:1"), "a cluster's workers need a folder that this process sees too"),
        (("--shared", "."), "there is no cluster to share a folder with"),
        (("--dask", "tls://localhost:1", "--shared", "nowhere"), "this is no folder"),
        (("--dask", "tls://localhost:1", "--shared", ".", "--workers", "2"), "has its own workers"),
        (("--dask-identity", "."), "there is no cluster"),
    ],
)
def test_what_cannot_compute_is_refused_before_anything_is_read(
    terminal: Terminal, options: tuple[str, ...], said: str
) -> None:
    code, _, error = terminal.run("serve", "--identity", "nowhere", "--table", "nowhere.csv", *options)
    assert code == 2
    assert said in error
    assert not (terminal.folder / "state" / "run").exists()
