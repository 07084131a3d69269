"""Columns and changed canaries as tests write them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from veiltab.common.release.receipts.canary_changes import CanaryChanges
from veiltab.common.release.table_spec import Column


def columns_of(sizes: Sequence[int], owners: str = "alice") -> tuple[Column, ...]:
    """Columns a, b, ...; of one owner, or of one each."""
    names = owners.split()
    return tuple(
        Column(attribute="abcdefgh"[place], owner=names[place % len(names)], size=size)
        for place, size in enumerate(sizes)
    )


def changes_of(sizes: Sequence[int], changed: Sequence["Changed"], owners: str = "alice") -> CanaryChanges:
    """The same rows, as the product has them."""
    return CanaryChanges(
        columns=columns_of(sizes, owners),
        numbers=np.array([one.number for one in changed], np.int64),
        offsets=tuple(np.array([one.offsets[a] for one in changed], np.int64) for a in range(len(sizes))),
        sent=tuple(np.array([one.sent[a] for one in changed], np.int64) for a in range(len(sizes))),
        is_listed=np.array([one.is_listed for one in changed], np.bool_),
    )


@dataclass(frozen=True, slots=True)
class Changed:
    """One changed canary.

    Args:
        number: by order of places.
        offsets: published - sent, of each column.
        sent: of each column.
        is_listed: whether every owner knows it.
    """

    number: int
    offsets: tuple[int, ...]
    sent: tuple[int, ...]
    is_listed: bool = True
