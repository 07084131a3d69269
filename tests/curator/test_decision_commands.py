"""What a curator's commands decide, and what they refuse."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from tests.conftest import reserve
from tests.curator.made_curators import (  # noqa: F401 - fixtures
    ID,
    OFFICER_COMMANDS,
    OTHER,
    WHY,
    Make,
    Terminal,
    charge,
    held,
    terminal_fixture,
    verdicts,
)
from veiltab.common.errors import IntegrityError
from veiltab.common.release.state import ReleaseState
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.progress.progress import APPROVED, DENIED, HELD


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
    assert ("the person's name has no letters" if command[0] == "console" else "--person: the name is empty") in err
    assert verdicts(terminal) == {"sex": (HELD, "policy")}


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
    assert not ledger.chain.is_reserved(ID)
    with pytest.raises(IntegrityError, match="nothing is reserved"):
        ledger.charge(ID)
    assert terminal.run("deny", "--release", ID, *WHY)[0] == 2
    store.close()


def test_the_tosses_that_a_curator_aborted_are_cleared(terminal: Terminal, make_request: Make) -> None:
    store = terminal.store()
    store.releases.add(make_request(), 1)
    store.coins.add_aborted(ID, "curator bob", "why")
    assert terminal.json("repair", "tosses", "bob") == {"peer": "bob", "cleared": 1}
    assert terminal.json("repair", "tosses", "bob") == {"peer": "bob", "cleared": 0}
    assert not store.coins.aborted()
    store.close()
    assert terminal.run("repair", "tosses", "zoe")[0] == 2


def test_joins_of_a_curator_are_allowed_again(terminal: Terminal) -> None:
    store = terminal.store()
    store.joins.begin("a" * 32, "bob", "version", bytes(16))
    store.joins.enter("a" * 32, "bob", "session", bytes(32), b"part")
    store.joins.fail("a" * 32, "bob")
    assert store.joins.failed_with() == ("bob",)
    assert terminal.json("repair", "alignment", "bob") == {"peer": "bob", "began": 1}
    assert terminal.json("repair", "alignment", "bob") == {"peer": "bob", "began": 0}
    assert store.joins.failed_with() == ()
    own = store.joins.session("a" * 32, "bob")
    assert own is not None
    assert own.part != bytes(16)
    assert (own.name, own.secret, own.failed) == ("", b"", "")
    store.close()
    assert terminal.run("repair", "alignment", "zoe")[0] == 2


def test_a_ledger_that_another_party_has_seen_longer_is_listed_and_set_aside(terminal: Terminal) -> None:
    store = terminal.store()
    ledger, seen = Ledger(store.connection, Decimal(1)), (7, b"h" * 32)
    for _ in range(2):
        with pytest.raises(IntegrityError, match="the ledger lacks entries that curator bob has seen"):
            ledger.chain.verify_against(seen, "curator bob")
    lacking = {"who": "curator bob", "entries": 7, "head": "68" * 32, "set_aside": False}
    assert terminal.json("repair") == {"entries": 0, "remembered": {"bob": 0}, "lacking": [lacking]}
    assert "Curator bob has seen a ledger of 7 entries here" in terminal.run("repair")[1]
    assert terminal.run("repair", "ledger", "carol", "--person", "Ana Diaz")[0] == 2
    said = terminal.json("repair", "ledger", "bob", "--person", "Ana Diaz")
    assert said["lacking"] == [lacking | {"set_aside": True}]
    ledger.chain.verify_against(seen, "curator bob")
    *_, last = store.audit.entries()
    assert (last.event, last.person, last.facts["witness"]) == ("witness set aside", "Ana Diaz", "curator bob")
    with pytest.raises(IntegrityError, match="has seen"):  # another one counts anew, and so does another party
        ledger.chain.verify_against((8, b"h" * 32), "curator bob")
    with pytest.raises(IntegrityError, match="server cloud has seen"):
        ledger.chain.verify_against(seen, "server cloud")
    store.close()


def test_a_release_that_is_charged_is_not_denied(terminal: Terminal, make_request: Make, make_spec: Make) -> None:
    store = terminal.store()
    store.releases.add(make_request(), 1)
    store.releases.set_state(ID, ReleaseState.PLANNED)  # a crash came between the charge and the next state
    store.close()
    charge(terminal, make_spec, ID)
    code, _, err = terminal.run("deny", "--release", ID, *WHY)
    assert (code, "the release is planned and charged" in err) == (2, True)
