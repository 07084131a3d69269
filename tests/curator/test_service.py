import asyncio
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from tests.conftest import noise_with, refuses, request_with, spec_with
from tests.curator.made_records import decide, decision, hold
from tests.made_receipts import made_tests
from tests.worlds.columns import encrypt
from tests.worlds.states import curator_parts
from veiltab.common.errors import (
    DeniedError,
    FailedReleaseError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
    VeiltabError,
)
from veiltab.common.release.messages.release_messages import receipt_from_proto, request_to_proto
from veiltab.common.release.modes import Pad
from veiltab.common.release.spec import release_of
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import Column
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.rpc.parties.signing import SignedText
from veiltab.common.study.file import Study
from veiltab.curator.audit.log import AuditEntry
from veiltab.curator.party.service import CuratorServicer
from veiltab.curator.progress.progress import APPROVED, DENIED, HELD
from veiltab.curator.progress.release_record import PublicationDigests
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.release.driver import CuratorDriver
from veiltab.curator.release.rpc_answers import RpcAnswers
from veiltab.v1 import curator_pb2, release_pb2

ID = "0" * 31 + "1"
NOW = 1_900_000_000
PLACES = b"p" * 32
PUBLISHED, CANARY_KEY = b"p" * 32, b"c" * 32
NO_CANARIES = sha256().digest()


@pytest.fixture
def answers(tmp_path: Path, study: Study, monkeypatch: pytest.MonkeyPatch) -> Iterator[RpcAnswers]:
    monkeypatch.setattr(
        "veiltab.curator.party.service.caller",
        lambda context: Party(study="survey", role=Role.RESEARCHER, name=context),
    )
    monkeypatch.setattr("veiltab.curator.release.rpc_answers.time.time", lambda: NOW)
    parts = curator_parts(tmp_path, study)
    yield RpcAnswers(parts)
    parts.store.close()


@pytest.fixture
def store(answers: RpcAnswers) -> CuratorStore:
    return answers.curator.store


def ready(answers: RpcAnswers, pad: Pad = Pad.CHACHA20, attributes: tuple[str, ...] = ("sex", "salary")) -> None:
    """Bring a release to where its keys are given out for one second more."""
    store, spec = answers.curator.store, spec_with(pad=pad)
    store.releases.add(request_with(pad=pad, attributes=attributes), 1)
    store.releases.set_planned(release_of(spec))
    encrypt(answers.curator.encryption(ID), "sex", np.zeros(400, np.uint8), 2, pad, noise_with())
    for attribute, verdict in (("sex", APPROVED), ("age", DENIED)):
        store.decisions.decide(ID, (decision(attribute, verdict, expires=NOW + 1),))
    columns = {"sex": PUBLISHED, "salary": bytes(32)}
    store.tests.record_publication(ID, PublicationDigests(columns=columns, places=PLACES))
    store.keys.spend_shared_keys(ID, bytes(32), CANARY_KEY)
    tests = made_tests(spec)
    own, together = tests.receipts("alice")
    store.tests.set_receipt(ID, own, tests.lists["alice"], {"sex": NO_CANARIES})
    store.tests.set_joint_receipt(ID, together, tests.lists)
    store.releases.set_state(ID, ReleaseState.READY)


def given(store: CuratorStore) -> list[AuditEntry]:
    return [one for one in store.audit.entries() if one.event == "key given"]


def keys(
    answers: RpcAnswers, *attributes: str, researcher: str = "rosa", published: bytes = PUBLISHED
) -> dict[str, bytes]:
    column = curator_pb2.ColumnDigests(published=published, canaries=NO_CANARIES)
    request = curator_pb2.GetKeysRequest(release_id=ID, columns=dict.fromkeys(attributes, column))
    return dict(asyncio.run(CuratorServicer(answers).GetKeys(request, cast("Any", researcher))).keys)


def piece(
    answers: RpcAnswers, attribute: str = "sex", researcher: str = "rosa", offset: int = 0, published: bytes = PUBLISHED
) -> curator_pb2.FetchPadResponse:
    """Return the rest of a one-time pad from a byte on."""
    request = curator_pb2.FetchPadRequest(
        release_id=ID, attribute=attribute, offset=offset, published_digest=published, canary_digest=NO_CANARIES
    )

    async def collect() -> list[curator_pb2.FetchPadResponse]:
        return [answer async for answer in CuratorServicer(answers).FetchPad(request, cast("Any", researcher))]

    (answer,) = asyncio.run(collect())
    return answer


def fetch(answers: RpcAnswers, attribute: str = "sex", researcher: str = "rosa", published: bytes = PUBLISHED) -> bytes:
    """Ask for the key of a column, or for its one-time pad, as a desk does."""
    if answers.curator.store.releases.release(ID).request.pad is Pad.CHACHA20:
        return keys(answers, attribute, researcher=researcher, published=published)[attribute]
    return piece(answers, attribute, researcher, published=published).chunk.data


@pytest.mark.parametrize("pad", Pad)
def test_a_key_is_given_to_who_asked_for_the_release_and_for_the_column_that_was_tested(
    answers: RpcAnswers, store: CuratorStore, pad: Pad
) -> None:
    ready(answers, pad)
    own, file = store.keys.pad(ID, "sex"), answers.curator.encryption(ID).pad_file("sex")
    assert own is not None
    assert fetch(answers) == (own[0] if pad is Pad.CHACHA20 else file.read_bytes())
    for researcher in ("rita", "alice"):
        with refuses(DeniedError, where="release"):
            fetch(answers, researcher=researcher)
    for attribute in ("age", "salary", "", "../sex"):
        with pytest.raises(DeniedError, match="was not granted"):
            fetch(answers, attribute)
    for published in (b"", b"q" * 32):
        with refuses(FailedReleaseError, where="attribute sex"):
            fetch(answers, published=published)
    store.releases.set_state(ID, ReleaseState.PERTURBING)
    with refuses(NotReadyError, where="attribute sex"):
        fetch(answers)
    store.releases.set_state(ID, ReleaseState.READY)
    store.connection.execute("UPDATE decision SET expires = ?", [NOW])
    with pytest.raises(DeniedError, match="the grant has expired"):
        fetch(answers)


def test_a_one_time_pad_is_streamed_from_any_byte(answers: RpcAnswers) -> None:
    ready(answers, Pad.OTP)
    pad = answers.curator.encryption(ID).pad_file("sex").read_bytes()
    for offset in (0, 5, len(pad) - 1):
        answer = piece(answers, offset=offset)
        assert (answer.chunk.offset, answer.chunk.data, answer.total) == (offset, pad[offset:], len(pad))
    nothing = piece(answers, offset=len(pad))
    assert (nothing.HasField("chunk"), nothing.total) == (False, len(pad))
    with pytest.raises(InvalidInputError, match="outside a stream"):
        piece(answers, offset=len(pad) + 1)


@pytest.mark.parametrize("pad", Pad)
def test_a_key_leaves_in_one_way(answers: RpcAnswers, store: CuratorStore, pad: Pad) -> None:
    ready(answers, pad)
    other, problem = (piece, "and no pad") if pad is Pad.CHACHA20 else (keys, "at once")
    with pytest.raises(InvalidInputError, match=problem):
        other(answers, "sex")
    assert not given(store)


@pytest.mark.parametrize("pad", Pad)
def test_every_key_that_is_given_is_recorded_and_none_is_given_that_cannot_be(
    answers: RpcAnswers, store: CuratorStore, monkeypatch: pytest.MonkeyPatch, pad: Pad
) -> None:
    ready(answers, pad)
    store.connection.execute("UPDATE decision SET expires = NULL")
    for day in range(2):
        now = NOW + day * 86_400
        monkeypatch.setattr("veiltab.curator.release.rpc_answers.time.time", lambda now=now: now)
        store.connection.execute(
            "CREATE TRIGGER audit_refuses BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no more'); END"
        )
        with pytest.raises(sqlite3.IntegrityError, match="no more"):
            fetch(answers)
        assert len(given(store)) == day
        store.connection.execute("DROP TRIGGER audit_refuses")
        for _ in range(2):
            fetch(answers)
        with pytest.raises(DeniedError):
            fetch(answers, researcher="rita")
        assert [one.facts for one in given(store)] == [{"attribute": "sex", "researcher": "rosa"}] * (day + 1)
        assert given(store)[-1].time == now


def test_all_keys_that_may_leave_are_given_at_once(answers: RpcAnswers, store: CuratorStore) -> None:
    ready(answers)
    own = store.keys.pad(ID, "sex")
    assert own is not None
    assert keys(answers, "age", "sex", "salary") == {"sex": own[0]}
    assert [one.facts["attribute"] for one in given(store)] == ["sex"]
    for attributes, refusal in (
        (("age",), "age: this attribute was not granted"),
        (("salary", "age"), "salary: this attribute was not granted"),
        ((), "no attribute is asked for"),
    ):
        with pytest.raises(DeniedError, match=refusal):
            keys(answers, *attributes)
    with refuses(FailedReleaseError, where="attribute sex"):
        keys(answers, "age", "sex", published=bytes(32))


def test_keys_of_tables_are_recorded_under_the_release_that_they_are_of(
    answers: RpcAnswers, store: CuratorStore
) -> None:
    """All tables of a release that have an attribute make one entry in its log, and none under their own ids."""
    ready(answers)
    whole, spec = "whole release", spec_with()
    store.connection.execute("PRAGMA foreign_keys = OFF")  # the whole release has no row here
    store.connection.execute("UPDATE release SET part_of = ?, spec = ? WHERE id = ?", [whole, spec.to_json(), ID])
    store.connection.execute("UPDATE decision SET release_id = ? WHERE release_id = ?", [whole, ID])
    store.keys.record_key_given(whole, "sex", "rosa")  # by another table of it
    assert list(keys(answers, "sex")) == ["sex"]
    facts = {"attribute": "sex", "researcher": "rosa"}
    assert [(one.release, one.facts) for one in given(store)] == [(whole, facts)]


def ask(answers: RpcAnswers, researcher: str = "rosa", **fields: Any) -> curator_pb2.GetProposalResponse:  # noqa: ANN401 - of a message
    message = curator_pb2.GetProposalRequest(release_id=ID, **fields)
    return asyncio.run(CuratorServicer(answers).GetProposal(message, cast("Any", researcher)))


@pytest.mark.parametrize("with_statement", [False, True])
def test_a_release_that_is_ready_is_said_to_be_so_with_its_receipt_and_statement(
    answers: RpcAnswers, store: CuratorStore, monkeypatch: pytest.MonkeyPatch, *, with_statement: bool
) -> None:
    stated = SignedText(text="stated", signature="00", certificate="PEM")
    monkeypatch.setattr(answers, "statement", lambda *_: stated)
    ready(answers)

    def asked() -> curator_pb2.GetProposalResponse:
        return ask(answers, with_statement=with_statement)

    answer = asked()
    assert answer.receipt == receipt(answers)
    assert answer.HasField("statement") is with_statement
    assert not with_statement or answer.statement.text == "stated"
    store.connection.execute("UPDATE decision SET expires = ?", [NOW])
    assert not asked().HasField("receipt")
    # A table of a release may have none of the attributes that were granted for all of them.
    store.connection.execute("UPDATE decision SET expires = NULL")
    salary = Column(attribute="salary", owner="bob", size=2)
    store.releases.set_planned(release_of(spec_with(columns=(salary,))))
    assert not asked().HasField("receipt")
    for state in set(ReleaseState) - {ReleaseState.READY}:
        store.releases.set_state(ID, state)
        assert not asked().HasField("receipt")


def receipt(answers: RpcAnswers, researcher: str = "rosa") -> curator_pb2.GetReceiptResponse:
    request = curator_pb2.GetReceiptRequest(release_id=ID)
    return asyncio.run(CuratorServicer(answers).GetReceipt(request, cast("Any", researcher)))


def test_a_receipt_is_given_to_whom_a_key_is(answers: RpcAnswers, store: CuratorStore) -> None:
    ready(answers)
    answer = receipt(answers)
    tests = made_tests(spec_with())
    assert tuple(map(receipt_from_proto, answer.receipts)) == tests.receipts("alice")
    assert (dict(answer.changes), answer.canary_key) == (tests.lists, CANARY_KEY)
    assert (dict(answer.digests), answer.places_digest) == ({"sex": PUBLISHED, "salary": bytes(32)}, PLACES)
    for ask in (partial(receipt, answers), partial(answers.statement, ID), partial(answers.choose, ID, numbers=(1,))):
        with refuses(DeniedError, where="release"):
            ask(researcher="rita")
    store.connection.execute("UPDATE decision SET expires = ?", [NOW])
    with pytest.raises(DeniedError, match="the grant has expired"):
        receipt(answers)


def test_an_attribute_that_was_granted_but_left_out_has_no_key(answers: RpcAnswers, store: CuratorStore) -> None:
    ready(answers, attributes=("sex", "age", "salary"))
    store.connection.execute("UPDATE decision SET verdict = 'approved' WHERE attribute = 'age'")
    with refuses(NotFoundError, where="attribute age"):
        fetch(answers, "age")


def propose(
    answers: RpcAnswers, researcher: str = "rosa", digest: str = "", wait: int = 0
) -> curator_pb2.ProposeReleaseResponse:
    message = curator_pb2.ProposeReleaseRequest(
        study_digest=digest or answers.curator.study.digest,
        request=request_to_proto(request_with(deadline=NOW + 1000)),
        wait_milliseconds=wait,
    )
    return asyncio.run(CuratorServicer(answers).ProposeRelease(message, cast("Any", researcher)))


def test_a_request_is_the_caller_s_and_who_waits_reads_how_it_stands(answers: RpcAnswers, store: CuratorStore) -> None:
    for _ in range(2):
        answer = propose(answers)
        assert (answer.state, answer.HasField("proposal")) == (release_pb2.RELEASE_STATE_REQUESTED, False)
    assert store.releases.release(ID).request.researcher == "rosa"
    with pytest.raises(VeiltabError, match="another request is recorded"):
        propose(answers, "rita")
    with pytest.raises(InvalidInputError, match="has another study file"):
        propose(answers, digest="0" * 64)
    store.releases.set_state(ID, ReleaseState.DENIED, "a person denied it")
    waited = propose(answers, wait=1)
    assert (waited.proposal.failure, waited.proposal) == ("a person denied it", ask(answers))


def test_how_a_request_stands_is_told_to_who_asked(answers: RpcAnswers, store: CuratorStore) -> None:
    with pytest.raises(NotFoundError):
        ask(answers)
    hold(store, request_with())
    before = ask(answers)
    assert (before.state, before.HasField("spec"), list(before.granted)) == (1, False, [])
    with refuses(DeniedError, where="release"):
        ask(answers, "rita")
    decide(store, APPROVED)
    store.releases.set_planned(release_of(spec_with()))
    after = ask(answers)
    assert (after.spec.release_id, list(after.granted), list(after.denied)) == (ID, ["sex"], [])


async def test_a_researcher_that_waits_hears_what_there_is_to_do(
    answers: RpcAnswers, store: CuratorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veiltab.common.rpc.waiting.changes.LONGEST_WAIT", 3600.0)
    monkeypatch.setattr("veiltab.curator.party.service.offered_seconds", float)
    message = curator_pb2.GetProposalRequest(release_id=ID, wait_milliseconds=3600)
    store.releases.add(request_with(), 1)

    async def is_answered() -> bool:
        CuratorDriver(answers.curator)._changed(ID)
        for _ in range(5):
            await asyncio.sleep(0)
        return waiting.done()

    waiting = asyncio.create_task(CuratorServicer(answers).GetProposal(message, cast("Any", "rosa")))
    assert not await is_answered()
    decide(store, HELD)
    assert not await is_answered()
    store.releases.set_waiting(ID, "a person decides")
    assert await is_answered()
    assert (await waiting).waiting_for == "a person decides"
    store.releases.set_state(ID, ReleaseState.CHARGED)
    waiting = asyncio.create_task(CuratorServicer(answers).GetProposal(message, cast("Any", "rosa")))
    assert not await is_answered()
    store.releases.set_state(ID, ReleaseState.READY)
    assert await is_answered()


def test_rows_left_out_are_stated_if_the_study_says_so(answers: RpcAnswers, store: CuratorStore) -> None:
    store.releases.add(request_with(), 1)
    own, stating = answers.curator.study, replace(answers.curator.study, left_out="stated")
    for study, rows, stated in ((own, 7, None), (stating, None, None), (stating, 0, 0), (stating, 7, 7)):
        answers.curator.study, answers.curator.alignment.rows_left_out = study, rows
        answer = ask(answers)
        assert (answer.left_out if answer.HasField("left_out") else None) == stated
