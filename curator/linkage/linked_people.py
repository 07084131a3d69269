"""Some linked people as a file for a clerk: how this curator's table writes them, and no attribute of theirs."""

import csv
import os
from pathlib import Path

import pyarrow as pa

from veiltab.common.core.texts.cells import plain_cell
from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.row_keys import identity_columns
from veiltab.common.study.file import Study
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.linkage.linkages import MOST_SAMPLED, LinkedSample
from veiltab.curator.reading.table_reading import load_table


def write_sample(  # noqa: PLR0913, PLR0917 - where to, which rows, of which table
    path: Path, sample: LinkedSample, count: int, table: TableAddress, study: Study, name: str
) -> None:
    """Write the identity fields of some linked rows as CSV: pair, a number from 1, and one column a field.

    The other curators that write as many have the same people in the same order.

    Args:
        path: the file, which nobody else may read; it must not be there.
        sample: which rows.
        count: how many of them.
        table: where the table is that was linked.

    Raises:
        InvalidInputError: fewer people are linked, the table is another one, or the file is there.
    """
    if count > len(sample.rows):
        raise InvalidInputError(
            f"{count:,} people are asked for, and a sample has {len(sample.rows):,} at most",
            where="--sample",
            remedy=f"Take fewer: no more than are linked, and no more than {MOST_SAMPLED:,}.",
        )
    if path.exists():
        raise _is_there(path)
    loaded = load_table(table, study, name)
    identity = study.identity
    if identity is None or loaded.content_digest != sample.content_digest:
        raise InvalidInputError(
            "this is not the table that was linked, or it was changed since",
            where=table.shown,
            remedy="Give it by --table with the options of `veiltab curator serve`. If it was changed, start the"
            " curator again: it links the table as it is now.",
        )
    rows, start, found = sample.rows[:count], 0, dict[int, list[str]]()
    for ids in loaded.respondents.all_ids():
        here = rows[(rows >= start) & (rows < start + len(ids))]
        columns = [one.to_pylist() for one in identity_columns(ids.take(pa.array(here - start)), identity)]
        found |= dict(zip(here.tolist(), zip(*columns, strict=True), strict=True))
        start += len(ids)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise _is_there(path) from None
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["pair", *map(plain_cell, identity.names)])
        writer.writerows(
            [number, *(plain_cell(text or "") for text in found[row])] for number, row in enumerate(rows.tolist(), 1)
        )


def _is_there(path: Path) -> InvalidInputError:
    return InvalidInputError("there is a file already", where=str(path), remedy="Name another one, or delete it.")
