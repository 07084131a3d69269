"""What a curator's commands show of ledger, log, policy and table."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import request_with, spec_with
from tests.curator.made_curators import (  # noqa: F401 - fixtures
    ID,
    OFFICER_COMMANDS,
    OTHER,
    WHY,
    Terminal,
    terminal_fixture,
)
from tests.curator.made_records import charge
from veiltab.common.errors import ConflictError
from veiltab.common.privacy.cards.card import N_IS_EXACT
from veiltab.common.privacy.planning.planning import plan_release
from veiltab.common.release.guarantees import epsilon_card
from veiltab.common.study.file import load_study
from veiltab.curator.budget.entries import percent
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.officer.policy import load_policy
from veiltab.curator.progress.progress import HELD
from veiltab.curator.records.served_files import ServedTable


def test_the_ledger_shows_every_charge_and_what_each_coalition_faces_of_all(terminal: Terminal) -> None:
    terminal.charge(ID, OTHER)
    found, out = terminal.json("ledger"), terminal.run("ledger")[1]
    assert (found["budget"], found["spent"], found["remaining"]) == (1.0, 0.2, 0.8)
    assert [(entry["number"], entry["release"]) for entry in found["entries"]] == [(1, ID), (2, OTHER)]
    assert found["entries"][0]["tables"][0]["relation"] == "substitution"
    assert "Spent 0.200000 of 1; 0.800000 left. The chain is whole.\nSpent so far, if all was planned before" in out
    faced = {tuple(bound["coalition"]): bound["epsilon"] for bound in found["card"]}
    (one,) = (b for b in epsilon_card(spec_with()).bounds if b.roles == ("desk", "curators"))
    assert one.epsilon is not None
    assert faced["desk", "curators"] == pytest.approx(2 * float(one.epsilon))
    assert 0 < faced["desk",] <= 0.2
    assert "desk with curators: epsilon " in out
    assert N_IS_EXACT in out
    # The second look uses the prices of the first.
    with terminal.store() as store:
        store.connection.execute("UPDATE view_price SET mu = '0'")
    (desk,) = (bound for bound in terminal.json("ledger")["card"] if bound["coalition"] == ["desk"])
    assert desk["epsilon"] == 0


def test_the_audit_log_is_listed_and_checked(terminal: Terminal) -> None:
    terminal.hold(request_with(), "sex")
    terminal.hold(request_with(release_id=OTHER), "sex")
    terminal.run("approve", "--release", ID, "--person", "Ana Díaz", "--reason", "as agreed")
    terminal.run("deny", "--release", OTHER, "--person", "Ben Ode", *WHY)
    terminal.charge(ID)
    with terminal.store() as store:
        store.keys.record_key_given(ID, "sex", "rosa")
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


def test_a_ledger_that_was_altered_is_refused_by_every_command(terminal: Terminal) -> None:
    terminal.charge(ID, OTHER)
    with terminal.store() as store:
        store.connection.execute("UPDATE ledger SET epsilon = '0.01' WHERE number = 1")
    for command in ("ledger", "requests"):
        assert terminal.json(command, code=5)["error"]["reason"] == "INTEGRITY"


def test_the_budget_is_that_of_the_policy_that_is_served_or_given(terminal: Terminal) -> None:
    terminal.charge(ID)
    policy = terminal.folder / "policy.toml"
    for text, budget in (("budget = 0.5", 0.5), ("budget = 2", 1.0)):
        policy.write_text(text)
        found = terminal.json("ledger", "--policy", str(policy))
        assert (found["budget"], found["policy"]) == (budget, str(policy))
    policy.write_text("budget = x")
    assert terminal.run("ledger", "--policy", str(policy))[0] == 2
    with terminal.store() as store:
        store.served.set_served_policy(Path("rules.toml"), 2, Decimal("0.4"))
    found = terminal.json("ledger")
    assert (found["budget"], found["policy"]) == (0.4, str(Path("rules.toml").absolute()))
    assert found["entries"][0]["share"] == 0.25


def test_a_policy_that_was_edited_since_it_is_served_is_noticed(terminal: Terminal) -> None:
    path = terminal.folder / "policy.toml"
    path.write_text("budget = 0.5\n")
    policy = load_policy(path, researchers=[], attributes=[])
    with terminal.store() as store:
        store.served.set_served_policy(path, 0, policy.budget, policy.persons, policy.digest)
    assert terminal.run("requests")[2] == ""
    path.write_text("budget = 0.6\n")
    code, out, err = terminal.run("requests")
    assert (code, "Budget 0.5" in out) == (0, True)
    assert f"{path} was edited since the running curator read it. Send the curator SIGHUP to" in err
    path.unlink()
    assert "cannot be read any more" in terminal.run("ledger")[2]


@pytest.mark.parametrize("command", OFFICER_COMMANDS, ids=lambda command: command[0])
def test_another_study_file_than_is_served_is_refused(terminal: Terminal, command: tuple[str, ...]) -> None:
    study = load_study(terminal.study)
    terminal.hold(request_with(), "sex")
    with terminal.store() as store:
        store.served.set_served_study(study)
    terminal.study.write_bytes(study.source.replace(b"[budget]\nepsilon = 1\n", b"[budget]\nepsilon = 50\n"))
    code, out, err = terminal.run(*command)
    assert (code, out) == (ConflictError.exit_code, "")
    assert "the curator serves another study file: this one gives another budget epsilon. Give the file" in err
    assert terminal.verdicts() == {"sex": (HELD, "policy")}


def test_a_new_version_of_the_study_counts_once_it_is_served(terminal: Terminal) -> None:
    study = load_study(terminal.study)
    with terminal.store() as store:
        store.served.set_served_study(study)
        terminal.study.write_bytes(study.source + b"# a remark\n")
        assert "differs in comments, spacing or spelling alone" in terminal.run("requests")[2]
        store.served.set_served_study(load_study(terminal.study))
    assert terminal.run("requests")[0] == 0
    terminal.study.write_bytes(study.source)
    assert terminal.run("requests")[0] == ConflictError.exit_code


def test_a_table_that_was_changed_since_it_is_served_is_noticed(terminal: Terminal) -> None:
    table = terminal.folder / "alice.csv"
    table.write_text("id,sex,age\n1,f,young\n")
    with terminal.store() as store:
        store.served.set_served_table(ServedTable.of(table), 1, "ab")
        assert terminal.run("requests")[2] == ""
        table.write_text("id,sex,age\n1,f,young\n2,m,old\n")
        for expected, command in ((0, ("requests",)), (4, ("approve", "--all", "--person", "Ana Diaz"))):
            code, _, err = terminal.run(*command)
            assert (code, f"{table} was changed since the running curator read it" in err) == (expected, True)
        table.unlink()
        assert f"{table} cannot be read any more" in terminal.run("requests")[2]
        store.served.set_served_table(None, 2, "cd")
        assert terminal.run("requests")[2] == ""
        found = [(one.event, one.facts) for one in store.audit.entries()]
    assert found == [("table loaded", {"rows": 1, "version": "ab"}), ("table loaded", {"rows": 2, "version": "cd"})]


def test_a_charge_at_a_delta_shows_what_was_asked_for(terminal: Terminal) -> None:
    text = terminal.study.read_bytes()
    terminal.study.write_bytes(text.replace(b"[budget]\nepsilon = 1\n", b"[budget]\nepsilon = 1\ndelta = 1e-6\n"))
    plan = plan_release(population=1000, cells=4, epsilon=Decimal("0.3"), delta=Decimal("1e-7"), noise_split=Decimal(0))
    replacement = plan.mechanism.server_replacement
    spec = spec_with(sample=1000, server_replacement=replacement, epsilon=plan.epsilon, delta=plan.delta)
    with terminal.store() as store:
        ledger = Ledger(store.connection, Decimal(1), Decimal("1e-6"))
        charge(ledger, spec)
        (entry,) = ledger.chain.entries
    found = terminal.json("ledger")
    (shown,) = found["entries"]
    assert (shown["researcher"], shown["attributes"]) == ("rosa", ["sex", "salary"])
    assert (shown["epsilon"], shown["delta"], shown["share"]) == (0.3, "1E-7", float(entry.share))
    assert shown["pure_epsilon"] > 0.3
    assert found["share"] == shown["share"]
    assert datetime.fromisoformat(shown["time"]) <= datetime.now(UTC)
    assert (found["remaining_delta"], found["remaining_cells"]) == (1e-6, 4)
    (desk,) = (bound for bound in found["card"] if bound["coalition"] == ["desk"])
    assert (desk["epsilon"], desk["delta"]) == (found["spent"], float(found["delta"]))
    assert (found["gdp"]["mu"], found["gdp"]["delta"]) == (shown["mu"], shown["slack"])
    assert found["zcdp"]["rho"] == pytest.approx(found["gdp"]["mu"] ** 2 / 2)
    out = terminal.run("ledger")[1]
    for said in (
        f"epsilon 0.300000 at delta 1e-7  charge {percent(entry.share)}",
        f"{percent(entry.share)} of the budget of 1; one more release may have epsilon 0.9",
        f"Spent epsilon {found['spent']:.6f}"[:-2],
        "those charged, spent and left do not add up",
    ):
        assert said in out
    assert "those charged, spent and left do not add up" in terminal.run("requests")[1]


POLICY = """
[[rule]]
researcher = "rosa"
attributes = "sex"
maximum_charge = 0.2
decision = "approve"
"""


def test_a_policy_is_tried_on_a_request_that_nobody_has_put(terminal: Terminal) -> None:
    rules = terminal.folder / "rules.toml"
    rules.write_text(POLICY)

    def tried(*options: str) -> tuple[Any, str]:
        asked = ("--researcher", "rosa", "--attributes", "sex,salary", "--population", "1000")
        return terminal.group("policy", "test", "--policy", str(rules), *asked, "--epsilon", *options)

    with terminal.store():
        found, out = tried("0.1")
    assert found["verdicts"] == {"sex": {"verdict": "approved", "rule": 1}}
    assert (found["charge"], found["remaining"], found["remaining_after"]) == (0.1, 1.0, 0.9)
    assert "sex: approved, by rule 1" in out
    assert "Charge: 10.00% of the budget, for 1000 respondents." in out
    found, out = tried("0.5")
    assert found["verdicts"] == {"sex": {"verdict": "held", "rule": None}}
    assert "sex: held, as no rule matches" in out
    found, out = tried("0.1", "--delta", "0.01")
    assert (found["verdicts"], "is above 1/n = 0.001" in found["refusal"]) == ({}, True)
    assert "The request is refused: " in out
    assert "The budget does not hold it: " in tried("1.5")[1]


def test_a_policy_is_not_tried_without_a_population_or_on_a_stranger(terminal: Terminal) -> None:
    asked = ("test", "--epsilon", "0.1", "--attributes", "sex", "--researcher")
    with terminal.store():
        assert "--population" in terminal.group("policy", *asked, "rosa", code=2)[1]
    assert "no researcher 'ross'. Did" in terminal.group("policy", *asked, "ross", "--population", "9", code=2)[1]
    terminal.align()
    assert terminal.group("policy", *asked, "rosa")[0]["population"] == 1000
