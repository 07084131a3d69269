"""What a hub or a spoke refuses: messages that no honest curator sends. None of it depends on who is linked."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.curator.alignment.circle import align
from tests.curator.linking.registers import Person, identity, people, registers, wanted_links
from veiltab.common.errors import IntegrityError, InvalidInputError, VeiltabError
from veiltab.curator.alignment.joining.join_messages import JoinKind, Message

COMMON = people(20, 1)
HUB, SPOKE = [*COMMON, *people(10, 2)], [*COMMON[::-1], *people(5, 3)]
Change = Callable[[bytes], bytes]


def instead(old: bytes, new: bytes) -> Change:
    return lambda data: data.replace(old, new, 1)


def first_of(kind: JoinKind, change: Change) -> Callable[[Message, bytes], bytes]:
    """Change the messages of a kind."""
    return lambda message, data: change(data) if message.kind is kind else data


OF_SPOKE: dict[str, tuple[JoinKind, Change, str]] = {
    "more slots than it may have": (JoinKind.COLUMNS, lambda data: data + bytes(64 * 3 * 4096), "more than the"),
    "a store of no slots": (JoinKind.COLUMNS, lambda data: data[: 64 * 128], "of a size that no store has"),
    "other columns than it answers for": (
        JoinKind.COLUMNS,
        lambda data: data[1:] + data[:1],
        "sent columns that no honest spoke sends",
    ),
}

OF_HUB: dict[str, tuple[JoinKind, Change, str]] = {
    "a table cut short": (JoinKind.TABLE, lambda data: data[:-1], "not padded"),
    "a table that is not padded": (JoinKind.TABLE, lambda data: data[:-16], "not padded"),
    "another rule": (JoinKind.AGREEMENT, instead(b'"runs":true', b'"runs":false'), "does not decide by the rule"),
    "other keys": (JoinKind.AGREEMENT, instead(b"given family birth sex", b"given family"), "other"),
    "self-matches without rows": (
        JoinKind.AGREEMENT,
        instead(b'"matches":0', b'"matches":31'),
        "more self-matches than rows",
    ),
    "fewer rows": (JoinKind.AGREEMENT, instead(b'"rows":30', b'"rows":29'), "more or fewer rows"),
    "no agreement": (JoinKind.AGREEMENT, lambda _: b"{}", "cannot be read"),
}


@pytest.mark.parametrize("what", OF_SPOKE)
def test_a_hub_refuses(tmp_path: Path, what: str) -> None:
    kind, change, said = OF_SPOKE[what]
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=True) as (alice, bob):
        alice.exchange.sessions._most_rows = {}
        bob.tampering = first_of(kind, change)
        with pytest.raises(VeiltabError, match=said) as refused:
            align(alice, bob)
        assert "curator bob" in str(refused.value)


@pytest.mark.parametrize("what", OF_HUB)
def test_a_spoke_refuses(tmp_path: Path, what: str) -> None:
    kind, change, said = OF_HUB[what]
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=False) as (alice, bob):
        alice.tampering = first_of(kind, change)
        with pytest.raises(VeiltabError, match=said) as refused:
            align(alice, bob)
        assert "curator alice" in str(refused.value)
        # What is refused loses nothing: with the honest message all are linked.
        alice.tampering = lambda _message, data: data
        align(alice, bob)
        assert bob.report.links == len(wanted_links(identity(), HUB, SPOKE))


def test_curators_that_read_other_statements_release_nothing(tmp_path: Path) -> None:
    """The digest of what the hub states is part of what curators compare."""
    changed = first_of(JoinKind.AGREEMENT, instead(b'"dated":30', b'"dated":29'))
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=False) as (alice, bob):
        alice.tampering = changed
        align(alice, bob)
        (rows, digest), (others, other) = alice.alignment.result(), bob.alignment.result()
        assert rows == others
        assert digest != other


def test_a_session_that_failed_begins_again_when_a_person_allows_it(tmp_path: Path) -> None:
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=True) as (alice, bob):
        bob.tampering = first_of(*OF_SPOKE["other columns than it answers for"][:2])
        for _ in range(2):
            with pytest.raises(IntegrityError, match=r"no honest spoke sends|ended the join"):
                align(alice, bob)
            bob.tampering = lambda _message, data: data
        alice.store.joins.allow("bob", bytes(range(16)), person="Ben")
        align(alice, bob)
        assert bob.report.links == len(wanted_links(identity(), HUB, SPOKE))


def test_a_spoke_finds_whom_it_guesses_and_nobody_else(tmp_path: Path) -> None:
    """Invented rows are rows: one finds its person if it is right in all that a key takes, and the rest find nobody."""
    right, wrong = [HUB[3], HUB[15], HUB[25]], people(60, 9)
    with registers(tmp_path, [HUB, [*right, *wrong]], identity(), is_private=False) as (alice, bob):
        align(alice, bob)
        assert bob.store.alignments.matched() == len(right)


def test_all_variants_of_one_name_find_nobody(tmp_path: Path) -> None:
    """Rows that try every misspelling of one person tie for that person, who is linked with none of them."""
    given, _, birth, sex, postcode = HUB[0]
    tries: list[Person] = [
        (given[:place] + letter + given[place + 1 :], "unknown", birth, sex, postcode)
        for place in range(len(given))
        for letter in "xyz"
    ]
    with registers(tmp_path, [HUB, [*tries, *SPOKE[:15]]], identity(), is_private=False) as (alice, bob):
        align(alice, bob)
        links = wanted_links(identity(), HUB, bob.rows)
        assert 0 not in links
        assert bob.store.alignments.matched() == len(links)


def test_keys_of_a_megabyte_count_as_missing(tmp_path: Path) -> None:
    long: list[Person] = [("a" * 10**6, "b" * 10**6, "1970-01-01", "f", "c" * 10**6)] * 2
    with registers(tmp_path, [[*long[:1], *HUB], [*long, *SPOKE]], identity(), is_private=False) as (alice, bob):
        align(alice, bob)
        assert bob.store.alignments.matched() == len(wanted_links(identity(), HUB, SPOKE))


def test_a_hub_all_of_whose_rows_are_twins_lets_no_pass_run(tmp_path: Path) -> None:
    with (
        registers(tmp_path, [[*COMMON, *COMMON], SPOKE], identity(), is_private=False) as (alice, bob),
        pytest.raises(InvalidInputError, match="no pass runs"),
    ):
        align(alice, bob)
