""""""

import asyncio
from contextlib import suppress

import numpy as np
import pytest

from tests.conftest import PlayedDisk, refuses
from tests.curator.alignment.aligned_curators import (  # noqa: F401 - fixtures
    Curator,
    align,
    align_once,
    both_fixture,
    files,
    folder_of,
)
from tests.curator.alignment.circle import ABSENT, symbol_of, table_of
from tests.curator.disk_use import disk_use
from veiltab.common.errors import DeniedError, FailedReleaseError, InvalidInputError, NotReadyError
from veiltab.curator.alignment.disk_needs import FOLDERS, aligned_row_bytes, alignment_bytes
from veiltab.curator.table.tokens import TOKEN_LENGTH


@pytest.mark.parametrize("name", ["", "..", "a" * 31, "A" * 32, "a" * 100_000, "\N{DEVANAGARI DIGIT ZERO}" * 32])
def test_what_is_no_alignment_has_no_tokens(both: tuple[Curator, Curator], name: str) -> None:
    with refuses(NotReadyError, where="curator alice"):
        both[0].alignment.shared_tokens(name)


def test_a_spoke_has_the_rows_of_the_hub_and_absent_where_it_lacks_somebody(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    align(alice, bob)
    population, digest = alice.alignment.result()
    assert population == len(alice.ids) == 300
    assert bob.alignment.result() == (population, digest)
    assert [one.store.alignments.matched() for one in both] == [0, 200]
    tables = [curator.alignment.table(digest) for curator in both]
    assert np.array_equal(tables[0].tokens(), tables[1].tokens())
    lengths = [table.column("length") for table in tables]
    here = lengths[1] != ABSENT
    assert np.array_equal(lengths[0][here], lengths[1][here])  # a row's symbol is that of the same person
    assert sorted(lengths[0]) == sorted(symbol_of(name) for name in alice.ids)
    assert sorted(lengths[1][here]) == sorted(symbol_of(name) for name in set(alice.ids) & set(bob.ids))


def test_a_spoke_asks_the_hub_alone_and_sends_it_nothing(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    align(alice, bob)
    assert (alice.asked_from, bob.asked_from[-1]) == ([], 0)
    (name,) = (path.name for path in folder_of(bob).iterdir())
    with refuses(DeniedError, where="hub alice"):
        bob.alignment.shared_tokens(name)


def test_nothing_that_others_see_depends_on_matches(
    both: tuple[Curator, Curator], caplog: pytest.LogCaptureFixture
) -> None:
    """Neither result nor log, of which metrics and traces are made, nor the hub's files say how many people match."""
    alice, bob = both
    align(alice, bob)
    before, at_hub, said = alice.alignment.result(), files(alice), list[object]()
    (name,) = (path.name for path in folder_of(bob).iterdir())
    for matched in (0, 1, 300):
        strangers = [f"nobody {n}" for n in range(300 - matched)]
        bob.table = table_of([*alice.ids[:matched], *strangers], bob.table.content_digest)
        bob.store.connection.execute("DELETE FROM alignment")
        bob.alignment._ordered = None
        caplog.clear()
        with caplog.at_level("DEBUG"):
            align_once(bob, name)
        said.append([(one.msg, vars(one).get("step"), vars(one).get("bytes")) for one in caplog.records])
        assert bob.alignment.result() == before
        assert bob.store.alignments.matched() == matched
        assert np.count_nonzero(bob.alignment.table(before[1]).column("length") == ABSENT) == 300 - matched
    assert said[0] == said[1] == said[2] != []
    assert files(alice) == at_hub


def test_tokens_of_the_hub_do_not_stay(both: tuple[Curator, Curator]) -> None:
    align(*both)
    for curator in both:
        names = {path.name for path in folder_of(curator).rglob("*") if path.is_file()}
        assert names == {"own-tokens.bin", "tokens.bin", "column-length.npy"}


def test_tokens_of_the_hub_that_outlast_a_crash_are_deleted(both: tuple[Curator, Curator]) -> None:
    _, bob = both
    align(*both)
    before = files(bob)
    folder = next(folder_of(bob).iterdir())
    (folder / "hub-tokens.bin").write_bytes(bytes(32))
    align_once(bob, folder.name)
    assert files(bob) == before


def test_the_same_tables_are_aligned_once(both: tuple[Curator, Curator]) -> None:
    align(*both)
    before = both[0].alignment.result()
    both[0].key = bytes(32)
    align(*both)
    assert both[0].alignment.result() == before


def test_a_release_planned_on_another_table_fails(both: tuple[Curator, Curator]) -> None:
    align(*both)
    with refuses(FailedReleaseError, where="alignment"):
        both[0].alignment.table("0" * 32)


def test_before_there_is_an_alignment_it_says_what_it_waits_for(both: tuple[Curator, Curator]) -> None:
    alice, _ = both
    with pytest.raises(NotReadyError, match="has not aligned its table yet"):
        alice.alignment.result()
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(alice.alignment.run(alice.table, alice.peers), 0.3))
    with pytest.raises(NotReadyError, match="curator peer: has no table loaded yet"):
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


@pytest.mark.parametrize("rows", [100, 10_000, 20_000])
def test_an_alignment_writes_no_more_than_is_kept_for_it(both: tuple[Curator, Curator], rows: int) -> None:
    """At a spoke whose hub has more people than it, too; test_token_exchange.py has what is kept for those."""
    alice, bob = both
    for curator, number in ((alice, 20_000), (bob, rows)):
        curator.table = table_of([f"person {n}" for n in range(number)], f"content of {curator.name}")
    with disk_use(bob.alignment._folder.parent) as use:
        align(alice, bob)
    types = list(bob.table.respondents.types.values())
    kept = alignment_bytes(rows, types, 2) + (20_000 - rows) * (TOKEN_LENGTH + aligned_row_bytes(types))
    assert use.most <= kept <= 2 * use.most + FOLDERS


@pytest.mark.parametrize("cut", [1, 8, 15])
def test_tokens_that_are_cut_short_are_refused(both: tuple[Curator, Curator], cut: int) -> None:
    alice, bob = both
    bob.twist = lambda data: data[:-cut]
    align(alice, bob)
    with refuses(InvalidInputError, where="curator alice"):
        bob.alignment.result()
