"""What a curator's commands decide, and what they refuse."""

import time
from decimal import Decimal
from unittest.mock import Mock

import pytest

from tests.conftest import request_with, reserve, spec_with
from tests.curator.made_curators import (  # noqa: F401 - fixtures
    ID,
    OFFICER_COMMANDS,
    OTHER,
    WHY,
    Terminal,
    terminal_fixture,
)
from veiltab.common.errors import IntegrityError
from veiltab.common.release.state import ReleaseState
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.progress.progress import APPROVED, DENIED, HELD


def test_approve_decides_one_and_deny_all_that_is_left(terminal: Terminal) -> None:
    terminal.hold(request_with(), "sex", "age")
    code, out, _ = terminal.run("approve", "--release", ID, "--attribute", "age", "--expires-days", "2")
    assert (code, out) == (0, "Approved: age\n")
    assert terminal.json("deny", "--release", ID, *WHY) == {"release": ID, "denied": ["sex"]}
    assert terminal.verdicts() == {"age": (APPROVED, "person"), "sex": (DENIED, "person")}
    with terminal.store() as store:
        expiries = {one.attribute: one.expires for one in store.decisions.decisions(ID)}
    assert expiries["sex"] is None
    assert abs((expiries["age"] or 0) - time.time() - 2 * 86_400) < 60


def test_a_key_is_granted_for_no_longer_than_a_calendar_has(terminal: Terminal) -> None:
    terminal.hold(request_with(), "sex")
    for days in ("36501", "10000000", "9" * 20):
        code, _, err = terminal.run("approve", "--release", ID, "--expires-days", days)
        assert (code, "1<=x<=36500" in err) == (2, True), days
    assert terminal.json("approve", "--release", ID, "--expires-days", "36500")["approved"] == ["sex"]
    (found,) = terminal.json("requests")["requests"]
    assert found["decisions"][0]["expires"] > "2100"


def test_two_persons_approve_all_that_waits(terminal: Terminal) -> None:
    terminal.hold(request_with(), "sex")
    terminal.hold(request_with(release_id=OTHER), "sex", "age")
    policy = terminal.folder / "policy.toml"
    policy.write_text("persons = 2")
    of_two = ("approve", "--policy", str(policy), "--all", "--person")
    first = terminal.json(*of_two, "Ana Diaz")["releases"]
    assert [(one["approved"], one["missing"]) for one in first] == [([], {"sex": 1}), ([], {"age": 1, "sex": 1})]
    code, out, err = terminal.run(*of_two, "ana diaz")
    assert (code, out) == (4, "")
    assert "ana diaz has approved all that waits. Another person must approve it as well." in err
    code, out, _ = terminal.run(*of_two, "Ben Ode")
    assert (code, out) == (0, f"{ID}  Approved: sex\n{OTHER}  Approved: age, sex\n")


@pytest.mark.parametrize("command", [one for one in OFFICER_COMMANDS if "--person" in one], ids=lambda one: one[0])
@pytest.mark.parametrize("name", ["", " \t"])
def test_an_empty_name_is_not_the_login_name(terminal: Terminal, command: tuple[str, ...], name: str) -> None:
    terminal.hold(request_with(), "sex")
    code, out, err = terminal.run(*(name if one == "Ana Diaz" else one for one in command))
    assert (code, out) == (2, "")
    assert ("the person's name has no letters" if command[0] == "console" else "--person: the name is empty") in err
    assert terminal.verdicts() == {"sex": (HELD, "policy")}


@pytest.mark.parametrize("choice", [(), ("--all", "--release", ID), ("--all", "--attribute", "sex")])
def test_either_one_request_is_approved_or_all(terminal: Terminal, choice: tuple[str, ...]) -> None:
    terminal.hold(request_with(), "sex")
    assert terminal.run("approve", *choice)[0] == 2
    assert terminal.verdicts() == {"sex": (HELD, "policy")}


def test_who_decides_is_the_login_name_or_said(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal.hold(request_with(attributes=("sex", "age")), "sex", "age")
    monkeypatch.setattr("getpass.getuser", lambda: "bode")
    assert terminal.run("approve", "--release", ID, "--attribute", "age,")[0] == 2
    assert terminal.run("approve", "--release", ID, "--attribute", "age")[0] == 0
    assert terminal.run("deny", "--release", ID, "--person", "Ana Diaz", "--reason", "too much")[0] == 0
    shown = {one["attribute"]: one for one in terminal.json("requests")["requests"][0]["decisions"]}
    assert (shown["age"]["person"], shown["age"]["reason"]) == ("bode", "")
    assert (shown["sex"]["person"], shown["sex"]["reason"]) == ("Ana Diaz", "too much")
    assert "sex denied; by Ana Diaz: too much" in terminal.run("requests", "--all")[1]

    monkeypatch.setattr("getpass.getuser", Mock(side_effect=OSError))
    assert "Say it by --person" in terminal.run("deny", "--release", ID, *WHY)[2]


def test_the_beginning_of_an_id_is_enough_if_it_is_the_only_one(terminal: Terminal) -> None:
    third = "1" + "0" * 31
    for release_id in (ID, OTHER, third):
        terminal.hold(request_with(release_id=release_id), "sex")
    assert terminal.json("deny", "--release", " 1", *WHY)["release"] == third
    code, _, err = terminal.run("approve", "--release", "00")
    assert (code, f"2 releases begin so: {ID} (rosa), {OTHER} (rosa)" in err) == (2, True)
    for unknown in ("", "2", "%"):
        said = terminal.run("approve", "--release", unknown)[2]
        assert "no such release here. `veiltab curator requests` lists what has arrived here" in said
    assert terminal.verdicts() == {"sex": (HELD, "policy")}


@pytest.mark.parametrize("state", [ReleaseState.REQUESTED, ReleaseState.APPROVED, ReleaseState.PLANNED])
def test_a_request_is_denied_in_every_state_before_the_charge(terminal: Terminal, state: ReleaseState) -> None:
    with terminal.store() as store:
        store.releases.add(request_with(), 1)
        store.releases.set_state(ID, state)
        ledger = Ledger(store.connection, Decimal(1))
        reserve(ledger, spec_with())
        assert terminal.json("deny", "--release", ID, *WHY) == {"release": ID, "denied": []}
        stored = store.releases.release(ID)
        assert (stored.state, stored.failure) == (ReleaseState.DENIED, "a person denied the request")
        assert not ledger.chain.standing(ID)[0]


def test_the_tosses_that_a_curator_aborted_are_cleared(terminal: Terminal) -> None:
    with terminal.store() as store:
        store.releases.add(request_with(), 1)
        store.coins.add_aborted(ID, "curator bob", "why")
        for cleared in (1, 0):
            assert terminal.json("repair", "tosses", "bob") == {"peer": "bob", "cleared": cleared}
        assert not store.coins.aborted()
    assert terminal.run("repair", "tosses", "zoe")[0] == 2


def test_joins_of_a_curator_are_allowed_again(terminal: Terminal) -> None:
    with terminal.store() as store:
        store.joins.begin("a" * 32, "bob", "version", bytes(16))
        store.joins.enter("a" * 32, "bob", "session", bytes(32))
        assert store.joins.count("bob", b"part", 3)
        store.joins.fail("a" * 32, "bob")
        for began in (1, 0):
            assert terminal.json("repair", "alignment", "bob") == {"peer": "bob", "began": began}
        assert store.joins.failed_with() == ()
        own = store.joins.session("a" * 32, "bob")
    assert own is not None
    assert own.part != bytes(16)
    assert (own.name, own.secret, own.failed) == ("", b"", "")
    assert terminal.run("repair", "alignment", "zoe")[0] == 2


def test_a_ledger_that_another_party_has_seen_longer_is_listed_and_set_aside(terminal: Terminal) -> None:
    with terminal.store() as store:
        chain, seen = Ledger(store.connection, Decimal(1)).chain, (7, b"h" * 32)
        for _ in range(2):
            with pytest.raises(IntegrityError, match="the ledger lacks entries that curator bob has seen"):
                chain.verify_against(seen, "curator bob")
        lacking = {"who": "curator bob", "entries": 7, "head": "68" * 32, "set_aside": False}
        assert terminal.json("repair") == {"entries": 0, "remembered": {"bob": 0}, "lacking": [lacking]}
        assert "Curator bob has seen a ledger of 7 entries here" in terminal.run("repair")[1]
        assert terminal.run("repair", "ledger", "carol", "--person", "Ana Diaz")[0] == 2
        said = terminal.json("repair", "ledger", "bob", "--person", "Ana Diaz")
        assert said["lacking"] == [lacking | {"set_aside": True}]
        chain.verify_against(seen, "curator bob")
        *_, last = store.audit.entries()
        assert (last.event, last.person, last.facts["witness"]) == ("witness set aside", "Ana Diaz", "curator bob")
        # Another length counts anew, and so does another party.
        for length, party in ((8, "curator bob"), (7, "server cloud")):
            with pytest.raises(IntegrityError, match=f"{party} has seen"):
                chain.verify_against((length, b"h" * 32), party)


def test_a_release_that_is_charged_is_not_denied(terminal: Terminal) -> None:
    with terminal.store() as store:
        store.releases.add(request_with(), 1)
        store.releases.set_state(ID, ReleaseState.PLANNED)  # a crash came between the charge and the next state
    terminal.charge(ID)
    code, _, err = terminal.run("deny", "--release", ID, *WHY)
    assert (code, "the release is planned and charged" in err) == (2, True)
