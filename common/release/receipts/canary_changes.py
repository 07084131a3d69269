"""Which canaries a server changed, and how: what the owners of a release's columns tell one another.

Canaries hold nobody's data, and their places are public once the release is published.
"""

import hashlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor, prod

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.texts.canonical import canonical_json
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.release.table_spec import Column

MOST_BYTES = 2**19
"""Most bytes of a list of changed canaries, which travels in one message; half of that is planned for."""

_NUMBER = np.dtype("<u4")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CanaryChanges:
    """The canaries that changed in any of some columns.

    Args:
        columns: which, in study order.
        numbers: (k,) which of the published canaries, by order of their places; ascending.
        offsets: for each column (k,) published symbol - sent symbol mod K_a.
        symbols: for each column (k,) symbols of the ciphertext that was sent.
        is_listed: (k,) whether the symbols that were sent are known of every column.
    """

    columns: tuple[Column, ...]
    numbers: NDArray[np.int64]
    offsets: tuple[NDArray[np.int64], ...]
    symbols: tuple[NDArray[np.int64], ...]
    is_listed: NDArray[np.bool_]

    def __len__(self) -> int:
        """How many changed."""
        return len(self.numbers)

    def of(self, columns: Sequence[Column]) -> "CanaryChanges":
        """Return what changed in some of the columns."""
        places = [self.columns.index(column) for column in columns]
        rows = np.any([self.offsets[one] != 0 for one in places], axis=0)
        return CanaryChanges(
            columns=tuple(columns),
            numbers=self.numbers[rows],
            offsets=tuple(self.offsets[one][rows] for one in places),
            symbols=tuple(self.symbols[one][rows] for one in places),
            is_listed=self.is_listed[rows],
        )

    def has_same_offsets(self, other: "CanaryChanges") -> bool:
        """Return whether the same canaries changed by the same offsets, whatever was sent."""
        return np.array_equal(self.numbers, other.numbers) and np.array_equal(self.offsets, other.offsets)

    def is_same(self, other: "CanaryChanges") -> bool:
        """Return whether the same canaries changed by the same offsets, and the same was sent."""
        return self.has_same_offsets(other) and np.array_equal(self.symbols, other.symbols)

    def to_bytes(self) -> bytes:
        """Return the list: all numbers, then the offsets of each column, then the symbols that each was sent."""
        kinds = [symbol_dtype(column.size) for column in self.columns]
        arrays = [self.numbers.astype(_NUMBER)]
        arrays += [
            array.astype(kind) for part in (self.offsets, self.symbols) for kind, array in zip(kinds, part, strict=True)
        ]
        return b"".join(array.tobytes() for array in arrays)

    @classmethod
    def from_bytes(cls, data: bytes, columns: Sequence[Column], canaries: int) -> "CanaryChanges":
        """Read a list.

        Args:
            columns: those that it is of.
            canaries: how many were published.

        Raises:
            InvalidInputError: no such canaries can have changed.
        """
        kinds, arrays, start = [symbol_dtype(column.size) for column in columns], list[NDArray[np.int64]](), 0
        count, rest = divmod(len(data), bytes_each(columns))
        for kind in (_NUMBER, *kinds, *kinds):
            arrays.append(np.frombuffer(data, kind, count, start).astype(np.int64))
            start += kind.itemsize * count
        numbers, offsets, values = arrays[0], arrays[1 : 1 + len(kinds)], arrays[1 + len(kinds) :]
        is_right = not rest and bool(np.all(numbers[1:] > numbers[:-1])) and (not count or numbers[-1] < canaries)
        for column, symbols in zip([*columns, *columns], [*offsets, *values], strict=True):
            is_right = is_right and symbols.max(initial=0) < column.size
        if not is_right or not np.all(np.any(offsets, axis=0)):
            raise InvalidInputError("this lists no canaries that can have changed", where="changed canaries")
        return cls(
            columns=tuple(columns),
            numbers=numbers,
            offsets=tuple(offsets),
            symbols=tuple(values),
            is_listed=np.ones(count, np.bool_),
        )


class ChangesCollector:
    """Collects the canaries that changed, some after the others.

    Args:
        most: if more than so many have changed, they are counted and no longer collected.
    """

    def __init__(self, columns: Sequence[Column], *, most: int) -> None:
        self._columns = tuple(columns)
        self._most = most
        self._parts: list[list[NDArray[np.int64]]] = []
        self.count = 0

    def compare(self, first: int, published: Sequence[Symbols], ciphertexts: Sequence[Symbols]) -> None:
        """Compare some canaries.

        Args:
            first: number of the first of them.
            published: of each column, their published symbols.
            ciphertexts: of each column, the symbols that were sent for them.
        """
        rows = np.flatnonzero(np.any([one != other for one, other in zip(published, ciphertexts, strict=True)], axis=0))
        self.count += len(rows)
        if self.count > self._most:
            return
        symbols = [column[rows].astype(np.int64) for column in ciphertexts]
        offsets = [
            (column[rows].astype(np.int64) - own) % kind.size
            for kind, column, own in zip(self._columns, published, symbols, strict=True)
        ]
        self._parts.append([rows + first, *offsets, *symbols])

    def changes(self) -> CanaryChanges | None:
        """Return all changes; None if they are too many."""
        if self.count > self._most:
            return None
        width = len(self._columns)
        empty = [np.zeros(0, np.int64)] * (1 + 2 * width)
        arrays = [np.concatenate(parts) for parts in zip(empty, *self._parts, strict=True)]
        return CanaryChanges(
            columns=self._columns,
            numbers=arrays[0],
            offsets=tuple(arrays[1 : 1 + width]),
            symbols=tuple(arrays[1 + width :]),
            is_listed=np.ones(len(arrays[0]), np.bool_),
        )


def bytes_each(columns: Sequence[Column]) -> int:
    """Return the bytes that each changed canary takes in a list."""
    return _NUMBER.itemsize + 2 * sum(column.byte_length(1) for column in columns)


def joined(lists: Mapping[str, CanaryChanges], columns: Sequence[Column]) -> CanaryChanges:
    """Return the changes of all columns from those of their owners.

    Args:
        lists: owner -> the changes in its columns.
        columns: all of them, in study order.
    """
    numbers, counts = np.unique(np.concatenate([one.numbers for one in lists.values()]), return_counts=True)
    rows = {owner: np.searchsorted(numbers, changes.numbers) for owner, changes in lists.items()}
    whole = np.zeros((2, len(columns), len(numbers)), np.int64)
    for number, column in enumerate(columns):
        changes = lists[column.owner]
        place = changes.columns.index(column)
        whole[:, number, rows[column.owner]] = changes.offsets[place], changes.symbols[place]
    offsets, symbols = whole
    return CanaryChanges(
        columns=tuple(columns),
        numbers=numbers,
        offsets=tuple(offsets),
        symbols=tuple(symbols),
        is_listed=counts == len(lists),
    )


def lists_digest(lists: Mapping[str, bytes]) -> str:
    """Return the SHA-256 of the owners' lists, hexadecimal."""
    digests = [[owner, hashlib.sha256(data).hexdigest()] for owner, data in sorted(lists.items())]
    return hashlib.sha256(canonical_json(["veiltab changed canaries 1", digests]).encode()).hexdigest()


def most_changes(columns: Sequence[Column]) -> int:
    """Return how many changed canaries a list can have."""
    return MOST_BYTES // bytes_each(columns)


def most_canaries(columns: Sequence[Column], replacement: Fraction) -> int:
    """Return how many canaries a release can have whose changed ones fit into a list.

    Args:
        replacement: r of the server.
    """
    changes = replacement * (1 - Fraction(1, prod(column.size for column in columns)))
    return floor(most_changes(columns) / changes / 2)
