""""""

import asyncio
from contextlib import closing, suppress
from typing import Any, NoReturn, cast

import pytest

from tests.conftest import refuses, reserve, spec_with
from tests.curator.made_records import unsynced_statements
from tests.curator.told_curators import ALIGNMENT, ID, OTHER, RELEASE, Village, village_fixture  # noqa: F401 - fixtures
from veiltab.common.core.coin import commitment, toss, transcript
from veiltab.common.errors import ConflictError, IntegrityError, InvalidInputError, NotReadyError, UnavailableError
from veiltab.common.release.table_spec import TableSpec
from veiltab.curator.party.service import CuratorPeerServicer
from veiltab.curator.peers.coins import pair_coin
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.release.rpc_answers import RpcAnswers
from veiltab.v1 import curator_peer_pb2


def test_all_come_to_the_same_value_which_is_that_of_their_shares(village: Village) -> None:
    values = village.toss(ALIGNMENT)
    shares = {name: parts.store.coins.own_share(ALIGNMENT, b"") for name, parts in village.parts.items()}
    assert {len(share) for share in shares.values()} == {32}
    assert len(set(shares.values())) == 3
    assert values == dict.fromkeys(village.parts, toss(ALIGNMENT, shares))
    assert {parts.store.coins.coin_value(ALIGNMENT) for parts in village.parts.values()} == set(values.values())
    assert village.toss(ALIGNMENT, rounds=1) == values
    assert village.toss(OTHER)["alice"] != values["alice"]


def test_of_a_toss_nothing_waits_for_no_disk_but_what_a_peer_opens_again_and_what_follows_from_it(
    village: Village, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsynced = unsynced_statements(monkeypatch)
    assert village.toss(ALIGNMENT)
    assert unsynced == {"INSERT INTO opening (coin_id, curator, received)", "UPDATE coin SET value"}


def test_whose_part_is_awaited_is_known_until_the_coin_is_tossed(village: Village) -> None:
    coins = village.parts["alice"].coins
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
        committed = village.parts[other].store.coins.commitments(ALIGNMENT)[other]
        village.parts[one].coins.exchange_commitments(ALIGNMENT, other, committed)
    village.twist["bob", "Reveal"] = village.twist["carol", "Reveal"] = away
    with pytest.raises(UnavailableError):
        asyncio.run(village.tossed("alice", ALIGNMENT))
    assert village.parts["alice"].coins.awaited(ALIGNMENT) == {"bob", "carol"}
    assert not village.parts["alice"].coins.withheld(ALIGNMENT)


def test_whoever_has_a_share_and_opens_none_withholds_it_and_nobody_else_does(village: Village) -> None:
    for name in village.parts:
        with suppress(NotReadyError):
            asyncio.run(village.tossed(name, ALIGNMENT))
    village.twist["bob", "Reveal"] = away
    for name in ("bob", "carol", "alice"):
        with suppress(NotReadyError, UnavailableError):
            asyncio.run(village.tossed(name, ALIGNMENT))
    alice = village.parts["alice"]
    assert alice.store.coins.coin_value(ALIGNMENT) is None
    assert alice.coins.withheld(ALIGNMENT) == {"bob"}
    with closing(CuratorStore(village.folder / "alice" / "curator.sqlite")) as again:  # and another process knows it
        assert again.coins.openings_withheld(ALIGNMENT) == {"bob"}
    del village.twist["bob", "Reveal"]
    village.toss(ALIGNMENT)
    assert not alice.coins.withheld(ALIGNMENT)


def test_of_an_alignment_that_is_not_begun_here_nothing_is_kept(village: Village) -> None:
    alice = village.parts["alice"]
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


def test_parts_of_alignments_that_were_not_made_are_bounded(village: Village) -> None:
    village.toss(ALIGNMENT)
    coins, store = village.parts["alice"].store.coins, village.parts["alice"].store
    store.alignments.set_alignment(ALIGNMENT.removeprefix("alignment/"), 1, "")
    begun = [f"alignment/{number:032x}" for number in range(20)]
    for name in begun:
        coins.own_share(name, bytes(32))
        coins.commit(name, "bob", bytes(32))
        coins.set_opening_given(name, "bob")
        store.joins.begin(name.removeprefix("alignment/"), "bob", "version", bytes(16))
    assert coins.forget_unmade(5) == [name.removeprefix("alignment/") for name in begun[:-6:-1]]
    assert store.connection.execute("SELECT COUNT(*) FROM join_session").fetchone()[0] == 5
    rows = store.connection.execute("SELECT coin_id FROM opening UNION SELECT coin_id FROM commitment").fetchall()
    assert {row["coin_id"] for row in rows} == {ALIGNMENT, *begun[-5:]}
    assert [coins.knows_coin(name) for name in begun] == [False] * 15 + [True] * 5
    assert coins.coin_value(ALIGNMENT)


def test_nobody_opens_before_it_holds_every_commitment(village: Village) -> None:
    with pytest.raises(NotReadyError, match="does not hold every commitment yet"):
        asyncio.run(village.tossed("alice", ALIGNMENT))
    assert village.parts["alice"].store.coins.coin_value(ALIGNMENT) is None


def test_a_share_that_was_not_committed_to_is_caught(village: Village) -> None:
    village.twist["bob", "Reveal"] = lambda _: curator_peer_pb2.RevealResponse(
        share=b"a share of bob's later choice..."
    )
    with refuses(IntegrityError, where="curator bob"):
        village.toss(ALIGNMENT)
    assert village.parts["alice"].store.coins.coin_value(ALIGNMENT) is None


def test_a_curator_that_commits_to_two_things_is_caught(village: Village) -> None:
    answers = iter(range(10))
    village.twist["bob", "Commit"] = lambda _: curator_peer_pb2.CommitResponse(
        commitment=commitment(ALIGNMENT, "bob", bytes([next(answers)]) * 32)
    )
    with pytest.raises(ConflictError, match=r"changed its commitment|hold different commitments"):
        village.toss(ALIGNMENT)
    assert {parts.store.coins.coin_value(ALIGNMENT) for parts in village.parts.values()} == {None}


def test_a_curator_that_changes_its_commitment_is_caught_before_anything_is_opened(village: Village) -> None:
    with pytest.raises(NotReadyError):
        asyncio.run(village.tossed("alice", ALIGNMENT))
    other = commitment(ALIGNMENT, "bob", bytes(32))
    village.twist["bob", "Commit"] = lambda _: curator_peer_pb2.CommitResponse(commitment=other)
    with pytest.raises(ConflictError, match="curator bob: a curator changed its commitment"):
        asyncio.run(village.tossed("alice", ALIGNMENT))


def test_a_commitment_has_32_bytes(village: Village) -> None:
    servicer = CuratorPeerServicer(RpcAnswers(village.parts["alice"]))
    for length in (0, 31, 33):
        request = curator_peer_pb2.CommitRequest(coin_id=ALIGNMENT, commitment=bytes(length))
        with pytest.raises(InvalidInputError, match="32 bytes"):
            asyncio.run(servicer.Commit(request, cast("Any", "bob")))
    assert not village.parts["alice"].store.coins.commitments(ALIGNMENT)


def test_a_release_has_a_seed_only_once_everyone_has_charged(village: Village) -> None:
    charged: list[str] = []
    for name, parts in village.parts.items():
        # Who has not charged gives no commitment, so that who has cannot go on.
        assert not village.toss(RELEASE, names=charged)
        reserve(parts.ledger, spec_with())
        parts.ledger.charge(ID)
        charged.append(name)
    assert len(set(village.toss(RELEASE).values())) == 1


def test_a_new_share_is_durable_before_its_commitment_leaves(village: Village) -> None:
    alice, statements = village.parts["alice"], list[str]()
    shown = shown_with_charges(village, spec_with())
    for coin, known, is_synced in ((RELEASE, shown, False), (f"alignment/{ID}", {}, True)):
        alice.store.connection.set_trace_callback(statements.append)
        with refuses(NotReadyError, where="curator bob"):
            asyncio.run(village.tossed("alice", coin, of_others(known, "alice")))
        alice.store.connection.set_trace_callback(None)
        begun = statements.index("BEGIN IMMEDIATE")
        assert ("PRAGMA synchronous = NORMAL" in statements[:begun]) is not is_synced
        statements.clear()


def shown_with_charges(village: Village, spec: TableSpec) -> dict[str, bytes]:
    """Let every curator charge a release; return what each commits to."""
    for parts in village.parts.values():
        reserve(parts.ledger, spec)
        parts.ledger.charge(ID)
        parts.coins.commit(ID)
    return {name: parts.coins.commitment(ID) for name, parts in village.parts.items()}


def of_others(shown: dict[str, bytes], name: str) -> dict[str, bytes]:
    return {other: committed for other, committed in shown.items() if other != name}


def test_whose_commitment_is_shown_is_not_asked_for_it(village: Village) -> None:
    shown = shown_with_charges(village, spec_with())
    assert {len(committed) for committed in shown.values()} == {32}
    village.twist |= dict.fromkeys([(name, "Commit") for name in village.parts], away)
    for name in ("alice", "bob"):  # carol holds none of theirs yet
        with pytest.raises(NotReadyError, match="does not hold every commitment yet"):
            asyncio.run(village.tossed(name, RELEASE, of_others(shown, name)))
    values = [asyncio.run(village.tossed(name, RELEASE, of_others(shown, name))) for name in ("carol", "bob", "alice")]
    shares = {name: parts.store.coins.own_share(RELEASE, b"") for name, parts in village.parts.items()}
    assert values == [toss(RELEASE, shares)] * 3


def test_a_commitment_that_is_shown_counts_as_one_that_was_asked_for(village: Village) -> None:
    shown = shown_with_charges(village, spec_with())
    for length in (31, 33):
        with pytest.raises(InvalidInputError, match="curator bob: the commitment does not have 32 bytes"):
            asyncio.run(village.tossed("alice", RELEASE, shown | {"bob": bytes(length)}))
    with pytest.raises(NotReadyError):
        asyncio.run(village.tossed("alice", RELEASE, of_others(shown, "alice")))
    changed = of_others(shown, "alice") | {"bob": bytes(32)}
    with pytest.raises(ConflictError, match="curator bob: a curator changed its commitment"):
        asyncio.run(village.tossed("alice", RELEASE, changed))
    assert village.parts["alice"].store.coins.commitments(RELEASE)["bob"] == shown["bob"]


def test_a_share_is_given_only_with_the_record_of_what_its_asker_committed_to(village: Village) -> None:
    shown = shown_with_charges(village, spec_with())
    alice = village.parts["alice"]

    def asked(committed: bytes, of_carol: bytes = shown["carol"]) -> bytes:
        seen = transcript({"alice": shown["alice"], "bob": committed, "carol": of_carol})
        request = curator_peer_pb2.RevealRequest(coin_id=RELEASE, transcript=seen, commitment=committed)
        return asyncio.run(CuratorPeerServicer(RpcAnswers(alice)).Reveal(request, cast("Any", "bob"))).share

    with pytest.raises(NotReadyError, match="does not hold every commitment yet"):
        asked(shown["bob"])
    alice.store.coins.commit(RELEASE, "carol", shown["carol"])
    with pytest.raises(ConflictError, match="different commitments"):
        asked(shown["bob"], of_carol=bytes(32))
    with pytest.raises(InvalidInputError, match="the commitment does not have 32 bytes"):
        asked(b"short")
    assert not alice.store.coins.openings_withheld(RELEASE)
    assert asked(shown["bob"]) == alice.store.coins.own_share(RELEASE, b"")
    assert alice.store.coins.commitments(RELEASE)["bob"] == shown["bob"]
    assert alice.store.coins.openings_withheld(RELEASE) == {"bob"}
    with refuses(ConflictError, where="curator bob"):
        asked(bytes(32))


def test_a_forgotten_coin_is_not_tossed_again(village: Village) -> None:
    village.toss(ALIGNMENT)
    village.parts["alice"].store.coins.forget_coin(ALIGNMENT)
    with pytest.raises(ConflictError, match="tossed and is forgotten"):
        asyncio.run(village.tossed("alice", ALIGNMENT))
    village.parts["bob"].store.coins.set_coin_value(ALIGNMENT, b"")
    with pytest.raises(ConflictError, match="tossed and is forgotten"):
        asyncio.run(village.tossed("bob", ALIGNMENT))


def test_a_coin_of_two_is_tossed_by_them_alone_and_forgotten_with_the_release_s(village: Village) -> None:
    coin = pair_coin(ID, "bob", "alice")
    assert coin == pair_coin(ID, "alice", "bob") != pair_coin(ID, "alice", "carol")
    with refuses(NotReadyError, where="curator alice"):
        asyncio.run(village.tossed("alice", coin))
    shown_with_charges(village, spec_with())
    values = village.toss(coin, names=("alice", "bob"))
    other = village.toss(pair_coin(ID, "alice", "carol"), names=("alice", "carol"))
    assert len({*values.values(), *other.values()}) == 2
    assert not village.parts["carol"].store.coins.knows_coin(coin)
    alice = village.parts["alice"]
    with pytest.raises(InvalidInputError, match="curator carol: there is no such coin"):
        alice.coins.exchange_commitments(coin, "carol", bytes(32))
    with pytest.raises(InvalidInputError, match="curator carol: there is no such coin"):
        alice.coins.open_share(coin, "carol", b"")
    alice.store.coins.forget_coin(RELEASE)
    with pytest.raises(ConflictError, match="tossed and is forgotten"):
        asyncio.run(village.tossed("alice", coin))


@pytest.mark.parametrize("names", ["bob/carol", "bob/alice", "bob", "alice", "alice/bob/carol", "alice/bob/"])
def test_a_coin_of_others_than_two_is_none(village: Village, names: str) -> None:
    shown_with_charges(village, spec_with())
    with pytest.raises(InvalidInputError, match="there is no such coin"):
        village.parts["alice"].coins.exchange_commitments(f"{RELEASE}/{names}", "bob", bytes(32))


def test_there_are_no_other_coins(village: Village) -> None:
    alignments = ("a" * 31, "A" * 32, "\N{DEVANAGARI DIGIT ZERO}" * 32, "../../../../etc/passwd00000000")
    for coin in ("", "alignment", "pair/alice/bob", "x/" + "a" * 32, *(f"alignment/{name}" for name in alignments)):
        with refuses(InvalidInputError, where="coin toss"):
            village.parts["alice"].coins.share(coin)
