"""What curators tell each other when they meet, and what the others say of a release."""

import asyncio
from typing import Any, cast
from unittest.mock import Mock

import pytest

from tests.conftest import refuses, request_with, reserve, spec_with
from tests.curator.told_curators import ID, Village, said_of, village_fixture  # noqa: F401 - fixtures
from tests.made_receipts import made_tests
from veiltab.common.errors import IntegrityError, InvalidInputError, NotReadyError, VeiltabError
from veiltab.common.release.spec import release_of
from veiltab.common.release.state import ReleaseState
from veiltab.common.study.file import Study
from veiltab.curator.peers.calls import MOST_CHANGES_SAID, check_study_digest
from veiltab.curator.progress.release_record import Progress, PublicationDigests
from veiltab.curator.release.rpc_answers import RpcAnswers
from veiltab.v1 import curator_peer_pb2


def hello(village: Village, name: str) -> dict[str, str]:
    return asyncio.run(village.peers(name).table_versions(village.parts[name].ledger))


def test_a_greeting_tells_table_versions(village: Village) -> None:
    with refuses(NotReadyError, where="curator bob"):
        hello(village, "alice")
    for name, parts in village.parts.items():
        parts.alignment.table_version = f"version of {name}"
    assert hello(village, "alice") == {"bob": "version of bob", "carol": "version of carol"}


def test_a_greeting_finds_another_study_file(village: Village, study: Study) -> None:
    village.parts["bob"].study = study
    with pytest.raises(InvalidInputError, match="has another study file"):
        hello(village, "alice")
    village.parts["bob"].study = village.study
    village.twist["bob", "Hello"] = lambda _: curator_peer_pb2.HelloResponse(study_digest="0" * 64)
    with pytest.raises(InvalidInputError, match="curator bob: has another study file"):
        hello(village, "alice")
    check_study_digest(study, study.digest, "curator bob")
    with refuses(InvalidInputError, where="curator bob"):
        check_study_digest(study, "", "curator bob")


def test_a_greeting_finds_a_ledger_that_was_cut(village: Village) -> None:
    for name, parts in village.parts.items():
        parts.alignment.table_version = f"version of {name}"
    alice = village.parts["alice"]
    reserve(alice.ledger, spec_with())
    alice.ledger.charge(ID)
    with pytest.raises(InvalidInputError, match="shows a ledger of 1 entries, and 0 releases were ever planned here"):
        hello(village, "alice")
    for name in ("bob", "carol"):
        store = village.parts[name].store
        store.releases.add(request_with(), 1)
        store.releases.set_planned(release_of(spec_with()))
    hello(village, "alice")
    alice.store.connection.execute("DELETE FROM ledger")
    for _ in range(3):
        with pytest.raises(IntegrityError, match="the ledger lacks entries that curator bob has seen"):
            hello(village, "alice")


@pytest.mark.parametrize(
    "shown", [(2**63 - 1, b"h" * 32), (2**63, b"h" * 32), (1, b"h" * 32), (0, b"h" * 1_000_000), (0, b"h" * 31)]
)
def test_an_invented_ledger_is_refused_and_not_remembered(village: Village, shown: tuple[int, bytes]) -> None:
    bob = village.parts["bob"]
    with refuses(InvalidInputError, where="curator alice"):
        RpcAnswers(bob).greet("alice", village.study.digest, shown)
    assert bob.store.alignments.witness("alice") == (0, b"")


def test_progress_of_the_others(village: Village) -> None:
    assert str(said_of(village, ID)[ID]) == "curator bob: has not received the request yet"
    for name in ("bob", "carol"):
        village.parts[name].store.releases.add(request_with(), 1)
    village.parts["bob"].store.releases.set_planned(release_of(spec_with()))
    reserve(village.parts["bob"].ledger, spec_with())
    village.parts["carol"].store.releases.set_state(ID, ReleaseState.FAILED, "why")
    answers = said_of(village, ID, "f" * 32)
    assert isinstance(answers["f" * 32], NotReadyError)
    bob, carol = (cast("Progress", one) for one in (answers[ID], said_of(village, ID, curator="carol")[ID]))
    assert (bob.curator, bob.state, bob.decided) == ("bob", ReleaseState.REQUESTED, False)
    assert (bob.spec_digest, bob.reserved, bob.charged) == (spec_with().digest(), True, False)
    assert (carol.curator, carol.state, carol.failure, carol.decided) == ("carol", ReleaseState.FAILED, "why", True)


def test_the_others_hear_what_the_server_stated(village: Village) -> None:
    stated, store = PublicationDigests(columns={"age": b"a" * 32, "wage": b"w" * 32}), village.parts["bob"].store
    store.releases.add(request_with(), 1)
    store.releases.set_planned(release_of(spec_with()))
    store.tests.record_publication(ID, stated)
    for state, told in ((ReleaseState.UPLOADING, b""), (ReleaseState.PERTURBING, stated.digest())):
        store.releases.set_state(ID, state)
        assert cast("Progress", said_of(village, ID)[ID]).publication == told
    answers, listed = RpcAnswers(village.parts["bob"]), bytes(100)
    assert not answers.progress(ID, "alice").changes
    store.tests.set_receipt(ID, made_tests(spec_with()).receipts("bob")[0], listed, {})
    assert cast("Progress", said_of(village, ID)[ID]).changes == listed
    assert not answers.progress(ID, "carol").changes, "she has no columns in the release"
    assert not dict(answers.progress_of((ID, *["f" * 32] * 5000), "alice"))[ID].changes, "a message is not too long"


def test_other_refusals_stay_what_they_are(village: Village) -> None:
    village.parts["bob"].store.releases.release = Mock(side_effect=VeiltabError("an unexpected error"))  # type: ignore[method-assign]
    with pytest.raises(VeiltabError, match=r"^an unexpected error$"):
        said_of(village, ID)


def test_what_a_curator_says_amiss_is_its_own_fault_alone(village: Village) -> None:
    village.twist["bob", "FollowProgress"] = Mock(side_effect=ValueError("a value of a person"))
    with pytest.raises(VeiltabError, match="an unexpected error, incident") as refusal:
        said_of(village, ID)
    assert "person" not in str(refusal.value)


def test_a_state_that_nobody_knows_is_of_one_release_alone(village: Village) -> None:
    other = "f" * 32
    for release_id in (ID, other):
        village.parts["bob"].store.releases.add(request_with(release_id=release_id), 1)

    def twisted(answer: Any) -> Any:  # noqa: ANN401 - a message
        answer.releases[0].state = 99
        return answer

    village.twist["bob", "FollowProgress"] = twisted
    answers = said_of(village, ID, other)
    assert isinstance(answers[ID], InvalidInputError)
    assert not isinstance(answers[other], VeiltabError)


@pytest.mark.parametrize(
    "more",
    [
        {"granted": [""] * 65},
        {"granted": ["sex"] * 33, "denied": ["sex"] * 32},
        *({name: bytes(33)} for name in ("spec_digest", "sample_check", "commitment")),
        {"checkpoint": bytes(2**14 + 1)},
        {"changes": bytes(MOST_CHANGES_SAID + 1)},
    ],
)
def test_more_than_a_curator_has_to_say_of_a_release_is_not_kept(village: Village, more: dict[str, Any]) -> None:
    village.parts["bob"].store.releases.add(request_with(), 1)

    def twisted(answer: Any) -> Any:  # noqa: ANN401 - a message
        answer.releases[0].MergeFrom(curator_peer_pb2.ReleaseProgress(**more))
        return answer

    village.twist["bob", "FollowProgress"] = twisted
    refusal = said_of(village, ID)[ID]
    assert isinstance(refusal, InvalidInputError)
    assert str(refusal).startswith(("curator bob: the ", "curator bob: a checkpoint or a list is longer"))
