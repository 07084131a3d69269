"""Numbers of the hub's rows: all spokes use the same, and curators derive the order of every table from them."""

import hashlib
import secrets
import weakref
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from veiltab.common.core.randomness import MAX_FILL, CipherStream
from veiltab.curator.alignment.intersection import Lacking
from veiltab.curator.table.execution import Execution
from veiltab.curator.table.table_rows import TableRows

NOBODY = -1
"""In the place of a row number: the hub does not have this person."""

_PIECE = 2**16  # rows whose ids are made at once

Numbers = NDArray[np.int64]
"""The number of the hub's row of each row of a table, (rows,), or NOBODY."""


def own_numbers(key: bytes, rows: int) -> Numbers:
    """Return the numbers of the hub's rows, a permutation of 0 to rows - 1 that nobody else chooses or knows."""
    words = np.empty(8 * rows, np.uint8)
    for chunk, start in enumerate(range(0, len(words), MAX_FILL)):
        CipherStream(key).fill(words[start : start + MAX_FILL].data, label=0, chunk=chunk)
    return np.argsort(words.view("<u8"), kind="stable").astype(np.int64, copy=False)


def commitment_to(key: bytes) -> bytes:
    """Return what commits the hub to the order of its rows, 16 bytes."""
    return hashlib.sha256(b"veiltab join order" + key).digest()[:16]


def rows_by_number(
    table: TableRows, numbers: Numbers, rows: int, lacking: Mapping[str, Lacking], execution: Execution
) -> TableRows:
    """Return the hub's rows in the order of their numbers, each under its number in the place of an id.

    Where the hub has a person of the table its symbols stand, else what says otherwise: no size, time or progress of
    what comes after depends on who was found.

    Args:
        numbers: of its rows; one that is below 0, or not below `rows`, is nobody's.
        rows: of the hub, n.
        lacking: attribute -> what people have who are not in the table.
        execution: has the files of the run, which holds the result until nothing refers to it.
    """
    keys = np.zeros((rows, 2), "<i8")
    keys[:, 0] = np.arange(rows)
    columns = {name: lacking[name].values(keys.view(np.uint8), type_) for name, type_ in table.types.items()}
    start = 0
    for batch in table.batches():
        here = numbers[start : start + len(batch.ids)]
        start += len(batch.ids)
        mask = (here >= 0) & (here < rows)
        for name, symbols in batch.columns.items():
            columns[name][here[mask]] = symbols[mask]
    name, run = f"numbered-{secrets.token_hex(8)}", execution.run
    result = TableRows(run.create(name), table.types, run.file(name))
    for first in range(0, rows, _PIECE):
        part = slice(first, min(first + _PIECE, rows))
        ids = pa.array(np.arange(part.start, part.stop)).cast(pa.large_string())
        result.append(ids, np.ones(len(ids), np.bool_), {one: column[part] for one, column in columns.items()})
    weakref.finalize(result, run.delete, name)
    return result
