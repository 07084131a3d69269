"""Rows of a table as tests write them down, and back."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from veiltab.common.core.domain import Symbols
from veiltab.common.storage.run_files import new_run
from veiltab.common.storage.scratch import Scratch
from veiltab.common.tasks.engine import InProcess
from veiltab.curator.alignment.intersection import AlignedTable, SymbolType, Tokens
from veiltab.curator.table.execution import Execution
from veiltab.curator.table.table import Table
from veiltab.curator.table.table_rows import TableRows


def rows_of(
    batches: Sequence[Sequence[str]], columns: Mapping[str, Symbols], dropped: Collection[int] = ()
) -> TableRows:
    """Return rows that come in some batches, of which some are not respondents."""
    rows, start = TableRows(Scratch(None), types_of(columns)), 0
    for batch in batches:
        stop = start + len(batch)
        kept = np.array([row not in dropped for row in range(start, stop)], np.bool_)
        symbols = {name: column[start:stop][kept] for name, column in columns.items()}
        rows.append(pa.array(batch, pa.large_string()), kept, symbols)
        start = stop
    return rows


def types_of(columns: Mapping[str, Symbols]) -> dict[str, SymbolType]:
    return {name: column.dtype for name, column in columns.items()}


def ids_in(rows: TableRows) -> list[str]:
    return [name for batch in rows.batches() for name in batch.ids.to_pylist()]


def columns_in(rows: TableRows) -> dict[str, Symbols]:
    return {
        name: np.concatenate([np.empty(0, type_), *(batch.columns[name] for batch in rows.batches())])
        for name, type_ in rows.types.items()
    }


def table_with(respondents: TableRows, rows: int, version: str, dropped: int = 0) -> Table:
    return Table(respondents=respondents, rows_read=rows, rows_dropped=dropped, missing={}, content_digest=version)


def execution(folder: Path) -> Execution:
    """Return a execution that needs no other process."""
    return Execution(run=new_run(folder), engine=InProcess())


def aligned(folder: Path, tokens: Tokens, columns: Mapping[str, Symbols]) -> AlignedTable:
    table, own = AlignedTable(folder), folder / "own-tokens.bin"
    folder.mkdir(parents=True, exist_ok=True)
    own.write_bytes(tokens.tobytes())
    table.write([(tokens, columns)], types_of(columns), own)
    return table
