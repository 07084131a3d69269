"""Releases of several tables from the request to the estimate, over real processes."""

from pathlib import Path

import pytest

from tests.protocol.world import ALICE, ANA, BOB, CLOUD, PACE, ROSA, Answer, Who, World, launcher
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.client.release import Release
from veiltab.researcher.status.release_status import Status, TableStatus

THREE = ("region", "income", "smoker")
PAIRS = (("region", "income"), ("region", "smoker"), ("income", "smoker"))
DELTA = "1e-6"


def command(world: World, verb: str, *options: str | Path, analyst: bool = False, as_json: bool = True) -> Answer:
    """Run `veiltab researcher` as Rosa or her analyst."""
    who = ANA if analyst else ROSA
    own = ("--identity", world.local.identity_folder(*who))
    return world.command("researcher", verb, world.local.study_path, *own, *options, as_json=as_json)


def linked(world: World, *names: str, label: str, **choices: object) -> Release:
    """Ask for a linked release."""
    with world.client() as client:
        return client.request(names, workload="linked", epsilon=4, delta=DELTA, label=label, canaries=20, **choices)  # type: ignore[arg-type]


def standing(world: World, label: str) -> Status:
    """Return how a release stands."""
    with world.client() as client:
        return client.status(label)


def phases(status: Status) -> list[list[TableStatus]]:
    """Return the tables of each phase."""
    return [[one for one in status.tables if one.phase == phase] for phase in (1, 2)]


@pytest.fixture(scope="module")
def label(village: World) -> str:
    """A linked release of Rosa's that is ready."""
    label = village.label()
    asked = command(
        village,
        "request",
        *("--attributes", ",".join(THREE), "--workload", "linked", "--epsilon", "4", "--delta", DELTA),
        *("--advanced", "canaries=20", "--label", label, "--wait", "--timeout", "60"),
    )
    assert asked.code == 0, asked.errors
    assert "phase 2: 3 of 3 tables ready" in asked.errors
    assert [(one["phase"], tuple(one["attributes"])) for one in asked.data["tables"]] == [
        (phase, pair) for phase in (1, 2) for pair in PAIRS
    ]
    return label


def test_a_linked_release_measures_every_pair_and_pools_what_ran_twice(village: World, label: str) -> None:
    with village.client() as client:
        release = client.release(label)
        status, measured = release.status(), release.measurements()
        assert [(one.number, one.names) for one in measured] == [(n, PAIRS[n % 3]) for n in range(6)]
        assert all(one.counts.sum() == 1500 == one.design.sample for one in measured)
        assert len({one.release_id for one in release.tables()}) == 6
        assert status.description().several
        assert status.bytes["server cloud -> researcher rosa"] == 6 * 2 * 1520
        pair = release.estimate(["income", "region"])
        truth = village.people.counts(("region", "income")).reshape(3, 3).T.reshape(-1) / 1500
        assert abs(pair.raw - truth).max() < 6 * pair.se.max()
        both = release.estimate(["region", "smoker"]).marginal(["region"])
        assert release.estimate(["region"]).se.max() < both.se.max()
        with pytest.raises(InvalidInputError, match=r"a release of 6 tables.*Name the attributes of one"):
            release.estimate()
        with pytest.raises(InvalidInputError, match="this is a release of several tables"):
            client.histogram(release.id)
    for curator in ("alice", "bob"):
        assert village.charges(curator).count(status.release_id) == 1
        assert not set(village.charges(curator)) & {one.release_id for one in status.tables}


def test_one_file_proves_all_its_tables_and_an_owner_takes_it_as_evidence(
    village: World, label: str, tmp_path: Path
) -> None:
    certificate, evidence = tmp_path / "linked.certificate", tmp_path / "evidence.zip"
    made = command(village, "report", "--release", label, "--out", certificate)
    assert made.code == 0, made.errors
    identity, study = village.local.identity_folder(*BOB), village.local.study_path
    checked = ("--study", study, "--authority", identity / "ca.pem")
    assert village.command("verify", certificate, *checked).code == 4, "20 canaries a table are too few"
    found = village.command("verify", certificate, *checked, "--untested")
    assert (found.code, found.data["holds"]) == (0, True), found.data
    assert [one["what"] for one in found.data["findings"] if one["what"].startswith("table ")]
    shown = village.command("verify", certificate, *checked, "--untested", as_json=False).text
    assert shown.startswith(f"Every line holds. Release {standing(village, label).release_id}, 6 tables together, ")
    given = map(str, ("--identity", identity, "--out", evidence, "--certificate", certificate, "--person", "Ana Diaz"))
    exported = village.curator_command("evidence", "bob", *given)
    assert exported.code == 0, exported.errors
    found = village.command("verify", evidence, *checked)
    # Other tests of this world write into its database, which the line of the decisions says.
    assert [one for one in found.data["findings"] if not one["holds"] and one["what"] != "decisions"] == []
    assert any(one["what"] == "certificates" for one in found.data["findings"])


_TABLES, _DESK = (
    "veiltab.curator.records.release_tables:ReleaseTables",
    "veiltab.researcher.records.store:ResearcherStore",
)
_RECEIVE = "veiltab.researcher.receiving.receiving:Receiver.receive"


@pytest.mark.long
@pytest.mark.parametrize(
    ("who", "point"),
    [
        (ROSA, f"{_DESK}.record_tables:1"),
        (ROSA, f"{_DESK}.record_tables:1:after"),
        (ROSA, f"{_RECEIVE}:2:after"),
        (ROSA, f"{_DESK}.record_choice:1"),
        (ROSA, f"{_DESK}.record_choice:1:after"),
        (ROSA, "veiltab.researcher.parties.parties:PartyLinks.choose_tables:2"),
        (ROSA, "veiltab.researcher.parties.parties:PartyLinks.choose_tables:2:after"),
        (ROSA, f"{_RECEIVE}:5"),
        (ALICE, "veiltab.curator.budget.ledger:Ledger.charge:1:after"),
        (ALICE, f"{_TABLES}.open_tables:1"),
        (BOB, f"{_TABLES}.open_tables:1:after"),
        (ALICE, f"{_TABLES}.choose_tables:1"),
        (BOB, f"{_TABLES}.choose_tables:1:after"),
        (BOB, "veiltab.curator.records.releases:Releases.set_planned:1"),
        (ALICE, "veiltab.curator.records.keys:Keys.spend_keys:3:after"),
        (BOB, "veiltab.curator.records.server_tests:ServerTests.set_receipt:2:after"),
        (CLOUD, "veiltab.server.records.store:ServerStore.publish:2:after"),
    ],
)
def test_a_party_that_is_killed_goes_on_with_the_tables(mortal: World, who: Who, point: str) -> None:
    mortal.restart(who, how=launcher(PACE, point))
    label = mortal.label()
    asked = linked(mortal, *THREE, label=label)
    mortal.wait_for_kill(who)
    mortal.start(who)
    with mortal.client() as client:
        release = client.release(label)
        status = release.wait(60)
        assert [len(tables) for tables in phases(status)] == [3, 3]
        assert len(release.measurements()) == 6
    for curator in ("alice", "bob"):
        assert mortal.charges(curator).count(asked.id) == 1
