"""The console of a curator: what persons read and decide there, and what it refuses."""

import re
import time
from decimal import Decimal
from html import unescape
from pathlib import Path

from tests.common.web.browser import enter
from tests.curator.console.console_seat import ANA, BEN, EVA, ID, PURPOSE, Office, office_fixture, opened_office  # noqa: F401 - fixtures
from veiltab.curator.officer.requests import view_of
from veiltab.curator.officer.requests_text import requests_text
from veiltab.curator.progress.progress import APPROVED, DENIED, HELD


def test_a_reader_sees_what_a_person_who_decides_sees_without_a_form(office: Office) -> None:
    ana, eva = office.enter(ANA), enter(office.application, EVA, decides=False)
    pages = re.findall(r'href="[^"]*?/[\w-]{32}(/[^"]*)"', ana.get("/").text)
    assert {"/ledger", "/audit", "/policy", f"/releases/{ID}"} <= set(pages)
    for path in pages:
        seen, read = ana.get(path), eva.get(path)
        assert (seen.status, read.status) == (200, 200)
        forms = re.findall(r'<form[^>]*method="post" action="[^"]*"', read.text)
        assert [form.rpartition("/")[2] for form in forms] == ['leave"']
    for path, fields in (
        (f"/releases/{ID}", {"attribute": "sex", "verdict": "approve"}),
        (f"/releases/{ID}", {"verdict": "stop", "reason": "no"}),
        ("/evidence", {"since": ""}),
    ):
        assert eva.post(path, fields).status == 403
    assert {verdict for verdict, _, _ in office.verdicts().values()} == {HELD}
    begun = [(person, facts) for event, person, facts in office.audit() if event == "session begun"]
    assert begun == [(ANA, {"right": "decide"}), (EVA, {"right": "read"})]


def test_two_persons_approve_together(office: Office) -> None:
    ana, ben = office.enter(ANA), office.enter(BEN)
    fields: dict[str, str | list[str]] = {"attribute": ["sex", "age"], "verdict": "approve"}
    assert ana.post(f"/releases/{ID}", fields | {"reason": "as agreed"}).status == 303
    assert ana.post(f"/releases/{ID}", fields).status == 409
    assert {verdict for verdict, _, _ in office.verdicts().values()} == {HELD}
    assert "as agreed" in ben.get(f"/releases/{ID}").text
    assert ben.post(f"/releases/{ID}", fields).status == 303
    assert {(verdict, person) for verdict, person, _ in office.verdicts().values()} == {(APPROVED, BEN)}


def test_one_refusal_with_a_reason_refuses(office: Office) -> None:
    ana, ben = office.enter(ANA), office.enter(BEN)
    ana.post(f"/releases/{ID}", {"attribute": "sex", "verdict": "approve"})
    refusal: dict[str, str | list[str]] = {"attribute": ["sex", "age"], "verdict": "refuse"}
    assert ben.post(f"/releases/{ID}", refusal | {"reason": " "}).status == 400
    assert {verdict for verdict, _, _ in office.verdicts().values()} == {HELD}
    assert ben.post(f"/releases/{ID}", refusal | {"reason": "not agreed"}).status == 303
    assert set(office.verdicts().values()) == {(DENIED, BEN, "not agreed")}


def test_a_decision_that_is_none_is_refused_and_changes_nothing(office: Office) -> None:
    ana, before = office.enter(ANA), office.verdicts()
    approval: dict[str, str | list[str]] = {"attribute": "sex", "verdict": "approve"}
    refusal = approval | {"verdict": "refuse"}
    for fields in (
        {"verdict": "approve"},
        {"attribute": "sex"},
        approval | {"verdict": "maybe"},
        approval | {"attribute": "salary"},
        approval | {"attribute": "none"},
        approval | {"days": "0"},
        approval | {"days": "1.5"},
        approval | {"days": "999999"},
        refusal | {"reason": "x" * 1001},
        refusal | {"reason": "a\N{RIGHT-TO-LEFT OVERRIDE}b"},
        refusal | {"reason": ["a", "b"]},
    ):
        assert ana.post(f"/releases/{ID}", fields).status == 400, fields
    assert office.verdicts() == before
    assert office.own_state.store.decisions.approvals(ID) == ()


def test_a_decision_about_another_release_is_refused(office: Office) -> None:
    ana = office.enter(ANA)
    assert ana.get(f"/releases/{'f' * 32}").status == 404
    assert ana.post(f"/releases/{'f' * 32}", {"attribute": "sex", "verdict": "approve"}).status == 404


def test_keys_may_be_given_out_for_some_days(office: Office) -> None:
    for person in (ANA, BEN):
        answer = office.enter(person).post(
            f"/releases/{ID}", {"attribute": "sex", "verdict": "approve", "days": "3" if person == ANA else ""}
        )
        assert answer.status == 303
    (sex,) = (one for one in office.own_state.store.decisions.decisions(ID) if one.attribute == "sex")
    assert sex.expires is not None
    assert abs(sex.expires - time.time() - 3 * 86_400) < 60


def test_sessions_stand_in_the_audit_log(office: Office) -> None:
    ana = office.enter(ANA)
    ana.post("/leave", {})
    sessions = [one for one in office.audit() if one[0].startswith("session")]
    assert [(event, person) for event, person, _ in sessions] == [("session begun", ANA), ("session ended", ANA)]
    assert sessions[1][2]["reason"] == "signed out"


def test_what_is_unusual_of_a_request_comes_first(tmp_path: Path, study_bytes: bytes) -> None:
    with opened_office(tmp_path, study_bytes, canaries=0, noise_split=Decimal(0)) as office:
        view = view_of(office.own_state.store.releases.release(ID), office.own_state)
        untested, unprotected = view.outlook.unusual
        page = unescape(office.enter(ANA).get(f"/releases/{ID}").text)
        lines = requests_text((view,), office.own_state.ledger).splitlines()
    assert untested.startswith("the server is not tested: nothing shows that it adds its noise")
    assert "desk with server would face no protection" in unprotected
    assert lines[3:5] == [f"  unusual: {untested}", f"  unusual: {unprotected}"]
    assert page.index(untested) < page.index(unprotected) < page.index("rosa asks for")
    assert view.as_dict()["unusual"] == (untested, unprotected)


def test_of_a_usual_request_nothing_is_called_unusual(tmp_path: Path, study_bytes: bytes) -> None:
    with opened_office(tmp_path, study_bytes, max_pair_epsilon=Decimal(3)) as office:
        assert view_of(office.own_state.store.releases.release(ID), office.own_state).outlook.unusual == ()
