"""Microdata as files: Parquet with its provenance inside, or CSV with its provenance in a second file beside it.

Rows are written in chunks, so memory does not grow with their number; a file is there whole or not at all.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from veiltab.common.core.domain import Domain
from veiltab.common.errors import InvalidInputError
from veiltab.common.storage.files import written_whole
from veiltab.researcher.table import plain_cell

SUFFIXES = (".parquet", ".csv")
"""Kinds of file."""

Rows = NDArray[np.integer[Any]]
"""Symbols, shape (rows, attributes)."""


def check_microdata_path(path: Path) -> None:
    """Refuse a name that cannot be written to, before any work.

    Raises:
        InvalidInputError: another suffix, or a place that cannot be written.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidInputError(
            f"microdata cannot be written as {path.suffix or 'a file without suffix'}",
            where=str(path),
            remedy=f"End the name in one of {', '.join(SUFFIXES)}.",
        )
    if not path.parent.is_dir():
        raise InvalidInputError("the folder of the microdata does not exist", where=str(path))
    if path.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise InvalidInputError("the microdata cannot be written here", where=str(path), remedy="Choose another place.")


def copy_paths(path: Path, copies: int) -> tuple[Path, ...]:
    """Return the file of each copy: the one named, or with a number before its suffix if there are several."""
    if copies == 1:
        return (path,)
    return tuple(path.with_name(f"{path.stem}-{copy}{path.suffix}") for copy in range(1, copies + 1))


def provenance_path(path: Path) -> Path:
    """Return the file beside a CSV that says where its rows come from."""
    return path.with_name(path.name + ".json")


def write_rows(path: Path, domain: Domain, chunks: Iterable[Rows], provenance: Mapping[str, Any]) -> None:
    """Write rows with the categories of the study as labels.

    In Parquet a column is a dictionary of the categories in their order, and the provenance is in the metadata, where
    pandas reads it as `attrs`. In CSV a category that a spreadsheet would take for a formula gets an apostrophe before
    it, and the provenance is in `provenance_path`: the CSV itself has a line of names and the rows.

    Args:
        path: ends in .parquet or .csv; an existing file is replaced.
        domain: names and categories of the columns.
        chunks: of rows.
        provenance: ready for JSON.

    Raises:
        InvalidInputError: another suffix, or a place that cannot be written.
    """
    check_microdata_path(path)
    try:
        match path.suffix.lower():
            case ".parquet":
                _write_parquet(path, domain, chunks, provenance)
            case ".csv":
                _write_csv(path, domain, chunks, provenance)
    except OSError as error:
        raise InvalidInputError(
            f"the microdata cannot be written ({error.strerror or type(error).__name__})",
            where=str(path),
            remedy="Choose another place.",
        ) from error


def _write_parquet(path: Path, domain: Domain, chunks: Iterable[Rows], provenance: Mapping[str, Any]) -> None:
    kind = pa.dictionary(pa.int32(), pa.string(), ordered=True)
    text = json.dumps(provenance, ensure_ascii=False)
    schema = pa.schema(
        [pa.field(name, kind) for name in domain.names], metadata={"veiltab": text, "PANDAS_ATTRS": text}
    )
    labels = [pa.array(attribute.categories, pa.string()) for attribute in domain.attributes]
    with written_whole(path) as file, pa.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for rows in chunks:
            columns = [
                pa.DictionaryArray.from_arrays(pa.array(rows[:, axis].astype(np.int32)), categories, ordered=True)
                for axis, categories in enumerate(labels)
            ]
            writer.write_table(pa.table(columns, schema=schema))


def _write_csv(path: Path, domain: Domain, chunks: Iterable[Rows], provenance: Mapping[str, Any]) -> None:
    schema = pa.schema([pa.field(plain_cell(name), pa.string()) for name in domain.names])
    labels = [pa.array([plain_cell(text) for text in a.categories], pa.string()) for a in domain.attributes]
    with written_whole(provenance_path(path)) as file:
        file.write(json.dumps(provenance, ensure_ascii=False, indent=1).encode())
    options = pa.csv.WriteOptions(quoting_style="needed")
    with written_whole(path) as file, pa.csv.CSVWriter(file, schema, write_options=options) as writer:
        for rows in chunks:
            columns = [categories.take(pa.array(rows[:, axis])) for axis, categories in enumerate(labels)]
            writer.write_table(pa.table(columns, schema=schema))
