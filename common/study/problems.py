"""Everything that is wrong with a study file or a draft, each problem with its line and the key that may be meant.

Reading a study stops at the first problem. A person who corrects a file wants all of them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial

from veiltab.common.core.texts.spelling import escaped
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import study_from_bytes
from veiltab.common.study.study_tables import STUDY_TABLES, TableKeys
from veiltab.common.study.toml_fields import Fields
from veiltab.common.study.toml_text import parsed_toml_text

_HEADER = re.compile(r"\s*\[\[?\s*([A-Za-z0-9_-]+)\s*\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"""\s*(?:([A-Za-z0-9_-]+)|"([^"]*)"|'([^']*)')\s*=""")
_SYNTAX_LINE = re.compile(r"at line (\d+)")


MOST_PROBLEMS = 50
"""Problems of a file that are said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem of a file.

    Args:
        line: its line, if one is to blame and it stands alone there.
        where: the table, such as "[[attribute]] age"; "" for the file as a whole.
    """

    line: int | None
    where: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        """Say where, what and what next, on one line."""
        places = [f"line {self.line}"] if self.line else []
        places += [self.where] if self.where else []
        place = f"{', '.join(places)}: " if places else ""
        return escaped(f"{place}{self.problem}. {self.remedy}")


def study_problems(data: bytes) -> tuple[Problem, ...]:
    """Return all problems of a study file's bytes, in the order of their lines; none if it describes a study."""
    return file_problems(data, STUDY_TABLES, lambda: study_from_bytes(data, ""))


def file_problems(
    data: bytes, tables: Mapping[str, TableKeys], read_whole: Callable[[], object]
) -> tuple[Problem, ...]:
    """Return all problems of a file of tables.

    Args:
        data: the file's bytes.
        tables: the tables that it may have.
        read_whole: refuses a file whose tables are valid each, but not together.
    """
    try:
        parsed = parsed_toml_text(data, "")
    except InvalidInputError as error:
        line = _SYNTAX_LINE.search(error.problem)
        return (Problem(line=int(line[1]) if line else None, where="", problem=error.problem, remedy=error.remedy),)
    survey = _Survey(tables, _Lines(data.decode("utf-8-sig")))
    with suppress(_EnoughError):
        survey.look_at(parsed)
    if not survey.problems:
        survey.attempt(read_whole)
    return tuple(sorted(survey.problems, key=lambda problem: problem.line or 0))


class _EnoughError(Exception):
    """Ends a survey: a person corrects these first."""


class _Lines:
    """Where the tables and keys of a file stand."""

    def __init__(self, text: str) -> None:
        self._lines: dict[tuple[str, int, str], int] = {}
        counts: dict[str, int] = {}
        table = ""
        for number, line in enumerate(text.splitlines(), 1):
            if header := _HEADER.fullmatch(line):
                table = header[1]
                counts[table] = counts.get(table, -1) + 1
                self._lines.setdefault((table, counts[table], ""), number)
            elif key := _KEY.match(line):
                name = next(group for group in key.groups() if group is not None)
                self._lines.setdefault((table, counts.get(table, 0), name), number)

    def line(self, table: str, place: int, key: str = "") -> int | None:
        """Return the line of a key of the table at a place among those of its name, or of the table's header."""
        return self._lines.get((table, place, key))


class _Survey:
    """Gathers the problems of a file, table by table."""

    def __init__(self, tables: Mapping[str, TableKeys], lines: _Lines) -> None:
        self._tables, self._lines = tables, lines
        self.problems: list[Problem] = []

    def look_at(self, parsed: Mapping[str, object]) -> None:
        """Look at each table, and for those that are not there."""
        root = Fields(parsed, "")
        unknown = [name for name in parsed if name not in self._tables]
        near = {name: get_close_matches(name, self._tables, 1) for name in unknown[:MOST_PROBLEMS]}
        for name in unknown:
            header = self._lines.line(name, 0) or self._lines.line("", 0, name)
            self._add(header, "", f"unknown table {name!r}", self._meant_table(name, near[name]))
        meant = {match for matches in near.values() for match in matches}
        for name, table_keys in self._tables.items():
            if name in parsed:
                self._look_at_tables(root, name, table_keys)
            elif table_keys.is_needed and name not in meant:
                brackets = f"[[{name}]]" if table_keys.is_list else f"[{name}]"
                self._add(None, "", f"there is no {brackets}", f"Add it: {table_keys.meaning}.")

    def attempt(self, read: Callable[[], object], table: str = "", place: int = 0) -> None:
        """Note the refusal of a reader; its line is that of the key with which it begins, or of the table."""
        try:
            read()
        except InvalidInputError as error:
            key = error.problem.split()[0]
            if not table:  # of tables that make the study only together
                table = next((name for name, one in self._tables.items() if one.read is None and key in one.keys), "")
            line = self._lines.line(table, place, key) or self._lines.line(table, place)
            self._add(line, error.where.strip(), error.problem, error.remedy or "Correct it there.")

    def _look_at_tables(self, root: Fields, name: str, table_keys: TableKeys) -> None:
        """Look at the keys of each table of a name, and read those that have no problem with a key."""
        tables: list[Fields] = []
        self.attempt(lambda: tables.extend(root.tables(name) if table_keys.is_list else [root.table(name)]), name)
        for place, fields in enumerate(tables):
            before = len(self.problems)
            self._look_at_keys(fields, name, place, table_keys)
            if len(self.problems) == before and table_keys.read is not None:
                self.attempt(partial(table_keys.read, fields), name, place)

    def _look_at_keys(self, fields: Fields, name: str, place: int, table_keys: TableKeys) -> None:
        where, present = fields.where.strip(), fields.keys()
        absent = [key for key in table_keys.keys if key not in present]
        meant: set[str] = set()
        for key in present:
            if key in table_keys.keys:
                self.attempt(partial(table_keys.keys[key].kind.read, fields, key), name, place)
                continue
            near = get_close_matches(key, absent, 1) or get_close_matches(key, table_keys.keys, 1)
            meant.update(near)
            line = self._lines.line(name, place, key)
            self._add(line, where, f"unknown key {key!r}", self._meant_key(key, near, table_keys))
        line = self._lines.line(name, place)
        for key in absent:
            if table_keys.keys[key].default is None and key not in meant:
                self._add(line, where, f"{key} is not there", f"Add it: {table_keys.keys[key].meaning}.")

    def _meant_key(self, key: str, near: Sequence[str], table_keys: TableKeys) -> str:
        """Say which key may be meant, or to which table a key belongs."""
        if near:
            return f"Did you mean {near[0]!r} ({table_keys.keys[near[0]].meaning})?"
        others = [f"[{name}]" for name, table in self._tables.items() if key in table.keys]
        if others:
            return f"It belongs to {' or '.join(others)}."
        return f"Known keys: {', '.join(table_keys.keys)}."

    def _meant_table(self, name: str, near: Sequence[str]) -> str:
        """Say which table may be meant, or to which table a key outside all tables belongs."""
        if near:
            return f"Did you mean {near[0]!r} ({self._tables[near[0]].meaning})?"
        others = [f"[{table}]" for table, table_keys in self._tables.items() if name in table_keys.keys]
        if 1 <= len(others) <= 2:
            return f"As a key, it belongs to {' or '.join(others)}."
        return f"Known tables: {', '.join(self._tables)}."

    def _add(self, line: int | None, where: str, problem: str, remedy: str) -> None:
        self.problems.append(Problem(line=line, where=where, problem=problem, remedy=remedy))
        if len(self.problems) >= MOST_PROBLEMS:
            raise _EnoughError
