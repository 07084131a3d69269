import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from tests.conftest import noise_with
from tests.curator.made_rows import workplace
from tests.made_receipts import made_tests
from veiltab.common.errors import (
    DeniedError,
    FailedReleaseError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
    VeiltabError,
)
from veiltab.common.release.messages.release_messages import receipt_from_proto
from veiltab.common.release.modes import Pad
from veiltab.common.release.spec import release_of
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import Column
from veiltab.common.rpc.parties.identity import Identity, Party, Role
from veiltab.common.rpc.parties.signing import SignedText
from veiltab.common.study.file import Study
from veiltab.curator.audit.log import AuditEntry
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.officer.policy import Policy
from veiltab.curator.party.service import CuratorServicer
from veiltab.curator.progress.progress import APPROVED, DENIED, HELD
from veiltab.curator.progress.release_record import GrantDecision, PublicationDigests
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.release.driver import CuratorDriver
from veiltab.curator.release.parts import Parts
from veiltab.curator.release.rpc_answers import Answers
from veiltab.v1 import curator_pb2, release_pb2

Make = Callable[..., Any]
ID = "0" * 31 + "1"
NOW = 1_900_000_000
PLACES = b"p" * 32
PUBLISHED, CANARY_KEY = b"p" * 32, b"c" * 32
NO_CANARIES = sha256().digest()


@pytest.fixture
def answers(tmp_path: Path, study: Study, monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    monkeypatch.setattr(
        "veiltab.curator.party.service.caller",
        lambda context: Party(study="survey", role=Role.RESEARCHER, name=context),
    )
    monkeypatch.setattr("veiltab.curator.release.rpc_answers.time.time", lambda: NOW)
    store = CuratorStore(tmp_path / "curator.sqlite")
    identity = SimpleNamespace(party=Party(study="survey", role=Role.CURATOR, name="alice"))
    ledger = Ledger(store.connection, Decimal(1))
    yield Answers(Parts(cast("Identity", identity), study, tmp_path, store, ledger, Policy(), workplace(tmp_path)))
    store.close()


def ready(answers: Answers, request: Any, spec: Any, expires: int | None = None) -> None:  # noqa: ANN401 - of any kind
    """Bring a release to where its keys are given out."""
    answers.parts.store.releases.add(request, 1)
    answers.parts.store.releases.set_planned(release_of(spec))
    answers.parts.encryption(ID).encrypt("sex", np.zeros(400, np.uint8), 2, spec.pad, noise_with())
    for attribute, verdict in (("sex", APPROVED), ("age", DENIED)):
        decision = GrantDecision(attribute=attribute, verdict=verdict, expires=expires, decided_by="person")
        answers.parts.store.decisions.decide(ID, (decision,))
    columns = {"sex": PUBLISHED, "salary": bytes(32)}
    answers.parts.store.tests.record_publication(ID, PublicationDigests(columns=columns, places=PLACES))
    answers.parts.store.keys.spend_shared_keys(ID, bytes(32), CANARY_KEY)
    tests = made_tests(spec)
    own, together = tests.receipts("alice")
    answers.parts.store.tests.set_receipt(ID, own, tests.lists["alice"], {"sex": NO_CANARIES})
    answers.parts.store.tests.set_joint_receipt(ID, together, tests.lists)
    answers.parts.store.releases.set_state(ID, ReleaseState.READY)


def fetch(
    answers: Answers,
    attribute: str = "sex",
    researcher: str = "rosa",
    offset: int = 0,
    digests: tuple[bytes, bytes] | None = None,
) -> bytes:
    """Ask for the key of a column, or for its one-time pad from a byte on, as a desk does."""
    published, canaries = digests or (PUBLISHED, NO_CANARIES)
    if answers.parts.store.releases.release(ID).request.pad is Pad.CHACHA20:
        column = curator_pb2.ColumnDigests(published=published, canaries=canaries)
        asked = curator_pb2.GetKeysRequest(release_id=ID, columns={attribute: column})
        return asyncio.run(CuratorServicer(answers).GetKeys(asked, cast("Any", researcher))).keys[attribute]
    request = curator_pb2.FetchPadRequest(
        release_id=ID, attribute=attribute, offset=offset, published_digest=published, canary_digest=canaries
    )
    (answer,) = pieces_of_pad(answers, request, researcher)
    assert answer.chunk.offset == offset
    return answer.chunk.data


def pieces_of_pad(
    answers: Answers, request: curator_pb2.FetchPadRequest, researcher: str = "rosa"
) -> list[curator_pb2.FetchPadResponse]:
    async def collect() -> list[curator_pb2.FetchPadResponse]:
        return [answer async for answer in CuratorServicer(answers).FetchPad(request, cast("Any", researcher))]

    return asyncio.run(collect())


@pytest.mark.parametrize("pad", Pad)
def test_a_granted_key_is_given_to_who_asked_for_the_release(
    answers: Answers, make_request: Make, make_spec: Make, pad: Pad
) -> None:
    ready(answers, make_request(pad=pad), make_spec(pad=pad), expires=NOW + 1)
    found = answers.parts.store.keys.pad(ID, "sex")
    assert found is not None
    assert fetch(answers) == (
        found[0] if pad is Pad.CHACHA20 else answers.parts.encryption(ID).pad_file("sex").read_bytes()
    )


def test_a_one_time_pad_is_streamed_from_any_byte(answers: Answers, make_request: Make, make_spec: Make) -> None:
    ready(answers, make_request(pad=Pad.OTP), make_spec(pad=Pad.OTP))
    pad = answers.parts.encryption(ID).pad_file("sex").read_bytes()
    request = curator_pb2.FetchPadRequest(
        release_id=ID, attribute="sex", published_digest=PUBLISHED, canary_digest=NO_CANARIES
    )
    for offset in (0, 5, len(pad) - 1):
        request.offset = offset
        (answer,) = pieces_of_pad(answers, request)
        assert (answer.chunk.data, answer.total) == (pad[offset:], len(pad))
    request.offset = len(pad)
    (nothing,) = pieces_of_pad(answers, request)
    assert (nothing.HasField("chunk"), nothing.total) == (False, len(pad))
    request.offset = len(pad) + 1
    with pytest.raises(InvalidInputError, match="outside a stream"):
        pieces_of_pad(answers, request)


def test_a_key_leaves_in_one_way(answers: Answers, make_request: Make, make_spec: Make) -> None:
    ready(answers, make_request(), make_spec())
    request = curator_pb2.FetchPadRequest(
        release_id=ID, attribute="sex", published_digest=PUBLISHED, canary_digest=NO_CANARIES
    )
    with pytest.raises(InvalidInputError, match="keys of a curator are asked for together"):
        pieces_of_pad(answers, request)
    with pytest.raises(DeniedError, match="another researcher's"):
        pieces_of_pad(answers, request, "rita")
    assert not [one for one in answers.parts.store.audit.entries(ID) if one.event == "key given"]


@pytest.mark.parametrize("pad", Pad)
def test_every_key_that_is_given_is_recorded_and_none_is_given_that_cannot_be(
    answers: Answers, make_request: Make, make_spec: Make, monkeypatch: pytest.MonkeyPatch, pad: Pad
) -> None:
    ready(answers, make_request(pad=pad), make_spec(pad=pad))

    def recorded() -> list[AuditEntry]:
        return [one for one in answers.parts.store.audit.entries(ID) if one.event == "key given"]

    for day in range(2):
        now = NOW + day * 86_400
        monkeypatch.setattr("veiltab.curator.release.rpc_answers.time.time", lambda now=now: now)
        answers.parts.store.connection.execute(
            "CREATE TRIGGER audit_refuses BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no more'); END"
        )
        with pytest.raises(sqlite3.IntegrityError, match="no more"):
            fetch(answers)
        assert len(recorded()) == day
        answers.parts.store.connection.execute("DROP TRIGGER audit_refuses")
        fetch(answers)
        fetch(answers, offset=5)
        with pytest.raises(DeniedError):
            fetch(answers, researcher="rita")
        entries = recorded()
        assert [one.facts for one in entries] == [{"attribute": "sex", "researcher": "rosa"}] * (day + 1)
        assert entries[-1].time == now


@pytest.mark.parametrize("pad", Pad)
def test_a_key_is_given_to_nobody_else_and_for_nothing_else(
    answers: Answers, make_request: Make, make_spec: Make, pad: Pad
) -> None:
    ready(answers, make_request(pad=pad), make_spec(pad=pad))
    for researcher in ("rita", "alice"):
        with pytest.raises(DeniedError, match="another researcher's"):
            fetch(answers, researcher=researcher)
    for attribute in ("age", "salary", "", "../sex"):
        with pytest.raises(DeniedError, match="was not granted"):
            fetch(answers, attribute=attribute)


@pytest.mark.parametrize("pad", Pad)
@pytest.mark.parametrize(
    "digests",
    [(b"", b""), (PUBLISHED, b""), (b"q" * 32, NO_CANARIES), (bytes(32), NO_CANARIES), (PUBLISHED, PUBLISHED)],
)
def test_a_key_is_given_for_the_column_that_was_tested_alone(
    answers: Answers, make_request: Make, make_spec: Make, digests: tuple[bytes, bytes], pad: Pad
) -> None:
    ready(answers, make_request(pad=pad), make_spec(pad=pad))
    with pytest.raises(
        FailedReleaseError, match="attribute sex: the desk holds another column than this curator tested"
    ):
        fetch(answers, digests=digests)


def keys(
    answers: Answers, *attributes: str, researcher: str = "rosa", published: bytes = PUBLISHED
) -> dict[str, bytes]:
    column = curator_pb2.ColumnDigests(published=published, canaries=NO_CANARIES)
    request = curator_pb2.GetKeysRequest(release_id=ID, columns=dict.fromkeys(attributes, column))
    return dict(asyncio.run(CuratorServicer(answers).GetKeys(request, cast("Any", researcher))).keys)


def test_all_keys_that_may_leave_are_given_at_once(answers: Answers, make_request: Make, make_spec: Make) -> None:
    ready(answers, make_request(), make_spec(), expires=NOW + 1)
    found = answers.parts.store.keys.pad(ID, "sex")
    assert found is not None
    assert keys(answers, "age", "sex", "salary") == {"sex": found[0]}
    given = [one.facts["attribute"] for one in answers.parts.store.audit.entries(ID) if one.event == "key given"]
    assert given == ["sex"]
    with pytest.raises(DeniedError, match="another researcher's"):
        keys(answers, "sex", researcher="rita")
    for attributes, refusal in (
        (("age",), "age: this attribute was not granted"),
        (("salary", "age"), "salary: this attribute was not granted"),
        ((), "no attribute is asked for"),
    ):
        with pytest.raises(DeniedError, match=refusal):
            keys(answers, *attributes)
    with pytest.raises(FailedReleaseError, match="another column than this curator tested"):
        keys(answers, "age", "sex", published=bytes(32))
    answers.parts.store.releases.set_state(ID, ReleaseState.PERTURBING)
    with pytest.raises(NotReadyError, match="not every curator has tested the server yet"):
        keys(answers, "sex")
    answers.parts.store.releases.set_state(ID, ReleaseState.READY)
    answers.parts.store.connection.execute("UPDATE decision SET expires = ?", [NOW])
    with pytest.raises(DeniedError, match="the grant has expired"):
        keys(answers, "sex")


def test_keys_of_tables_are_recorded_under_the_release_that_they_are_of(
    answers: Answers, make_request: Make, make_spec: Make
) -> None:
    """All tables of a release that have an attribute make one entry in its log, and none under their own ids."""
    spec = make_spec()
    ready(answers, make_request(), spec)
    whole, store = "whole release", answers.parts.store
    store.connection.execute("PRAGMA foreign_keys = OFF")  # the whole release has no row here
    store.connection.execute("UPDATE release SET part_of = ?, spec = ? WHERE id = ?", [whole, spec.to_json(), ID])
    store.connection.execute("UPDATE decision SET release_id = ? WHERE release_id = ?", [whole, ID])
    store.keys.record_key_given(whole, "sex", "rosa")  # by another table of it
    assert list(keys(answers, "sex")) == ["sex"]
    given = [(one.release, one.facts) for one in store.audit.entries() if one.event == "key given"]
    assert given == [(whole, {"attribute": "sex", "researcher": "rosa"})]


def test_a_one_time_pad_is_not_among_the_keys(answers: Answers, make_request: Make, make_spec: Make) -> None:
    ready(answers, make_request(pad=Pad.OTP), make_spec(pad=Pad.OTP))
    with pytest.raises(InvalidInputError, match="fetched one by one"):
        keys(answers, "sex")
    assert not [one for one in answers.parts.store.audit.entries(ID) if one.event == "key given"]


@pytest.mark.parametrize("state", ReleaseState)
@pytest.mark.parametrize("with_statement", [False, True])
def test_a_release_that_is_ready_is_said_to_be_so_with_its_receipt_and_statement(  # noqa: PLR0913, PLR0917 - fixtures
    answers: Answers,
    make_request: Make,
    make_spec: Make,
    monkeypatch: pytest.MonkeyPatch,
    state: ReleaseState,
    with_statement: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    stated = SignedText(text="stated", signature="00", certificate="PEM")
    monkeypatch.setattr(answers, "statement", lambda *_: stated)
    ready(answers, make_request(), make_spec(), expires=NOW + 1)
    answers.parts.store.releases.set_state(ID, state)

    def asked() -> curator_pb2.GetProposalResponse:
        request = curator_pb2.GetProposalRequest(release_id=ID, with_statement=with_statement)
        return asyncio.run(CuratorServicer(answers).GetProposal(request, cast("Any", "rosa")))

    is_ready = state is ReleaseState.READY
    answer = asked()
    assert (answer.HasField("receipt"), answer.HasField("statement")) == (is_ready, is_ready and with_statement)
    if is_ready:
        assert answer.receipt == receipt(answers)
        assert not with_statement or answer.statement.text == "stated"
        answers.parts.store.connection.execute("UPDATE decision SET expires = ?", [NOW])
        assert not asked().HasField("receipt")
        # A table of a release may have none of the attributes that were granted for all of them.
        answers.parts.store.connection.execute("UPDATE decision SET expires = NULL")
        answers.parts.store.releases.set_planned(
            release_of(make_spec(columns=(Column(attribute="salary", owner="bob", size=2),)))
        )
        assert not asked().HasField("receipt")


def receipt(answers: Answers, researcher: str = "rosa") -> curator_pb2.GetReceiptResponse:
    request = curator_pb2.GetReceiptRequest(release_id=ID)
    return asyncio.run(CuratorServicer(answers).GetReceipt(request, cast("Any", researcher)))


def test_a_receipt_is_given_to_whom_a_key_is(answers: Answers, make_request: Make, make_spec: Make) -> None:
    ready(answers, make_request(), make_spec(), expires=NOW + 1)
    answer = receipt(answers)
    tests = made_tests(make_spec())
    assert tuple(map(receipt_from_proto, answer.receipts)) == tests.receipts("alice")
    assert (dict(answer.changes), answer.canary_key) == (tests.lists, CANARY_KEY)
    assert (dict(answer.digests), answer.places_digest) == ({"sex": PUBLISHED, "salary": bytes(32)}, PLACES)
    with pytest.raises(DeniedError, match="another researcher's"):
        receipt(answers, "rita")
    answers.parts.store.releases.set_state(ID, ReleaseState.PERTURBING)
    with pytest.raises(NotReadyError, match="not every curator has tested the server yet"):
        receipt(answers)
    answers.parts.store.releases.set_state(ID, ReleaseState.READY)
    answers.parts.store.connection.execute("UPDATE decision SET expires = ?", [NOW])
    with pytest.raises(DeniedError, match="the grant has expired"):
        receipt(answers)


def test_a_grant_ends_to_the_second(answers: Answers, make_request: Make, make_spec: Make) -> None:
    ready(answers, make_request(), make_spec(), expires=NOW)
    with pytest.raises(DeniedError, match="the grant has expired"):
        fetch(answers)


@pytest.mark.parametrize("state", ReleaseState)
def test_keys_are_given_only_when_the_column_is_at_the_server(
    answers: Answers, make_request: Make, make_spec: Make, state: ReleaseState
) -> None:
    ready(answers, make_request(), make_spec())
    answers.parts.store.releases.set_state(ID, state)
    if state is ReleaseState.READY:
        assert fetch(answers)
        return
    failures = dict.fromkeys((ReleaseState.FAILED, ReleaseState.EXPIRED), FailedReleaseError)
    kinds = {ReleaseState.DENIED: DeniedError, **failures}
    with pytest.raises(kinds.get(state, NotReadyError)):
        fetch(answers)


def test_an_attribute_that_was_granted_but_left_out_has_no_key(
    answers: Answers, make_request: Make, make_spec: Make
) -> None:
    ready(answers, make_request(attributes=("sex", "age", "salary")), make_spec())
    answers.parts.store.connection.execute("UPDATE decision SET verdict = 'approved' WHERE attribute = 'age'")
    with pytest.raises(NotFoundError, match="not part of the release"):
        fetch(answers, "age")


def proposed(
    answers: Answers,
    researcher: str = "rosa",
    **changes: Any,  # noqa: ANN401 - of any kind
) -> curator_pb2.ProposeReleaseResponse:
    waiting = changes.pop("wait_milliseconds", 0)
    fields: dict[str, Any] = {
        "release_id": ID,
        "study_digest": answers.parts.study.digest,
        "attributes": ["sex"],
        "epsilon": "0.1",
        "deadline": 2_000_000_000,
        "sampling": release_pb2.SAMPLING_MODE_SEED,
        "pad": release_pb2.PAD_KIND_OTP,
        "scheme": release_pb2.SCHEME_WOR,
        "noise_split": "0",
    } | changes
    message = curator_pb2.ProposeReleaseRequest(
        study_digest=fields.pop("study_digest"), request=release_pb2.ReleaseRequest(**fields), wait_milliseconds=waiting
    )
    return asyncio.run(CuratorServicer(answers).ProposeRelease(message, cast("Any", researcher)))


def submit(answers: Answers, researcher: str = "rosa", **changes: Any) -> int:  # noqa: ANN401 - of any kind
    return proposed(answers, researcher, **changes).state


def test_who_offers_to_wait_reads_how_the_request_stands(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.curator.release.rpc_answers.time.time", lambda: 1_999_999_000)
    assert not proposed(answers).HasField("proposal")
    answers.parts.store.releases.set_state(ID, ReleaseState.DENIED, "a person denied it")
    answer = proposed(answers, wait_milliseconds=1)
    assert (answer.proposal.failure, answer.proposal) == ("a person denied it", ask(answers, "rosa"))


def test_a_request_is_the_caller_s(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.curator.release.rpc_answers.time.time", lambda: 1_999_999_000)
    assert submit(answers) == submit(answers) == release_pb2.RELEASE_STATE_REQUESTED
    assert answers.parts.store.releases.release(ID).request.researcher == "rosa"
    with pytest.raises(VeiltabError, match="another request is recorded"):
        submit(answers, "rita")
    with pytest.raises(InvalidInputError, match="has another study file"):
        submit(answers, study_digest="0" * 64)


def ask(answers: Answers, researcher: str) -> curator_pb2.GetProposalResponse:
    message = curator_pb2.GetProposalRequest(release_id=ID)
    return asyncio.run(CuratorServicer(answers).GetProposal(message, cast("Any", researcher)))


def test_how_a_request_stands_is_told_to_who_asked(answers: Answers, make_request: Make, make_spec: Make) -> None:
    with pytest.raises(NotFoundError):
        ask(answers, "rosa")
    answers.parts.store.releases.add(make_request(), 1)
    answers.parts.store.decisions.decide(
        ID, (GrantDecision(attribute="sex", verdict=HELD, expires=None, decided_by="policy"),)
    )
    before = ask(answers, "rosa")
    assert (before.state, before.HasField("spec"), list(before.granted)) == (1, False, [])
    with pytest.raises(DeniedError, match="another researcher's"):
        ask(answers, "rita")
    answers.parts.store.decisions.decide(
        ID, (GrantDecision(attribute="sex", verdict=APPROVED, expires=None, decided_by="person"),)
    )
    answers.parts.store.releases.set_planned(release_of(make_spec()))
    after = ask(answers, "rosa")
    assert (after.spec.release_id, list(after.granted), list(after.denied)) == (ID, ["sex"], [])


async def test_a_researcher_that_waits_hears_what_there_is_to_do(
    answers: Answers, make_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veiltab.common.rpc.waiting.changes.LONGEST_WAIT", 3600.0)
    monkeypatch.setattr("veiltab.curator.party.service.offered_seconds", float)
    message = curator_pb2.GetProposalRequest(release_id=ID, wait_milliseconds=3600)
    answers.parts.store.releases.add(make_request(), 1)

    async def is_answered() -> bool:
        CuratorDriver(answers.parts)._changed(ID)
        for _ in range(5):
            await asyncio.sleep(0)
        return waiting.done()

    waiting = asyncio.create_task(CuratorServicer(answers).GetProposal(message, cast("Any", "rosa")))
    assert not await is_answered()
    answers.parts.store.decisions.decide(
        ID, (GrantDecision(attribute="sex", verdict=HELD, expires=None, decided_by="policy"),)
    )
    assert not await is_answered()
    answers.parts.store.releases.set_waiting(ID, "a person decides")
    assert await is_answered()
    assert (await waiting).waiting_for == "a person decides"
    answers.parts.store.releases.set_state(ID, ReleaseState.CHARGED)
    waiting = asyncio.create_task(CuratorServicer(answers).GetProposal(message, cast("Any", "rosa")))
    assert not await is_answered()
    answers.parts.store.releases.set_state(ID, ReleaseState.READY)
    assert await is_answered()


def test_rows_left_out_are_stated_if_the_study_says_so(answers: Answers, make_request: Make) -> None:
    answers.parts.store.releases.add(make_request(), 1)
    stating = replace(answers.parts.study, left_out="stated")
    for study, rows, stated in (
        (answers.parts.study, 7, None),
        (stating, None, None),
        (stating, 0, 0),
        (stating, 7, 7),
    ):
        answers.parts.study, answers.parts.alignment.rows_left_out = study, rows
        answer = ask(answers, "rosa")
        assert (answer.left_out if answer.HasField("left_out") else None) == stated
