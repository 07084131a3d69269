"""Private alignment: all find the same people, and what is received says nothing more, whoever guesses."""

import asyncio
from contextlib import ExitStack
from hashlib import sha256
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.curator.alignment.circle import KEY, Curator, align, circle, outcome
from tests.curator.alignment.private_curators import PEOPLE, THREE, elements, session_of
from tests.curator.disk_use import disk_use
from veiltab.common.core.derivation import derive
from veiltab.common.errors import DeniedError, InvalidInputError
from veiltab.curator.alignment.private import masking
from veiltab.curator.alignment.private.private_exchange import _session_name
from veiltab.curator.alignment.private.ristretto import ELEMENT_BYTES, hashed, masked, weighted_sum
from veiltab.curator.peers.ring import FlowKind, flows
from veiltab.curator.table.tokens import tokens


@pytest.mark.parametrize(
    "tables",
    [
        [PEOPLE[:300], PEOPLE[:99:-1]],
        [PEOPLE[:300], PEOPLE[:99:-1], [*PEOPLE[50:250], "somebody"]],
        [PEOPLE[:30], PEOPLE[:9:-1], PEOPLE[5:25], PEOPLE[::2]],
    ],
    ids=["two", "three", "four"],
)
def test_all_find_exactly_what_all_share(tmp_path: Path, tables: list[list[str]]) -> None:
    with circle(tmp_path, tables) as curators:
        align(*curators)
        for curator in curators:
            assert curator.common() == set.intersection(*map(set, tables))
        assert len({curator.tokens_file() for curator in curators}) == 1
        assert len({curator.alignment.result() for curator in curators}) == 1


@pytest.mark.long
@pytest.mark.parametrize("count", [2, 3, 4])
def test_an_alignment_writes_no_more_than_is_kept_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(masking, "BATCH", 512)
    with circle(tmp_path, count * [[f"person {n}" for n in range(3000)]]) as curators:
        with ExitStack() as block:
            uses = [block.enter_context(disk_use(curator.folder)) for curator in curators]
            align(*curators)
        for use, curator in zip(uses, curators, strict=True):
            kept = curator.exchange.most_bytes(curator.table)
            assert use.most <= kept <= 2 * use.most


async def waiting_for(curator: Curator, reason: str) -> None:
    while True:
        await asyncio.sleep(0.01)
        if reason in curator.alignment._waiting.problem:
            return


def test_a_larger_table_of_another_is_not_masked_without_room_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with circle(tmp_path, [PEOPLE[:5], PEOPLE[:150]]) as (alice, bob):
        excess = 3 * ELEMENT_BYTES * 145
        free = {"bob": 2**40, "alice": alice.exchange.most_bytes(alice.table) + excess + excess // 8 + 2**20 - 1}
        monkeypatch.setattr("veiltab.common.storage.disk.free_bytes", lambda folder: free[folder.name])

        async def together() -> None:
            running = [asyncio.create_task(one.alignment.run(one.table, one.peers)) for one in (alice, bob)]
            try:
                async with asyncio.timeout(20):
                    await waiting_for(alice, "disk is full")
                    assert not list(tmp_path.rglob("from-bob-common*"))
                    free["alice"] += 1
                    await asyncio.gather(outcome(alice), outcome(bob))
            finally:
                for task in running:
                    task.cancel()

        asyncio.run(together())
        assert alice.alignment.result() == bob.alignment.result()
        free["alice"] = 2**20
        alice.room.keep("nothing else is kept", 0)


def test_the_result_is_that_of_tokens_under_the_same_coin(tmp_path: Path) -> None:
    """The vector of test_alignment.test_known_answers_of_the_keys, whatever the scalars are."""
    with circle(tmp_path, [["Ann", "Bea"], ["Bea", "Cid"]]) as curators:
        align(*curators)
        for curator in curators:
            assert curator.alignment.result() == (1, "df367f9375723f49a5d830c0d6c4a3e8")
            assert curator.tokens_file().hex() == "8c1227d910f8fdc555d0bb94854f3a95"


FLOWS = {
    "query/alice/alice": "66782420783c0b7a",
    "query/alice/bob": "be67f76339d13b2d",
    "common/bob/bob": "4d22aacbe5264de9",
    "respondents/alice/alice": "ad09aad0d9b780de",
}
"""Flow -> the leading digits of its SHA-256."""


def test_known_answers_of_the_flows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All bytes that travel between two curators whose scalars are both 7."""
    monkeypatch.setattr(
        "veiltab.curator.alignment.private.private_exchange.fresh_scalar", lambda: bytes([7] + [0] * 31)
    )
    monkeypatch.setattr("veiltab.curator.alignment.private.private_exchange.fresh_seed", lambda: bytes([9] * 32))
    with circle(tmp_path, [["Ann", "Bea"], ["Bea", "Cid"]]) as (alice, bob):
        align(alice, bob)
        sent = {"/".join(key): sha256(data).hexdigest()[:16] for key, data in (alice.received | bob.received).items()}
    assert sent == FLOWS
    ids = {masked(hashed([name]), bytes([7] + [0] * 31)) for name in (b"Ann", b"Bea")}
    assert elements(bob.received["query", "alice", "alice"]) == sorted([*ids, check_of(alice, ids)])


def test_known_answer_of_the_session() -> None:
    parts = {"alice": bytes([2] * 16), "bob": bytes(16), "carol": bytes([1] * 16)}
    assert _session_name("a" * 32, parts) == "a1c9f89393525c87117accfc782c8a69"


def all_scalars(curators: list[Curator]) -> dict[str, bytes]:
    """Return the scalar of each curator, while they are there."""
    return {curator.name: curator.store.scalars[-1] for curator in curators}


def image(name: str, scalars: dict[str, bytes], who: tuple[str, ...]) -> bytes:
    """Return H(name) under the scalars of some curators."""
    element = hashed([name.encode()])
    for curator in who:
        element = masked(element, scalars[curator])
    return element


def check_of(querier: Curator, sent: set[bytes]) -> bytes:
    """Return the check of a query: the sum of its elements, each times its weight."""
    return weighted_sum(b"".join(2 * element for element in sent), querier.store.private.seeds[-1])


PATTERNS = ["".join(bits) for bits in product("01", repeat=3)]


@pytest.mark.parametrize("seed", range(3))
def test_received_bytes_are_a_function_of_sizes_and_of_the_common_ids(tmp_path: Path, seed: int) -> None:
    """With the scalars known to the test, every byte that a curator received is explained, and only so much is in it.

    Each person is in the tables that its pattern says. A column that reaches a curator holds images under a scalar that
    this curator does not know, so to it they are random elements, equal where persons are equal. What is left to learn
    is which columns share how many elements, and where its own ids stand: the test reads both off the bytes.
    """
    rng = np.random.default_rng(seed)
    people = {f"p{number}": PATTERNS[int(rng.integers(1, 8))] for number in range(12)} | {"everywhere": "111"}
    tables = [[name for name, bits in people.items() if bits[place] == "1"] for place in range(3)]
    with circle(tmp_path, [table or ["nobody else"] for table in tables]) as curators:
        align(*curators)
        alice, bob, carol = curators
        scalars = all_scalars(curators)
        common = {name for name, bits in people.items() if bits == "111"}
        others = set(tables[1]) & set(tables[2])

        # Alice, the querier: her own ids in the order in which she sent them, what bob and carol share, nothing else.
        assert set(alice.received) == {
            ("query", "alice", "carol"),
            ("common", "bob", "bob"),
            ("common", "carol", "carol"),
        }
        returned = elements(alice.received["query", "alice", "carol"])
        sent = {image(name, scalars, ("alice",)) for name in alice.ids}
        check = check_of(alice, sent)
        passed = masked(masked(check, scalars["bob"]), scalars["carol"])
        assert sorted(returned) == sorted(
            [passed, *(image(name, scalars, ("alice", "bob", "carol")) for name in alice.ids)]
        )
        for peer in ("bob", "carol"):
            shared = elements(alice.received["common", peer, peer])
            assert shared == sorted(image(name, scalars, ("bob", "carol")) for name in others)
        # She knows whose image is whose, so she could compare these with a set of bob's or carol's alone; she has none.
        assert {masked(element, scalars["alice"]) for element in shared} & set(returned) == {
            image(name, scalars, ("alice", "bob", "carol")) for name in common
        }

        # Bob and carol: the query on its way, under alice's scalar, which is nobody else's; a column of the other; both
        # final columns, ascending; the tokens of the common people.
        for curator, fellow in ((bob, carol), (carol, bob)):
            columns = dict(curator.received)
            assert columns.pop(("respondents", "alice", "alice")) == curator.tokens_file()
            query = next(columns.pop(key) for key in list(columns) if key[0] == "query")
            before = ("alice",) if curator is bob else ("alice", "bob")
            one_more = check if curator is bob else masked(check, scalars["bob"])
            assert sorted(elements(query)) == sorted([one_more, *(image(name, scalars, before) for name in alice.ids)])
            own_final = elements(columns.pop(("set", curator.name, fellow.name)))
            assert own_final == sorted(image(name, scalars, ("bob", "carol")) for name in curator.ids)
            peers = elements(columns.pop(("set", fellow.name, fellow.name)))
            assert peers == sorted(image(name, scalars, (fellow.name,)) for name in fellow.ids)
            assert columns == {}
            # What it can make of the peer's column by itself: its final column, whose order is as random as the peer's.
            assert {masked(each, scalars[curator.name]) for each in peers} & set(own_final) == {
                image(name, scalars, ("bob", "carol")) for name in others
            }


@pytest.mark.long
@pytest.mark.parametrize("count", [2, 3])
def test_whoever_has_the_same_common_ids_and_sizes_gets_the_same_picture(tmp_path: Path, count: int) -> None:
    """Two worlds that differ in ids that a curator does not have look alike to it: equal sizes, equal coincidences."""

    def picture(folder: Path, prefix: str, viewer: int) -> list[object]:
        tables = [[f"{prefix}{place}-{n}" for n in range(9)] + ["c1", "c2", "c3"] for place in range(count)]
        tables[viewer] = [f"mine {n}" for n in range(9)] + ["c1", "c2", "c3"]
        with circle(folder, tables) as curators:
            align(*curators)
            seen = curators[viewer].received
            keys = sorted(seen)
            columns = [set(elements(seen[key])) for key in keys if key[0] != "respondents"]
            meets = [len(one & other) for one, other in combinations(columns, 2)]
            return [keys, [len(seen[key]) for key in keys], meets, curators[viewer].common()]

    for viewer in range(count):
        one = picture(tmp_path / f"one {viewer}", "left", viewer)
        assert one == picture(tmp_path / f"other {viewer}", "right", viewer)


def guessable(curator: Curator, guesses: list[str]) -> int:
    """Return how many of some guessed ids a curator recognises in all that it holds: the dictionary attack.

    It compares every function of an id that it can compute, tokens under each of its keys and elements under its scalar
    or none, with all that it ever received or made, before anything is erased, and with that times its scalar.
    """
    (scalar,) = curator.store.scalars
    held = b"".join([*curator.received.values(), *curator.exchange.files])
    blocks = {held[start : start + 16] for start in range(0, len(held), 16)}
    received = _elements_in(curator)
    known = {*received, *elements(masked(b"".join(received), scalar))}
    plain = hashed([guess.encode() for guess in guesses])
    columns = [elements(plain), elements(masked(plain, scalar))]
    keys = (KEY, derive(KEY, "tokens"), derive(KEY, "population"))
    named = [[bytes(token) for token in tokens(pa.array(guesses, pa.large_string()), key)] for key in keys]
    return sum(
        any(column[place] in known for column in columns) or any(each[place] in blocks for each in named)
        for place in range(len(guesses))
    )


def _elements_in(curator: Curator) -> list[bytes]:
    return [each for key, data in curator.received.items() if key[0] != "respondents" for each in elements(data)]


@pytest.mark.parametrize("count", [2, 3])
def test_guessed_people_of_others_are_not_found(tmp_path: Path, count: int) -> None:
    """100 guesses, all right: with tokens a curator finds 100 of them, here none; its own common ids it does find."""
    guesses = [f"guess {number}" for number in range(100)]
    common = [f"common {number}" for number in range(20)]
    for attacker in range(count):
        tables = [[*common, f"only {place}", *guesses] for place in range(count)]
        tables[attacker] = [*common, "mine"]
        with circle(tmp_path / str(attacker), tables) as curators:
            align(*curators)
            viewer = curators[attacker]
            assert viewer.common() == set(common)
            assert guessable(viewer, guesses) == 0
            assert guessable(viewer, common) == len(common)


def test_with_tokens_the_same_attack_finds_all() -> None:
    """The attack that the test above repels does work where tokens are exchanged."""
    guesses = [f"guess {number}" for number in range(100)]
    key = derive(KEY, "tokens")
    theirs = {bytes(token) for token in tokens(pa.array(guesses, pa.large_string()), key)}
    assert sum(bytes(token) in theirs for token in tokens(pa.array(guesses, pa.large_string()), key)) == 100


def test_a_flow_goes_to_its_receivers_alone(tmp_path: Path) -> None:
    with circle(tmp_path, THREE) as curators:
        align(*curators)
        for curator in curators:
            name, session = session_of(curator)
            for flow in (flow for flow in flows(("alice", "bob", "carol")) if flow.producer == curator.name):
                for peer in {"alice", "bob", "carol"} - flow.receivers:
                    with pytest.raises(DeniedError, match="not for the caller"):
                        curator.exchange.flow_file(name, session, flow.kind, flow.owner, peer)
        with pytest.raises(InvalidInputError, match="no such flow"):
            curators[0].exchange.flow_file(name, session, FlowKind.SET, "alice", "bob")
        for bad in ("../" * 10 + "xx", "", "a" * 31):
            with pytest.raises(InvalidInputError, match="no such flow"):
                curators[0].exchange.flow_file(name, bad, FlowKind.QUERY, "alice", "bob")


def test_no_tokens_are_shared(tmp_path: Path) -> None:
    with circle(tmp_path, [["Ann", "Bea"], ["Bea", "Cid"]]) as curators:
        align(*curators)
        name, _ = session_of(curators[0])
        with pytest.raises(DeniedError, match="aligns privately"):
            curators[0].alignment.shared_tokens(name)
