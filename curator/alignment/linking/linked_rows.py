"""A table whose rows are those that all curators link, under the handles that all of them have."""

import secrets
import weakref

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from veiltab.curator.alignment.linking.oblivious import HANDLE_BYTES
from veiltab.curator.table.table_rows import TableRows
from veiltab.curator.table.workplace import Workplace

_PIECE = 2**14  # rows whose ids are made at once


def linked_rows(
    table: TableRows, rows: NDArray[np.int64], handles: bytes, agreed: str, workplace: Workplace
) -> TableRows:
    """Return the linked rows in file order, each under the text of its handle in the place of an id.

    Args:
        table: all rows.
        rows: (n,) numbers of linked rows.
        handles: n handles, of the same order.
        agreed: digest of what the curators agreed about; it is part of each id, so that curators who agreed about other
            things find different respondents, and release nothing.
        workplace: has the files of the run, which holds the result until nothing refers to it.
    """
    order = np.argsort(rows)
    ascending = rows[order]
    names = np.frombuffer(handles, np.uint8).reshape(-1, HANDLE_BYTES)[order]
    name = f"linked-{secrets.token_hex(8)}"
    run, start = workplace.run, 0
    made = TableRows(run.created(name), table.types, run.file(name))
    for batch in table.batches():
        stop = start + len(batch.ids)
        first, last = np.searchsorted(ascending, [start, stop])
        for begin in range(first, last, _PIECE):
            end = min(begin + _PIECE, last)
            chosen = ascending[begin:end] - start
            ids = pa.array([one.tobytes().hex() + agreed for one in names[begin:end]], pa.large_string())
            columns = {attribute: symbols.take(chosen) for attribute, symbols in batch.columns.items()}
            made.append(ids, np.ones(len(ids), np.bool_), columns)
        start = stop
    weakref.finalize(made, run.delete, name)
    return made
