"""The keys of a curator's own rows in a pass, as digests in ascending order: what is asked and answered."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veiltab.common.linkage.dominance import crowded
from veiltab.common.linkage.identity_rule import FieldKind, IdentityRule
from veiltab.common.linkage.ladder import Pass
from veiltab.common.linkage.placebo import placebo_keys
from veiltab.common.linkage.row_keys import NormalColumn, NormalRows, identity_columns, normal_rows, pass_keys
from veiltab.common.storage.scratch import Scratch
from veiltab.common.storage.sorted_records import Bytes, RecordFile, SortedRecords
from veiltab.curator.alignment.joining.row_numbers import NOBODY
from veiltab.curator.alignment.linking.shown_keys import BATCH, DIGEST_BYTES, MANY, digests
from veiltab.curator.table.table_rows import TableRows

_NUMBER_BYTES = 8

RECORD_BYTES = DIGEST_BYTES + _NUMBER_BYTES
"""A digest, and the number of a row, big-endian."""

MOST_KEPT = 2**18
"""Records of a pass that are kept, at most."""

_CHUNK = 2**13
"""Rows whose keys are made at once, at most 2^16."""

Rows = NDArray[np.int64]
"""(n,) numbers of rows of one's own table, in file order from 0."""


_VALUES_END, _FIELD_ENDS = "\x1f", "\x1e"  # which no normalised value has

_Chunk = dict[str, tuple[FieldKind, Sequence[str], NDArray[np.uint16]]]
"""Some rows, by field: its kind, distinct values, and the place of each row's value among them."""

ComparedFields = Mapping[int, tuple[int, str]]
"""What is compared of a linked pair, by the place of its answer, 0 to 7: the number of a field of the hub's row and the
field of one's own row that is compared with it."""

_IS_THERE = 6
"""In the place of a field's number: whether the row has a value, whatever it is."""


class OwnRows:
    """The identity fields of all rows, normalised, on disk: also of rows that miss a value of an attribute.

    Args:
        date_order: how the table writes dates; see `normaliser`.
        folder: on whose disk they lie.
    """

    def __init__(self, identity: IdentityRule, date_order: str, table: TableRows, folder: Path) -> None:
        self._file, self._folder, self._kinds = Scratch(folder), folder, identity.kinds
        # Where the texts of a chunk begin, their length, and where the places of its rows' values begin.
        self._pieces: list[tuple[int, int, int]] = []
        self._starts = [0]
        # Of an alignment, the records of all rows by pass.
        self._kept: tuple[str, dict[Pass, SortedRecords]] = "", {}
        for batch in table.all_ids():
            for start in range(0, len(batch), _CHUNK):
                ids = batch.slice(start, _CHUNK)
                columns = normal_rows(identity, date_order, identity_columns(ids, identity)).columns
                texts = (_VALUES_END.join(one.values) + _FIELD_ENDS for one in columns.values())
                text = np.frombuffer("".join(texts).encode(), np.uint8)
                places = np.array([one.places for one in columns.values()], np.uint16)
                self._pieces.append((self._file.append(text), len(text), self._file.append(places)))
                self._starts.append(self._starts[-1] + len(ids))

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._starts[-1]

    def all_records(self, step: Pass, alignment: str) -> SortedRecords:
        """Return the records of all rows in a pass; those of one alignment are kept on disk if they are few."""
        if self._kept[0] != alignment:
            self._kept = alignment, {}
        if (records := self._kept[1].get(step)) is None:
            records = self.records(step, np.arange(len(self)), alignment)
            if records.count <= MOST_KEPT:
                self._kept[1][step] = records
        return records

    def records(self, step: Pass, rows: Rows, alignment: str) -> SortedRecords:
        """Return (digest, row) of each key of some ascending rows in a pass; row len(self) + i is i, moved."""
        result = SortedRecords(self._folder, RECORD_BYTES)
        for start, stop, chunk in self._chunks():
            for first, keys_of in ((start, pass_keys), (start + len(self), placebo_keys)):
                here = rows[np.searchsorted(rows, first) : np.searchsorted(rows, first + stop - start)]
                if len(here) and (keys := keys_of(step, _part(chunk, here - first))):
                    counts = np.fromiter(map(len, keys), np.int64, len(keys))
                    if counts.any():
                        key_digests = digests(chain.from_iterable(keys), alignment)
                        result.add(_records(key_digests, np.repeat(here, counts)))
        return result

    def pair_records(self, rows: Rows, numbers: Rows, fields: ComparedFields, alignment: str) -> SortedRecords:
        """Return (digest, 8 j + i) of the key of what is compared at place i, of pair j by ascending rows.

        The key is the number of the hub's row, that of its field, and the value that is compared with it.
        """
        result = SortedRecords(self._folder, RECORD_BYTES)
        for start, stop, chunk in self._chunks():
            first, last = np.searchsorted(rows, [start, stop])
            for place, (number, field) in fields.items():
                (_, values, places), is_shown = chunk[field], number != _IS_THERE
                texts = (values[one].encode() for one in places[rows[first:last] - start].tolist())
                keys = {
                    8 * pair + place: row.to_bytes(8, "big") + bytes([number]) + text * is_shown
                    for pair, row, text in zip(range(first, last), numbers[first:last].tolist(), texts, strict=True)
                    if text
                }
                if keys:
                    result.add(_records(digests(keys.values(), alignment), np.array([*keys])))
        return result

    def forms(self, field: str, rows: Rows) -> list[str]:
        """Return how a field of some ascending rows is written, with 9 for a digit and a for a letter."""
        result = list[str]()
        for start, stop, chunk in self._chunks():
            _, values, places = chunk[field]
            forms = [re.sub(r"\d", "9", re.sub(r"[^\W\d]", "a", value)) for value in values]
            result += [forms[place] for place in places[rows[(start <= rows) & (rows < stop)] - start]]
        return result

    def crowded(self, numbers: NDArray[np.uint8], fields: Mapping[str, Sequence[int]]) -> NDArray[np.bool_]:
        """Return (n,) whether a row has a value that far more rows share than others, in a field of its number.

        Args:
            numbers: (n,) a number of each row, such as that of its pass.
            fields: field -> numbers of the rows whose value is looked at.
        """
        counts = {field: Counter[str]() for field in fields}
        for _, _, chunk in self._chunks():
            for field, count in counts.items():
                _, values, places = chunk[field]
                count.update(dict(zip(values, np.bincount(places, minlength=len(values)).tolist(), strict=True)))
        is_crowded = np.zeros(len(self), np.bool_)
        for field, count in counts.items():
            del count[""]
            crowd = crowded(count, are_dates=self._kinds[field] is FieldKind.BIRTH)
            for start, stop, chunk in self._chunks() if crowd else ():
                _, values, places = chunk[field]
                is_shared = np.array([value in crowd for value in values])[places]
                is_crowded[start:stop] |= is_shared & np.isin(numbers[start:stop], fields[field])
        return is_crowded

    def filled(self, field: str) -> int:
        """Return how many rows have a field."""
        columns = (chunk[field] for _, _, chunk in self._chunks())
        return sum(int(np.count_nonzero(np.array([*map(bool, values)])[places])) for _, values, places in columns)

    def _chunks(self) -> Iterator[tuple[int, int, _Chunk]]:
        """Yield the first row of a chunk, the row behind its last one, and the chunk."""
        for start, stop, (text, length, at) in zip(self._starts[:-1], self._starts[1:], self._pieces, strict=True):
            texts = self._file.read(text, length).tobytes().decode().split(_FIELD_ENDS)[:-1]
            places = self._file.read(at, 2 * len(texts) * (stop - start)).view(np.uint16).reshape(len(texts), -1)
            fields = zip(self._kinds.items(), texts, places, strict=True)
            yield start, stop, {name: (kind, values.split(_VALUES_END), own) for (name, kind), values, own in fields}


def compared(identity: IdentityRule, *, at_hub: bool = False) -> ComparedFields:
    """Return what is compared of linked pairs; nothing if fields lack.

    Places 0 to 3 are given name, family name, birth date and postcode, 4 and 5 each name with the other one, which the
    hub does not show again; there are all of these or none. 6 is a number that no key takes, 7 whether both have one.
    """
    first = {kind: name for name, kind in reversed(identity.fields)}
    kinds = (FieldKind.GIVEN, FieldKind.FAMILY, FieldKind.BIRTH, FieldKind.POSTCODE)
    fields = dict[int, tuple[int, str]]()
    if first.keys() >= set(kinds):
        fields = {place: (place + 1, first[kind]) for place, kind in enumerate(kinds)}
        fields |= {} if at_hub else {4: (1, fields[1][1]), 5: (2, fields[0][1])}
    if name := identity.number_beside:
        fields |= {6: (5, name), 7: (_IS_THERE, name)}
    return fields


def matching_rows(records: SortedRecords) -> set[int]:
    """Return the rows that agree with exactly one other row in a pass."""
    pairs, crowded = list[NDArray[np.uint64]](), list[NDArray[np.uint64]]()
    for part in records.parts():
        starts, counts = _groups(part)
        rows = numbers_of(part)
        first = starts[counts == 2]
        pairs.append(np.stack([rows[first], rows[first + 1]], axis=1))
        crowded.append(np.unique(rows[np.repeat(counts > 2, counts)]))
    if not pairs:
        return set()
    one_way = np.unique(np.concatenate(pairs), axis=0)
    pairs_of_rows = np.unique(np.concatenate([one_way, one_way[:, ::-1]]), axis=0)
    rows, others = np.unique(pairs_of_rows[:, 0], return_counts=True)
    return set(np.setdiff1d(rows[others == 1], np.concatenate(crowded)).tolist())


def hub_keys(records: SortedRecords, folder: Path, *, has_many: bool) -> RecordFile:
    """Return the keys of a hub in a pass: each digest once, with the only row that has it, or MANY.

    Args:
        records: of all rows of the hub.
        folder: on whose disk they lie.
        has_many: whether a key of several rows is there, as MANY, as in a deletion pass; else nothing is said of it.
    """
    return RecordFile((_single(part, has_many=has_many) for part in records.parts()), folder, BATCH)


class SpokeKeys:
    """The keys of some rows of a spoke in a pass.

    Args:
        records: of the rows.
        folder: on whose disk they lie.
    """

    def __init__(self, records: SortedRecords, folder: Path) -> None:
        self._records = records
        self.digests = RecordFile((part[_groups(part)[0], :DIGEST_BYTES] for part in records.parts()), folder, BATCH)
        """Each digest once, ascending."""

    def candidates(self, of_hub: Rows, rows: int) -> Rows:
        """Return of each row the number of its candidate, or NOBODY.

        A row has one if all that was found for its keys is one and the same number, and not MANY.

        Args:
            of_hub: (m,) what the hub says of each digest: a number or MANY, or NOBODY if it does not have it.
            rows: how many there are.
        """
        least, most, first = np.full(rows, MANY), np.full(rows, NOBODY), 0
        for part in self._records.parts():
            starts, counts = _groups(part)
            numbers = np.repeat(of_hub[first : first + len(starts)], counts)
            first += len(starts)
            is_there = numbers != NOBODY
            own = numbers_of(part)[is_there].astype(np.int64)
            np.minimum.at(least, own, numbers[is_there])
            np.maximum.at(most, own, numbers[is_there])
        return np.where((least == most) & (most != MANY), most, NOBODY)


def _part(chunk: _Chunk, rows: Rows) -> NormalRows:
    columns = {
        name: NormalColumn(kind=kind, values=values, places=places[rows].tolist())
        for name, (kind, values, places) in chunk.items()
    }
    return NormalRows(columns=columns, rows=len(rows))


def _records(key_digests: Bytes, rows: Rows) -> Bytes:
    return np.concatenate([key_digests, numbered(rows)], axis=1)


def numbered(rows: Rows) -> Bytes:
    """Return numbers of rows as the last bytes of records."""
    return rows.astype(">u8").view(np.uint8).reshape(-1, _NUMBER_BYTES)


def numbers_of(records: Bytes) -> NDArray[np.uint64]:
    """Return the numbers that stand last in records."""
    return np.ascontiguousarray(records[:, -_NUMBER_BYTES:]).view(">u8").ravel().astype(np.uint64)


def _groups(records: Bytes) -> tuple[Rows, Rows]:
    """Return where each digest of ascending records begins, and how many records have it."""
    words = np.ascontiguousarray(records[:, :DIGEST_BYTES]).view(f"S{DIGEST_BYTES}").ravel()
    starts = np.flatnonzero(np.concatenate([[True], words[1:] != words[:-1]]))
    return starts, np.diff(starts, append=len(words))


def _single(records: Bytes, *, has_many: bool) -> Bytes:
    """Return each digest once, with its only row or MANY."""
    starts, counts = _groups(records)
    result: Bytes = records[starts]
    if not has_many:
        single: Bytes = result[counts == 1]
        return single
    result[counts > 1, DIGEST_BYTES:] = 0xFF
    return result
