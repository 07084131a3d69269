"""How the values of a table's columns are written, in parts; see `veiltab.common.study.forms`."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veiltab.common.core.texts.spelling import quoted
from veiltab.common.dataclass import dataclass, replace
from veiltab.common.study.form_matching import after, digit_groups
from veiltab.common.study.forms import DECIMALS, FEWEST_ROWS, MOST_CHARACTERS, MOST_FORMS, TEXT, Forms
from veiltab.curator.formats.columns.refusals import first_rows
from veiltab.curator.formats.columns.source import FIRST_ROW
from veiltab.curator.table.ids import SEPARATOR, RepeatedIds, normalised_ids

_MOST_PATTERNS = 1000
_FEW = 0.01
"""Part of the rows below which a form is one of few."""

_FIRST = 5
_OTHER_BLANKS = r"[\x{a0}\x{1680}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}]"
_DECIMAL, _ZERO = "\x02", "\x03"


@dataclass(slots=True)
class FormPart:
    """A form of a column.

    Args:
        rows: that are written so.
        example: the value of the first of them, for the curator's own terminal.
        first_rows: at most five.
        letters: that all rows share, "?" if they differ.
    """

    form: str
    rows: int
    example: str
    first_rows: list[int]
    letters: str = ""

    def without_value(self) -> dict[str, object]:
        """Return it as plain data without the value."""
        return {"form": self.form, "rows": self.rows, "example_row": self.first_rows[0]}

    def add(self, other: "FormPart") -> None:
        """Count the rows of another one too."""
        self.example = min((self, other), key=lambda one: one.first_rows[0]).example
        self.rows += other.rows
        self.first_rows = sorted([*self.first_rows, *other.first_rows])[:_FIRST]
        self.letters = self.letters if self.letters == other.letters else "?"


class FormReader:
    """The forms of a column while it is read."""

    def __init__(self) -> None:
        self._counts: dict[str, FormPart] = {}
        self._row = FIRST_ROW

    def take(self, values: pa.Array) -> None:
        """Look at some more values, which follow those before; absent and empty ones have no form."""
        coded = pc.dictionary_encode(_pattern(values))
        patterns, codes = coded.dictionary.to_pylist(), coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(len(patterns) + 1))
        for place, pattern in enumerate(patterns):
            if pattern:
                places = order[starts[place] : starts[place + 1]]
                rows = [int(one) + self._row for one in places[:_FIRST]]
                self._count(pattern, FormPart("", len(places), str(values[int(places[0])].as_py()), rows))
        self._row += len(values)

    def _count(self, pattern: str, some: FormPart) -> None:
        form = DECIMALS if pattern == _DECIMAL else re.sub("[A-Z]", "a", pattern.replace(_ZERO, "0"))
        is_text = not form.isprintable() or len(form) > MOST_CHARACTERS or len(self._counts) >= _MOST_PATTERNS
        some.form = TEXT if is_text and form not in self._counts else form
        some.letters = re.sub("[^A-Z]", "", pattern)
        _add(self._counts, some.form, some)

    def parts(self) -> tuple[FormPart, ...]:
        """Return the forms, most rows first: lengths of numbers are joined where no leading zeros fix them."""
        fixed: dict[str, FormPart] = {}
        for one in self._counts.values():  # 0999 and 9999 are four digits, some with leading zeros
            plain = one.form if one.form in {TEXT, DECIMALS} else one.form.replace("0", "9")
            there = _add(fixed, plain, replace(one))
            there.form = "".join(min(pair) for pair in zip(there.form, one.form, strict=True))
        alike = defaultdict[str, list[FormPart]](list)
        for one in fixed.values():
            alike[one.form if "0" in one.form else re.sub("9+", "9+", one.form)].append(one)
        form_parts: list[FormPart] = []
        for one, *others in alike.values():
            if others:
                lengths = zip(*(digit_groups(some.form) for some in (one, *others)), strict=True)
                one.form = _filled(one.form, "9+", ["9+" if len({*all_}) > 1 else all_[0] for all_ in lengths])
            for other in others:
                one.add(other)
            form_parts.append(one)
            if one.rows >= FEWEST_ROWS and one.letters != "?" and one.form != TEXT:
                one.form = _filled(one.form, "a", one.letters)
        form_parts.sort(key=lambda one: -one.rows)
        for one in form_parts[MOST_FORMS:]:
            one.form = TEXT
        joined: dict[str, FormPart] = {}
        for one in form_parts:
            _add(joined, one.form, one)
        return tuple(sorted(joined.values(), key=lambda one: -one.rows))


def column_forms(ids: Iterable[pa.Array], columns: int) -> tuple[tuple[FormPart, ...], ...]:
    """Return the forms of each id column; parts of several columns are joined by SEPARATOR."""
    readers = [FormReader() for _ in range(columns)]
    for chunk in ids:
        parts = pc.split_pattern(chunk, SEPARATOR) if columns > 1 else None
        for place, reader in enumerate(readers):
            reader.take(chunk if parts is None else pc.list_element(parts, place))
    return tuple(reader.parts() for reader in readers)


def distinct_after(
    ids: Callable[[], Iterable[pa.Array]], columns: int, forms: Mapping[str, Sequence[FormPart]]
) -> tuple[str, ...]:
    """Return the steps of normalisation after which all ids of a table still differ, also without leading zeros."""
    steps = []
    for step in ("integer", "digits", "first", "last"):
        if any(after(plain, [step]) != plain for plain in map(plain_forms, forms.values())):
            repeats = RepeatedIds(None)
            changed = partial(_without_zeros, step=step, columns=columns)
            for chunk in ids():
                repeats.take(changed(chunk))
            if len(repeats.rows(lambda: map(changed, ids()))):  # noqa: B023 - called at once
                continue
        steps.append(step)
    return tuple(steps)


def _without_zeros(ids: pa.Array, step: str, columns: int) -> pa.Array:
    """Return ids after a step, and without the zeros before them."""
    parts = pc.split_pattern(pc.fill_null(ids, ""), SEPARATOR)
    changed = [normalised_ids([pc.list_element(parts, place)], [step]).values for place in range(columns)]
    plain = [pc.replace_substring_regex(one, "^0+(.)", r"\1") for one in changed]
    return pc.binary_join_element_wise(*plain, pa.scalar(SEPARATOR, pa.large_string()))


def plain_forms(parts: Iterable[FormPart]) -> Forms:
    """Return forms and their rows alone."""
    return tuple((one.form, one.rows) for one in parts)


def forms_text(parts: Sequence[FormPart]) -> str:
    """Say how a column is written, with a value and a row of each form where there are several."""
    if len(parts) == 1:
        return parts[0].form
    lines = [f"{one.rows:,} as {one.form} ({quoted(one.example)} in row {one.first_rows[0]:,})" for one in parts]
    return ", ".join(lines) or TEXT


def few_alike(column: str, parts: Sequence[FormPart]) -> list[str]:
    """Return the values that share their form with few others, with their rows."""
    rows = sum(one.rows for one in parts)
    return [
        f"{column}: few are written as {one.form}, such as {quoted(one.example)}{first_rows(one.first_rows)}"
        for one in parts
        if one.rows < FEWEST_ROWS and one.rows <= _FEW * rows
    ]


def _add(counts: dict[str, FormPart], form: str, some: FormPart) -> FormPart:
    """Count rows under a form; return what is counted there."""
    there = counts.setdefault(form, some)
    if there is not some:
        there.add(some)
    return there


def _filled(form: str, pattern: str, parts: Sequence[str]) -> str:
    """Return a form with each match of a pattern replaced by a part; by itself where parts are too few."""
    rest = iter(parts)
    return re.sub(pattern, lambda match: next(rest, match[0]), form)


def _pattern(values: pa.Array) -> pa.Array:
    """Return values as patterns: 9 for a digit, a mark for a leading zero, large letters of ASCII, a for other letters.

    A blank that is not the one of ASCII is shown, as two ids that differ in it are not the same text.
    """
    marked = pc.replace_substring_regex(values, r"^\s*[0-9]+\.0+\s*$", _DECIMAL)
    marked = pc.replace_substring_regex(marked, _OTHER_BLANKS, "\u2423")
    marked = pc.replace_substring_regex(marked, "(^|[^0-9])0([0-9])", rf"\1{_ZERO}\2")
    marked = pc.ascii_upper(pc.utf8_lower(pc.replace_substring_regex(marked, r"\pN", "9")))
    return pc.replace_substring_regex(marked, r"[\p{Ll}\p{Lm}\p{Lo}\p{Lt}]", "a")
