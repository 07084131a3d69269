"""What a curator that deviates gains beyond what docs/linkage.md says it can: nothing."""

import asyncio
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from secrets import token_bytes
from typing import Any, cast

import pytest

from tests.curator.alignment.circle import align
from tests.curator.linking.registers import Curator, identity, people, registers
from veiltab.common.errors import DeniedError, IntegrityError, NotReadyError
from veiltab.common.linkage.row_keys import normal_rows, pass_keys
from veiltab.curator.alignment.linking import spoke_work
from veiltab.curator.alignment.linking.leg import COMPARED
from veiltab.curator.alignment.linking.link_messages import LinkKind, LinkMessage
from veiltab.curator.alignment.linking.oblivious import digests, elements, inverse, unblinded_values
from veiltab.curator.alignment.private.ristretto import fresh_scalar, masked
from veiltab.curator.peers.ring import Standing

COMMON = people(40, 1)
HUB, SPOKE = [*COMMON, *people(20, 2)], [*COMMON[::-1], *people(10, 3)]


def test_elements_of_one_pass_test_no_keys_of_another(tmp_path: Path) -> None:
    """A spoke asks guesses of the first pass among the many elements of the comparison."""
    rule, blind = identity(), fresh_scalar()
    with registers(tmp_path, [HUB, SPOKE], rule, is_private=True) as (alice, bob):
        columns = list(zip(*HUB[40:], strict=True))
        keys = [key for keys in pass_keys(rule.ladder[0], normal_rows(rule, "ymd", columns)) for key in keys]
        guessed = bytearray()

        def chosen(message: LinkMessage, data: bytes) -> bytes:
            if message.kind is not LinkKind.ASKED or message.number != COMPARED:
                return data
            guessed[:] = digests(keys, next((alice.folder / "alignments").iterdir()).name)
            asked = masked(elements(1, bytes(guessed)), blind)
            return asked + data[len(asked) :]

        bob.tampering = chosen
        align(alice, bob)
        answered = next(d for m, d in bob.received.items() if m.kind is LinkKind.ANSWERED and m.number == COMPARED)
        shown = next(d for m, d in bob.received.items() if m.kind is LinkKind.TABLE and m.number == 1)
        found = unblinded_values(1, bytes(guessed), answered[: len(guessed)], inverse(blind))
        tags = {shown[at : at + 16] for at in range(0, len(shown), 32)}
        assert len(guessed) == 32 * 20
        assert not [at for at in range(0, len(found), 32) if found[at : at + 16] in tags]


def test_the_comparison_gives_no_handle_of_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a spoke would learn at which places of the hub's file linked people are."""
    seen, found_in = list[Any](), spoke_work._found_in

    def noted(table: Path, values: Path) -> Any:  # noqa: ANN401 - as it returns
        seen.append((values.name, *found_in(table, values)))
        return seen[-1][1:]

    monkeypatch.setattr(spoke_work, "_found_in", noted)
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=True) as (alice, bob):
        align(alice, bob)
        accepted = next(d for m, d in alice.received.items() if m.kind is LinkKind.ACCEPTED)
        given = {accepted[at : at + 16] for at in range(0, len(accepted), 16)}
        ((_, found, handles),) = (one for one in seen if one[0] == f"values-{COMPARED}.bin")
        assert found.any()
        assert len(given) == 40
        assert not [one for one in handles[found] if one.tobytes() in given]


def test_a_hub_gives_no_more_handles_than_it_has_rows(tmp_path: Path) -> None:
    """A hub that states few rows cannot attach handles to more keys than these, pass by pass."""
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=True) as (alice, bob):

        def few(message: LinkMessage, data: bytes) -> bytes:
            changed = data.replace(b'"rows":60', b'"rows":30').replace(b'"dated":60', b'"dated":30')
            return changed if message.kind is LinkKind.AGREEMENT else data

        def agreed(message: LinkMessage, data: bytes) -> bytes:
            if message.kind is not LinkKind.AGREEMENT:
                return data
            paths = bob.session_folder / "from-agreement-bob-0.bin", alice.session_folder / "agreement-bob-0.bin"
            old, new = (sha256(path.read_bytes()).hexdigest().encode() for path in paths)
            return data.replace(old, new)

        alice.tampering = few
        bob.tampering = agreed
        with pytest.raises(IntegrityError, match="more of its rows than it states"):
            align(alice, bob)


def test_a_peer_that_says_two_parts_begins_no_session_that_is_not_counted(tmp_path: Path) -> None:
    """It says a fresh part, so that a linkage is wanted again, and then the one of the session that is finished."""
    with registers(tmp_path, [HUB[:10], SPOKE[:40]], identity(), is_private=True) as (alice, bob):
        align(alice, bob)
        before = alice.store.private.session(alice.alignment._current)
        assert before is not None
        true, calls = alice.session, [0]

        async def two(peer: str, name: str) -> Standing:
            calls[0] += 1
            said = await true(peer, name)
            return replace(said, part=bytes(16)) if calls[0] % 2 else said

        alice.session = two  # type: ignore[method-assign]
        name = alice.alignment._current

        async def again() -> None:
            assert await alice.exchange.is_wanted(name, cast("Any", alice))
            await alice.exchange._enter(name, cast("Any", alice))

        with pytest.raises(NotReadyError, match="says one part and then another"):
            asyncio.run(again())
        after = alice.store.private.session(name)
        assert after == before
        assert alice.store.private.parts()["bob"][1] == 1


def test_a_spoke_that_asks_and_begins_again_is_in_the_log_of_the_hub(tmp_path: Path) -> None:
    """It has its answers, and names no link; so it does not come to the entry of a linkage."""
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=True) as (alice, bob):

        def ended(message: LinkMessage, data: bytes) -> bytes:
            if message.kind is LinkKind.ACCEPTED:
                raise KeyboardInterrupt
            return data

        bob.tampering = ended
        with pytest.raises(KeyboardInterrupt):
            align(alice, bob)
        assert [one.kind for one in alice.received].count(LinkKind.ASKED) == len(identity().ladder)
        bob.tampering = lambda _message, data: data
        bob.store.private.renew(next((bob.folder / "alignments").iterdir()).name, token_bytes(16))
        for curator in (alice, bob):
            curator.close()
            curator.open()
        align(alice, bob)
        log = [(one.event, one.facts.get("curators", "")) for one in alice.store.audit.entries()]
        assert log == [("alignment begun", "alice bob")] * 2 + [("linked", "")]


def test_two_spokes_that_begin_sessions_in_turn_get_no_more_than_one(tmp_path: Path) -> None:
    """Each asks in a session whoever begins it, so the hub counts it for both; a spoke counts who begins it."""
    tables = [SPOKE, HUB, COMMON]
    with registers(tmp_path, tables, identity(hub="bob"), is_private=False) as (alice, bob, carol):

        def again(*lost: Curator) -> None:
            for one in lost:
                one.store.private.renew(one.alignment._current, token_bytes(16))
            for one in (alice, bob, carol):
                one.close()
                one.open()
            align(alice, bob, carol)

        align(alice, bob, carol)
        again(alice)
        again(bob)
        assert [bob.store.private.parts()[one][1] for one in ("alice", "carol")] == [2, 2]
        again(carol)
        assert [bob.store.private.parts()[one][1] for one in ("alice", "carol")] == [3, 3]
        assert [alice.store.private.parts()[one][1] for one in ("bob", "carol")] == [2, 2]
        parts = {name: part for name, (part, _) in bob.store.private.parts().items()}
        for allowed, refused in (("", "alice"), ("", "carol"), ("alice", "carol")):
            if allowed:
                bob.store.private.allow(allowed, bytes(range(16)), person="Ben")
                assert bob.exchange._check_may_begin(parts | {allowed: bytes(16)}).keys() == parts.keys()
            with pytest.raises(DeniedError, match=f"{refused}: had 3 private alignments since a person here allowed"):
                bob.exchange._check_may_begin(parts | {refused: bytes(16)})
        parts = {name: part for name, (part, _) in alice.store.private.parts().items()}
        assert alice.exchange._check_may_begin(parts | {"carol": bytes(16)}) == {"carol": bytes(16)}
