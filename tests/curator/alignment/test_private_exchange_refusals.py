"""What a private alignment refuses, forgets and takes up again."""

import asyncio
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest

from tests.curator.alignment.circle import KEY, Curator, align, circle, table_of
from tests.curator.alignment.private_curators import PEOPLE, THREE, elements, session_of
from veiltab.common.core.derivation import derive
from veiltab.common.errors import IntegrityError, InvalidInputError, NotReadyError, VeiltabError
from veiltab.curator.alignment.intersection import alignment_id
from veiltab.curator.alignment.private import masking
from veiltab.curator.alignment.private.ristretto import ELEMENT_BYTES, fresh_scalar, hashed, masked
from veiltab.curator.peers.ring import Flow, FlowKind
from veiltab.curator.table.tokens import tokens


def cut(column: bytes) -> bytes:
    return column[:-1]


def fewer(column: bytes) -> bytes:
    return column[:-ELEMENT_BYTES]


def turned(column: bytes) -> bytes:
    return column[ELEMENT_BYTES:] + column[:ELEMENT_BYTES]


def twice(column: bytes) -> bytes:
    return column[:ELEMENT_BYTES] * 2 + column[2 * ELEMENT_BYTES :]


def with_identity(column: bytes) -> bytes:
    return bytes(ELEMENT_BYTES) + column[ELEMENT_BYTES:]


def not_canonical(column: bytes) -> bytes:
    return column[:-ELEMENT_BYTES] + b"\xff" * ELEMENT_BYTES


def another(column: bytes) -> bytes:
    return b"".join(sorted(elements(masked(column, fresh_scalar()))))


HOSTILE: dict[str, tuple[str, FlowKind, str, Callable[[bytes], bytes], str]] = {
    "cut query": ("alice", FlowKind.QUERY, "alice", cut, "curator alice: sent masked ids that are cut short"),
    "cut set": ("bob", FlowKind.SET, "bob", cut, "curator bob: sent masked ids that are cut short"),
    "fewer come back": ("carol", FlowKind.QUERY, "alice", fewer, "curator carol: sent back 60 masked ids of 61"),
    "fewer of a set come back": ("carol", FlowKind.SET, "bob", fewer, "curator carol: sent back 389 masked ids of 390"),
    "set in another order": ("bob", FlowKind.SET, "bob", turned, "curator bob: masked ids are not in ascending order"),
    "an element twice": ("carol", FlowKind.SET, "carol", twice, "curator carol: masked ids are not in ascending"),
    "identity in a query": ("bob", FlowKind.QUERY, "alice", with_identity, "curator bob: sent what is no element"),
    "identity in a set": ("carol", FlowKind.SET, "carol", with_identity, "curator carol: sent what is no element"),
    "identity in a final set": ("carol", FlowKind.SET, "bob", with_identity, "curator carol: sent what is no element"),
    "identities shared": ("both", FlowKind.COMMON, "", with_identity, "curators bob, carol: sent what is no element"),
    "identity comes back": ("carol", FlowKind.QUERY, "alice", with_identity, "curator carol: sent what is no element"),
    "no element in a set": ("bob", FlowKind.SET, "bob", not_canonical, "curator bob: sent what is no element"),
    "two ids masked alike": ("carol", FlowKind.QUERY, "alice", twice, "curator carol: masked two ids alike"),
    "others disagree": ("bob", FlowKind.COMMON, "bob", fewer, "curators bob, carol: disagree about the masked ids"),
    "strangers named": (
        "alice",
        FlowKind.RESPONDENTS,
        "alice",
        lambda _: bytes(16),
        "curator alice: named respondents",
    ),
    "names out of order": ("alice", FlowKind.RESPONDENTS, "alice", lambda data: data[16:] + data[:16], "curator alice"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_no_honest_curator_sends_is_refused_by_name(tmp_path: Path, name: str) -> None:
    who, kind, owner, change, words = HOSTILE[name]

    def tampering(flow: Flow, data: bytes) -> bytes:
        return change(data) if flow.kind is kind and owner in {flow.owner, ""} else data

    with circle(tmp_path, THREE) as curators:
        culprits = [curator for curator in curators if who in {curator.name, "both"}]
        for culprit in culprits:
            culprit.tampering = tampering
        with pytest.raises(IntegrityError) as refused:
            align(*curators)
        assert words in str(refused.value)
        if name != next(other for other, case in HOSTILE.items() if case[1] is kind):
            return
        # It is tried again, and goes on once the peer is honest: seen once for each kind of message.
        for culprit in culprits:
            culprit.tampering = lambda _flow, data: data
        align(*curators)
        assert len({curator.alignment.result() for curator in curators}) == 1


def test_a_set_that_another_replaces_is_noticed_by_its_owner(tmp_path: Path) -> None:
    """Bob puts his own final set in the place of carol's: he learns which of his ids alice has, and carol refuses."""
    with circle(tmp_path, [PEOPLE[:30], PEOPLE[10:50], PEOPLE[20:60]]) as curators:
        alice, bob, carol = curators

        def own_set(flow: Flow, data: bytes) -> bytes:
            if (flow.kind, flow.owner) not in {(FlowKind.SET, "carol"), (FlowKind.COMMON, "bob")}:
                return data
            if ("set", "bob", "carol") not in bob.received:
                raise NotReadyError("has not masked these ids yet", where="curator bob")
            return bob.received["set", "bob", "carol"]

        bob.tampering = own_set
        with pytest.raises(IntegrityError, match="curator alice: named respondents that are not here"):
            align(*curators)
        assert ("respondents", "alice", "alice") in carol.received
        key = derive(KEY, "tokens")
        shared = sorted(set(alice.ids) & set(bob.ids))
        named = {bytes(token) for token in tokens(pa.array(shared, pa.large_string()), key)}
        assert set(halves(carol.received["respondents", "alice", "alice"])) == named


def halves(column: bytes) -> list[bytes]:
    return [column[start : start + 16] for start in range(0, len(column), 16)]


def test_a_set_under_another_scalar_shares_nothing(tmp_path: Path) -> None:
    with circle(tmp_path, [PEOPLE[:30], PEOPLE[10:50]]) as curators:
        curators[1].tampering = lambda flow, data: another(data) if flow.kind is FlowKind.COMMON else data
        with pytest.raises(InvalidInputError, match="no respondent in common"):
            align(*curators)


KNOWN_COLUMN = "c23706085fd1c38882bd2ff9fc7275e9e718e30231a2a256ef6e45026d90eab7"
"""SHA-256 of 45 masked ids under the scalar 7."""


def test_a_session_has_a_scalar_of_its_own_and_leaves_none(tmp_path: Path) -> None:
    with circle(tmp_path, [PEOPLE[:30], PEOPLE[10:50]]) as (alice, bob):
        align(alice, bob)
        first = alice.store.scalars + bob.store.scalars
        before = alice.tokens_file(), alice.alignment.result()
        name, session = session_of(alice)
        for path in (alice.folder / "alignments" / name).glob("*.bin"):
            path.unlink()
        align_again(alice, bob)
        assert session_of(alice) == session_of(bob) != (name, session)
        assert len({*first, *alice.store.scalars, *bob.store.scalars}) == 4
        assert (alice.tokens_file(), alice.alignment.result()) == before
        for curator in (alice, bob):
            own = curator.store.private.session(name)
            assert own is not None
            assert own.scalar == b""
            everything = b"".join(path.read_bytes() for path in curator.folder.rglob("*") if path.is_file())
            assert not [scalar for scalar in curator.store.scalars if scalar in everything]


def align_again(*curators: Curator) -> None:
    """Run until every curator has finished the session that follows the finished one."""
    before = session_of(curators[0])

    async def together() -> None:
        running = [asyncio.create_task(c.alignment.run(c.table, c.peers)) for c in curators]
        async with asyncio.timeout(30):
            while not all(_is_finished(curator, before) for curator in curators):  # noqa: ASYNC110 - it polls what it tests
                await asyncio.sleep(0.02)
        for task in running:
            task.cancel()

    asyncio.run(together())


def _is_finished(curator: Curator, before: tuple[str, str]) -> bool:
    own = curator.store.private.session(before[0])
    return own is not None and own.finished not in {"", before[1]}


def test_files_and_the_coin_of_a_session_are_deleted_once_all_have_finished(tmp_path: Path) -> None:
    with circle(tmp_path, THREE) as curators:
        align(*curators)
        name, session = session_of(curators[0])
        for curator in curators:
            coins, coin = curator.store.coins, f"alignment/{name}"
            coins.own_share(coin, bytes(32))
            coins.set_coin_value(coin, bytes(32))
            assert not asyncio.run(curator.exchange.is_wanted(name, curator.peers))
            assert coins.is_forgotten(coin)
            assert not (curator.folder / "alignments" / name / session).exists()


def test_another_table_begins_anew_and_forgets_the_scalar_before(tmp_path: Path) -> None:
    with circle(tmp_path, [PEOPLE[:30], PEOPLE[10:50]]) as (alice, bob):
        align(alice, bob)
        name, _ = session_of(alice)
        bob.table, bob.ids = table_of(PEOPLE[20:50], "another"), PEOPLE[20:50]
        bob.alignment.table_version = "v" * 32
        bob.store.alignments.table_version("another", "v" * 32)
        versions = {curator.name: curator.alignment.table_version for curator in (alice, bob)}

        async def together() -> None:
            await asyncio.gather(*(until_aligned(c, alignment_id(versions)) for c in (alice, bob)))

        asyncio.run(together())
        assert alice.store.private.session(name) is None
        assert alice.alignment.result()[0] == 10


async def until_aligned(curator: Curator, name: str) -> None:
    while True:
        try:
            await curator.alignment._align(name, curator.table, curator.peers)
        except NotReadyError:
            await asyncio.sleep(0.02)
        except VeiltabError:
            raise
        else:
            return


def test_batches_that_are_there_are_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken off after any batch, the column is the one that it would have been, and earlier batches stay."""
    monkeypatch.setattr(masking, "BATCH", 10)
    monkeypatch.setattr(masking, "PIECE", 3)
    table, scalar = table_of(PEOPLE[:45], "t"), bytes([7] + [0] * 31)
    whole = masked(hashed([name.encode() for name in [*PEOPLE[:45:2], *PEOPLE[1:45:2]]]), scalar)
    calls: list[int] = []

    def counted(ids: list[bytes]) -> bytes:
        calls.append(len(ids))
        return hashed(ids)

    monkeypatch.setattr(masking, "hashed", counted)
    work = masking.Masking(tmp_path)
    (tmp_path / "column.bin.10").write_bytes(whole[320:640])
    asyncio.run(work.mask_ids(table, scalar, tmp_path / "column.bin"))
    assert (tmp_path / "column.bin").read_bytes() == whole
    assert sum(calls) == 35
    assert [path.name for path in tmp_path.iterdir()] == ["column.bin"]
    asyncio.run(work.mask_elements(tmp_path / "column.bin", scalar, tmp_path / "next.bin", "x"))
    assert (tmp_path / "next.bin").read_bytes() == masked(whole, scalar)
    assert sha256(whole).hexdigest() == KNOWN_COLUMN
    work.close()


def test_a_table_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.curator.alignment.private.private_exchange.MAX_IDS", 29)
    with (
        circle(tmp_path, [PEOPLE[:30], PEOPLE[10:50]]) as curators,
        pytest.raises(InvalidInputError, match="more than 29 ids cannot be aligned privately"),
    ):
        align(*curators)
