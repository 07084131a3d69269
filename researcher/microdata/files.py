"""Microdata as files: Parquet with its provenance inside, or CSV with its provenance in a second file beside it.

Rows are written in chunks, so memory does not grow with their number; a file is there whole or not at all.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.core.texts.csv_cells import plain_cell
from veiltab.common.errors import InvalidInputError
from veiltab.common.storage.files import write_whole, written_whole
from veiltab.common.storage.named_files import check_place
from veiltab.researcher.microdata.provenance import weight_columns
from veiltab.researcher.model.measurement import Floats
from veiltab.researcher.model.row_drawing import Rows

SUFFIXES = (".parquet", ".csv")
"""Kinds of file."""

Weights = NDArray[np.float32]
"""Replicate weights, shape (rows, M), each column with the mean 1."""

Chunk = tuple[Rows, Mapping[int, Floats]]
"""Rows, and for each column of numbers its numbers, NaN where one is missing."""


def check_microdata_path(path: Path) -> None:
    """Refuse a name that cannot be written to, before any work."""
    check_place(path, SUFFIXES)


def copy_paths(path: Path, copies: int) -> tuple[Path, ...]:
    """Return the file of each copy: the one named, with a number before its suffix."""
    return tuple(path.with_name(f"{path.stem}-{copy}{path.suffix}") for copy in range(1, copies + 1))


def provenance_path(path: Path) -> Path:
    """Return the file beside a CSV that says where its rows come from."""
    return path.with_name(path.name + ".json")


def written_paths(path: Path, copies: int) -> tuple[Path, ...]:
    """Return the files that writing microdata may make: of rows, and of where they come from."""
    files = (path, *copy_paths(path, copies))
    return (*files, *map(provenance_path, files))


def write_rows(
    path: Path, domain: Domain, chunks: Iterable[Chunk], provenance: Mapping[str, Any], weights: Weights | None = None
) -> None:
    """Write rows with the categories of the study as labels, and numbers where an attribute has them.

    In Parquet a column is a dictionary of the categories in their order, or of numbers, and the provenance is in the
    metadata, where pandas reads it as `attrs`. In CSV a category that a spreadsheet would take for a formula gets an
    apostrophe before it, and the provenance is in `provenance_path`: the CSV itself has a line of names and the rows.

    Args:
        path: ends in .parquet or .csv; an existing file is replaced.
        domain: names and categories of the columns.
        chunks: of rows and their numbers.
        provenance: ready for JSON.
        weights: of all rows, written as further columns after a weight of 1.

    Raises:
        InvalidInputError: another suffix, or a place that cannot be written.
    """
    check_microdata_path(path)
    named = [] if weights is None else weight_columns(domain, weights.shape[1])
    try:
        match path.suffix.lower():
            case ".parquet":
                _write_parquet(path, domain, _with_weights(chunks, weights), named, provenance)
            case ".csv":
                _write_csv(path, domain, _with_weights(chunks, weights), named, provenance)
    except OSError as error:
        raise InvalidInputError(
            f"the microdata cannot be written ({error.strerror or type(error).__name__})",
            where=str(path),
            remedy="Choose another place.",
        ) from error


def whole_numbers(symbols: NDArray[np.integer[Any]], attribute: Attribute) -> pa.Array | None:
    """Return the whole numbers of a column, null where a person is absent; None if its categories are no such."""
    numbers = _integers(attribute)
    if numbers is None:
        return None
    return pa.array(symbols.astype(np.int64) + numbers.start, mask=symbols >= len(numbers))


def _integers(attribute: Attribute) -> range | None:
    return attribute.without_absent.integers


_Weighted = tuple[Chunk, list[pa.Array]]
"""Rows, and their weights column by column."""


def _with_weights(chunks: Iterable[Chunk], weights: Weights | None) -> Iterator[_Weighted]:
    start = 0
    for chunk in chunks:
        rows, _ = chunk
        columns = list[pa.Array]()
        if weights is not None:
            part = weights[start : start + len(rows)]
            columns = [pa.array(column) for column in (np.ones(len(rows), np.float32), *part.T)]
        yield chunk, columns
        start += len(rows)


def _write_parquet(
    path: Path, domain: Domain, chunks: Iterable[_Weighted], named: Sequence[str], provenance: Mapping[str, Any]
) -> None:
    text = json.dumps(provenance, ensure_ascii=False)
    categories = pa.dictionary(pa.int32(), pa.string(), ordered=True)
    kinds = [
        pa.float64() if attribute.number else categories if _integers(attribute) is None else pa.int64()
        for attribute in domain.attributes
    ]
    fields = [pa.field(name, kind) for name, kind in zip(domain.names, kinds, strict=True)]
    weights = [pa.field(name, pa.float32()) for name in named]
    schema = pa.schema(fields + weights, metadata={"veiltab": text, "PANDAS_ATTRS": text})
    labels = [pa.array(attribute.categories, pa.string()) for attribute in domain.attributes]

    def column(symbols: NDArray[np.integer[Any]], axis: int) -> pa.Array:
        if (numbers := whole_numbers(symbols, domain.attributes[axis])) is not None:
            return numbers
        return pa.DictionaryArray.from_arrays(pa.array(symbols.astype(np.int32)), labels[axis], ordered=True)

    with written_whole(path) as file, pa.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for chunk, weighted in chunks:
            writer.write_table(pa.table([*_columns(domain, chunk, column), *weighted], schema=schema))


def _write_csv(
    path: Path, domain: Domain, chunks: Iterable[_Weighted], named: Sequence[str], provenance: Mapping[str, Any]
) -> None:
    kinds = [pa.float64() if attribute.number else pa.string() for attribute in domain.attributes]
    fields = [pa.field(plain_cell(name), kind) for name, kind in zip(domain.names, kinds, strict=True)]
    schema = pa.schema(fields + [pa.field(name, pa.float32()) for name in named])
    labels = [pa.array([plain_cell(text) for text in a.categories], pa.string()) for a in domain.attributes]

    def column(symbols: NDArray[np.integer[Any]], axis: int) -> pa.Array:
        numbers = whole_numbers(symbols, domain.attributes[axis])
        return labels[axis].take(pa.array(symbols)) if numbers is None else numbers.cast(pa.string())

    write_whole(provenance_path(path), json.dumps(provenance, ensure_ascii=False, indent=1).encode())
    options = pa.csv.WriteOptions(quoting_style="needed")
    with written_whole(path) as file, pa.csv.CSVWriter(file, schema, write_options=options) as writer:
        for chunk, weighted in chunks:
            writer.write_table(pa.table([*_columns(domain, chunk, column), *weighted], schema=schema))


def _columns(
    domain: Domain, chunk: Chunk, of_symbols: Callable[[NDArray[np.integer[Any]], int], pa.Array]
) -> list[pa.Array]:
    """Return each column of a chunk: its numbers if it has any, else what its symbols become."""
    rows, numbers = chunk
    return [
        pa.array(numbers[axis], from_pandas=True) if attribute.number else of_symbols(rows[:, axis], axis)
        for axis, attribute in enumerate(domain.attributes)
    ]
