"""Some linked people as a file for a clerk: how this curator's table writes them, and no attribute of theirs."""

import csv
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from veiltab.common.core.texts.csv_cells import plain_cell
from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.row_keys import identity_columns
from veiltab.common.study.file import Study
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.linkage.linkages import LinkedSample
from veiltab.curator.table.table_reading import load_table


def write_sample(  # noqa: PLR0913, PLR0917 - where to, which rows, of which table
    path: Path, sample: LinkedSample, selection: int | Path, table: TableAddress, study: Study, name: str
) -> int:
    """Write the identity fields of some linked rows as CSV: pair, the number of the hub's row, and the fields.

    Return how many there are.

    Args:
        path: the file, which nobody else may read; it must not be there.
        sample: which rows there are.
        selection: how many a spoke wants; at the hub, which learns no link, the file of a spoke, for its `pair`.
        table: where the table is that was linked.

    Raises:
        InvalidInputError: fewer people are linked, the table is another one, the hub has no such rows, or the file is
            there.
    """
    places = _places(sample, selection)
    if path.exists():
        raise _is_there(path)
    loaded = load_table(table, study, name)
    identity = study.identity
    if identity is None or loaded.content_digest != sample.content_digest:
        raise InvalidInputError(
            "this is not the table that was linked, or it was changed since",
            where=table.label,
            remedy="Name it by --config, with the file of `veiltab curator serve`. If it was changed, start the"
            " curator again: it links the table as it is now.",
        )
    rows, start, people = sample.rows[places], 0, dict[int, list[str]]()
    for ids in loaded.respondents.all_ids():
        here = rows[(rows >= start) & (rows < start + len(ids))]
        columns = [one.to_pylist() for one in identity_columns(ids.take(pa.array(here - start)), identity)]
        people |= dict(zip(here.tolist(), zip(*columns, strict=True), strict=True))
        start += len(ids)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise _is_there(path) from None
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["pair", *map(plain_cell, identity.names)])
        writer.writerows(
            [number, *(plain_cell(text or "") for text in people[row])]
            for number, row in zip(sample.numbers[places].tolist(), rows.tolist(), strict=True)
        )
    return len(rows)


def _places(sample: LinkedSample, selection: int | Path) -> NDArray[np.int64]:
    """Return the places of the wanted rows in a sample."""
    if isinstance(selection, int):
        if selection > len(sample.rows):
            raise InvalidInputError(
                f"{selection:,} people are asked for, and a sample has {len(sample.rows):,} at most",
                where="--sample",
                remedy="Take fewer: the rows of the hub that may be in a sample are drawn once a linkage.",
            )
        return np.arange(selection)
    try:
        with selection.open(encoding="utf-8", newline="") as file:
            numbers = [int(row["pair"]) for row in csv.DictReader(file)]
        if min(numbers) >= 0 and max(numbers) < len(sample.rows):  # at the hub number j stands at place j
            return np.array(numbers)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise InvalidInputError(
        "this is not a sample of a spoke for the latest linkage",
        where=str(selection),
        remedy="Ask a spoke for its file, or for the column `pair` of it, and give that by --sample.",
    )


def _is_there(path: Path) -> InvalidInputError:
    return InvalidInputError("there is a file already", where=str(path), remedy="Name another one, or delete it.")
