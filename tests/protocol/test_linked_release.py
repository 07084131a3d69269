"""Releases of several tables from the request to the estimate, over real processes."""

from pathlib import Path

import pytest

from tests.protocol.test_desk import OTHER_ANSWER
from tests.protocol.world import ANA, BOB, CLOUD, PACE, ROSA, Answer, World, launcher
from veiltab.common.errors import FailedReleaseError, InvalidInputError
from veiltab.common.release.state import ReleaseState
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
    made = command(village, "certificate", "--release", label, "--out", certificate)
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


@pytest.mark.long
@pytest.mark.parametrize(
    "point",
    [
        "veiltab.researcher.records.store:ResearcherStore.record_tables:1",
        "veiltab.researcher.records.store:ResearcherStore.record_tables:1:after",
        "veiltab.researcher.receiving.receiving:Receiver.receive:2:after",
        "veiltab.researcher.records.store:ResearcherStore.record_choice:1",
        "veiltab.researcher.records.store:ResearcherStore.record_choice:1:after",
        "veiltab.researcher.parties.parties:PartyLinks.choose_tables:2",
        "veiltab.researcher.parties.parties:PartyLinks.choose_tables:2:after",
        "veiltab.researcher.receiving.receiving:Receiver.receive:5",
    ],
)
def test_a_desk_that_is_killed_goes_on_where_it_was(mortal: World, point: str) -> None:
    mortal.restart(ROSA, how=launcher(PACE, point))
    label = mortal.label()
    asked = linked(mortal, *THREE, label=label)
    mortal.wait_for_kill(ROSA)
    mortal.start(ROSA)
    with mortal.client() as client:
        release = client.release(label)
        status = release.wait(60)
        assert [len(tables) for tables in phases(status)] == [3, 3]
        assert len(release.measurements()) == 6
    for curator in ("alice", "bob"):
        assert mortal.charges(curator).count(asked.id) == 1


@pytest.mark.long
def test_a_table_that_fails_ends_the_release_and_the_others(mortal: World) -> None:
    mortal.restart(CLOUD, how=OTHER_ANSWER)
    try:
        asked = linked(mortal, *THREE, label=mortal.label())
        with mortal.client() as client:
            release = client.release(asked.id)
            with pytest.raises(FailedReleaseError, match=r"table \w+, \w+: .* served another column of income"):
                release.wait(40)
            with pytest.raises(FailedReleaseError, match="served another column of income"):
                release.measurements()
            assert ReleaseState.FAILED in {one.state for one in release.tables()}
            assert all(one.state.finished for one in release.tables())
    finally:
        mortal.restart(CLOUD)
