"""The console's pages of ledger, policy, table, log and evidence."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from tests.common.web.browser import HOST, enter
from tests.conftest import reserve
from tests.curator.console.console_seat import ANA, ID, Make, Office, hold, office_fixture, opened_office  # noqa: F401 - fixtures
from tests.worlds.states import curator_state
from veiltab.common.errors import ConflictError, InvalidInputError, NotFoundError, VeiltabError
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.parties.identity import Party, Role, load_identity
from veiltab.common.storage.database import transaction
from veiltab.common.web.application import ConsoleApplication
from veiltab.curator.audit.log import Event
from veiltab.curator.cli import curator
from veiltab.curator.console.books import Books
from veiltab.curator.console.curator_console import curator_console
from veiltab.curator.console.journal import AuditJournal
from veiltab.curator.console.pages.budget_page import Point, months_of, points_of, thinned
from veiltab.curator.console.paging import span_of
from veiltab.curator.console.words import badge_of_state, nats
from veiltab.curator.evidence.check import check_evidence
from veiltab.curator.officer.opened import open_state
from veiltab.curator.officer.policy import policy_of
from veiltab.curator.progress.progress import APPROVED, HELD
from veiltab.curator.progress.release_record import GrantDecision
from veiltab.deploy.pki.authority import names_of, new_authority


def charge(office: Office, make_spec: Make, make_request: Make, count: int) -> None:
    store = office.standing.store
    for number in range(count):
        release_id = f"{number + 16:032x}"
        store.releases.add(make_request(release_id=release_id, purpose=f"purpose {number}"), 1_700_000_000 + number)
        approved = GrantDecision(attribute="sex", verdict=APPROVED, expires=None, decided_by="policy", rule=3)
        store.decisions.decide(release_id, (approved,))
        reserve(office.standing.ledger, make_spec(release_id=release_id, epsilon=Decimal("0.001")))
        office.standing.ledger.charge(release_id)
        store.releases.set_state(release_id, ReleaseState.READY)


def test_the_ledger_is_shown_a_page_at_a_time_newest_first(office: Office, make_spec: Make, make_request: Make) -> None:
    ana = office.enter(ANA)
    assert "Nothing is charged yet" in ana.get("/ledger").text
    charge(office, make_spec, make_request, 51)
    first, second = ana.get("/ledger").text, ana.get("/ledger?page=2").text
    assert re.findall(r'<th scope="row" class="n" data-label="Entry">(\d+)</th>', first) == [
        str(number) for number in range(51, 1, -1)
    ]
    assert re.findall(r'<th scope="row" class="n" data-label="Entry">(\d+)</th>', second) == ["1"]
    assert "purpose 50" in first
    assert "sex: the policy, rule 3" in first
    assert "Page 2 of 2, 51 in all" in second
    assert ana.get("/ledger?page=9").text.count("<tr>") == second.count("<tr>")
    for page in ("0", "-1", "x", "1e3", "9" * 20, "%C2%B2"):
        assert ana.get(f"/ledger?page={page}").status == 400


def test_the_ledger_is_checked_after_each_charge(office: Office, make_spec: Make, make_request: Make) -> None:
    ana = office.enter(ANA)
    charge(office, make_spec, make_request, 2)
    assert "it is whole" in ana.get("/ledger").text
    office.standing.store.connection.execute("UPDATE ledger SET epsilon = '0.0001' WHERE number = 1")
    reserve(office.standing.ledger, make_spec(release_id="e" * 32, epsilon=Decimal("0.001")))
    office.standing.ledger.charge("e" * 32)
    page = ana.get("/ledger")
    assert page.status == 500
    assert "altered at entry 1" in page.text


def test_charges_of_the_running_service_are_read_as_they_come(
    office: Office, make_spec: Make, make_request: Make
) -> None:
    assert office.books.entries() == ()
    charge(office, make_spec, make_request, 2)
    assert [entry.number for entry in office.books.entries()] == [1, 2]
    assert office.books.entries() == office.standing.ledger.chain.entries


def test_the_budget_adds_up(office: Office, make_spec: Make, make_request: Make) -> None:
    charge(office, make_spec, make_request, 3)
    entries = office.books.entries()
    points = points_of(entries)
    assert [point.share for point in points] == [sum(e.share for e in entries[: n + 1]) for n in range(3)]
    (month,) = months_of(entries)
    assert (month.releases, month.taken, month.total) == (3, points[-1].share, points[-1].share)
    text = office.enter(ANA).get("/budget").text
    assert '<svg viewBox="0 0 720 260" role="img"' in text
    assert "What each coalition can learn from all releases together" in text
    assert "no epsilon protects who is among them" in text


def test_epsilons_that_do_not_add_up_are_said_to(tmp_path: Path, study_bytes: bytes, make_request: Make) -> None:
    said = "those charged, spent and left do not add up"
    with_delta = study_bytes.replace(b"[budget]\nepsilon = 1\n", b"[budget]\nepsilon = 1\ndelta = 1e-6\n")
    for name, study, times in (("pure", study_bytes, 0), ("delta", with_delta, 1)):
        (tmp_path / name).mkdir()
        with opened_office(tmp_path / name, study, make_request) as opened:
            ana = opened.enter(ANA)
            for page in ("/budget", "/ledger", f"/releases/{ID}"):
                assert ana.get(page).text.count(said) == times, (name, page)


def test_points_are_thinned_to_the_last() -> None:
    points = [Point(time=number, share=Decimal(0)) for number in range(1001)]
    thin = thinned(points)
    assert len(thin) <= 201
    assert thin[-1] == points[-1]
    assert thinned([]) == []


def test_the_policy_is_tried_as_the_command_tries_it(office: Office) -> None:
    policy = office.folder / "policy.toml"
    policy.write_text('persons = 2\n[[rule]]\nattributes = ["sex"]\nmaximum_epsilon = 0.5\ndecision = "approve"\n')
    office.standing.store.served.set_served_policy(policy, 1, None, persons=2)
    with open_state(office.folder / "study.toml", office.folder / "state", None) as standing:
        console = curator_console(
            Books(standing, office.folder / "study.toml"),
            AuditJournal(store=standing.store),
            identity=None,
            inspect=None,
        )
        ana = enter(ConsoleApplication(console, HOST), ANA)
        form = ana.get("/policy").text
        assert "maximum_epsilon = 0.5" in form
        assert "The file has changed" not in form
        tried = "/policy?researcher=rosa&epsilon=0.3&attribute=sex&attribute=age&population=1000"
        text = re.sub(r"\s+", " ", ana.get(tried).text)
        assert 'sex: <span class="badge good">approved</span> by rule 1' in text
        assert 'age: <span class="badge wait">waits for a person</span> as no rule matches' in text
        assert "charge 30.00% of the budget, for 1,000 respondents" in text
        for wrong in ("epsilon=x", "epsilon=0.3&population=x", "epsilon=0.3&researcher=nobody", "epsilon=0.3&delta=2"):
            assert 'class="problem" role="alert"' in ana.get(f"/policy?attribute=sex&{wrong}").text
        policy.write_text("persons = 3\n")
        assert "The file has changed" in ana.get("/policy").text
        rules = policy.read_text()
        served = policy_of(standing.study, "alice", policy)
        office.standing.store.served.set_served_policy(policy, 0, None, persons=3, digest=served.digest)
        assert "The file has changed" not in ana.get("/policy").text
        policy.write_text(f"{rules}# other words, the same numbers\n")
        assert "The file has changed" in ana.get("/policy").text
        policy.write_text("persons = ")
        assert 'class="problem"' in ana.get("/policy").text
        assert ana.get("/table").status == 404


def test_the_table_is_checked_when_somebody_asks(office: Office) -> None:
    ana = office.enter(ANA)
    assert "Check the table" in ana.get("/table").text
    text = ana.get("/table?check=yes").text
    assert "not ready" in text
    assert "1 row has a value that the study does not know" in text


def test_the_parties_are_listed(office: Office) -> None:
    office.standing.store.alignments.set_witness("bob", 7, b"x" * 32)
    text = office.enter(ANA).get("/parties").text
    assert "localhost:7402" in text
    assert "7 charges seen" in text
    assert "Start the console with --identity" in text


def test_a_release_shows_what_happened(office: Office, make_spec: Make, make_request: Make) -> None:
    charge(office, make_spec, make_request, 1)
    ana = office.enter(ANA)
    text = ana.get(f"/releases/{16:032x}").text
    for said in ("rosa asks for sex, salary", "The policy: sex is approved", "Charged: ", "Released"):
        assert said in text
    assert "Your decision" not in text
    assert "purpose 0" in text
    listed = ana.get("/releases").text
    assert f"/releases/{16:032x}" in listed
    assert f"/releases/{ID}" in listed


def test_what_is_approved_and_not_charged_yet_can_still_be_refused(
    office: Office, make_spec: Make, make_request: Make
) -> None:
    store, release_id = office.standing.store, "d" * 32
    store.releases.add(make_request(release_id=release_id), 1_700_000_000)
    store.decisions.decide(
        release_id, (GrantDecision(attribute="sex", verdict=APPROVED, expires=None, decided_by="policy"),)
    )
    ana = office.enter(ANA)
    assert "Refuse the whole request" in ana.get(f"/releases/{release_id}").text
    assert "Refuse the whole request" not in ana.get(f"/releases/{ID}").text
    silent = ana.post(f"/releases/{release_id}", {"verdict": "stop"})
    assert (silent.status, store.releases.release(release_id).state) == (400, ReleaseState.REQUESTED)
    assert ana.post(f"/releases/{release_id}", {"verdict": "stop", "reason": "withdrawn"}).status == 303
    assert store.releases.release(release_id).state is ReleaseState.DENIED
    charge(office, make_spec, make_request, 1)
    charged = f"{16:032x}"
    assert "Refuse the whole request" not in ana.get(f"/releases/{charged}").text
    assert ana.post(f"/releases/{charged}", {"verdict": "stop", "reason": "too late"}).status == 400
    assert store.releases.release(charged).state is ReleaseState.READY


def test_the_keys_that_were_given_out_stand_in_the_timeline(
    office: Office, make_spec: Make, make_request: Make
) -> None:
    charge(office, make_spec, make_request, 1)
    store, release_id = office.standing.store, f"{16:032x}"
    for _ in range(2):
        with transaction(store.connection):
            store.audit.record(Event.KEY, release=release_id, attribute="sex", researcher="rosa")
    assert office.enter(ANA).get(f"/releases/{release_id}").text.count("The key of sex is given to rosa") == 1


@pytest.mark.long
def test_several_tables_are_shown_as_such(office: Office, make_request: Make) -> None:
    pairs = (("sex", "age"), ("sex", "salary"), ("age", "salary"))
    request = make_request(
        release_id="c" * 32,
        attributes=("sex", "age", "salary"),
        tables=pairs,
        epsilon=Decimal("0.5"),
        delta=Decimal("1e-6"),
    )
    hold(office.standing.store, request)
    text = office.enter(ANA).get(f"/releases/{'c' * 32}").text
    assert "3 tables of" in text
    assert "sex \N{MULTIPLICATION SIGN} salary" in text
    assert "Foreseen distance of a typical table" in text
    assert "Delta 1e-6 limits, roughly" in text


def test_the_audit_log_is_shown_and_checked(office: Office) -> None:
    ana = office.enter(ANA)
    text = ana.get("/audit").text
    assert "session begun" in text
    assert ANA in text
    store = office.standing.store
    with transaction(store.connection):
        for number in range(60):
            store.audit.record(Event.KEY, release=ID, attribute=f"number-{number}", researcher="rosa")
    newest, oldest = ana.get("/audit").text, ana.get("/audit?page=2").text
    assert "number-59" in newest
    assert "number-9 " not in newest
    assert "number-9" in oldest
    for trigger in ("audit_is_not_altered", "audit_is_not_cut"):
        store.connection.execute(f"DROP TRIGGER {trigger}")
    last = store.audit.head.length
    with transaction(store.connection):
        store.audit.record(Event.KEY, release=ID, attribute="late", researcher="rosa")
    store.connection.execute("UPDATE audit SET line = replace(line, 'late', 'last') WHERE number = ?", [last + 1])
    assert ana.get("/audit").status == 500


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE audit SET line = replace(line, 'rosa', 'rita') WHERE number = (SELECT MAX(number) FROM audit)",
        "DELETE FROM audit WHERE number = (SELECT MAX(number) FROM audit)",
        "UPDATE audit SET digest = zeroblob(32) WHERE number = (SELECT MAX(number) FROM audit)",
    ],
)
def test_entries_that_were_altered_after_they_were_checked_are_noticed(office: Office, edit: str) -> None:
    ana, store = office.enter(ANA), office.standing.store
    with transaction(store.connection):
        store.audit.record(Event.KEY, release=ID, attribute="sex", researcher="rosa")
    assert ana.get("/audit").status == 200
    for trigger in ("audit_is_not_altered", "audit_is_not_cut"):
        store.connection.execute(f"DROP TRIGGER {trigger}")
    assert store.connection.execute(edit).rowcount == 1
    assert ana.get("/audit").status == 500


@pytest.fixture
def alone(tmp_path: Path, study_bytes: bytes, make_request: Make) -> Iterator[Office]:
    """Open an office of a study at whose endpoints nobody listens, whatever else runs on this machine."""
    with opened_office(tmp_path, study_bytes.replace(b"localhost:74", b"localhost:2"), make_request) as opened:
        yield opened


def test_evidence_is_downloaded_and_others_asked_for_their_certificates(alone: Office, tmp_path: Path) -> None:
    office = alone
    now = datetime.now(UTC)
    authority = new_authority("survey", since=now - timedelta(days=1), until=now + timedelta(days=1))
    alice = Party(study="survey", role=Role.CURATOR, name="alice")
    made = authority.issue("x", names_of(alice, "localhost:1"), now - timedelta(hours=1), now + timedelta(days=1))
    pem = authority.certificate.public_bytes(Encoding.PEM)
    for name, content in {"alice.pem": made.certificate_pem, "alice.key": made.key_pem, "ca.pem": pem}.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o600)
    identity = load_identity(tmp_path, Role.CURATOR, "alice")
    journal = AuditJournal(store=office.standing.store)
    ana = enter(ConsoleApplication(curator_console(office.books, journal, identity=identity, inspect=None), HOST), ANA)
    assert ana.post("/evidence", {"since": "soon"}).status == 400
    answer = ana.post("/evidence", {"since": ""})
    assert (answer.status, answer.headers["content-type"]) == (200, "application/zip")
    assert re.fullmatch(r'attachment; filename="evidence-alice-[0-9-]+\.zip"', answer.headers["content-disposition"])
    (tmp_path / "evidence.zip").write_bytes(answer.content)
    assert check_evidence(tmp_path / "evidence.zip", pem, office.standing.study).holds
    assert [(event, person) for event, person, _ in office.audit()][-1] == ("evidence exported", ANA)
    parties = ana.get("/parties").text
    assert "days left" in parties
    assert "it does not answer" not in parties
    assert ana.get("/parties?ask=yes").text.count("it does not answer (Connection refused)") == 4


def test_another_budget_is_followed(office: Office, make_spec: Make, make_request: Make) -> None:
    charge(office, make_spec, make_request, 1)
    ana = office.enter(ANA)
    assert "epsilon 0.999" in ana.get("/budget").text
    office.standing.store.served.set_served_policy(None, 0, Decimal("0.5"), persons=2)
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


def run(*arguments: str | Path) -> None:
    curator.main(["console", *map(str, arguments)], standalone_mode=False)


@pytest.mark.parametrize(
    ("owner", "persons", "refusal", "words"),
    [
        (None, [ANA], NotFoundError, "there is no such folder"),
        (Party(study="other", role=Role.CURATOR, name="alice").uri, [ANA], ConflictError, "holds the state of"),
        ("", [ANA, "ana  díaz"], InvalidInputError, "the same person's"),
        ("", ["!?"], InvalidInputError, "the person's name"),
    ],
)
def test_the_command_refuses_what_is_not_this_curators(  # noqa: PLR0913, PLR0917 - cases
    tmp_path: Path, study_bytes: bytes, owner: str | None, persons: list[str], refusal: type[VeiltabError], words: str
) -> None:
    (tmp_path / "study.toml").write_bytes(study_bytes)
    if owner is not None:
        curator_state(tmp_path / "state").close()
        if owner:
            (tmp_path / "state" / "party").write_text(owner)
    named = [argument for person in persons for argument in ("--person", person)]
    with pytest.raises(refusal, match=words):
        run(tmp_path / "study.toml", "--state", tmp_path / "state", *named)


def test_every_state_has_a_word() -> None:
    assert len({badge_of_state(state).text for state in ReleaseState}) == len(ReleaseState)


def test_numbers_are_rounded_against_the_respondent() -> None:
    assert [nats(Decimal(text)) for text in ("1.2", "3", "0.1234561", "100")] == ["1.2", "3", "0.123457", "100"]


def test_a_page_of_a_list() -> None:
    assert [
        (span_of(total, 10, page).start, span_of(total, 10, page).stop) for total, page in ((0, 1), (25, 3), (25, 9))
    ] == [(0, 0), (20, 25), (20, 25)]
