import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import grpc
import pytest

from tests.conftest import reserve
from tests.curator.made_records import unsynced_statements
from tests.curator.made_rows import workplace
from veiltab.common.core.coin import commitment, toss, transcript
from veiltab.common.errors import (
    ConflictError,
    IntegrityError,
    InvalidInputError,
    NotReadyError,
    TransferError,
    UnavailableError,
    VeiltabError,
)
from veiltab.common.release.spec import release_of
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.chunks import chunk_messages, streamed
from veiltab.common.rpc.parties.identity import Identity, Party, Role
from veiltab.common.rpc.peer import Peer
from veiltab.common.rpc.waiting.changes import Changes
from veiltab.common.study.file import MAX_RESPONDENTS, Study, study_from_bytes
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.officer.policy import Policy
from veiltab.curator.party.service import CuratorPeerServicer, _follow
from veiltab.curator.peers.calls import Pace, Peers, check_study_digest
from veiltab.curator.peers.coins import NONE_SHOWN
from veiltab.curator.peers.looks import Said
from veiltab.curator.progress.release_record import Progress, PublicationDigests
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.release.driver import CuratorDriver
from veiltab.v1 import curator_peer_pb2

Make = Callable[..., Any]
CAROL = b'[[curator]]\nname = "carol"\nendpoint = "localhost:7403"\nid_columns = ["id"]\n'
ID = "0" * 31 + "1"
ALIGNMENT, OTHER, RELEASE = "alignment/" + "a" * 32, "alignment/" + "b" * 32, f"release/{ID}"


class AskedOnce(Peer[Any]):
    """A peer whose answer counts at once: what is not ready is not asked for again for five seconds."""

    async def ask(self, method: Any, request: Any, *, within: float = 1.0, once: bool = True) -> Any:  # noqa: ANN401
        del once
        return await super().ask(method, request, within=within, once=True)


@dataclass
class Village:
    """Three curators in this process; a call is a call of the peer's servicer."""

    study: Study
    folder: Path
    drivers: dict[str, CuratorDriver] = field(default_factory=dict)
    twist: dict[tuple[str, str], Callable[[Any], Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("alice", "bob", "carol"):
            store = CuratorStore(self.folder / name / "curator.sqlite")
            identity = SimpleNamespace(party=Party(study="survey", role=Role.CURATOR, name=name))
            self.drivers[name] = CuratorDriver(
                cast("Identity", identity),
                self.study,
                self.folder / name,
                store,
                Ledger(store.connection, Decimal(1)),
                Policy(),
                workplace(self.folder / name),
            )
            for coin in (ALIGNMENT, OTHER):  # it has begun both
                self.drivers[name].coins.share(coin)

    def peers(self, name: str) -> Peers:
        peers = object.__new__(Peers)
        peers._study, peers._paces = self.study, defaultdict(Pace)
        others = [other for other in self.drivers if other != name]
        peers.curators = {
            other: AskedOnce(
                Party(study="survey", role=Role.CURATOR, name=other), cast("Any", other), partial(self.stub, name)
            )
            for other in others
        }
        return peers

    def stub(self, caller: str, peer: Any) -> Any:  # noqa: ANN401 - a channel that is the peer's name
        servicer = CuratorPeerServicer(self.drivers[peer])

        def method(rpc: str) -> Callable[..., Any]:
            async def called(request: Any, timeout: float) -> Any:  # noqa: ANN401, ASYNC109 - as gRPC's
                del timeout
                answer = await getattr(servicer, rpc)(request, caller)
                return self.twist.get((peer, rpc), lambda unchanged: unchanged)(answer)

            return called

        def follow(requests: AsyncIterator[Any], timeout: float) -> "Following":
            assert timeout > 0
            twist = self.twist.get((peer, "FollowProgress"), lambda unchanged: unchanged)
            return Following(servicer.FollowProgress(requests, cast("Any", caller)), twist)

        unary = {rpc: method(rpc) for rpc in ("Hello", "Commit", "Reveal")}
        return SimpleNamespace(**unary, FollowProgress=follow)

    async def tossed(self, name: str, coin: str, shown: Mapping[str, bytes] = NONE_SHOWN) -> bytes:
        """Let one curator toss once."""
        return await self.drivers[name].coins.toss(coin, self.peers(name), shown)

    def toss(self, coin: str, rounds: int = 5, names: Sequence[str] = ("alice", "bob", "carol")) -> dict[str, bytes]:
        """Let curators toss, again and again, as the drivers do; raise the first refusal that is not "not ready"."""
        values: dict[str, bytes] = {}
        for _ in range(rounds):
            for name in names:
                try:
                    values[name] = asyncio.run(self.tossed(name, coin))
                except NotReadyError:
                    continue
        return values


@pytest.fixture
def village(tmp_path: Path, study_bytes: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Village]:
    study = study_from_bytes(study_bytes + CAROL, "study.toml")
    monkeypatch.setattr(
        "veiltab.curator.party.service.caller", lambda context: Party(study="survey", role=Role.CURATOR, name=context)
    )
    village = Village(study, tmp_path)
    yield village
    for driver in village.drivers.values():
        driver.store.close()


def test_all_come_to_the_same_value_which_is_that_of_their_shares(village: Village) -> None:
    values = village.toss(ALIGNMENT)
    shares = {name: driver.store.coins.own_share(ALIGNMENT, b"") for name, driver in village.drivers.items()}
    assert {len(share) for share in shares.values()} == {32}
    assert len(set(shares.values())) == 3
    assert values == dict.fromkeys(village.drivers, toss(ALIGNMENT, shares))
    assert {driver.store.coins.coin_value(ALIGNMENT) for driver in village.drivers.values()} == set(values.values())
    assert village.toss(ALIGNMENT, rounds=1) == values


def test_of_a_toss_nothing_waits_for_no_disk_but_what_a_peer_opens_again_and_what_follows_from_it(
    village: Village, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsynced = unsynced_statements(monkeypatch)
    assert village.toss(ALIGNMENT)
    assert unsynced == {"INSERT INTO opening (coin_id, curator, received)", "UPDATE coin SET value"}


def test_whose_part_is_awaited_is_known_until_the_coin_is_tossed(village: Village) -> None:
    coins = village.drivers["alice"].coins
    assert coins.awaited(ALIGNMENT) == {"bob", "carol"}
    village.twist["carol", "Commit"] = away
    with pytest.raises(UnavailableError):
        asyncio.run(village.tossed("alice", ALIGNMENT))
    assert coins.awaited(ALIGNMENT) == {"carol"}
    del village.twist["carol", "Commit"]
    with pytest.raises(NotReadyError):
        asyncio.run(village.tossed("alice", ALIGNMENT))
    assert coins.awaited(ALIGNMENT) == {"bob", "carol"}
    village.toss(ALIGNMENT)
    assert not coins.awaited(ALIGNMENT)


def away(_: object) -> NoReturn:
    raise UnavailableError("no connection")


def test_whoever_is_away_withholds_nothing(village: Village) -> None:
    village.toss(ALIGNMENT, rounds=1, names=("alice",))
    for one, other in (("bob", "carol"), ("carol", "bob")):
        committed = village.drivers[other].store.coins.commitments(ALIGNMENT)[other]
        village.drivers[one].coins.exchange_commitments(ALIGNMENT, other, committed)
    village.twist["bob", "Reveal"] = village.twist["carol", "Reveal"] = away
    with pytest.raises(UnavailableError):
        asyncio.run(village.tossed("alice", ALIGNMENT))
    assert village.drivers["alice"].coins.awaited(ALIGNMENT) == {"bob", "carol"}
    assert not village.drivers["alice"].coins.withheld(ALIGNMENT)


def test_whoever_has_a_share_and_opens_none_withholds_it_and_nobody_else_does(village: Village) -> None:
    for name in village.drivers:
        with suppress(NotReadyError):
            asyncio.run(village.tossed(name, ALIGNMENT))
    village.twist["bob", "Reveal"] = away
    for name in ("bob", "carol", "alice"):
        with suppress(NotReadyError, UnavailableError):
            asyncio.run(village.tossed(name, ALIGNMENT))
    alice = village.drivers["alice"]
    assert alice.store.coins.coin_value(ALIGNMENT) is None
    assert alice.coins.withheld(ALIGNMENT) == {"bob"}
    with closing(CuratorStore(village.folder / "alice" / "curator.sqlite")) as again:  # and another process knows it
        assert again.coins.openings_withheld(ALIGNMENT) == {"bob"}
    del village.twist["bob", "Reveal"]
    village.toss(ALIGNMENT)
    assert not alice.coins.withheld(ALIGNMENT)


def test_another_coin_has_other_shares_and_another_value(village: Village) -> None:
    first, second = village.toss(ALIGNMENT), village.toss(OTHER)
    assert first["alice"] != second["alice"]


def test_of_an_alignment_that_is_not_begun_here_nothing_is_kept(village: Village) -> None:
    alice = village.drivers["alice"]
    for unknown in (
        "alignment/" + "c" * 32,
        "alignment/" + "\N{DEVANAGARI DIGIT ZERO}" * 32,
        "alignment/../" + "a" * 29,
    ):
        with pytest.raises(NotReadyError, match="has not begun this alignment yet"):
            alice.coins.exchange_commitments(unknown, "bob", commitment(unknown, "bob", bytes(32)))
        with pytest.raises(NotReadyError, match="has not begun this alignment yet"):
            alice.coins.open_share(unknown, "bob", bytes(32), commitment(unknown, "bob", bytes(32)))
        assert not alice.store.coins.knows_coin(unknown)
        assert not alice.store.coins.commitments(unknown)


def test_nobody_opens_before_it_holds_every_commitment(village: Village) -> None:
    with pytest.raises(NotReadyError, match="does not hold every commitment yet"):
        asyncio.run(village.tossed("alice", ALIGNMENT))
    assert village.drivers["alice"].store.coins.coin_value(ALIGNMENT) is None


def test_a_share_that_was_not_committed_to_is_caught(village: Village) -> None:
    village.twist["bob", "Reveal"] = lambda _: curator_peer_pb2.RevealResponse(
        share=b"a share of bob's later choice..."
    )
    with pytest.raises(IntegrityError, match="curator bob: a share was opened that is not the one committed to"):
        village.toss(ALIGNMENT)
    assert village.drivers["alice"].store.coins.coin_value(ALIGNMENT) is None


def test_a_curator_that_commits_to_two_things_is_caught(village: Village) -> None:
    answers = iter(range(10))
    village.twist["bob", "Commit"] = lambda _: curator_peer_pb2.CommitResponse(
        commitment=commitment(ALIGNMENT, "bob", bytes([next(answers)]) * 32)
    )
    with pytest.raises(ConflictError, match=r"changed its commitment|hold different commitments"):
        village.toss(ALIGNMENT)
    assert {driver.store.coins.coin_value(ALIGNMENT) for driver in village.drivers.values()} == {None}


def test_a_curator_that_changes_its_commitment_is_caught_before_anything_is_opened(village: Village) -> None:
    with pytest.raises(NotReadyError):
        asyncio.run(village.tossed("alice", ALIGNMENT))
    other = commitment(ALIGNMENT, "bob", bytes(32))
    village.twist["bob", "Commit"] = lambda _: curator_peer_pb2.CommitResponse(commitment=other)
    with pytest.raises(ConflictError, match="curator bob: a curator changed its commitment"):
        asyncio.run(village.tossed("alice", ALIGNMENT))


def test_a_share_is_opened_only_to_who_holds_the_same_commitments(village: Village) -> None:
    village.toss(ALIGNMENT)
    servicer = CuratorPeerServicer(village.drivers["alice"])
    request = curator_peer_pb2.RevealRequest(coin_id=ALIGNMENT, transcript=bytes(32))
    with pytest.raises(ConflictError, match="different commitments"):
        asyncio.run(servicer.Reveal(request, cast("Any", "bob")))


def test_a_commitment_has_32_bytes(village: Village) -> None:
    servicer = CuratorPeerServicer(village.drivers["alice"])
    for length in (0, 31, 33):
        request = curator_peer_pb2.CommitRequest(coin_id=ALIGNMENT, commitment=bytes(length))
        with pytest.raises(InvalidInputError, match="32 bytes"):
            asyncio.run(servicer.Commit(request, cast("Any", "bob")))
    assert not village.drivers["alice"].store.coins.commitments(ALIGNMENT)


def test_a_release_has_a_seed_only_once_everyone_has_charged(village: Village, make_spec: Make) -> None:
    charged: list[str] = []
    for name, driver in village.drivers.items():
        # Who has not charged gives no commitment, so that who has cannot go on.
        assert not village.toss(RELEASE, names=charged)
        reserve(driver.ledger, make_spec())
        driver.ledger.charge(ID)
        charged.append(name)
    assert len(set(village.toss(RELEASE).values())) == 1


def test_a_new_share_is_durable_before_its_commitment_leaves(village: Village, make_spec: Make) -> None:
    alice, statements = village.drivers["alice"], list[str]()
    shown = shown_with_charges(village, make_spec())
    for coin, known, is_synced in ((RELEASE, shown, False), (f"alignment/{ID}", {}, True)):
        alice.store.connection.set_trace_callback(statements.append)
        with pytest.raises(NotReadyError, match="yet"):
            asyncio.run(village.tossed("alice", coin, of_others(known, "alice")))
        alice.store.connection.set_trace_callback(None)
        begun = statements.index("BEGIN IMMEDIATE")
        assert ("PRAGMA synchronous = NORMAL" in statements[:begun]) is not is_synced
        statements.clear()


def shown_with_charges(village: Village, spec: TableSpec) -> dict[str, bytes]:
    """Let every curator charge a release; return what each commits to."""
    for driver in village.drivers.values():
        reserve(driver.ledger, spec)
        driver.ledger.charge(ID)
        driver.coins.commit(ID)
    return {name: driver.coins.commitment(ID) for name, driver in village.drivers.items()}


def of_others(shown: dict[str, bytes], name: str) -> dict[str, bytes]:
    return {other: committed for other, committed in shown.items() if other != name}


def test_whose_commitment_is_shown_is_not_asked_for_it(village: Village, make_spec: Make) -> None:
    shown = shown_with_charges(village, make_spec())
    assert {len(committed) for committed in shown.values()} == {32}
    village.twist |= dict.fromkeys([(name, "Commit") for name in village.drivers], away)
    for name in ("alice", "bob"):  # carol holds none of theirs yet
        with pytest.raises(NotReadyError, match="does not hold every commitment yet"):
            asyncio.run(village.tossed(name, RELEASE, of_others(shown, name)))
    values = [asyncio.run(village.tossed(name, RELEASE, of_others(shown, name))) for name in ("carol", "bob", "alice")]
    shares = {name: driver.store.coins.own_share(RELEASE, b"") for name, driver in village.drivers.items()}
    assert values == [toss(RELEASE, shares)] * 3


def test_a_commitment_that_is_shown_counts_as_one_that_was_asked_for(village: Village, make_spec: Make) -> None:
    shown = shown_with_charges(village, make_spec())
    for length in (31, 33):
        with pytest.raises(InvalidInputError, match="curator bob: a commitment has 32 bytes"):
            asyncio.run(village.tossed("alice", RELEASE, shown | {"bob": bytes(length)}))
    with pytest.raises(NotReadyError):
        asyncio.run(village.tossed("alice", RELEASE, of_others(shown, "alice")))
    changed = of_others(shown, "alice") | {"bob": bytes(32)}
    with pytest.raises(ConflictError, match="curator bob: a curator changed its commitment"):
        asyncio.run(village.tossed("alice", RELEASE, changed))
    assert village.drivers["alice"].store.coins.commitments(RELEASE)["bob"] == shown["bob"]


def test_a_share_is_given_only_with_the_record_of_what_its_asker_committed_to(
    village: Village, make_spec: Make
) -> None:
    shown = shown_with_charges(village, make_spec())
    alice = village.drivers["alice"]

    def asked(committed: bytes, of_carol: bytes = shown["carol"]) -> bytes:
        seen = transcript({"alice": shown["alice"], "bob": committed, "carol": of_carol})
        request = curator_peer_pb2.RevealRequest(coin_id=RELEASE, transcript=seen, commitment=committed)
        return asyncio.run(CuratorPeerServicer(alice).Reveal(request, cast("Any", "bob"))).share

    with pytest.raises(NotReadyError, match="does not hold every commitment yet"):
        asked(shown["bob"])
    alice.store.coins.commit(RELEASE, "carol", shown["carol"])
    with pytest.raises(ConflictError, match="different commitments"):
        asked(shown["bob"], of_carol=bytes(32))
    with pytest.raises(InvalidInputError, match="a commitment has 32 bytes"):
        asked(b"short")
    assert not alice.store.coins.openings_withheld(RELEASE)
    assert asked(shown["bob"]) == alice.store.coins.own_share(RELEASE, b"")
    assert alice.store.coins.commitments(RELEASE)["bob"] == shown["bob"]
    assert alice.store.coins.openings_withheld(RELEASE) == {"bob"}
    with pytest.raises(ConflictError, match="curator bob: a curator changed its commitment"):
        asked(bytes(32))


def test_a_forgotten_coin_is_not_tossed_again(village: Village) -> None:
    village.toss(ALIGNMENT)
    village.drivers["alice"].store.coins.forget_coin(ALIGNMENT)
    with pytest.raises(ConflictError, match="tossed and is forgotten"):
        asyncio.run(village.tossed("alice", ALIGNMENT))
    village.drivers["bob"].store.coins.set_coin_value(ALIGNMENT, b"")
    with pytest.raises(ConflictError, match="tossed and is forgotten"):
        asyncio.run(village.tossed("bob", ALIGNMENT))


def hello(village: Village, name: str) -> dict[str, str]:
    return asyncio.run(village.peers(name).table_versions(village.drivers[name].ledger))


def test_a_greeting_tells_table_versions(village: Village) -> None:
    with pytest.raises(NotReadyError, match="curator bob: has no table loaded yet"):
        hello(village, "alice")
    for name, driver in village.drivers.items():
        driver.alignment.table_version = f"version of {name}"
    assert hello(village, "alice") == {"bob": "version of bob", "carol": "version of carol"}


def test_a_greeting_finds_another_study_file(village: Village, study: Study) -> None:
    village.drivers["bob"].study = study
    with pytest.raises(InvalidInputError, match="has another study file"):
        hello(village, "alice")
    village.drivers["bob"].study = village.study
    village.twist["bob", "Hello"] = lambda _: curator_peer_pb2.HelloResponse(study_digest="0" * 64)
    with pytest.raises(InvalidInputError, match="curator bob: has another study file"):
        hello(village, "alice")
    check_study_digest(study, study.digest, "curator bob")
    with pytest.raises(InvalidInputError, match="curator bob: has another study file"):
        check_study_digest(study, "", "curator bob")


def test_a_greeting_finds_a_ledger_that_was_cut(village: Village, make_spec: Make, make_request: Make) -> None:
    for name, driver in village.drivers.items():
        driver.alignment.table_version = f"version of {name}"
    alice = village.drivers["alice"]
    reserve(alice.ledger, make_spec())
    alice.ledger.charge(ID)
    with pytest.raises(InvalidInputError, match="shows a ledger of 1 entries, and 0 releases were ever planned here"):
        hello(village, "alice")
    for name in ("bob", "carol"):
        store = village.drivers[name].store
        store.releases.add(make_request(), 1)
        store.releases.set_planned(release_of(make_spec()))
    hello(village, "alice")
    alice.store.connection.execute("DELETE FROM ledger")
    for _ in range(3):
        with pytest.raises(IntegrityError, match="the ledger lacks entries that curator bob has seen"):
            hello(village, "alice")


@pytest.mark.parametrize(
    "shown", [(2**63 - 1, b"h" * 32), (2**63, b"h" * 32), (1, b"h" * 32), (0, b"h" * 1_000_000), (0, b"h" * 31)]
)
def test_an_invented_ledger_is_refused_and_not_remembered(village: Village, shown: tuple[int, bytes]) -> None:
    bob = village.drivers["bob"]
    with pytest.raises(InvalidInputError, match="curator alice"):
        bob.greet("alice", village.study.digest, shown)
    assert bob.store.alignments.witness("alice") == (0, b"")


class Following:
    """A call that follows releases, as gRPC's client has it."""

    def __init__(self, answers: AsyncIterator[Any], twist: Callable[[Any], Any]) -> None:
        self.answers = answers
        self.twist = twist

    async def read(self) -> Any:  # noqa: ANN401 - a message, or the end
        return self.twist(await anext(self.answers, grpc.aio.EOF))

    def cancel(self) -> None:
        """Take notice."""


async def names_of(*names: tuple[str, ...]) -> AsyncIterator[tuple[str, ...]]:
    """Ask for some releases, and for no more until the call is over."""
    for some in names:
        yield some
    await asyncio.sleep(1000)


def followed(village: Village, *names: tuple[str, ...]) -> AsyncGenerator[dict[str, Said], None]:
    """Let alice follow bob."""
    return village.peers("alice").follow("bob", names_of(*names))


def said_of(village: Village, *release_ids: str, curator: str = "bob") -> Mapping[str, Said]:
    """Let alice follow some releases at another curator, and return what it says first."""

    async def first() -> Mapping[str, Said]:
        async with aclosing(village.peers("alice").follow(curator, names_of(release_ids))) as answers:
            return await anext(answers)

    return asyncio.run(first())


def test_progress_of_the_others(village: Village, make_request: Make, make_spec: Make) -> None:
    unknown = said_of(village, ID)[ID]
    assert isinstance(unknown, NotReadyError)
    assert str(unknown) == "curator bob: has not received the request yet"
    for name in ("bob", "carol"):
        village.drivers[name].store.releases.add(make_request(), 1)
    village.drivers["bob"].store.releases.set_planned(release_of(make_spec()))
    reserve(village.drivers["bob"].ledger, make_spec())
    village.drivers["carol"].store.releases.set_state(ID, ReleaseState.FAILED, "why")
    answers = said_of(village, ID, "f" * 32)
    assert isinstance(answers["f" * 32], NotReadyError)
    bob, carol = answers[ID], said_of(village, ID, curator="carol")[ID]
    assert isinstance(bob, Progress)
    assert isinstance(carol, Progress)
    assert (bob.curator, bob.state, bob.decided) == ("bob", ReleaseState.REQUESTED, False)
    assert (bob.spec_digest, bob.reserved, bob.charged) == (make_spec().digest(), True, False)
    assert (carol.curator, carol.state, carol.failure, carol.decided) == ("carol", ReleaseState.FAILED, "why", True)


def test_the_others_hear_what_the_server_stated(village: Village, make_request: Make, make_spec: Make) -> None:
    stated = PublicationDigests(columns={"age": b"a" * 32, "wage": b"w" * 32})
    store = village.drivers["bob"].store
    store.releases.add(make_request(), 1)
    store.releases.set_planned(release_of(make_spec()))
    store.tests.record_publication(ID, stated)
    for state, told in ((ReleaseState.UPLOADING, b""), (ReleaseState.PERTURBING, stated.digest())):
        store.releases.set_state(ID, state)
        answer = said_of(village, ID)[ID]
        assert isinstance(answer, Progress)
        assert answer.publication == told


def test_other_refusals_stay_what_they_are(village: Village) -> None:
    def broken(_: object) -> None:
        raise VeiltabError("an unexpected error")

    village.drivers["bob"].store.releases.release = broken  # type: ignore[method-assign, assignment]
    with pytest.raises(VeiltabError, match=r"^an unexpected error$"):
        said_of(village, ID)


def test_what_a_curator_says_amiss_is_its_own_fault_alone(village: Village) -> None:
    def unforeseen(_: object) -> NoReturn:
        raise ValueError("a value of a person")

    village.twist["bob", "FollowProgress"] = unforeseen
    with pytest.raises(VeiltabError, match="an unexpected error, incident") as refusal:
        said_of(village, ID)
    assert "person" not in str(refusal.value)


def test_a_state_that_nobody_knows_is_of_one_release_alone(village: Village, make_request: Make) -> None:
    other = "f" * 32
    for release_id in (ID, other):
        village.drivers["bob"].store.releases.add(make_request(release_id=release_id), 1)

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
        {"spec_digest": bytes(33)},
        {"sample_check": bytes(33)},
        {"commitment": bytes(33)},
    ],
)
def test_more_than_a_curator_has_to_say_of_a_release_is_not_kept(
    village: Village, make_request: Make, more: dict[str, Any]
) -> None:
    village.drivers["bob"].store.releases.add(make_request(), 1)

    def twisted(answer: Any) -> Any:  # noqa: ANN401 - a message
        answer.releases[0].MergeFrom(curator_peer_pb2.ReleaseProgress(**more))
        return answer

    village.twist["bob", "FollowProgress"] = twisted
    refusal = said_of(village, ID)[ID]
    assert isinstance(refusal, InvalidInputError)
    assert str(refusal).startswith("curator bob: a ")


def test_what_is_followed_is_said_at_once_and_after_each_change(village: Village, make_request: Make) -> None:
    bob, other = village.drivers["bob"], "f" * 32
    bob.store.releases.add(make_request(), 1)

    async def scenario() -> None:
        async with asyncio.timeout(20), aclosing(followed(village, (ID, other))) as answers:
            said = await anext(answers)
            assert isinstance(said[ID], Progress)
            assert isinstance(said[other], NotReadyError)
            bob.propose(make_request(release_id=other, deadline=int(time.time()) + 60), village.study.digest)
            bob._say_what_was_left_unsaid(other)  # as whoever drives it does when it has to wait
            said = await anext(answers)
            assert list(said) == [other]
            assert isinstance(said[other], Progress)
            bob.store.releases.set_state(ID, ReleaseState.FAILED, "why")
            bob.changes.notify(ID)
            failed = (await anext(answers))[ID]
            assert isinstance(failed, Progress)
            assert failed.failure == "why"
            bob.changes.notify(ID)  # it is over, and said
            bob.changes.notify(other)
            assert list(await anext(answers)) == [other]
            bob.changes.close()
            assert await anext(answers, None) is None

    asyncio.run(scenario())


def test_a_call_that_follows_ends_so_that_the_next_one_hears_of_all_anew(
    village: Village, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veiltab.curator.party.service._FOLLOWED_SECONDS", 77.0)

    async def scenario() -> None:
        ends: list[Callable[[], None]] = []
        loop = asyncio.get_running_loop()
        call_later = loop.call_later

        def later(seconds: float, callback: Callable[..., None], *arguments: Any) -> asyncio.TimerHandle:  # noqa: ANN401
            if seconds == 77.0:
                ends.append(callback)
            return call_later(seconds, callback, *arguments)

        monkeypatch.setattr(loop, "call_later", later)
        async with asyncio.timeout(20), aclosing(followed(village, (ID,))) as answers:
            assert list(await anext(answers)) == [ID]
            (end,) = ends
            end()  # as if 77 seconds were over
            assert await anext(answers, None) is None

    asyncio.run(scenario())


def test_one_message_and_one_call_follow_so_many_releases(village: Village, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.curator.party.service.MOST_FOLLOWED", 300)
    many = tuple(f"{number:032x}" for number in range(301))

    async def numbers(*names: tuple[str, ...]) -> list[int]:
        async with asyncio.timeout(20), aclosing(followed(village, *names)) as answers:
            return [len(said) async for said in answers]

    for names in [(many[:257],), (many[:256], many[256:])]:
        with pytest.raises(InvalidInputError, match="at most 256 releases, and one call 300"):
            asyncio.run(numbers(*names))


@pytest.mark.parametrize("name", ["0" * 31, "0" * 31 + "G", "0" * 1_000_000])
def test_what_is_no_id_is_not_followed(village: Village, name: str) -> None:
    async def first() -> object:
        async with aclosing(followed(village, (ID, name))) as answers:
            return await anext(answers)

    with pytest.raises(InvalidInputError, match="a release id is 32 hexadecimal digits"):
        asyncio.run(first())


def test_a_release_that_is_named_twice_is_not_said_twice(village: Village) -> None:
    async def first() -> object:
        async with aclosing(followed(village, (ID, ID))) as answers:
            return await anext(answers)

    with pytest.raises(InvalidInputError, match="a release is named twice in one message"):
        asyncio.run(first())


def test_a_call_that_names_releases_again_is_read_no_further_for_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses, read = list[float](), list[int]()

    async def slept(seconds: float) -> None:
        pauses.append(seconds)

    async def requests() -> AsyncIterator[curator_peer_pb2.FollowProgressRequest]:
        for number, name in enumerate((ID, "f" * 32, ID, ID)):
            read.append(len(pauses))
            yield curator_peer_pb2.FollowProgressRequest(release_ids=[name])
            assert len(pauses) == max(0, number - 1)

    monkeypatch.setattr("veiltab.curator.party.service.asyncio.sleep", slept)
    with Changes().followed(Party(study="survey", role=Role.CURATOR, name="bob")) as one:
        asyncio.run(_follow(requests(), one))
    assert (pauses, read) == ([1.0, 1.0], [0, 0, 0, 1])


def test_a_curator_that_ends_lets_nobody_follow_it_any_more(village: Village) -> None:
    village.drivers["bob"].changes.close()

    async def scenario() -> None:
        async with asyncio.timeout(20), aclosing(followed(village, (ID,))) as answers:
            assert [said async for said in answers] == []

    asyncio.run(scenario())


def test_a_curator_that_cannot_be_followed_says_why(village: Village) -> None:
    def refuse(_: object) -> NoReturn:
        raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata())

    village.twist["bob", "FollowProgress"] = refuse
    with pytest.raises(UnavailableError, match="no connection"):
        said_of(village, ID)


def test_an_answer_about_more_releases_than_one_has_is_refused(village: Village) -> None:
    for releases, unknown in ((257, 0), (0, 257), (200, 57)):
        village.twist["bob", "FollowProgress"] = lambda _, releases=releases, unknown=unknown: (  # type: ignore[misc]
            curator_peer_pb2.FollowProgressResponse(
                releases=[curator_peer_pb2.ReleaseProgress()] * releases, unknown=[ID] * unknown
            )
        )
        with pytest.raises(InvalidInputError, match="curator bob: one answer is about at most 256 releases"):
            said_of(village, ID)


@pytest.mark.parametrize(
    ("length", "answers_a_call", "read"), [(32, 1000, 377), (409_600, 1000, 4), (32, 1, 19)], ids=["", "long", "calls"]
)
def test_no_more_is_read_of_a_curator_in_a_second_than_a_few_hundred_answers(
    village: Village, monkeypatch: pytest.MonkeyPatch, length: int, answers_a_call: int, read: int
) -> None:
    """A long answer counts for a hundred, and a call for twenty."""
    peers, waits = village.peers("alice"), list[float]()
    answer = curator_peer_pb2.FollowProgressResponse(unknown=["f" * length])

    def called(_requests: object, timeout: float) -> object:
        left = iter([answer] * answers_a_call)

        async def next_one() -> object:
            return next(left, grpc.aio.EOF)

        return SimpleNamespace(read=next_one, cancel=lambda: timeout)

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    async def reading() -> int:
        number = 0
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 7.0)
        while True:
            async for _ in peers.follow("bob", names_of((ID,))):
                if waits:
                    return number
                number += 1

    peers.curators["bob"].stub = cast("Any", SimpleNamespace(FollowProgress=called))
    monkeypatch.setattr("veiltab.curator.peers.calls.asyncio.sleep", wait)
    assert asyncio.run(reading()) == read
    assert waits[0] == 1


def test_a_curator_that_is_followed_and_says_nothing_is_away(village: Village, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("ASK_SECONDS", "LONGEST_WAIT"):
        monkeypatch.setattr(f"veiltab.curator.peers.calls.{limit}", 0.005)

    async def first() -> object:
        async with aclosing(followed(village)) as answers:
            return await anext(answers)

    with pytest.raises(UnavailableError, match="no answer before the deadline"):
        asyncio.run(first())


class Tokens:
    """A peer's stream of tokens from the byte that it is asked for on."""

    def __init__(self, data: bytes, total: int | None = None) -> None:
        self.data = data
        self.total = len(data) if total is None else total
        self.asked: list[int] = []

    def FetchTokens(self, request: curator_peer_pb2.FetchTokensRequest, timeout: float) -> "Tokens":  # noqa: N802
        assert timeout > 0
        self.asked.append(request.offset)
        return self

    async def __aiter__(self) -> AsyncIterator[curator_peer_pb2.FetchTokensResponse]:
        async for total, chunk in streamed(chunk_messages(self.data, self.asked[-1]), self.total, self.asked[-1]):
            yield curator_peer_pb2.FetchTokensResponse(total=total, chunk=chunk)

    def cancel(self) -> None:
        """Take notice."""


@pytest.mark.parametrize("offset", [0, 16, 2_000_000, 3_000_000])
def test_tokens_are_streamed_from_any_byte(study: Study, offset: int) -> None:
    data, totals = bytes(range(250)) * 12_000, set[int]()
    stub, peers = Tokens(data), object.__new__(Peers)
    peers._study = study
    party = Party(study="survey", role=Role.CURATOR, name="bob")
    peers.curators = {"bob": Peer(party, cast("Any", "bob"), lambda _: cast("Any", stub))}

    async def fetched() -> bytes:
        return b"".join([piece async for piece in peers.tokens("bob", "a" * 32, offset, totals.add)])

    assert asyncio.run(fetched()) == data[offset:]
    assert stub.asked == [offset]
    assert totals == {len(data)}


@pytest.mark.parametrize("most", [MAX_RESPONDENTS, 5000])
@pytest.mark.parametrize("beyond", [0, 1])
def test_tokens_of_more_respondents_than_a_table_may_have_are_not_taken(study: Study, most: int, beyond: int) -> None:
    data, totals, rows = bytes(16), list[int](), most + beyond
    stub, peers = Tokens(data, 16 * rows), object.__new__(Peers)
    peers._study = replace(study, maximum_respondents=most)
    party = Party(study="survey", role=Role.CURATOR, name="bob")
    peers.curators = {"bob": Peer(party, cast("Any", "bob"), lambda _: cast("Any", stub))}

    async def first() -> bytes:
        return await anext(peers.tokens("bob", "a" * 32, 0, totals.append))

    if not beyond:
        assert asyncio.run(first()) == data
        assert totals == [16 * rows]
    else:
        with pytest.raises(TransferError, match=f"longer than the {16 * most} bytes"):
            asyncio.run(first())
        assert totals == []
