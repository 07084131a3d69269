"""Whatever becomes of the querier's ids on their way: unless they come back under one scalar, nobody is named."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.curator.alignment.circle import NAMES, Curator, Lie, align, circle
from veiltab.common.errors import DeniedError
from veiltab.common.oblivious.ristretto import load
from veiltab.curator.alignment import alignment
from veiltab.curator.alignment.private import masking
from veiltab.curator.alignment.private.private_work import Work
from veiltab.curator.alignment.private.ristretto import ELEMENT_BYTES, fresh_scalar, hashed, masked
from veiltab.curator.peers.ring import Flow, FlowKind

PEOPLE = [f"person {number}" for number in range(60)]
PLACES = 9


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "_LOOK_AGAIN_SECONDS", 0.02)


def tables(count: int, size: int = 40) -> list[list[str]]:
    return [PEOPLE[place : place + size] for place in range(0, 2 * count, 2)]


def split(column: bytes) -> list[bytes]:
    return [column[start : start + ELEMENT_BYTES] for start in range(0, len(column), ELEMENT_BYTES)]


def plus(element: bytes, other: bytes) -> bytes:
    return bytes(load().crypto_core_ristretto255_add(element, other))


def minus(element: bytes, other: bytes) -> bytes:
    return bytes(load().crypto_core_ristretto255_sub(element, other))


def turned(_received: bytes, _scalar: bytes, made: bytes) -> bytes:
    return made[ELEMENT_BYTES:] + made[:ELEMENT_BYTES]


def two_swapped(_received: bytes, _scalar: bytes, made: bytes) -> bytes:
    first, second, *rest = split(made)
    return b"".join([second, first, *rest])


def multiples_of_one(received: bytes, _scalar: bytes, made: bytes) -> bytes:
    return b"".join(masked(received[:ELEMENT_BYTES], fresh_scalar()) for _ in split(made))


def sum_kept(_received: bytes, _scalar: bytes, made: bytes) -> bytes:
    first, second, *rest = split(made)
    shift = hashed([b"shift"])
    return b"".join([plus(first, shift), minus(second, shift), *rest])


def half_under_another(received: bytes, _scalar: bytes, made: bytes) -> bytes:
    half = len(split(made)) // 2 * ELEMENT_BYTES
    return masked(received[:half], fresh_scalar()) + made[half:]


def one_added_to_all(_received: bytes, _scalar: bytes, made: bytes) -> bytes:
    shift = hashed([b"shift"])
    return b"".join(plus(element, shift) for element in split(made))


def own_guesses(_received: bytes, scalar: bytes, made: bytes) -> bytes:
    return masked(hashed(b"guess %d" % number for number, _ in enumerate(split(made))), scalar)


LIES: dict[str, Lie] = {
    lie.__name__: lie
    for lie in (turned, two_swapped, multiples_of_one, sum_kept, half_under_another, one_added_to_all, own_guesses)
}


def replaced(place: int) -> Lie:
    def lie(_received: bytes, _scalar: bytes, made: bytes) -> bytes:
        elements = split(made)
        elements[place] = hashed([b"another"])
        return b"".join(elements)

    return lie


def name_of(curator: Curator) -> str:
    (folder,) = (curator.folder / "alignments").iterdir()
    return folder.name


async def until(done: Callable[[], bool], curators: list[Curator]) -> None:
    """Run curators until something holds."""
    running = [asyncio.create_task(c.alignment.run(c.table, c.peers)) for c in curators]
    try:
        async with asyncio.timeout(30):
            while not done():  # noqa: ASYNC110 - several tasks may change it
                await asyncio.sleep(0.01)
    finally:
        for task in running:
            task.cancel()


def refusals(curators: list[Curator]) -> list[str]:
    """Run until all know that the session has failed and the querier suspects nobody new; return what each says."""

    def all_know() -> bool:
        if not all("under one scalar" in curator.alignment._waiting.problem for curator in curators):
            return False
        own = curators[0].store.private.session(name_of(curators[0]))
        suspects = {curator.store.private.suspects() for curator in curators}
        return own is not None and not own.seed and len(suspects) == 1

    asyncio.run(until(all_know, curators))
    return [str(curator.alignment._waiting) for curator in curators]


def check_nobody_is_named(curators: list[Curator], liar: str) -> None:
    said = refusals(curators)
    assert f"curator {liar}: one's own ids did not come back under one scalar, so nobody was named" in said[0]
    for words in said[1:]:
        assert words.startswith("curator alice: its ids did not come back under one scalar, so it ended")
        assert f"suspects curator {liar}." in words
    for curator in curators:
        assert not list(curator.folder.rglob("*respondents*"))
        assert not list(curator.folder.rglob("from-*-common-*"))
        own = curator.store.private.session(name_of(curator))
        assert own is not None
        assert (own.suspects, own.scalar, own.seed, own.finished) == ((liar,), b"", b"", "")


def hops(count: int) -> list[str]:
    """Return the first and the last curator that masks the query, and the one between where there is one."""
    return list(NAMES[1:count])


@pytest.mark.parametrize(
    ("name", "count", "liar"),
    [*((name, 2, "bob") for name in LIES), *(("turned", count, liar) for count in (3, 4) for liar in hops(count))],
)
def test_a_changed_query_names_nobody_and_its_changer_is_named(
    tmp_path: Path, name: str, count: int, liar: str
) -> None:
    with circle(tmp_path, tables(count)) as curators:
        curators[NAMES.index(liar)].masking.query = LIES[name]
        check_nobody_is_named(curators, liar)


@pytest.mark.parametrize("place", range(PLACES))
def test_one_element_changed_at_any_place_names_nobody(tmp_path: Path, place: int) -> None:
    """Among the places is that of the check itself."""
    with circle(tmp_path, tables(2, PLACES - 1)) as curators:
        curators[1].masking.query = replaced(place)
        check_nobody_is_named(curators, "bob")


def test_the_answer_of_an_earlier_session_names_nobody(tmp_path: Path) -> None:
    with circle(tmp_path, tables(2)) as curators:
        alice, bob = curators
        align(alice, bob)
        earlier = alice.received["query", "alice", "bob"]
        before = bob.store.private.session(name_of(bob))
        bob.store.private.renew(name_of(bob), b"another part...!")
        bob.masking.query = lambda _received, _scalar, _made: earlier
        for curator in curators:
            curator.alignment._store.connection.execute("DELETE FROM alignment")
            for path in (curator.folder / "alignments").rglob("*.*"):
                path.unlink()
        check_nobody_is_named(curators, "bob")
        after = alice.store.private.session(name_of(alice))
        assert before is not None
        assert after is not None
        assert before.name != after.name


# The session is over


def test_a_failed_session_is_recorded_before_anybody_hears_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A querier that is killed once it knows does not ask for other bytes: what it has recorded stands."""
    with circle(tmp_path, tables(3)) as curators:
        curators[1].masking.query = turned
        asked: list[tuple[str, ...]] = []

        async def notes(work: Work) -> tuple[str, ...]:
            own = curators[0].store.private.session(work.alignment)
            assert own is not None
            asked.append((own.failed, *own.suspects))
            assert own.scalar == b""
            return ("bob",)

        monkeypatch.setattr(Work, "deviating", notes)
        refusals(curators)
        own = curators[0].store.private.session(name_of(curators[0]))
        assert own is not None
        # Asked once for each look; the first look is before anybody else knows.
        assert asked == [(own.name, "bob", "carol")]


def test_a_failed_session_stays_so_whatever_the_liar_does_until_a_person_allows_it(tmp_path: Path) -> None:
    with circle(tmp_path, tables(2)) as curators:
        alice, bob = curators
        bob.masking.query = turned
        check_nobody_is_named(curators, "bob")
        name, failed = name_of(alice), alice.store.private.session(name_of(alice))
        looks: list[str] = []
        bob.masking.query = two_swapped
        bob.store.private.renew(name, bytes(16))  # it says that it lost what it had
        standing = alice.exchange.standing

        def looked(asked: str) -> object:
            looks.append(asked)
            return standing(asked)

        alice.exchange.standing = looked  # type: ignore[assignment, method-assign]
        asyncio.run(until(lambda: len(looks) > 20, curators))
        assert alice.store.private.session(name) == failed
        assert "curator bob" in str(alice.alignment._waiting)

        bob.masking.query = lambda _received, _scalar, made: made
        assert alice.store.private.allow("bob", b"allowed by Ana..", person="Ana") == 1
        align(alice, bob)
        assert alice.common() == bob.common() == set(alice.ids) & set(bob.ids)


def test_in_a_failed_session_the_querier_alone_gets_the_query_and_nothing_else(tmp_path: Path) -> None:
    with circle(tmp_path, tables(3)) as curators:
        curators[2].masking.query = turned
        check_nobody_is_named(curators, "carol")
        bob, name = curators[1], name_of(curators[1])
        own = bob.store.private.session(name)
        assert own is not None
        assert bob.exchange.flow_file(name, own.name, FlowKind.QUERY, "alice", "alice").exists()
        for kind, owner, peer in (
            (FlowKind.QUERY, "alice", "carol"),
            (FlowKind.SET, "bob", "carol"),
            (FlowKind.COMMON, "bob", "alice"),
        ):
            with pytest.raises(DeniedError, match="not for the caller"):
                bob.exchange.flow_file(name, own.name, kind, owner, peer)


# Who is named where several pass the query on


def test_two_that_differ_about_what_was_handed_over_are_both_named(tmp_path: Path) -> None:
    """Bob gives carol another query than he states, and than he gives alice when she looks."""
    with circle(tmp_path, tables(3)) as curators:
        alice, bob, _ = curators

        def tampering(flow: Flow, data: bytes) -> bytes:
            return (
                turned(b"", b"", data) if flow.kind is FlowKind.QUERY and not alice.store.private.suspects() else data
            )

        bob.tampering = tampering
        said = refusals(curators)
        assert said[0].startswith("curators bob, carol: ")
        assert "suspects curators bob, carol." in said[1]
        assert "`veiltab curator repair alignment bob`, `veiltab curator repair" in said[0]
        alice.store.private.allow("bob", b"allowed by Ana..", person="Ana")
        assert alice.store.private.suspects() == ("carol",)


def test_one_that_gives_the_querier_what_it_did_not_pass_on_is_named(tmp_path: Path) -> None:
    with circle(tmp_path, tables(4)) as curators:
        curators[1].masking.query = turned
        honest: dict[str, bytes] = {}

        def tampering(flow: Flow, data: bytes) -> bytes:
            if flow.kind is FlowKind.QUERY and curators[0].store.private.suspects():
                return honest["made"]
            return data

        def keeps(received: bytes, scalar: bytes, made: bytes) -> bytes:
            honest["made"] = made
            return turned(received, scalar, made)

        curators[1].masking.query = keeps
        curators[1].tampering = tampering
        assert refusals(curators)[0].startswith("curator bob: ")


def test_one_that_does_not_answer_is_named_as_silent_and_stays_suspected(tmp_path: Path) -> None:
    with circle(tmp_path, tables(3)) as curators:
        alice, bob, carol = curators
        carol.masking.query = turned
        silent = bob.exchange._check_has_not_failed

        async def does_not_look(*_: object) -> None:
            await asyncio.sleep(0)

        bob.exchange._check_has_not_failed = does_not_look  # type: ignore[assignment, method-assign]
        asyncio.run(until(lambda: "has not said" in str(alice.alignment._waiting), curators))
        words = str(alice.alignment._waiting)
        assert words.startswith("curators bob, carol: ")
        assert "; curator bob: has not said what it made of the query" in words
        bob.exchange._check_has_not_failed = silent  # type: ignore[method-assign]
        check_nobody_is_named(curators, "carol")


# A querier that is killed


def noted_batches(monkeypatch: pytest.MonkeyPatch, stop: int) -> list[str]:
    """Note which batches the querier writes; end it before one of them."""
    written: list[str] = []
    write_all = masking._write_all

    def noted(path: Path, pieces: list[bytes]) -> None:
        if path.parts[-5] == "alice":
            if len(written) == stop:
                written.append("")
                raise asyncio.CancelledError
            written.append(path.name)
        write_all(path, pieces)

    monkeypatch.setattr(masking, "_write_all", noted)
    return written


SUMS = [f"query-alice.sums.{start}" for start in range(0, 45, 10)]
RETURNED = [f"from-bob-query-alice.sums.{start}" for start in range(0, 46, 10)]
BATCHES = [*SUMS, *RETURNED]


@pytest.fixture
def known_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "BATCH", 10)
    monkeypatch.setattr(masking, "PIECE", 3)
    exchange = "veiltab.curator.alignment.private.private_exchange"
    monkeypatch.setattr(f"{exchange}.fresh_scalar", lambda: bytes([7] + [0] * 31))
    monkeypatch.setattr(f"{exchange}.fresh_seed", lambda: bytes([9] * 32))


def whole_run(folder: Path) -> tuple[bytes, bytes, bytes]:
    """Return the bytes that travel and the result of a run that nothing breaks off."""
    with circle(folder, [PEOPLE[:45], PEOPLE[5:60]]) as (alice, bob):
        align(alice, bob)
        return alice.received["query", "alice", "bob"], bob.received["query", "alice", "alice"], alice.tokens_file()


@pytest.mark.usefixtures("known_secrets")
@pytest.mark.parametrize("batch", BATCHES)
def test_a_querier_killed_in_any_batch_of_its_check_goes_on_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: str
) -> None:
    with monkeypatch.context() as patched:
        written = noted_batches(patched, -1)
        wanted = whole_run(tmp_path / "whole" / "run")
    with circle(tmp_path / "broken" / "run", [PEOPLE[:45], PEOPLE[5:60]]) as curators:
        alice, bob = curators
        with monkeypatch.context() as patched:
            broken = noted_batches(patched, written.index(batch))

            async def killed() -> None:
                others = asyncio.create_task(bob.alignment.run(bob.table, bob.peers))
                with pytest.raises(asyncio.CancelledError):
                    await alice.alignment.run(alice.table, alice.peers)
                others.cancel()

            asyncio.run(killed())
        assert broken[-1] == ""
        alice.close()
        alice.open()
        with monkeypatch.context() as patched:
            again = noted_batches(patched, -1)
            align(alice, bob)
        assert not set(again) & set(broken)
        assert again[0] == batch
        found = alice.received["query", "alice", "bob"], bob.received["query", "alice", "alice"], alice.tokens_file()
        assert found == wanted
