"""An estimate as a table of cells: DataFrame, CSV, Parquet, JSON, and plain records."""

from __future__ import annotations

import json
from collections.abc import Collection
from html import escape
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.core.texts.csv_cells import plain_cell
from veiltab.common.errors import InvalidInputError
from veiltab.common.extras import importing
from veiltab.common.storage.named_files import check_place, written_as_named
from veiltab.researcher.drawing.drawable import ShownTable, aligned, at_level

if TYPE_CHECKING:
    import pandas as pd

CELLS_SHOWN = 60
"""Cells in a notebook's table."""

SUFFIXES = (".csv", ".parquet", ".json")
"""Kinds of file that `write` knows."""


def free_name(name: str, others: Collection[str], names: Collection[str]) -> str:
    """Return the name of a label's column, with underscores if a statistic or another label has it."""
    free = name
    while free in others or (free != name and free in names):
        free += "_"
    return free


def statistics(estimate: ShownTable, truth: NDArray[np.float64] | None = None) -> dict[str, NDArray[Any]]:
    """Return the numeric columns of a result, in the order in which they are shown.

    Args:
        truth: true fractions, shape (K,), float64, where they are known (a demonstration, a simulation).

    Returns:
        estimate, se, low, high, projected (probabilities), [truth], estimate_rows, se_rows, low_rows, high_rows (rows
        of the whole table), noisy_count (noisy rows, before inversion; of one release only); each of shape (K,).

    Raises:
        InvalidInputError: not one true fraction a cell.
    """
    columns: dict[str, NDArray[Any]] = {
        "estimate": estimate.raw,
        "se": estimate.se,
        "low": estimate.low,
        "high": estimate.high,
        "projected": estimate.projected,
    }
    scaled = dict(zip(("estimate_rows", "se_rows", "low_rows", "high_rows"), estimate.rows, strict=True))
    if truth is not None:
        if truth.shape != estimate.raw.shape:
            raise InvalidInputError("the true table and the estimate do not have the same cells")
        columns["truth"] = truth
    return columns | scaled | ({} if estimate.released_counts is None else {"noisy_count": estimate.released_counts})


def labelled(symbols: NDArray[np.integer[Any]], attribute: Attribute) -> pd.Categorical[Any] | NDArray[np.int64]:
    """Return symbols as a column of ordered categories, which are those of the study file; of `integers` as numbers."""
    if (numbers := attribute.integers) is not None:
        return symbols.astype(np.int64) + numbers.start
    with importing("researcher", "a data frame"):
        import pandas as pd  # noqa: PLC0415 - not where the extra is missing

    return pd.Categorical.from_codes(symbols, categories=pd.Index(attribute.categories), ordered=True)


def rows_frame(domain: Domain, counts: NDArray[np.int64], study_digest: str, key: bytes) -> pd.DataFrame:
    """Return noisy rows that have the counts of a release, in a random order; see Release.rows.

    Args:
        counts: of the release, shape (K,).
        study_digest: SHA-256 of the study file.
        key: 32 secret bytes, which draw the order.
    """
    with importing("researcher", "a data frame"):
        import pandas as pd  # noqa: PLC0415 - not where the extra is missing

    from veiltab.researcher.model.rows import rows_of_counts  # noqa: PLC0415 - not for counts

    rows = rows_of_counts(counts, domain.shape, key)
    columns = {one.name: labelled(symbols, one) for one, symbols in zip(domain.attributes, rows, strict=True)}
    frame = pd.DataFrame(columns)
    frame.attrs["study_digest"] = study_digest
    return frame


def to_frame(estimate: ShownTable) -> pd.DataFrame:
    """Return one row a cell: the category of each attribute, then the columns of `statistics`.

    An attribute is an ordered Categorical whose categories are those of the study file, or a column of whole numbers
    if these are consecutive ones. An attribute that is named like
    a statistic gets underscores after its name. The frame's `attrs` name the study file and its categories.

    Returns:
        K rows in C order.
    """
    with importing("researcher", "a data frame"):
        import pandas as pd  # noqa: PLC0415 - not where the extra is missing

    numbers = statistics(estimate)
    symbols = np.unravel_index(np.arange(estimate.domain.cells), estimate.domain.shape)
    columns: dict[str, Any] = {}
    others = {*numbers, "study_digest"}
    for attribute, codes in zip(estimate.domain.attributes, symbols, strict=True):
        name = free_name(attribute.name, others, estimate.domain.names)
        columns[name] = labelled(codes, attribute)
    frame = pd.DataFrame(columns | numbers)
    frame.attrs |= {"study_digest": estimate.study_digest, "codebook": estimate.domain.codebook}
    return frame


def to_text(estimate: ShownTable) -> str:
    """Return one line a cell: its categories, then the columns of `statistics`; it needs no pandas."""
    symbols = np.unravel_index(np.arange(estimate.domain.cells), estimate.domain.shape)
    cells = [
        [one.name, *map(one.categories.__getitem__, codes.tolist())]
        for one, codes in zip(estimate.domain.attributes, symbols, strict=True)
    ]
    for name, column in statistics(estimate).items():
        cells.append([name, *(f"{one:.6f}" if isinstance(one, float) else str(one) for one in column.tolist())])
    return aligned(cells)


def to_records(estimate: ShownTable, truth: NDArray[np.float64] | None = None) -> list[dict[str, Any]]:
    """Return one plain dictionary a cell, ready for JSON.

    Args:
        truth: true fractions, shape (K,), float64, or None.

    Returns:
        [{"labels": {attribute: category}, "estimate", "se", "low", "high", "projected", ["truth"], ..., "noisy_count"}]
    """
    numbers = statistics(estimate, truth)
    lists = {name: column.tolist() for name, column in numbers.items()}
    names = estimate.domain.names
    return [
        {"labels": dict(zip(names, estimate.domain.categories_of(cell), strict=True))}
        | {name: column[cell] for name, column in lists.items()}
        for cell in range(estimate.domain.cells)
    ]


def to_html(estimate: ShownTable) -> str:
    """Return the estimates as an HTML table for a notebook: the largest CELLS_SHOWN cells, in order."""
    from veiltab.common.web.document import table  # noqa: PLC0415 - not outside notebooks

    places = np.sort(np.argsort(-estimate.raw, kind="stable")[:CELLS_SHOWN])
    numbers = (estimate.raw, estimate.se, estimate.low, estimate.high, estimate.projected)
    rows = [
        (*estimate.domain.categories_of(int(cell)), *(f"{100 * column[cell]:.3f}%" for column in numbers))
        for cell in places
    ]
    headings = (*estimate.domain.names, "estimate", "se", "low", "high", "projected")
    first, cells = len(estimate.domain.names), estimate.domain.cells
    note = (
        f"n = {estimate.population:,}, {estimate.sample:,} noisy rows. "
        f"Intervals {at_level(estimate.confidence, estimate.remarks)}."
        + "".join(f" {one}" for one in estimate.remarks)
        + (f" The {len(places)} largest of {cells:,} cells; frame() has all." if len(places) < cells else "")
    )
    return table(headings, rows, numeric=set(range(first, len(headings)))) + f"<p>{escape(note)}</p>"


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write a table to a file of the kind that its suffix names, with the study file that names its cells.

    A CSV has the study file's SHA-256 in a last column, study_digest, and every category in its order in the rows. A
    Parquet file has both in the metadata that pandas reads as `attrs`. A JSON file has them beside the cells.

    Args:
        frame: what `to_frame` returned.
        path: ends in .csv, .parquet or .json ({"study_digest", "codebook", "rows": one object a row}); an existing
            file is replaced. In a JSON file a number that is not finite is null.

    Raises:
        InvalidInputError: another suffix, or a place that cannot be written.
    """
    suffix = path.suffix.lower()
    with written_as_named(path, SUFFIXES) as file:
        if suffix == ".csv":
            _for_spreadsheets(frame).to_csv(file, index=False, lineterminator="\n")
        elif suffix == ".parquet":
            frame.to_parquet(file, index=False)
        else:
            records = frame.to_dict(orient="records")
            rows = [{name: _plain(value) for name, value in row.items()} for row in records]
            file.write(json.dumps(frame.attrs | {"rows": rows}, ensure_ascii=False).encode())


def check_table_path(path: Path) -> None:
    """Refuse a file that `write` cannot write, before there is anything to write."""
    check_place(path, SUFFIXES)


def _plain(value: object) -> object:
    """Return what JSON can say: a number that is not finite is null."""
    return None if isinstance(value, float) and not isfinite(value) else value


def _for_spreadsheets(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose texts no spreadsheet takes for formulas, and which names its study file."""
    safe = frame.assign(study_digest=frame.attrs["study_digest"])
    for name, column in frame.select_dtypes(exclude="number").items():
        safe[name] = column.astype(str).map(plain_cell)
    return safe
