"""The hub's side of one link: it shows a value of each of its rows, and learns nothing."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_bytes
from typing import BinaryIO

import numpy as np

from veiltab.common.core.randomness import CipherStream
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import IntegrityError
from veiltab.common.oblivious.base_transfers import ANSWER_BYTES, Choices
from veiltab.common.oblivious.bits import transposed
from veiltab.common.oblivious.code import COLUMNS, ROW_BYTES, Bits
from veiltab.common.oblivious.extension import (
    BATCH_ROWS,
    EXTRA_ROWS,
    KeyStreams,
    hub_columns,
    pass_name,
    pass_seeds,
    received_columns,
)
from veiltab.common.oblivious.function import values
from veiltab.common.oblivious.linear_check import CHALLENGE_BYTES, CHECK_BYTES, Sums, holds
from veiltab.common.oblivious.store import THIRD_STEP
from veiltab.common.storage.files import file_digest, write_whole
from veiltab.common.storage.mapped import mapped_bytes
from veiltab.curator.alignment.joining.join_messages import JoinKind, SessionFiles, Standing
from veiltab.curator.alignment.joining.own_ids import DigestedIds
from veiltab.curator.alignment.joining.row_numbers import Numbers
from veiltab.curator.alignment.joining.sessions import Sessions
from veiltab.curator.records.join_sessions import JoinSession

SHOWN_BYTES = 10
"""Bytes of a value that the hub shows: a spoke's id meets a row of another with probability 2^-80 n each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubPass:
    """The function of one pass of a session, at the hub.

    Args:
        session: name of the session, or of its pass.
        choices: the hub's s.
        rows: q_j, shape (128 + m, 64).
        columns: file of the spoke's message.
    """

    session: bytes
    choices: Bits = field(repr=False)
    rows: Bits = field(repr=False)
    columns: Path

    def values(self, digests: Bits) -> Bits:
        """Return F of each digest, (n, 16)."""
        return values(self.rows, digests, self.session, self.choices)

    def end(self) -> None:
        """Delete the columns, once all values are made."""
        self.columns.unlink()


async def hub_pass(sessions: Sessions, own: JoinSession, files: SessionFiles, most: int, number: int = 0) -> HubPass:
    """Take part in a pass until the hub can compute the function of it.

    Args:
        own: this curator's part.
        most: slots that the spoke's store may have.
        number: of the pass; 0 if there is one alone.

    Raises:
        NotReadyError, UnavailableError: the spoke has not made what is needed; repeat this.
        IntegrityError: the spoke sent what no honest spoke sends; if the check failed, the session has ended.
    """
    session = bytes.fromhex(own.name)
    choices = Choices(session=session, source=CipherStream(own.secret))
    await files.make(JoinKind.BASE_CHOICES, choices.message)
    answer = await files.fetched_whole(
        JoinKind.BASE_ANSWER, size=ANSWER_BYTES, check=lambda path: choices.seeds(path.read_bytes())
    )
    columns = await files.fetched(
        JoinKind.COLUMNS, number, most=COLUMNS * (EXTRA_ROWS + most) // 8, check=_check_columns
    )
    digest = await asyncio.to_thread(file_digest, columns)
    if sessions.records.asked_digest(own.name, number, digest) != digest:
        # Their file was lost here, and the spoke knows the challenge.
        raise sessions.fail(files.alignment, files.other)
    rows = columns.stat().st_size * 8 // COLUMNS
    # Fresh, and only now: the columns are durable.
    challenge = sessions.records.challenge(own.name, number, token_bytes(CHALLENGE_BYTES))
    await files.make(JoinKind.CHALLENGE, lambda: challenge, number)
    reply = await files.fetched_whole(JoinKind.ANSWER, number, size=CHECK_BYTES)
    with files.stage.of(f"checking the columns of {files.other}", None):
        seeds = pass_seeds(await asyncio.to_thread(_seeds, files.folder / "seeds.bin", choices, answer), number)
        matrix, sums = await asyncio.to_thread(_rows, columns, rows, (seeds, choices.bits), challenge)
    if not holds(sums, reply.read_bytes(), choices.bits):
        raise sessions.fail(files.alignment, files.other)
    return HubPass(session=pass_name(session, number), choices=choices.bits, rows=matrix, columns=columns)


def _seeds(path: Path, choices: Choices, answer: Path) -> Bits:
    """Return the hub's seeds, computed once a session."""
    if not path.exists():
        write_whole(path, choices.seeds(answer.read_bytes()).data)
    return np.fromfile(path, np.uint8).reshape(COLUMNS, -1)


def _check_columns(path: Path) -> None:
    """Refuse columns of a size that no store has."""
    slots, rest = divmod(path.stat().st_size * 8, COLUMNS)
    if rest or slots <= EXTRA_ROWS or (slots - EXTRA_ROWS) % (3 * THIRD_STEP):
        raise IntegrityError("sent columns of a size that no store has")


async def show_rows(  # noqa: PLR0913, PLR0917 - what a link consists of
    sessions: Sessions, own: JoinSession, files: SessionFiles, standing: Standing, ids: DigestedIds, numbers: Numbers
) -> None:
    """Take part in a session until the values of the hub's rows are there for the spoke; see `hub_pass`.

    Args:
        standing: the spoke's part.
        ids: of the hub's rows.
        numbers: of these rows.
    """
    if files.path(JoinKind.VALUES).exists():
        return
    result = await hub_pass(sessions, own, files, standing.size)
    with files.stage.of(f"computing values for {files.other}", len(numbers)) as progress:

        def value(digests: Bits) -> Bits:
            progress.advance(len(digests))
            return result.values(digests)

        await asyncio.to_thread(_write_values, files.path(JoinKind.VALUES), ids, numbers, value)
    result.end()


def _rows(columns: Path, rows: int, own: tuple[Bits, Bits], challenge: bytes) -> tuple[Bits, Bits]:
    """Return the rows q_j, and the sums of the columns; `own` are the seeds of the pass, and s."""
    (seeds, choices), sums = own, Sums(challenge, COLUMNS)
    streams = KeyStreams(seeds)

    def batches(received: BinaryIO) -> Iterator[Bits]:
        for start in range(0, rows, BATCH_ROWS):
            count = min(BATCH_ROWS, rows - start)
            batch = hub_columns(streams, choices, received_columns(received.read(COLUMNS * count // 8), count))
            sums.feed(batch)
            yield transposed(batch)

    with columns.open("rb") as file:
        matrix = mapped_bytes(batches(file), columns.parent, ROW_BYTES * rows)
    return matrix.reshape(-1, ROW_BYTES), sums.finish()


def _write_values(path: Path, ids: DigestedIds, numbers: Numbers, value: Callable[[Bits], Bits]) -> None:
    """Write the values of all rows in the order of their numbers."""
    data = np.empty((len(numbers), SHOWN_BYTES), np.uint8)
    start = 0
    for digests in ids.pieces():
        data[numbers[start : start + len(digests)]] = value(digests)[:, :SHOWN_BYTES]
        start += len(digests)
    write_whole(path, data.data)
