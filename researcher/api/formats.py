"""Tables as files for programs: CSV, Parquet, Arrow, and SDMX-CSV 2.0 with the codebook that its codes stand in."""

import csv
import io
import re
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa

from veiltab.common.core.domain import Domain
from veiltab.common.storage.temporary import TemporaryFolder
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.estimates.table import statistics, to_frame, write


class TableFormat(Enum):
    """Of a table."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"
    SDMX = "sdmx-csv"


class RowFormat(Enum):
    """Of a file of rows."""

    CSV = "csv"
    PARQUET = "parquet"


MEDIA_TYPES = {
    "json": "application/json",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.stream",
    "sdmx-csv": "application/vnd.sdmx.data+csv;version=2.0.0",
}
"""Format -> media type."""

_MEASURES = {"SE": "se", "LOW": "low", "HIGH": "high", "PROJECTED": "projected"}
_RESERVED = {"STRUCTURE", "STRUCTURE_ID", "ACTION", "OBS_VALUE", *_MEASURES}


def table_file(table: TableEstimate, kind: TableFormat, release_id: str) -> bytes:
    """Return a table as a file.

    Args:
        table: its cells in C order.
        kind: but not JSON.
        release_id: names the dataflow of SDMX-CSV.
    """
    if kind is TableFormat.SDMX:
        return _sdmx(table, release_id)
    if kind is TableFormat.ARROW:
        cells, sink = pa.Table.from_pandas(to_frame(table), preserve_index=False), io.BytesIO()
        with pa.ipc.new_stream(sink, cells.schema) as stream:
            stream.write_table(cells)
        return sink.getvalue()
    folder = TemporaryFolder()
    try:
        write(to_frame(table), folder.path / f"table.{kind.value}")
        return (folder.path / f"table.{kind.value}").read_bytes()
    finally:
        folder.delete()


def codebook(domain: Domain) -> dict[str, Any]:
    """Return what the ids of SDMX-CSV stand for, ready for JSON."""
    dimensions = [
        {
            "id": dimension,
            "attribute": attribute.name,
            "codes": [{"id": _code(symbol), "name": name} for symbol, name in enumerate(attribute.categories)],
        }
        for dimension, attribute in zip(_dimensions(domain), domain.attributes, strict=True)
    ]
    measures = {"OBS_VALUE": "raw estimate of the share of respondents", "SE": "its standard error"}
    measures |= {"LOW": "lower end of its interval", "HIGH": "upper end", "PROJECTED": "share, projected and biased"}
    return {"dimensions": dimensions, "measures": measures}


def _sdmx(table: TableEstimate, release_id: str) -> bytes:
    numbers, text = statistics(table), io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(["STRUCTURE", "STRUCTURE_ID", "ACTION", *_dimensions(table.domain), "OBS_VALUE", *_MEASURES])
    columns = [numbers["estimate"], *(numbers[name] for name in _MEASURES.values())]
    symbols = np.unravel_index(np.arange(table.domain.cells), table.domain.shape)
    for cell in range(table.domain.cells):
        codes = [_code(int(column[cell])) for column in symbols]
        values = [repr(float(column[cell])) for column in columns]
        writer.writerow(["dataflow", f"VEILTAB:R{release_id}(1.0)", "I", *codes, *values])
    return text.getvalue().encode()


def _dimensions(domain: Domain) -> list[str]:
    """Return an id for each attribute: capital letters, digits and _, the first a letter, each once."""
    ids = list[str]()
    for name in domain.names:
        plain = re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_")
        first = own = plain if plain[:1].isalpha() else f"A_{plain}".rstrip("_")
        number = 1
        while own in _RESERVED or own in ids:
            number += 1
            own = f"{first}_{number}"
        ids.append(own)
    return ids


def _code(symbol: int) -> str:
    return f"C{symbol + 1}"
