"""What a hub or a spoke refuses: messages that no honest curator sends, and callers whom they are not for."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.curator.alignment.circle import align
from tests.curator.linking.registers import Curator, Person, identity, people, registers, wanted_links
from veiltab.common.errors import DeniedError, IntegrityError, InvalidInputError, NotReadyError, VeiltabError
from veiltab.curator.alignment.linking.link_messages import LinkKind, LinkMessage, message_from_proto
from veiltab.curator.alignment.private.ristretto import hashed
from veiltab.v1.curator_peer_pb2 import FetchLinkRequest

COMMON = people(20, 1)
HUB, SPOKE = [*COMMON, *people(10, 2)], [*COMMON[::-1], *people(5, 3)]
STRANGERS = hashed(f"stranger {number}".encode() for number in range(1000))
Change = Callable[[bytes], bytes]


def first_of(kind: LinkKind, change: Change) -> Callable[[LinkMessage, bytes], bytes]:
    """Change the messages of a kind."""
    return lambda message, data: change(data) if message.kind is kind else data


OF_SPOKE: dict[str, tuple[LinkKind, Change, str]] = {
    "more keys than it has rows": (
        LinkKind.ASKED,
        lambda data: data + STRANGERS[: 32 * 45],
        "more than the 800 that follow from its rows",
    ),
    "one key twice": (LinkKind.ASKED, lambda data: data[:32] + data[:-32], "asked for one key twice"),
    "the identity": (LinkKind.ASKED, lambda data: bytes(32) + data[32:], "asked for what is no element"),
    "no element": (LinkKind.ASKED, lambda data: b"\xff" * 32 + data[32:], "asked for what is no element"),
    "half a key": (LinkKind.ASKED, lambda data: data[:-1], "cut short"),
    "what it did not agree to": (
        LinkKind.AGREEMENT,
        lambda data: data.replace(data[12:20], b"00000000"),
        "agreed to another linkage",
    ),
    "no agreement": (LinkKind.AGREEMENT, lambda _: b"{}", "cannot be read"),
    "nobody's rows": (LinkKind.AGREEMENT, lambda data: data.replace(b'"rows":25', b'"rows":0'), "states 0 rows"),
    "too many rows": (
        LinkKind.AGREEMENT,
        lambda data: data.replace(b'"rows":25', b'"rows":5000000'),
        "states 5,000,000 rows; it may have 1,000,000",
    ),
    "an invented handle": (LinkKind.ACCEPTED, lambda data: bytes(15) + b"\x01" + data[16:], "named a row"),
    "a handle twice": (LinkKind.ACCEPTED, lambda data: data[:16] + data[:-16], "named a row"),
}

OF_HUB: dict[str, tuple[LinkKind, Change, str]] = {
    "fewer answers": (LinkKind.ANSWERED, lambda data: data[:-32], "answered for more or fewer"),
    "the identity": (LinkKind.ANSWERED, lambda data: bytes(32) + data[32:], "sent what is no element"),
    "no element": (LinkKind.ANSWERED, lambda data: data[:-32] + b"\xff" * 32, "sent what is no element"),
    "a table out of order": (LinkKind.TABLE, lambda data: data[32:64] + data[:32] + data[64:], "out of order"),
    "a tag twice": (LinkKind.TABLE, lambda data: data[:32] + data[:32] + data[64:], "out of order, or twice"),
    "a table that is not padded": (LinkKind.TABLE, lambda data: data[:-32], "not padded"),
    "an empty table": (LinkKind.TABLE, lambda _: b"", "not padded"),
    "another rule": (
        LinkKind.AGREEMENT,
        lambda data: data.replace(b'"runs":true', b'"runs":false', 1),
        "does not decide by the rule",
    ),
    "other keys": (LinkKind.AGREEMENT, lambda data: data.replace(b"given family birth sex", b"given family"), "other"),
    "self-matches without rows": (
        LinkKind.AGREEMENT,
        lambda data: data.replace(b'"matches":0', b'"matches":31', 1),
        "more self-matches than rows",
    ),
    "links that are not there": (LinkKind.JOINT, lambda data: bytes(16) + data[16:], "named links that are not here"),
    "one person twice": (LinkKind.JOINT, lambda data: data[:48] + data[16:32] + data[64:], "named links that are not"),
    "names cut short": (LinkKind.JOINT, lambda data: data[:-1], "cut short"),
}


def first_case(cases: dict[str, tuple[LinkKind, Change, str]], kind: LinkKind) -> str:
    """Return after which of the cases that change one kind of message the linkage is seen to go on."""
    return next(name for name, case in cases.items() if case[0] is kind)


@pytest.mark.parametrize("what", OF_SPOKE)
def test_a_hub_refuses(tmp_path: Path, what: str) -> None:
    kind, change, said = OF_SPOKE[what]
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=True) as (alice, bob):
        bob.tampering = first_of(kind, change)
        with pytest.raises(VeiltabError, match=said) as refused:
            align(alice, bob)
        assert "curator bob" in str(refused.value)
        assert kind is LinkKind.ACCEPTED or what != first_case(OF_SPOKE, kind) or _goes_on(alice, bob)


@pytest.mark.parametrize("what", OF_HUB)
def test_a_spoke_refuses(tmp_path: Path, what: str) -> None:
    kind, change, said = OF_HUB[what]
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=True) as (alice, bob):
        alice.tampering = first_of(kind, change)
        with pytest.raises(VeiltabError, match=said) as refused:
            align(alice, bob)
        assert "curator alice" in str(refused.value)
        assert what != first_case(OF_HUB, kind) or _goes_on(alice, bob)


def _goes_on(*curators: Curator) -> bool:
    """What is refused loses nothing: with the honest message all are linked."""
    for curator in curators:
        curator.tampering = lambda _message, data: data
    align(*curators)
    return len(wanted_links(identity(), HUB, SPOKE)) == curators[0].alignment.result()[0]


def test_a_session_that_a_spoke_ended_begins_again_when_a_person_allows_it(tmp_path: Path) -> None:
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=True) as (alice, bob):
        bob.tampering = first_of(LinkKind.ACCEPTED, lambda data: bytes(16) + data[16:])
        with pytest.raises(IntegrityError, match="named a row that it was not given"):
            align(alice, bob)
        before = alice.store.private.session(next((alice.folder / "alignments").iterdir()).name)
        bob.tampering = lambda _message, data: data
        for curator in (alice, bob):
            curator.close()
            curator.open()
        with pytest.raises(IntegrityError, match=r"named a row|ended the linkage"):
            align(alice, bob)
        alice.store.private.allow("bob", bytes(range(16)), person="Ben")
        align(alice, bob)
        after = alice.store.private.session(next((alice.folder / "alignments").iterdir()).name)
        assert before is not None
        assert after is not None
        assert (before.name == after.name, before.scalar, before.seed) == (False, b"", b"")


def test_messages_are_for_one_curator_each(tmp_path: Path) -> None:
    with registers(tmp_path, [SPOKE, HUB, COMMON], identity(hub="bob"), is_private=True) as (alice, bob, carol):
        align(alice, bob, carol)
        (folder,) = (bob.folder / "alignments").iterdir()
        own = bob.store.private.session(folder.name)
        assert own is not None
        for curator, message, peer in (
            (bob, LinkMessage(kind=LinkKind.TABLE, spoke="alice", number=1), "carol"),
            (bob, LinkMessage(kind=LinkKind.JOINT, spoke="carol"), "alice"),
            (alice, LinkMessage(kind=LinkKind.ASKED, spoke="alice", number=1), "carol"),
        ):
            with pytest.raises(DeniedError, match="not for the caller"):
                curator.exchange.link_file(folder.name, own.name, message, peer)
        asked = LinkMessage(kind=LinkKind.ASKED, spoke="alice", number=1)
        for name, session, message in (
            ("../" + "a" * 29, own.name, asked),
            (folder.name, "x", asked),
            (folder.name, own.name, LinkMessage(kind=LinkKind.ASKED, spoke="bob", number=1)),
            (folder.name, own.name, LinkMessage(kind=LinkKind.ASKED, spoke="carol", number=1)),
            (folder.name, own.name, LinkMessage(kind=LinkKind.TABLE, spoke="alice", number=1)),
        ):
            with pytest.raises(InvalidInputError, match="no such message"):
                alice.exchange.link_file(name, session, message, "bob")
        late = LinkMessage(kind=LinkKind.ASKED, spoke="alice", number=64)
        with pytest.raises(NotReadyError, match="not made this part"):
            alice.exchange.link_file(folder.name, own.name, late, "bob")
    with pytest.raises(InvalidInputError, match="no such message"):
        message_from_proto(FetchLinkRequest())


def test_a_spoke_finds_whom_it_guesses_and_nobody_else(tmp_path: Path) -> None:
    """Invented rows are rows: one finds its person if it is right in all that a key takes, and the rest find nobody."""
    right, wrong = [HUB[3], HUB[15], HUB[25]], people(60, 9)
    with registers(tmp_path, [HUB, [*right, *wrong]], identity(), is_private=True) as (alice, bob):
        align(alice, bob)
        assert alice.alignment.result()[0] == len(right)
        (leg,) = alice.report.legs
        assert leg.elements <= len(bob.rows) * sum((1, 1, 13)) + 6 * len(right)


def test_all_variants_of_one_name_find_nobody(tmp_path: Path) -> None:
    """Rows that try every misspelling of one person tie for that person, who is linked with none of them."""
    given, _, birth, sex, postcode = HUB[0]
    tries: list[Person] = [
        (given[:place] + letter + given[place + 1 :], "unknown", birth, sex, postcode)
        for place in range(len(given))
        for letter in "xyz"
    ]
    with registers(tmp_path, [HUB, [*tries, *SPOKE[:15]]], identity(), is_private=True) as (alice, bob):
        align(alice, bob)
        links = wanted_links(identity(), HUB, bob.rows)
        assert 0 not in links
        assert alice.alignment.result()[0] == len(links)


def test_keys_of_a_megabyte_count_as_missing(tmp_path: Path) -> None:
    long: list[Person] = [("a" * 10**6, "b" * 10**6, "1970-01-01", "f", "c" * 10**6)] * 2
    with registers(tmp_path, [[*long[:1], *HUB], [*long, *SPOKE]], identity(), is_private=True) as (alice, bob):
        align(alice, bob)
        assert alice.alignment.result()[0] == len(wanted_links(identity(), HUB, SPOKE))


def test_a_hub_all_of_whose_rows_are_twins_lets_no_pass_run(tmp_path: Path) -> None:
    with (
        registers(tmp_path, [[*COMMON, *COMMON], SPOKE], identity(), is_private=True) as (alice, bob),
        pytest.raises(InvalidInputError, match="no pass runs"),
    ):
        align(alice, bob)


def test_tables_without_a_common_person_are_refused(tmp_path: Path) -> None:
    with registers(tmp_path, [HUB, people(30, 8)], identity(), is_private=False) as (alice, bob):
        with pytest.raises(InvalidInputError, match="no row is linked") as refused:
            align(alice, bob)
        assert "date_order" in str(refused.value)
