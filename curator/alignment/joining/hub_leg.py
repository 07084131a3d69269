"""The hub's side of one leg: it shows a value of each of its rows, and learns nothing."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from secrets import token_bytes

import numpy as np

from veiltab.common.core.randomness import CipherStream
from veiltab.common.oblivious.base_transfers import ANSWER_BYTES, Choices
from veiltab.common.oblivious.bits import transposed
from veiltab.common.oblivious.code import COLUMNS, ROW_BYTES, Bits
from veiltab.common.oblivious.extension import BATCH_ROWS, EXTRA_ROWS, hub_columns, received_columns
from veiltab.common.oblivious.function import values
from veiltab.common.oblivious.linear_check import CHALLENGE_BYTES, CHECK_BYTES, Sums, holds
from veiltab.common.storage.files import written_whole
from veiltab.common.storage.mapped import mapped_array
from veiltab.curator.alignment.joining.join_messages import JoinKind, SessionFiles, Standing
from veiltab.curator.alignment.joining.legs import Legs
from veiltab.curator.alignment.joining.own_ids import DigestedIds
from veiltab.curator.alignment.joining.row_numbers import Numbers
from veiltab.curator.records.join_sessions import JoinSession

SHOWN_BYTES = 10
"""Bytes of a value that the hub shows: a spoke's id meets a row of another with probability 2^-80 n each."""


async def show_rows(  # noqa: PLR0913, PLR0917 - what a leg consists of
    legs: Legs, own: JoinSession, files: SessionFiles, said: Standing, ids: DigestedIds, numbers: Numbers
) -> None:
    """Take part in a session until the values of the hub's rows are there for the spoke.

    Args:
        own: this curator's part.
        said: the spoke's.
        ids: of the hub's rows.
        numbers: of these rows.

    Raises:
        NotReadyError, UnavailableError: the spoke has not made what is needed; repeat this.
        IntegrityError: the spoke sent what no honest spoke sends; if the check failed, the session has ended.
    """
    session = bytes.fromhex(own.name)
    choices = Choices(session=session, source=CipherStream(own.secret))
    await files.make(JoinKind.BASE_CHOICES, choices.message)
    answer = await files.fetched_whole(JoinKind.BASE_ANSWER, size=ANSWER_BYTES)
    rows = EXTRA_ROWS + said.size
    columns = await files.fetched_whole(JoinKind.COLUMNS, size=COLUMNS * rows // 8)
    # Fresh, and only now: the columns are durable.
    challenge = legs.sessions.challenge(files.alignment, files.other, token_bytes(CHALLENGE_BYTES))
    await files.make(JoinKind.CHALLENGE, lambda: challenge)
    checked = await files.fetched_whole(JoinKind.ANSWER, size=CHECK_BYTES)
    matrix = files.folder / "rows.bin"
    with files.stage.of(f"checking the columns of {files.other}", None):
        seeds = await asyncio.to_thread(choices.seeds, answer.read_bytes())
        sums = await asyncio.to_thread(_write_rows, matrix, columns, rows, (seeds, choices.bits), challenge)
    if not holds(sums, checked.read_bytes(), choices.bits):
        raise legs.fail(files.alignment, files.other)
    with files.stage.of(f"computing values for {files.other}", len(numbers)) as progress:
        mapped, bits = mapped_array(matrix, np.uint8).reshape(-1, ROW_BYTES), choices.bits

        def value(digests: Bits) -> Bits:
            progress.advance(len(digests))
            return values(mapped, digests, session, bits)

        await asyncio.to_thread(_write_values, files.path(JoinKind.VALUES), ids, numbers, value)
    for path in (matrix, columns):
        path.unlink()
    legs.finish(files.alignment, files.other)


def _write_rows(matrix: Path, columns: Path, rows: int, own: tuple[Bits, Bits], challenge: bytes) -> Bits:
    """Write the rows q_j, and return the sums of the columns."""
    sums = Sums(challenge, COLUMNS)
    with columns.open("rb") as received, written_whole(matrix, is_durable=False) as file:
        for start in range(0, rows, BATCH_ROWS):
            count = min(BATCH_ROWS, rows - start)
            batch = hub_columns(*own, received_columns(received.read(COLUMNS * count // 8), count), start)
            sums.feed(batch)
            file.write(transposed(batch).data)
    return sums.finish()


def _write_values(path: Path, ids: DigestedIds, numbers: Numbers, value: Callable[[Bits], Bits]) -> None:
    """Write the values of all rows in the order of their numbers."""
    shown = np.empty((len(numbers), SHOWN_BYTES), np.uint8)
    start = 0
    for digests in ids.pieces():
        shown[numbers[start : start + len(digests)]] = value(digests)[:, :SHOWN_BYTES]
        start += len(digests)
    with written_whole(path) as file:
        file.write(shown.data)
