"""Numbers of the hub's rows: all spokes use the same, and curators derive the order of every table from them."""

import hashlib
import secrets
import weakref
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from veiltab.common.core.randomness import MAX_FILL, CipherStream
from veiltab.common.storage.files import written_whole
from veiltab.common.storage.sorted_records import SortedRecords
from veiltab.curator.table.table_rows import TableRows
from veiltab.curator.table.tokens import TOKEN_LENGTH, tokens
from veiltab.curator.table.workplace import Workplace

NOBODY = -1
"""In the place of a row number: the hub does not have this person."""

_PIECE = 2**16  # rows whose ids are made at once

Numbers = NDArray[np.int64]
"""The number of the hub's row of each row of a table, (rows,), or NOBODY."""


def own_numbers(key: bytes, rows: int) -> Numbers:
    """Return the numbers of the hub's rows, a permutation of 0 to rows - 1 that nobody else chooses or knows."""
    words = np.empty(8 * rows, np.uint8)
    for chunk, start in enumerate(range(0, len(words), MAX_FILL)):
        CipherStream(key).fill(words[start : start + MAX_FILL], label=0, chunk=chunk)
    return np.argsort(words.view("<u8"), kind="stable").astype(np.int64, copy=False)


def commitment_to(key: bytes) -> bytes:
    """Return what commits the hub to the order of its rows, 16 bytes."""
    return hashlib.sha256(b"veiltab join order" + key).digest()[:16]


def numbered_rows(table: TableRows, numbers: Numbers, workplace: Workplace) -> TableRows:
    """Return the rows that have a number, in file order, each under its number in the place of an id.

    Args:
        workplace: has the files of the run, which holds the result until nothing refers to it.
    """
    name = f"numbered-{secrets.token_hex(8)}"
    run, start = workplace.run, 0
    made = TableRows(run.created(name), table.types, run.file(name))
    for batch in table.batches():
        here = numbers[start : start + len(batch.ids)]
        start += len(batch.ids)
        chosen = here != NOBODY
        if chosen.any():
            columns = {attribute: symbols[chosen] for attribute, symbols in batch.columns.items()}
            made.append(_texts(here[chosen]), np.ones(int(chosen.sum()), np.bool_), columns)
    weakref.finalize(made, run.delete, name)
    return made


def write_row_tokens(path: Path, rows: int, key: bytes) -> None:
    """Write the ascending tokens of the numbers 0 to rows - 1: the hub's own sorted tokens, which anyone computes."""
    records = SortedRecords(path.parent, TOKEN_LENGTH)
    for start in range(0, rows, _PIECE):
        records.add(tokens(_texts(np.arange(start, min(start + _PIECE, rows))), key))
    with written_whole(path) as file:
        for part in records.parts():
            file.write(part.data)


def _texts(numbers: Numbers) -> pa.Array:
    return pa.array(numbers).cast(pa.large_string())
