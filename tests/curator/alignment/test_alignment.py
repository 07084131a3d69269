""""""

import asyncio
from contextlib import suppress
from typing import cast

import numpy as np
import pytest

from tests.conftest import PlayedDisk
from tests.curator.alignment.aligned_curators import Curator, PeersOf, align, both_fixture, files, table_of  # noqa: F401 - fixtures
from tests.curator.disk_use import disk_use
from veiltab.common.errors import FailedReleaseError, InvalidInputError, NotReadyError
from veiltab.curator.alignment.disk_needs import alignment_bytes
from veiltab.curator.peers.calls import Peers


@pytest.mark.parametrize("name", ["", "..", "a" * 31, "A" * 32, "a" * 100_000, "\N{DEVANAGARI DIGIT ZERO}" * 32])
def test_what_is_no_alignment_has_no_tokens(both: tuple[Curator, Curator], name: str) -> None:
    with pytest.raises(NotReadyError, match="has not computed its tokens yet"):
        both[0].alignment.shared_tokens(name)


def test_both_find_the_same_respondents_in_the_same_order(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    align(alice, bob)
    population, digest = alice.alignment.result()
    assert population == 200
    assert bob.alignment.result() == (population, digest)
    assert [one.store.alignments.common() for one in both] == [(200, len(alice.ids)), (200, len(bob.ids))]
    tables = [curator.alignment.table(digest) for curator in both]
    assert np.array_equal(tables[0].tokens(), tables[1].tokens())
    lengths = [table.column("length") for table in tables]
    assert np.array_equal(lengths[0], lengths[1])  # a row's symbol is that of the same person
    common = set(alice.ids) & set(bob.ids)
    assert sorted(lengths[0]) == sorted(len(name) for name in common)


def test_tokens_of_others_do_not_stay(both: tuple[Curator, Curator]) -> None:
    align(*both)
    for curator in both:
        names = {path.name for path in curator.alignment.tokens_file("x").parents[1].rglob("*") if path.is_file()}
        assert names == {"own-tokens.bin", "tokens.bin", "column-length.npy"}


def test_tokens_of_others_that_outlast_a_crash_are_deleted(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    align(alice, bob)
    before = files(alice)
    folder = next(alice.alignment.tokens_file("x").parents[1].iterdir())
    (folder / "bob-tokens.bin").write_bytes(bytes(32))
    asyncio.run(alice.alignment._align(folder.name, alice.table, cast("Peers", PeersOf(alice))))
    assert files(alice) == before


def test_the_same_tables_are_aligned_once(both: tuple[Curator, Curator]) -> None:
    align(*both)
    before = both[0].alignment.result()
    both[0].key = bytes(32)
    align(*both)
    assert both[0].alignment.result() == before


def test_a_release_planned_on_another_table_fails(both: tuple[Curator, Curator]) -> None:
    align(*both)
    with pytest.raises(FailedReleaseError, match="table changed since the release was planned"):
        both[0].alignment.table("0" * 32)


def test_before_there_is_an_alignment_it_says_what_it_waits_for(both: tuple[Curator, Curator]) -> None:
    alice, _ = both
    with pytest.raises(NotReadyError, match="has not aligned its table yet"):
        alice.alignment.result()

    async def briefly() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await alice.alignment.run(alice.table, cast("Peers", PeersOf(alice)))

    asyncio.run(briefly())
    with pytest.raises(NotReadyError, match="curator peer: has no table loaded yet"):
        alice.alignment.result()


def test_curators_without_a_common_respondent_are_told(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    bob.table = table_of(["nobody"], "other")
    align(alice, bob)
    with pytest.raises(InvalidInputError, match=r"no respondent in common.*with the tables: alice has id by integer\."):
        alice.alignment.result()


def test_an_alignment_for_which_there_is_no_room_is_not_begun(both: tuple[Curator, Curator], disk: PlayedDisk) -> None:
    alice, bob = both
    disk.free = 300 * (2 * 17 + 16) + 2**20

    async def briefly() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                await asyncio.gather(alice.align(), bob.align())

    asyncio.run(briefly())
    with pytest.raises(NotReadyError, match=r"disk is full but for 1\.0 MiB, and this takes 0\.1 MiB with 1\.0 MiB in"):
        alice.alignment.result()
    assert files(alice) == {}
    disk.free += 2**17
    align(alice, bob)
    assert alice.alignment.result() == bob.alignment.result()
    disk.free = 0
    align(alice, bob)  # what is made takes no more room


def test_more_respondents_than_a_table_may_have_are_refused(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    for curator in both:  # one alone would be waited for
        curator.alignment._most_respondents = 299
    align(alice, bob)
    for curator in both:
        with pytest.raises(InvalidInputError, match="has 300 respondents, more than the 299"):
            curator.alignment.result()
        assert files(curator) == {}
        curator.alignment._most_respondents = 300
    align(alice, bob)
    assert alice.alignment.result() == bob.alignment.result()


def test_an_alignment_writes_no_more_than_is_kept_for_it(both: tuple[Curator, Curator]) -> None:
    rows = 20_000
    for curator in both:
        curator.table = table_of([f"person {n}" for n in range(rows)], f"content of {curator.name}")
    alice, bob = both
    with disk_use(alice.alignment._folder.parent) as use:
        align(alice, bob)
    kept = alignment_bytes(rows, alice.table.respondents.types.values(), 2)
    assert use.most <= kept <= 2 * use.most


@pytest.mark.parametrize("cut", [1, 8, 15])
def test_tokens_that_are_cut_short_are_refused(both: tuple[Curator, Curator], cut: int) -> None:
    alice, bob = both
    alice.tokens = lambda data: data[:-cut]
    align(alice, bob)
    with pytest.raises(InvalidInputError, match="sent tokens that are cut short"):
        alice.alignment.result()
