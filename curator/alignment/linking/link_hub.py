"""The hub's work in a linkage: it decides which passes run, and shows each spoke its keys; it learns of no link."""

import asyncio
import secrets
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from veiltab.common.linkage.identity_rule import IdentityRule
from veiltab.common.linkage.ladder import Pass
from veiltab.common.oblivious.store import slots_for
from veiltab.common.observe.progress import Stage
from veiltab.common.storage.files import written_whole
from veiltab.common.storage.sorted_records import Bytes, RecordFile, SortedRecords
from veiltab.curator.alignment.joining.join_hub import HubPass, hub_pass
from veiltab.curator.alignment.joining.join_messages import JoinKind
from veiltab.curator.alignment.joining.row_numbers import Numbers, own_numbers
from veiltab.curator.alignment.linking.agreement import HubLine, state_line
from veiltab.curator.alignment.linking.link_session import COMPARED, MOST_SHOWN, PAD, LinkSession
from veiltab.curator.alignment.linking.own_keys import (
    RECORD_BYTES,
    OwnRows,
    compared,
    hub_keys,
    matching_rows,
    numbers_of,
)
from veiltab.curator.alignment.linking.shown_keys import (
    BATCH,
    DIGEST_BYTES,
    ENTRY_BYTES,
    MANY,
    entries,
    link_digests,
    token_values,
)


def hub_line(identity: IdentityRule, own: OwnRows, complete: int, alignment: str, stage: Stage) -> HubLine:
    """Return what the hub states, of its own table alone.

    Args:
        own: the identity fields of its rows.
        complete: rows that miss no value of an attribute.

    Raises:
        InvalidInputError: no pass runs.
    """
    fields = compared(identity)
    with stage.of("counting rows that agree with another", len(identity.ladder)) as progress:

        def matching(step: Pass) -> set[int]:
            rows = matching_rows(own.all_records(step, alignment))
            progress.advance(1)
            return rows

        dated = own.filled(fields[2][1]) if 2 in fields else 0
        return state_line(identity, len(own), complete, dated, matching)


def hub_numbers(key: bytes, complete: NDArray[np.bool_]) -> Numbers:
    """Return the numbers of the hub's rows: 0 to n - 1 of the n complete ones, which are those of every table.

    Args:
        key: a secret of the hub.
        complete: of each row, whether it misses no value of an attribute.
    """
    order = own_numbers(key, len(complete))
    order = order[np.argsort(~complete[order], kind="stable")]
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(order))
    return numbers


async def show_keys(link: LinkSession, line: HubLine, numbers: Numbers) -> None:
    """Show a spoke the hub's keys of each pass; each file is durable, so a hub that is killed goes on.

    Args:
        numbers: of the hub's rows.

    Raises:
        NotReadyError, UnavailableError: the spoke has not made what is needed; repeat it.
        IntegrityError: the spoke sent what no honest curator sends.
    """
    await link.files.make(JoinKind.AGREEMENT, line.text.encode)
    for step in line.running(link.identity):
        await _show(link, step.number, link.key_count(step), numbers, partial(_pass_keys, link, step))
    if compared(link.identity):
        # Row j of what is compared is the hub's row number j.
        rows = np.argsort(numbers)[: min(line.complete, MOST_SHOWN)]
        await _show(link, COMPARED, link.pair_key_count, np.arange(8 * len(rows)), partial(_compared_keys, link, rows))


def _pass_keys(link: LinkSession, step: Pass) -> RecordFile:
    return hub_keys(link.own.all_records(step, link.files.alignment), link.files.folder, has_many=bool(step.deletion))


def _compared_keys(link: LinkSession, rows: Numbers) -> RecordFile:
    """Return the keys of what the rows of the least numbers have."""
    order, fields = np.argsort(rows), compared(link.identity, at_hub=True)
    records = link.own.pair_records(rows[order], order, fields, link.files.alignment)
    return hub_keys(records, link.files.folder, has_many=False)


async def _show(link: LinkSession, number: int, size: int, numbers: Numbers, keys: Callable[[], RecordFile]) -> None:
    """Write the hub's keys of a pass for a spoke, which may ask about so many."""
    if link.files.path(JoinKind.TABLE, number).exists():
        return
    if link.is_private:
        result = await hub_pass(link.sessions, link.session, link.files, slots_for(size), number)
        values = partial(_oblivious_values, result, link.key)
        await asyncio.to_thread(_write_keys, link, number, numbers, keys, values)
        result.end()
    else:
        values = partial(token_values, key=link.key, number=number)
        await asyncio.to_thread(_write_keys, link, number, numbers, keys, values)


def _oblivious_values(result: HubPass, key: bytes, keys: bytes) -> Bytes:
    return result.values(link_digests(keys, key))


def _write_keys(
    link: LinkSession, number: int, numbers: Numbers, read: Callable[[], RecordFile], values: Callable[[bytes], Bytes]
) -> None:
    """Write the keys by their tags, which says nothing of rows, and random ones up to a multiple of PAD."""
    keys, path = read(), link.files.path(JoinKind.TABLE, number)
    records = SortedRecords(path.parent, ENTRY_BYTES)
    with link.files.stage.of(f"preparing {link.named(number)} for {link.files.other}", keys.count) as progress:
        for start in range(0, keys.count, BATCH):
            table = np.frombuffer(keys.read(start), np.uint8).reshape(-1, RECORD_BYTES)
            rows = numbers_of(table)
            is_one = rows < len(numbers)
            row_numbers = np.where(is_one, numbers[np.where(is_one, rows, 0).astype(np.int64)], MANY)
            records.add(entries(values(table[:, :DIGEST_BYTES].tobytes()), row_numbers))
            progress.advance(len(table))
    missing = -records.count % PAD or (0 if records.count else PAD)
    if missing:
        records.add(np.frombuffer(secrets.token_bytes(missing * ENTRY_BYTES), np.uint8).reshape(-1, ENTRY_BYTES))
    with written_whole(path) as file:
        for part in records.parts():
            file.write(part.data)
