"""The console's pages of ledger, policy, table, log and evidence."""

import re
from decimal import Decimal
from itertools import combinations
from pathlib import Path

import pytest

from tests.common.web.browser import enter
from tests.conftest import request_with, spec_with
from tests.curator.audit.exported_evidence import PEM, identity
from tests.curator.console.console_seat import (  # noqa: F401 - fixtures
    ANA,
    ID,
    Office,
    application_of,
    office_fixture,
)
from tests.curator.made_records import charge, decide, hold
from tests.worlds.parties import ALICE
from tests.worlds.states import curator_state
from veiltab.common.errors import VeiltabError
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.storage.database import transaction
from veiltab.curator.audit.log import Event
from veiltab.curator.cli import curator
from veiltab.curator.console.pages.budget_page import Point, months_of, points_of, thinned
from veiltab.curator.console.paging import span_of
from veiltab.curator.console.state_reader import StateReader
from veiltab.curator.console.words import badge_of_state, nats
from veiltab.curator.evidence.check import check_evidence
from veiltab.curator.officer.open_state import open_state
from veiltab.curator.officer.policy import policy_of
from veiltab.curator.progress.progress import APPROVED, HELD


def release(office: Office, count: int) -> None:
    """Charge some releases, which end well."""
    store = office.own_state.store
    for number in range(count):
        release_id = f"{number + 16:032x}"
        store.releases.add(request_with(release_id=release_id), 1_700_000_000 + number)
        decide(store, APPROVED, release_id=release_id)
        charge(office.own_state.ledger, spec_with(release_id=release_id, epsilon=Decimal("0.001")))
        store.releases.set_state(release_id, ReleaseState.READY)


def test_the_ledger_is_shown_a_page_at_a_time_newest_first(office: Office) -> None:
    ana = office.enter(ANA)
    release(office, 51)
    shown = [
        re.findall(r'data-label="Entry">(\d+)</th>', ana.get(f"/ledger?page={page}").text) for page in ("1", "2", "9")
    ]
    assert shown == [[str(number) for number in range(51, 1, -1)], ["1"], ["1"]]
    for page in ("0", "-1", "x", "1e3", "9" * 20, "%C2%B2"):
        assert ana.get(f"/ledger?page={page}").status == 400


def test_the_ledger_is_checked_after_each_charge(office: Office) -> None:
    ana = office.enter(ANA)
    release(office, 2)
    assert "it is whole" in ana.get("/ledger").text
    office.own_state.store.connection.execute("UPDATE ledger SET epsilon = '0.0001' WHERE number = 1")
    charge(office.own_state.ledger, spec_with(release_id="e" * 32, epsilon=Decimal("0.001")))
    page = ana.get("/ledger")
    assert page.status == 500
    assert "altered at entry 1" in page.text


def test_charges_of_the_running_service_are_read_as_they_come(office: Office) -> None:
    assert office.books.entries() == ()
    release(office, 2)
    assert [entry.number for entry in office.books.entries()] == [1, 2]
    assert office.books.entries() == office.own_state.ledger.chain.entries


def test_the_budget_adds_up(office: Office) -> None:
    release(office, 3)
    entries = office.books.entries()
    points = points_of(entries)
    assert [point.share for point in points] == [sum(e.share for e in entries[: n + 1]) for n in range(3)]
    (month,) = months_of(entries)
    assert (month.releases, month.share, month.total) == (3, points[-1].share, points[-1].share)


def test_points_are_thinned_to_the_last() -> None:
    points = [Point(time=number, share=Decimal(0)) for number in range(1001)]
    thin = thinned(points)
    assert len(thin) <= 201
    assert thin[-1] == points[-1]
    assert thinned([]) == []


def test_what_is_tried_is_a_request_and_a_policy_that_was_edited_is_said_to_be(office: Office) -> None:
    policy = office.folder / "policy.toml"
    policy.write_text('persons = 2\n[[rule]]\nattributes = ["sex"]\nmaximum_epsilon = 0.5\ndecision = "approve"\n')
    served = office.own_state.store.served
    served.set_served_policy(policy, 1, None, persons=2)
    with open_state(office.folder / "study.toml", office.folder / "state", None) as own_state:
        ana = enter(application_of(own_state, StateReader(own_state, office.folder / "study.toml")), ANA)
        assert "The file has changed" not in ana.get("/policy").text
        for wrong in ("epsilon=x", "epsilon=0.3&population=x", "epsilon=0.3&researcher=nobody", "epsilon=0.3&delta=2"):
            assert 'class="problem" role="alert"' in ana.get(f"/policy?attribute=sex&{wrong}").text
        policy.write_text("persons = 3\n")
        assert "The file has changed" in ana.get("/policy").text
        digest = policy_of(own_state.study, "alice", policy).digest
        served.set_served_policy(policy, 0, None, persons=3, digest=digest)
        assert "The file has changed" not in ana.get("/policy").text
        policy.write_text("persons = 3\n# other words, the same numbers\n")
        assert "The file has changed" in ana.get("/policy").text
        policy.write_text("persons = ")
        assert 'class="problem"' in ana.get("/policy").text
        assert ana.get("/table").status == 404


def test_what_is_approved_and_not_charged_yet_can_still_be_refused(office: Office) -> None:
    store, release_id = office.own_state.store, "d" * 32
    store.releases.add(request_with(release_id=release_id), 1_700_000_000)
    decide(store, APPROVED, release_id=release_id)
    ana = office.enter(ANA)
    assert ana.post(f"/releases/{release_id}", {"verdict": "stop"}).status == 400
    assert store.releases.release(release_id).state is ReleaseState.REQUESTED
    assert ana.post(f"/releases/{release_id}", {"verdict": "stop", "reason": "withdrawn"}).status == 303
    assert store.releases.release(release_id).state is ReleaseState.DENIED
    release(office, 1)
    charged = f"{16:032x}"
    assert ana.post(f"/releases/{charged}", {"verdict": "stop", "reason": "too late"}).status == 400
    assert store.releases.release(charged).state is ReleaseState.READY


@pytest.mark.long
def test_several_tables_are_shown_as_such(office: Office) -> None:
    names = ("sex", "age", "salary")
    tables = {"tables": tuple(combinations(names, 2)), "delta": Decimal("1e-6")}
    hold(office.own_state.store, request_with(release_id="c" * 32, attributes=names, **tables), "sex", "age")
    text = office.enter(ANA).get(f"/releases/{'c' * 32}").text
    assert "3 tables of" in text
    assert "sex \N{MULTIPLICATION SIGN} salary" in text


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE audit SET line = replace(line, 'rosa', 'rita') WHERE number = (SELECT MAX(number) FROM audit)",
        "DELETE FROM audit WHERE number = (SELECT MAX(number) FROM audit)",
        "UPDATE audit SET digest = zeroblob(32) WHERE number = (SELECT MAX(number) FROM audit)",
    ],
)
def test_entries_that_were_altered_after_they_were_checked_are_noticed(office: Office, edit: str) -> None:
    ana, store = office.enter(ANA), office.own_state.store
    with transaction(store.connection):
        store.audit.record(Event.KEY, release=ID, attribute="sex", researcher="rosa")
    assert ana.get("/audit").status == 200
    for trigger in ("audit_is_not_altered", "audit_is_not_cut"):
        store.connection.execute(f"DROP TRIGGER {trigger}")
    assert store.connection.execute(edit).rowcount == 1
    assert ana.get("/audit").status == 500


def test_evidence_is_downloaded(office: Office, tmp_path: Path) -> None:
    ana = enter(application_of(office.own_state, office.books, identity(ALICE)), ANA)
    assert ana.post("/evidence", {"since": "soon"}).status == 400
    answer = ana.post("/evidence", {"since": ""})
    assert (answer.status, answer.headers["content-type"]) == (200, "application/zip")
    assert re.fullmatch(r'attachment; filename="evidence-alice-[0-9-]+\.zip"', answer.headers["content-disposition"])
    (tmp_path / "evidence.zip").write_bytes(answer.content)
    assert check_evidence(tmp_path / "evidence.zip", PEM, office.own_state.study).holds
    assert [(event, person) for event, person, _ in office.audit()][-1] == ("evidence exported", ANA)


def test_another_budget_is_followed(office: Office) -> None:
    release(office, 1)
    ana = office.enter(ANA)
    assert "epsilon 0.999" in ana.get("/budget").text
    office.own_state.store.served.set_served_policy(None, 0, Decimal("0.5"), persons=2)
    assert len(office.books.entries()) == 1, "read anew, against the other budget, and once"
    assert "epsilon 0.499" in ana.get("/budget").text


def test_another_study_file_is_refused(office: Office, study_bytes: bytes) -> None:
    ana = office.enter(ANA)
    token = ana.token()
    (office.folder / "study.toml").write_bytes(study_bytes.replace(b"A survey", b"Another"))
    for path in ("/", "/ledger", f"/releases/{ID}"):
        answer = ana.get(path)
        assert answer.status == 409
        assert "the study file has changed" in answer.text
    fields = {"form_token": token, "attribute": "sex", "verdict": "refuse", "reason": "not agreed"}
    assert ana.browser.post(f"{ana.place}/releases/{ID}", fields).status == 409
    assert {verdict for verdict, _, _ in office.verdicts().values()} == {HELD}


@pytest.mark.parametrize(
    ("owner", "persons", "words"),
    [
        (None, [ANA], "there is no such folder"),
        (Party(study="other", role=Role.CURATOR, name="alice").uri, [ANA], "holds the state of"),
        ("", [ANA, "ana  díaz"], "the same person's"),
        ("", ["!?"], "the person's name"),
    ],
)
def test_the_command_refuses_what_is_not_this_curators(
    tmp_path: Path, study_bytes: bytes, owner: str | None, persons: list[str], words: str
) -> None:
    (tmp_path / "study.toml").write_bytes(study_bytes)
    if owner is not None:
        curator_state(tmp_path / "state").close()
        if owner:
            (tmp_path / "state" / "party").write_text(owner)
    named = [argument for person in persons for argument in ("--person", person)]
    with pytest.raises(VeiltabError, match=words):
        curator.main(
            ["console", str(tmp_path / "study.toml"), "--state", str(tmp_path / "state"), *named], standalone_mode=False
        )


def test_every_state_has_a_word() -> None:
    assert len({badge_of_state(state).text for state in ReleaseState}) == len(ReleaseState)


def test_numbers_are_rounded_against_the_respondent() -> None:
    assert [nats(Decimal(text)) for text in ("1.2", "3", "0.1234561", "100")] == ["1.2", "3", "0.123457", "100"]


def test_a_page_of_a_list() -> None:
    assert [
        (span_of(total, 10, page).start, span_of(total, 10, page).stop) for total, page in ((0, 1), (25, 3), (25, 9))
    ] == [(0, 0), (20, 25), (20, 25)]
