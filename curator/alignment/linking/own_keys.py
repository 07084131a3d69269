"""The keys of a curator's own rows in a pass, as digests in ascending order: what is asked and answered."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.randomness import MAX_FILL, CipherStream
from veiltab.common.linkage.ladder import Pass
from veiltab.common.linkage.linked_identity import FieldKind, Identity
from veiltab.common.linkage.placebo import placebo_keys
from veiltab.common.linkage.row_keys import NormalColumn, NormalRows, identity_columns, normal_rows, pass_keys
from veiltab.common.storage.scratch import Scratch
from veiltab.curator.alignment.linking.oblivious import DIGEST_BYTES, HANDLE_BYTES, Bytes, digests
from veiltab.curator.alignment.linking.sorted_records import SortedRecords
from veiltab.curator.table.table_rows import TableRows

RECORD_BYTES = DIGEST_BYTES + 8
"""A digest, and the number of a row, big-endian."""

MANY = 2**64 - 1
"""In place of a row's number: several rows have the key."""

_CHUNK = 2**14
"""Rows whose keys are made at once."""

Rows = NDArray[np.int64]
"""(n,) numbers of rows of one's own table, in file order from 0."""


_Chunk = dict[str, tuple[FieldKind, Sequence[str], Rows]]
"""Some rows, by field: its kind, distinct values, and the place of each row's value among them."""

Asked = Mapping[int, tuple[int, str]]
"""What is compared of a linked pair, by the place of its answer, 0 to 7: the number of a field of the hub's row and the
field of one's own row that is compared with it."""

_IS_THERE = 6
"""In the place of a field's number: whether the row has a value, whatever it is."""


class OwnRows:
    """The identity fields of all rows of a curator, normalised: also of rows that miss a value of an attribute.

    Args:
        identity: has the fields.
        date_order: how the table writes dates.
        table: the respondents.
    """

    def __init__(self, identity: Identity, date_order: str, table: TableRows) -> None:
        self._chunks: list[_Chunk] = []
        self._starts = [0]
        for batch in table.all_ids():
            for start in range(0, len(batch), _CHUNK):
                ids = batch.slice(start, _CHUNK)
                columns = normal_rows(identity, date_order, identity_columns(ids, identity)).columns
                self._chunks.append(
                    {name: (one.kind, one.values, np.array(one.places, np.int32)) for name, one in columns.items()}
                )
                self._starts.append(self._starts[-1] + len(ids))

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._starts[-1]

    def records(self, step: Pass, rows: Rows, alignment: str, folder: Path) -> SortedRecords:
        """Return (digest, row) of each key of some ascending rows in a pass; row len(self) + i is i, moved."""
        made = SortedRecords(folder, RECORD_BYTES)
        for first, keys_of in ((0, pass_keys), (len(self), placebo_keys)):
            for place, chunk in enumerate(self._chunks):
                start, stop = (first + edge for edge in self._starts[place : place + 2])
                chosen = rows[np.searchsorted(rows, start) : np.searchsorted(rows, stop)]
                if len(chosen) and (keys := keys_of(step, _part(chunk, chosen - start))):
                    counts = np.fromiter(map(len, keys), np.int64, len(keys))
                    if counts.any():
                        found = digests((key for own in keys for key in own), alignment)
                        made.add(_records(found, np.repeat(chosen, counts)))
        return made

    def pair_records(self, rows: Rows, handles: Bytes, asked: Asked, alignment: str, folder: Path) -> SortedRecords:
        """Return (digest, 8 j + i) of the key of what is compared at place i, of linked pair j by ascending rows.

        The key is the pair's handle, the number of the hub's field, and the value that is compared with it.
        """
        made = SortedRecords(folder, RECORD_BYTES)
        for start, stop, chunk in zip(self._starts[:-1], self._starts[1:], self._chunks, strict=True):
            first, last = np.searchsorted(rows, [start, stop])
            for place, (number, field) in asked.items():
                _, values, places = chunk[field]
                keys, pairs = list[bytes](), list[int]()
                for pair in range(first, last):
                    if value := values[places[rows[pair] - start]]:
                        compared_value = b"" if number == _IS_THERE else value.encode()
                        keys.append(handles[pair].tobytes() + bytes([number]) + compared_value)
                        pairs.append(8 * pair + place)
                if keys:
                    made.add(_records(digests(keys, alignment), np.array(pairs)))
        return made

    def filled(self, field: str) -> int:
        """Return how many rows have a field."""
        columns = (chunk[field] for chunk in self._chunks)
        return sum(int(np.count_nonzero(np.array([*map(bool, values)])[places])) for _, values, places in columns)


def compared(identity: Identity, *, at_hub: bool = False) -> Asked:
    """Return what is compared of linked pairs; nothing if fields lack.

    Places 0 to 3 are given name, family name, birth date and postcode, 4 and 5 each name with the other one, which the
    hub does not show again; there are all of these or none. 6 is a number that no key takes, 7 whether both have one.
    """
    first = {kind: name for name, kind in reversed(identity.fields)}
    kinds = (FieldKind.GIVEN, FieldKind.FAMILY, FieldKind.BIRTH, FieldKind.POSTCODE)
    found = dict[int, tuple[int, str]]()
    if first.keys() >= set(kinds):
        found = {place: (place + 1, first[kind]) for place, kind in enumerate(kinds)}
        found |= {} if at_hub else {4: (1, found[1][1]), 5: (2, found[0][1])}
    if name := identity.number_beside:
        found |= {6: (5, name), 7: (_IS_THERE, name)}
    return found


def matching_rows(records: SortedRecords) -> set[int]:
    """Return the rows that agree with exactly one other row in a pass."""
    pairs, crowded = list[NDArray[np.uint64]](), set[int]()
    for part in records.parts():
        starts, counts = _groups(part)
        rows = _rows(part)
        first = starts[counts == 2]
        pairs.append(np.stack([rows[first], rows[first + 1]], axis=1))
        crowded.update(rows[np.repeat(counts > 2, counts)].tolist())
    if not pairs:
        return set()
    one_way = np.unique(np.concatenate(pairs), axis=0)
    both = np.unique(np.concatenate([one_way, one_way[:, ::-1]]), axis=0)
    rows, others = np.unique(both[:, 0], return_counts=True)
    return set(rows[others == 1].tolist()) - crowded


class HubKeys:
    """The keys of a hub in a pass: each digest once, with the only row that has it, or MANY.

    Args:
        records: of all rows of the hub.
        has_many: whether a key of several rows is there, as MANY, as in a deletion pass; else nothing is said of it.
        folder: on whose disk they lie.
        batch: how many are read at a time.
    """

    def __init__(self, records: SortedRecords, folder: Path, batch: int, *, has_many: bool) -> None:
        self._file, self._starts, self._batch = Scratch(folder), list[int](), batch
        self.count = 0
        """How many keys."""
        rest = np.empty((0, RECORD_BYTES), np.uint8)
        for part in records.parts():
            rest = np.concatenate([rest, _single(part, has_many=has_many)])
            while len(rest) >= batch:
                self._append(rest[:batch])
                rest = rest[batch:]
        if len(rest):
            self._append(rest)

    def read(self, start: int) -> bytes:
        """Return the batch of records that begins at a multiple of the batch."""
        length = min(self._batch, self.count - start) * RECORD_BYTES
        return self._file.read(self._starts[start // self._batch], length).tobytes()

    def _append(self, records: Bytes) -> None:
        self._starts.append(self._file.append(records))
        self.count += len(records)


def hub_entries(records: bytes, values: Callable[[bytes], bytes], handles: Callable[[Rows], Bytes]) -> bytes:
    """Return what the hub shows of some keys: the tag, and the masked handle, or the masked mark of MANY, 0.

    Args:
        records: digests and rows.
        values: F of digests.
        handles: of rows.
    """
    table = np.frombuffer(records, np.uint8).reshape(-1, RECORD_BYTES)
    made = np.frombuffer(values(table[:, :DIGEST_BYTES].tobytes()), np.uint8).reshape(len(table), -1).copy()
    rows = _rows(table)
    made[:, HANDLE_BYTES:] ^= np.where((rows == MANY)[:, None], 0, handles(np.where(rows == MANY, 0, rows).view("<i8")))
    return made.tobytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokeKeys:
    """The keys of some rows of a spoke in a pass.

    Args:
        digests: (m, 32), each once, in the secret order in which they are asked about.
        rows: (k,) rows.
        places: (k,) the place among `digests` of a digest that the row has.
    """

    digests: Bytes
    rows: Rows
    places: Rows

    @classmethod
    def of(cls, records: SortedRecords, order_key: bytes) -> "SpokeKeys":
        """Bring the digests in an order that says nothing, drawn under a secret key."""
        distinct, rows, groups, count = list[Bytes](), list[Rows](), list[Rows](), 0
        for part in records.parts():
            starts, counts = _groups(part)
            distinct.append(part[starts, :DIGEST_BYTES])
            rows.append(_rows(part).astype(np.int64))
            groups.append(np.repeat(np.arange(count, count + len(starts)), counts))
            count += len(starts)
        if not count:
            empty = np.empty(0, np.int64)
            return cls(digests=np.empty((0, DIGEST_BYTES), np.uint8), rows=empty, places=empty)
        order = secret_order(count, order_key)
        return cls(
            digests=np.concatenate(distinct)[order],
            rows=np.concatenate(rows),
            places=np.argsort(order)[np.concatenate(groups)],
        )

    def candidates(self, found: NDArray[np.bool_], handles: Bytes) -> tuple[Rows, Bytes]:
        """Return the rows that have a candidate, ascending, and its handle.

        A row has one if all that was found for its keys is one and the same handle, and not the mark of MANY.

        Args:
            found: (m,) whether the hub has each digest.
            handles: (m, 16) what it says of it.
        """
        kept = found[self.places]
        rows, places = self.rows[kept], self.places[kept]
        if not len(rows):
            return rows, np.empty((0, HANDLE_BYTES), np.uint8)
        order = np.argsort(rows, kind="stable")
        rows, named = rows[order], handles[places[order]]
        starts = np.flatnonzero(np.diff(rows, prepend=rows[0] - 1))
        first = np.repeat(starts, np.diff(starts, append=len(rows)))
        alike = np.logical_and.reduceat((named == named[first]).all(axis=1), starts)
        chosen = starts[alike & named[starts].any(axis=1)]
        return rows[chosen], named[chosen]


def _part(chunk: _Chunk, rows: Rows) -> NormalRows:
    columns = {
        name: NormalColumn(kind=kind, values=values, places=places[rows].tolist())
        for name, (kind, values, places) in chunk.items()
    }
    return NormalRows(columns=columns, rows=len(rows))


def _records(digests_: bytes, rows: Rows) -> Bytes:
    numbers = rows.astype(">u8").view(np.uint8).reshape(-1, 8)
    return np.concatenate([np.frombuffer(digests_, np.uint8).reshape(-1, DIGEST_BYTES), numbers], axis=1)


def _rows(records: Bytes) -> NDArray[np.uint64]:
    return np.ascontiguousarray(records[:, DIGEST_BYTES:]).view(">u8").ravel().astype(np.uint64)


def _groups(records: Bytes) -> tuple[Rows, Rows]:
    """Return where each digest of ascending records begins, and how many records have it."""
    words = np.ascontiguousarray(records[:, :DIGEST_BYTES]).view(f"S{DIGEST_BYTES}").ravel()
    starts = np.flatnonzero(np.concatenate([[True], words[1:] != words[:-1]]))
    return starts, np.diff(starts, append=len(words))


def _single(records: Bytes, *, has_many: bool) -> Bytes:
    """Return each digest once, with its only row or MANY."""
    starts, counts = _groups(records)
    made: Bytes = records[starts]
    if not has_many:
        single: Bytes = made[counts == 1]
        return single
    made[counts > 1, DIGEST_BYTES:] = 0xFF
    return made


def secret_order(count: int, key: bytes) -> Rows:
    """Return a random order of so many places, under a secret key."""
    stream, words = CipherStream(key), np.empty(count, "<u8")
    data = words.view(np.uint8)
    for chunk, start in enumerate(range(0, len(data), MAX_FILL)):
        stream.fill(data[start : start + MAX_FILL], label=0, chunk=chunk)
    return np.argsort(words, kind="stable")
