"""Writes one table in each form that tables are read from."""

import gzip
import json
import sqlite3
import zipfile
from collections.abc import Sequence
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

Value = object
Rows = Sequence[Sequence[object]]
"""The header, and rows of it."""


def write_text(path: Path, rows: Rows, *, separator: str = ",", encoding: str = "utf-8", comma: bool = False) -> Path:
    """Write a text file; `comma` writes numbers as 1.234,5."""

    def text(value: Value) -> str:
        if value is None:
            return ""
        if comma and isinstance(value, float):
            return f"{value:,}".translate(str.maketrans(",.", ".,"))
        return f'"{value}"' if separator in str(value) else str(value)

    data = "".join(separator.join(map(text, row)) + "\n" for row in rows).encode(encoding)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def write_json(path: Path, rows: Rows, *, as_list: bool = False) -> Path:
    """Write a JSON file: an object a line, or a list of them."""
    header, *others = rows
    objects = [json.dumps(dict(zip(map(str, header), row, strict=True))) for row in others]
    data = ("[\n" + ",\n".join(objects) + "\n]\n" if as_list else "\n".join(objects) + "\n").encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def columns(rows: Rows) -> dict[str, list[Value]]:
    header, *others = rows
    return {str(name): [row[place] for row in others] for place, name in enumerate(header)}


def write_parquet(path: Path, rows: Rows) -> Path:
    pq.write_table(pa.table(columns(rows)), path, row_group_size=2)
    return path


def write_arrow(path: Path, rows: Rows, *, compression: str = "zstd") -> Path:
    """Write one Arrow file of several record batches."""
    feather.write_feather(pa.table(columns(rows)), path, compression=compression, chunksize=2)
    return path


def write_folder(path: Path, rows: Rows, by: str) -> Path:
    """Write a folder of Parquet files by one column, as Hive does."""
    table = columns(rows)
    keys = table.pop(by)
    for key in dict.fromkeys(keys):
        folder = path / f"{by}={key}"
        folder.mkdir(parents=True)
        part = {name: [v for v, one in zip(values, keys, strict=True) if one == key] for name, values in table.items()}
        pq.write_table(pa.table(part), folder / "part-0.parquet")
    (path / "_SUCCESS").touch()
    return path


def write_xlsx(path: Path, sheets: dict[str, Rows]) -> Path:
    """Write a workbook of Excel by hand: texts inline, numbers, dates as days since 1900 with a style of dates."""
    office = "http://schemas.openxmlformats.org"
    main, rel = f"{office}/spreadsheetml/2006/main", f"{office}/officeDocument/2006/relationships"
    names = "".join(f'<sheet name="{escape(s)}" sheetId="{n}" r:id="r{n}"/>' for n, s in enumerate(sheets, 1))
    places = "".join(
        f'<Relationship Id="r{n}" Type="{rel}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in range(1, len(sheets) + 1)
    )
    start = f'<Relationships xmlns="{office}/package/2006/relationships">'
    parts = {
        "_rels/.rels": f'{start}<Relationship Id="r1" Type="{rel}/officeDocument" Target="xl/workbook.xml"/>'
        "</Relationships>",
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{rel}"><sheets>{names}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f"{start}{places}"
        f'<Relationship Id="r0" Type="{rel}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{main}"><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
        "</styleSheet>",
    }
    for n, rows in enumerate(sheets.values(), 1):
        lines = "".join(
            "<row>" + "".join(map(_cell, row)) + "</row>" if any(v is not None for v in row) else "<row/>"
            for row in rows
        )
        parts[f"xl/worksheets/sheet{n}.xml"] = f'<worksheet xmlns="{main}"><sheetData>{lines}</sheetData></worksheet>'
    with zipfile.ZipFile(path, "w") as book:
        for name, part in parts.items():
            book.writestr(name, part)
    return path


def _cell(value: Value) -> str:
    match value:
        case None:
            return "<c/>"
        case str():
            return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
        case date():
            return f'<c s="1"><v>{(value - date(1899, 12, 30)).days}</v></c>'
        case _:
            return f"<c><v>{value}</v></c>"


def write_ods(path: Path, rows: Rows) -> Path:
    """Write a sheet of LibreOffice by hand."""
    names = "urn:oasis:names:tc:opendocument:xmlns"
    cells = "".join("<table:table-row>" + "".join(map(_ods_cell, row)) + "</table:table-row>" for row in rows)
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        book.writestr("META-INF/manifest.xml", f'<manifest:manifest xmlns:manifest="{names}:manifest:1.0"/>')
        book.writestr(
            "content.xml",
            f'<office:document-content xmlns:office="{names}:office:1.0" xmlns:table="{names}:table:1.0"'
            f' xmlns:text="{names}:text:1.0"><office:body><office:spreadsheet><table:table table:name="people">{cells}'
            "</table:table></office:spreadsheet></office:body></office:document-content>",
        )
    return path


def _ods_cell(value: Value) -> str:
    match value:
        case None:
            return "<table:table-cell/>"
        case str():
            inner = f"<text:p>{escape(value)}</text:p>"
            return f'<table:table-cell office:value-type="string">{inner}</table:table-cell>'
        case date():
            return f'<table:table-cell office:value-type="date" office:date-value="{value}"/>'
        case _:
            return f'<table:table-cell office:value-type="float" office:value="{value}"/>'


def write_sqlite(path: Path, rows: Rows, table: str = "people") -> Path:
    """Write a table of a SQLite file, its columns without a type."""
    with closing(sqlite3.connect(path)) as connection, connection:
        _insert(connection, rows, table, typed=False)
    return path


def write_duckdb(path: Path, rows: Rows, table: str = "people") -> Path:
    """Write a table of a DuckDB file."""
    with closing(duckdb.connect(path)) as connection:
        _insert(connection, rows, table, typed=True)
    return path


def _insert(connection: Any, rows: Rows, table: str, *, typed: bool) -> None:  # noqa: ANN401 - of either database
    header, *others = rows
    table = table.replace('"', '""')
    types = {str: "varchar", int: "bigint", float: "double", date: "date"}
    kinds = [
        next(types[type(v)] for v in values if v is not None) if typed else "" for values in columns(rows).values()
    ]
    fields = ", ".join(f'"{name}" {kind}' for name, kind in zip(header, kinds, strict=True))
    connection.execute(f'create table "{table}" ({fields})')
    cells = [[str(v) if isinstance(v, date) and not typed else v for v in row] for row in others]
    places = ", ".join("?" * len(header))
    connection.executemany(f'insert into "{table}" values ({places})', cells)  # noqa: S608 - names of these tests
