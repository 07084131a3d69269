"""What a broken connection, a crash or a damaged disk leaves of an alignment."""

import asyncio
import os
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.conftest import refuses
from tests.curator.alignment.aligned_curators import (  # noqa: F401 - fixtures
    Curator,
    align,
    align_once,
    both_fixture,
    files,
    folder_of,
)
from tests.curator.alignment.circle import KEY, table_of
from tests.power import UNRAISABLE, FailingPower, PowerFailure
from tests.worlds.loops import blocking
from veiltab.common.core.derivation import derive
from veiltab.common.errors import IntegrityError, NotReadyError, TransferError, VeiltabError
from veiltab.common.tasks.engine import InProcess, Result, Results, Task
from veiltab.curator.alignment.intersection import alignment_id
from veiltab.curator.table.table_rows import LostTableError, rows_on_disk
from veiltab.curator.table.tokens import tokens


def test_tokens_go_on_where_a_connection_broke(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    bob.breaks = 3
    align(alice, bob)
    assert bob.asked_from[-4:] == [0, 1000, 2000, 3000]
    assert alice.alignment.result() == bob.alignment.result()
    assert not [name for name in files(bob) if name.endswith(".part")]


def test_tokens_that_are_refused_are_fetched_from_the_beginning(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    bob.twist = lambda data: data[16:] + data[:16]
    align(alice, bob)
    with refuses(IntegrityError, where="hub"):
        bob.alignment.result()
    bob.twist = lambda data: data
    align(bob)
    assert set(bob.asked_from) == {0}
    assert alice.alignment.result() == bob.alignment.result()


def test_what_a_crash_left_is_used_or_made_again(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    bob.twist = lambda data: data[:-1]
    align(alice, bob)
    bob.twist = lambda data: data
    own = next(folder_of(bob).rglob("own-tokens.bin"))
    bob.alignment._ordered = None
    align(bob)
    assert alice.alignment.result() == bob.alignment.result()
    assert own.parent.name == alignment_id({curator.name: curator.alignment.table_version for curator in both})


@pytest.mark.parametrize("lost", ["own-tokens.bin", "tokens.bin", "column-length.npy", "*"])
def test_files_that_are_lost_are_made_again(both: tuple[Curator, Curator], lost: str) -> None:
    align(*both)
    for curator in both:
        before, result = files(curator), curator.alignment.result()
        folder = next(folder_of(curator).iterdir())
        for path in folder.glob(lost):
            path.unlink()
        align_once(curator, folder.name)
        assert (files(curator), curator.alignment.result()) == (before, result)


def test_files_that_are_lost_after_the_coin_begin_another_alignment(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    align(alice, bob)
    folder = next(folder_of(alice).iterdir())
    before = alice.alignment.table_version
    for curator in both:
        curator.store.coins.own_share(f"alignment/{folder.name}", bytes(32))
        curator.store.coins.forget_coin(f"alignment/{folder.name}")
    (folder / "tokens.bin").unlink()
    with pytest.raises(NotReadyError, match="aligns its table anew"):
        align_once(alice, folder.name)
    for curator in both:
        curator.alignment._current = ""  # as after a restart
    align(alice, bob)
    assert alice.alignment.table_version != before
    assert alice.alignment.result() == bob.alignment.result()


def alter(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])


DAMAGES: dict[str, Callable[[Path], object]] = {
    "altered": alter,
    "cut off": lambda path: os.truncate(path, path.stat().st_size - 1),
    "deleted": Path.unlink,
}


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("what", ["spread", "sorted"])
@pytest.mark.parametrize("who", [0, 1], ids=["hub", "spoke"])
def test_what_is_damaged_between_two_passes_is_made_again(
    both: tuple[Curator, Curator], monkeypatch: pytest.MonkeyPatch, who: int, what: str, how: str
) -> None:
    """Also if the rows that it is made from are not: the curator neither ends nor fails for ever."""
    align(*both)
    curator, result = both[who], both[1 - who].alignment.result()
    run, damaged = curator.alignment._execution.run, list[Path]()
    before = set(run.folder.iterdir())
    folder = next(folder_of(curator).iterdir())
    (folder / "tokens.bin").unlink()

    class Damaging(InProcess):
        def perform(self, tasks: Iterable[Task[Result]]) -> Results[Result]:
            for ready in super().perform(tasks):
                yield ready
                if not damaged:
                    damaged.extend(set(run.folder.glob(f"*-{what}-0")) - before)
                    for path in damaged:
                        DAMAGES[how](path)

    engine = Damaging()
    monkeypatch.setattr("veiltab.curator.table.execution.InProcess", lambda: engine)
    with pytest.raises(FileNotFoundError if how == "deleted" else TransferError):
        align_once(curator, folder.name)
    assert len(damaged) == 1
    align_once(curator, folder.name)
    assert curator.alignment.result() == result


@pytest.mark.parametrize("how", DAMAGES)
def test_a_curator_whose_table_is_damaged_ends_and_says_what_to_do(both: tuple[Curator, Curator], how: str) -> None:
    alice, bob = both
    run, symbols = alice.alignment._execution.run, np.zeros(len(alice.ids), np.uint8)
    rows = rows_on_disk({"length": symbols.dtype}, run)
    rows.append(pa.array(alice.ids, pa.large_string()), np.ones(len(alice.ids), np.bool_), {"length": symbols})
    rows.check()
    DAMAGES[how](run.folder / "table")
    alice.table = replace(alice.table, respondents=rows)
    running = alice.alignment.run(alice.table, alice.peers)
    bob.alignment.table_version = "b" * 32
    with pytest.raises(LostTableError, match="Start the curator again: it reads its table again"):
        asyncio.run(asyncio.wait_for(running, 20))
    if how == "altered":
        with pytest.raises(LostTableError):
            rows.ids(0, 300)


def test_what_is_made_again_otherwise_is_refused(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    align(alice, bob)
    folder = next(folder_of(bob).iterdir())
    (folder / "tokens.bin").unlink()
    bob.twist = lambda data: data[:1600]
    with refuses(IntegrityError, where="alignment"):
        align_once(bob, folder.name)


@blocking
async def realign(*curators: Curator) -> None:
    """Run until the curators' present tables are aligned, and every other alignment is deleted."""
    for curator in curators:
        version = curator.store.alignments.table_version(curator.table.content_digest, f"version of {curator.name}")
        curator.alignment.table_version = version
    name = alignment_id({curator.name: curator.alignment.table_version for curator in curators})
    running = [asyncio.create_task(curator.alignment.run(curator.table, curator.peers)) for curator in curators]
    async with asyncio.timeout(20):
        # Names alone: what is deleted meanwhile cannot be read.
        while not all([path.name for path in folder_of(one).iterdir()] == [name] for one in curators):  # noqa: ASYNC110 - it polls what it tests
            await asyncio.sleep(0.02)
        while not all(one.alignment._current == name for one in curators):  # noqa: ASYNC110 - it polls what it tests
            await asyncio.sleep(0.02)
    for task in running:
        task.cancel()


def test_earlier_alignments_are_deleted_and_made_again_with_their_table(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    align(alice, bob)
    first, result, table = files(alice), alice.alignment.result(), bob.table
    bob.table = table_of(bob.ids[:150], "another")
    realign(alice, bob)
    second = files(alice)
    assert len({name.split("/")[0] for name in second}) == 1
    assert not set(first) & set(second)
    bob.table = table
    realign(alice, bob)
    assert (files(alice), alice.alignment.result()) == (first, result)


def test_known_answers_of_the_keys(both: tuple[Curator, Curator]) -> None:
    """Tokens and the digest of the respondents, each under its own key from the coin KEY."""
    alice, bob = both
    alice.table, bob.table = table_of(["Bea"], "a"), table_of(["Bea", "Cid"], "b")
    align(alice, bob)
    assert alice.alignment.result() == (1, "df367f9375723f49a5d830c0d6c4a3e8")
    assert (
        alice.alignment.table("df367f9375723f49a5d830c0d6c4a3e8").tokens().tobytes().hex()
        == "8c1227d910f8fdc555d0bb94854f3a95"
    )


def serving(curator: Curator, name: str) -> None:
    """Let a curator's sorted tokens lie ready for others."""
    made = tokens(pa.array(curator.ids, pa.large_string()), derive(KEY, "tokens"))
    path = curator.alignment.tokens_file(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(sorted(map(bytes, made))))


def aligned_by(curator: Curator, name: str) -> tuple[dict[str, bytes], tuple[int, str]]:
    """Align as often as a curator begins again; return the files and the result."""
    for _ in range(3):
        with suppress(VeiltabError):
            align_once(curator, name)
    return files(curator), curator.alignment.result()


def outlives(folder: Path, both: tuple[Curator, Curator], at: int, seed: int) -> bool:
    """Let the power fail before a step of an alignment, and go on; return whether there was such a step."""
    alice, bob = both
    first = Curator("bob", folder / "first", bob.ids)
    first.peer = alice
    with pytest.MonkeyPatch.context() as watching, suppress(PowerFailure):
        power = FailingPower(watching, folder / "first", first.store.connection, at=at, seed=seed)
        align_once(first, NAME)
    power.close()
    first.store.close()
    if power.left is None:
        return False
    power.restore(folder / "later")
    later = Curator("bob", folder / "later", bob.ids)
    later.peer = alice
    with closing(later.store):
        assert aligned_by(later, NAME) == aligned_by(bob, NAME)
    return True


NAME = "a" * 32


@pytest.mark.parametrize("at", [4, 9, 14])
@pytest.mark.filterwarnings(UNRAISABLE)
def test_an_alignment_outlives_a_power_that_fails(tmp_path: Path, both: tuple[Curator, Curator], at: int) -> None:
    serving(both[0], NAME)
    assert outlives(tmp_path, both, at, seed=at)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.filterwarnings(UNRAISABLE)
def test_an_alignment_outlives_a_power_that_fails_at_any_step(
    tmp_path: Path, both: tuple[Curator, Curator], seed: int
) -> None:
    serving(both[0], NAME)
    at = 0
    while outlives(tmp_path / str(at), both, at, 1000 * seed + at):
        at += 1
    assert at > 15
