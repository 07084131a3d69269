"""The spoke's side of one link: it learns which rows of the hub are of its own people.

After its answer to the challenge it says nothing. Whatever the hub shows, it fetches all of it, refuses none of it and
finds no row twice: anything else that it did would say whether it has a person whom the hub guessed.
"""

import asyncio
import hashlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np

from veiltab.common.core.derivation import derive
from veiltab.common.core.randomness import CipherStream
from veiltab.common.errors import NotReadyError
from veiltab.common.oblivious.base_transfers import CHOICES_BYTES, SEED_BYTES, answer, check_choices
from veiltab.common.oblivious.bits import transposed
from veiltab.common.oblivious.code import COLUMNS, ROW_BYTES, WORD_BYTES, Bits
from veiltab.common.oblivious.extension import (
    BATCH_ROWS,
    EXTRA_ROWS,
    KeyStreams,
    columns,
    own_columns,
    pass_name,
    pass_seeds,
)
from veiltab.common.oblivious.function import DIGEST_BYTES, VALUE_BYTES, values
from veiltab.common.oblivious.linear_check import CHALLENGE_BYTES, WORD_COLUMNS, Sums
from veiltab.common.oblivious.store import fill, slots_for
from veiltab.common.storage.files import write_whole, written_whole
from veiltab.common.storage.mapped import mapped_array, mapped_bytes
from veiltab.curator.alignment.joining.join_hub import SHOWN_BYTES
from veiltab.curator.alignment.joining.join_messages import JoinKind, SessionFiles, Standing
from veiltab.curator.alignment.joining.own_ids import DigestedIds
from veiltab.curator.alignment.joining.row_numbers import NOBODY, Numbers
from veiltab.curator.alignment.joining.sessions import Sessions
from veiltab.curator.records.join_sessions import JoinSession

_log = logging.getLogger(__name__)


class LostStoreError(NotReadyError):
    """The store of a session is lost or altered: no other may be sent under its seeds, so another session begins."""


class Digests(Protocol):
    """The digests of what a spoke asks about, d, computed piece by piece whenever they are read."""

    def __len__(self) -> int:
        """Return how many they are."""

    def pieces(self) -> Iterator[Bits]:
        """Yield the digests, (rows, 64)."""


async def spoke_pass(sessions: Sessions, own: JoinSession, files: SessionFiles, ids: Digests, number: int = 0) -> None:
    """Take part in a pass until the spoke has answered the hub's challenge; from then on it says nothing.

    Args:
        own: this curator's part.
        ids: what it asks about.
        number: of the pass; 0 if there is one alone.

    Raises:
        NotReadyError, UnavailableError: the hub has not made what is needed; repeat this.
        LostStoreError: the session cannot go on.
        IntegrityError: the hub sent what no honest hub sends.
    """
    session, source = bytes.fromhex(own.name), CipherStream(own.secret)
    choices = await files.fetched_whole(
        JoinKind.BASE_CHOICES, size=CHOICES_BYTES, check=lambda path: check_choices(path.read_bytes())
    )
    seeds_file = files.folder / "seeds.bin"
    if not seeds_file.exists():
        reply, seed_bytes = await asyncio.to_thread(answer, choices.read_bytes(), session, source)
        await files.make(JoinKind.BASE_ANSWER, lambda: reply)
        write_whole(seeds_file, seed_bytes.data)
    if files.path(JoinKind.ANSWER, number).exists():
        return
    seeds, store = _pass_seeds(files, number), files.folder / f"store-{number}.bin"
    if not files.path(JoinKind.COLUMNS, number).exists():
        with files.stage.of("preparing what the hub is asked", None):
            words = CipherStream(derive(own.secret, f"words of pass {number}"))
            await asyncio.to_thread(_write_store, store, ids, words)
            _check_store(sessions, files, store, number)
            await asyncio.to_thread(_write_columns, files.path(JoinKind.COLUMNS, number), store, seeds)
    file = await files.fetched_whole(JoinKind.CHALLENGE, number, size=CHALLENGE_BYTES)
    challenge = sessions.records.challenge(own.name, number, file.read_bytes())
    _check_store(sessions, files, store, number)
    await files.make(JoinKind.ANSWER, lambda: _sums(store, seeds, challenge), number)
    store.unlink()


async def own_values(own: JoinSession, files: SessionFiles, ids: Digests, size: int, number: int = 0) -> Bits:
    """Return F of each id, (k, 16), that the spoke asked about in a pass.

    Args:
        ids: those whose values are wanted.
        size: how many it asked about in all.
    """
    rows = await asyncio.to_thread(_rows, files.folder, _pass_seeds(files, number), EXTRA_ROWS + slots_for(size))
    return await asyncio.to_thread(_values, rows, ids, pass_name(bytes.fromhex(own.name), number))


async def find_rows(
    sessions: Sessions, own: JoinSession, files: SessionFiles, standing: Standing, ids: DigestedIds
) -> Numbers:
    """Take part in a session until the hub's row of each id is known; see `spoke_pass`.

    Args:
        standing: the hub's part.
        ids: of the spoke's rows.

    Returns:
        Of each id the number of the first row that names it, or NOBODY.
    """
    await spoke_pass(sessions, own, files, ids)
    hub_values = await files.fetched_whole(JoinKind.VALUES, size=SHOWN_BYTES * standing.size)
    with files.stage.of("finding the hub's rows", len(ids)):
        computed = await own_values(own, files, ids, len(ids))
        every = np.fromfile(hub_values, np.uint8).reshape(-1, SHOWN_BYTES)
        return await asyncio.to_thread(first_rows, computed[:, :SHOWN_BYTES], every)


def _pass_seeds(files: SessionFiles, number: int) -> Bits:
    seeds = mapped_array(files.folder / "seeds.bin", np.uint8).reshape(COLUMNS, 2, SEED_BYTES)
    return pass_seeds(seeds, number)


def _write_store(path: Path, ids: Digests, source: CipherStream) -> None:
    """Write the words W of a pass."""
    if not path.exists():
        digests = mapped_bytes(ids.pieces(), path.parent, DIGEST_BYTES * len(ids)).reshape(-1, DIGEST_BYTES)
        words, is_left_out = fill(digests, slots_for(len(ids)), source)
        if is_left_out.any():
            _log.warning("a join leaves out people whom the hub may have: %d", int(is_left_out.sum()))
        write_whole(path, words.data)


def _check_store(sessions: Sessions, files: SessionFiles, store: Path, number: int) -> None:
    """Record the digest of the store before anything of it leaves; refuse another one, or none.

    Raises:
        LostStoreError: it is not the one that was recorded.
    """
    data = store.read_bytes() if store.exists() else b""
    digest = hashlib.sha256(data).digest()
    if not data or sessions.records.asked_digest(files.session, number, digest) != digest:
        raise LostStoreError("begins another session of the join, as files are lost", where=f"curator {sessions.name}")


def _write_columns(path: Path, store: Path, seeds: Bits) -> None:
    words = mapped_array(store, np.uint8).reshape(-1, WORD_BYTES)
    first, second = KeyStreams(seeds[:, 0]), KeyStreams(seeds[:, 1])
    with written_whole(path) as file:
        for start in range(0, len(words), BATCH_ROWS):
            file.write(columns(first, second, words[start : start + BATCH_ROWS]).data)


def _sums(store: Path, seeds: Bits, challenge: bytes) -> bytes:
    """Return the answer to a challenge: the sums of the columns T, and of those of W."""
    words = mapped_array(store, np.uint8).reshape(-1, WORD_BYTES)
    streams, of_rows, of_words = KeyStreams(seeds[:, 0]), Sums(challenge, COLUMNS), Sums(challenge, WORD_COLUMNS)
    for start in range(0, len(words), BATCH_ROWS):
        part = words[start : start + BATCH_ROWS]
        of_rows.feed(own_columns(streams, len(part)))
        of_words.feed(transposed(part))
    return of_rows.finish().tobytes() + of_words.finish().tobytes()


def _rows(folder: Path, seeds: Bits, rows: int) -> Bits:
    """Return the rows t_j."""
    streams = KeyStreams(seeds[:, 0])
    counts = (min(BATCH_ROWS, rows - start) for start in range(0, rows, BATCH_ROWS))
    batches = (transposed(own_columns(streams, count)) for count in counts)
    return mapped_bytes(batches, folder, ROW_BYTES * rows).reshape(-1, ROW_BYTES)


def _values(rows: Bits, ids: Digests, session: bytes) -> Bits:
    result, start = np.empty((len(ids), VALUE_BYTES), np.uint8), 0
    for digests in ids.pieces():
        result[start : start + len(digests)] = values(rows, digests, session)
        start += len(digests)
    return result


def first_rows(own: Bits, hub: Bits) -> Numbers:
    """Return the first row of `hub` that equals each row of `own`, or NOBODY; no row depends on other rows of `own`.

    Args:
        own: (k, 10) values.
        hub: (n, 10) values.
    """
    mine, theirs = (np.ascontiguousarray(one).view(f"S{SHOWN_BYTES}").ravel() for one in (own, hub))
    order = np.argsort(theirs, kind="stable")
    ordered = theirs[order]
    if repeated := np.count_nonzero(ordered[1:] == ordered[:-1]):  # by what the hub shows alone
        _log.warning("the hub shows people in several rows, of which the first counts: %d more", repeated)
    if not len(ordered):
        return np.full(len(own), NOBODY)
    place = np.searchsorted(ordered, mine).clip(max=len(ordered) - 1)
    return np.where(ordered[place] == mine, order[place], NOBODY)
