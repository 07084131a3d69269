"""A table in several Parquet files: a folder whose folders may be named column=value (as Hive does), or a pattern.

The rows come in the order of the files' names, and are numbered as if they stood in one file.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from glob import glob, has_magic
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from veiltab.curator.formats.columns.arrow_columns import formed
from veiltab.curator.formats.columns.named_columns import header_text
from veiltab.curator.formats.columns.refusals import refusal
from veiltab.curator.formats.columns.source import Batch, Column, ColumnKind, Selection
from veiltab.curator.formats.files.parquet import ParquetFile

_ABSENT = "__HIVE_DEFAULT_PARTITION__"
_KINDS = list(ColumnKind)

Partition = Mapping[str, str | None]
"""Column -> the value that all rows of a file have, from the names of its folders."""


class ParquetFiles:
    """Parquet files with the same columns.

    Args:
        where: the folder or the pattern.
        base: the folder below which names of folders are values.
        paths: the files, in the order of their rows; one or more.

    Raises:
        InvalidInputError: a file cannot be read, or has other columns than the first one.
    """

    lines = None

    def __init__(self, where: str, base: Path, paths: Sequence[Path]) -> None:
        self.where = where
        self._files = [(ParquetFile(path), _partition(path.relative_to(base))) for path in paths]
        (first, partition), *others = self._files
        self._partitioned = tuple(partition)
        self._columns = {column.spelling: column for column in first.columns}
        twice = sorted(set(partition) & {column.name for column in first.columns})
        if twice:
            problem = f"the column {twice[0]!r} stands in the files, and in the names of their folders"
            raise refusal(where, problem, "Keep one of them.")
        for file, other in others:
            self._add(file, other, first.where)

    @property
    def description(self) -> str:
        """How many files there are."""
        folders = f", {' and '.join(self._partitioned)} from the names of folders" if self._partitioned else ""
        return f"{len(self._files)} Parquet files{folders}"

    @property
    def rows(self) -> int:
        """Of all files, as they state."""
        return sum(file.rows for file, _ in self._files)

    @property
    def columns(self) -> list[Column]:
        """Return the header of the first file, and the columns that stand in the names of folders."""
        kind = ColumnKind.EXACT
        return [*self._columns.values(), *(Column(spelling=name, kind=kind) for name in self._partitioned)]

    def batches(self, selection: Selection) -> Iterator[Batch]:
        """Read one file after another."""
        inside = {name: one for name, one in selection.spellings.items() if one not in self._partitioned}
        beside = {name: one for name, one in selection.spellings.items() if one in self._partitioned}
        from_file = _part(selection, inside)
        from_names = _part(selection, beside)
        for file, partition in self._files:
            for batch in file.batches(from_file):
                values = {
                    name: pa.repeat(pa.scalar(partition[one], pa.string()), batch.rows) for name, one in beside.items()
                }
                added = formed(batch.rows, values, from_names)
                yield Batch(rows=batch.rows, texts={**batch.texts, **added.texts}, coded={**batch.coded, **added.coded})

    def _add(self, file: ParquetFile, partition: Partition, first: str) -> None:
        """Refuse a file with other columns; of two kinds of a column, take the one that is harder to read."""
        columns = {column.spelling: column for column in file.columns}
        if columns.keys() != self._columns.keys() or tuple(partition) != self._partitioned:
            own, others = {*columns, *partition}, {*self._columns, *self._partitioned}
            lacking = f"; it lacks {header_text(sorted(others - own))}" if others - own else ""
            more = f"; it alone has {header_text(sorted(own - others))}" if own - others else ""
            problem = f"its columns are not those of {first}{lacking}{more}"
            raise refusal(file.where, problem, "Give files with the same columns.")
        for name, column in columns.items():
            self._columns[name] = max(self._columns[name], column, key=lambda one: _KINDS.index(one.kind))


def parquet_files(path: Path, endings: tuple[str, ...], *, remedy: str) -> ParquetFiles:
    """Open the files of a folder, or of a pattern.

    Args:
        endings: of the names of Parquet files.
        remedy: what to give instead of a folder or pattern without such a file.
    """
    paths = _files_in(path) if path.is_dir() else sorted(map(Path, glob(str(path))))  # noqa: PTH207 - whole paths
    if path.is_dir() and not os.access(path, os.R_OK | os.X_OK):
        raise refusal(str(path), "this user may not read the folder", "Check its rights, and which user runs this.")
    if not paths:
        problem = "this is a directory, and it holds no .parquet file" if path.is_dir() else "no file fits the pattern"
        raise refusal(str(path), problem, remedy)
    others = [one for one in paths if not (one.name.lower().endswith(endings) and one.is_file())]
    if others:
        reason = "there is" if path.is_dir() else "the pattern fits"
        problem = f"{reason} {others[0].name!r}, which is not a .parquet file"
        raise refusal(str(path), problem, "Several files make one table only if they are Parquet.")
    base = next(one for one in (path, *path.parents) if not has_magic(str(one)))
    return ParquetFiles(str(path), base, paths)


def _files_in(folder: Path) -> list[Path]:
    """Return the Parquet files in a folder and its folders, by name; hidden ones and those of logs are left out."""
    inner = [path.relative_to(folder) for path in folder.rglob("*.parquet")]
    return [folder / path for path in sorted(inner) if not any(part.startswith((".", "_")) for part in path.parts)]


def _partition(path: Path) -> dict[str, str | None]:
    pairs = [part.split("=", 1) for part in path.parent.parts if "=" in part]
    values = {unquote(name): None if value == _ABSENT else unquote(value) for name, value in pairs}
    if len(values) < len(pairs):
        raise refusal(str(path), "two folders around the file give the same column a value", "Keep one of them.")
    return values


def _part(selection: Selection, spellings: Mapping[str, str]) -> Selection:
    names = frozenset(spellings)
    return Selection(spellings=spellings, texts=selection.texts & names, coded=selection.coded & names)
