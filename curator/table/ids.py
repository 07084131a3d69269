"""Respondents' ids: normalised so that spellings of one person agree, and checked for repetitions."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from veiltab.common.core.randomness import KEY_BYTES
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.storage.partitions import Partitions, leading_bits
from veiltab.common.storage.scratch import Scratch
from veiltab.common.study.members import zfill_width
from veiltab.curator.formats.columns import arrow_functions as pc
from veiltab.curator.formats.columns.arrow_buffers import string_array, string_buffers
from veiltab.curator.formats.columns.numerals import BLANKS
from veiltab.curator.table.tokens import tokens

SEPARATOR = "\x1f"
"""Between the parts of an id made of several columns (U+001F); no part may hold it."""

_ASCII_END = 0x80
_INTEGER = r"^\s*\+?(-?)0*([0-9]+?)(?:\.0*)?\s*$"
_BLOCK = f"[0-9{BLANKS}]*"
_MARKED = rf"(?:{_BLOCK}[.,]|{_BLOCK}(?:,[0-9]+)+\.|{_BLOCK}(?:\.[0-9]+)+,)[0-9]+"
_DECIMALS = rf"^\s*[+-]?(?:{_MARKED}|(?:{_MARKED}|[0-9]+[.,]?)[eE][+-]?[0-9]+)\s*$"
"""Numbers with decimals or an exponent; what repeats one mark alone, such as 12.345.678, has none."""

_LONGEST_FIELD = 1024
"""Characters of an identity field that are kept: keys are shorter. An id has no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """Normalised ids of some rows.

    Args:
        values: one large_string a row; null where a part is empty or holds the separator.
        whole: (rows,) where it is not null.
        empty: (rows,) where a part is empty.
        separated: (rows,) where a part holds the separator.
        broken: (rows,) where a part is not a whole number, though a step needs one.
    """

    values: pa.Array
    whole: NDArray[np.bool_]
    empty: NDArray[np.bool_]
    separated: NDArray[np.bool_]
    broken: NDArray[np.bool_]


def normalised_ids(parts: Sequence[pa.Array], steps: Sequence[str]) -> Ids:
    """Normalise the id columns of some rows and join them.

    Steps run in the order strip, casefold, nfc, first, last, digits, integer, zfill, whatever the order of `steps`.
    "casefold" lowers each character alone: unlike full case folding it keeps characters that fold to several (a sharp s
    stays one, it does not meet "ss"). "integer" writes whole numbers without plus sign, leading zeros and decimals, and
    takes nothing else; "first", "last" and "digits" refuse numbers with decimals, of which they make other numbers.

    Args:
        parts: one text array an id column, all of one length.
        steps: which to run, valid ones: strip (white space around), casefold, nfc (Unicode normalisation form C),
            first and last (keep one group of digits), digits (keep 0 to 9 alone), integer, zfill:N (zeros before what
            is shorter than N).

    Returns:
        The composite ids, parts joined by SEPARATOR.
    """
    filled = [_filled(part) for part in parts]
    ranges = [_byte_range(part) for part in filled]
    separated = np.any([_separated(part, low) for part, (low, _) in zip(filled, ranges, strict=True)], axis=0)
    clean = [_normalised(part, steps, low, high) for part, (low, high) in zip(filled, ranges, strict=True)]
    broken = np.any([_broken(part, steps) for part in clean], axis=0)
    clean = [_numbered(part, steps) for part in clean]
    empty = np.any([np.diff(string_buffers(part)[0]) == 0 for part in clean], axis=0)
    values = clean[0] if len(clean) == 1 else pc.binary_join_element_wise(*clean, pa.scalar(SEPARATOR, clean[0].type))
    whole = ~(empty | separated | broken)
    if not whole.all():
        values = pc.if_else(pa.array(whole), values, pa.scalar(None, values.type))
    return Ids(values=values, whole=whole, empty=empty, separated=separated, broken=broken)


def joined_identity(texts: Mapping[str, pa.Array], fields: Sequence[Sequence[str]]) -> Ids:
    """Join the identity fields of some rows as they are in the table, each column cut to 1,024 characters.

    Args:
        texts: column -> one text a row.
        fields: of each field in the identity's order the columns that make it up, joined by blanks; none if the table
            lacks it.

    Returns:
        In the place of ids, the fields joined by SEPARATOR; none is null but where a field holds the separator.
    """
    rows = len(next(iter(texts.values())))
    parts = [
        pc.binary_join_element_wise(*(_field_part(texts[name]) for name in names), pa.scalar(" ", pa.large_string()))
        if names
        else _filled(pa.nulls(rows, pa.large_string()))
        for names in fields
    ]
    separated = np.any([_separated(part, 0) for part in parts], axis=0)
    values = pc.binary_join_element_wise(*parts, pa.scalar(SEPARATOR, pa.large_string()))
    if separated.any():
        values = pc.if_else(pa.array(separated), pa.scalar(None, values.type), values)
    none = np.zeros(rows, np.bool_)
    return Ids(values=values, whole=~separated, empty=none, separated=separated, broken=none)


def _field_part(part: pa.Array) -> pa.Array:
    """Return a column of an identity field; whole numbers lose decimals, which a column of floats gives them."""
    short = pc.utf8_slice_codeunits(_filled(part), 0, _LONGEST_FIELD)
    return pc.replace_substring_regex(short, r"^\s*([0-9]+)\.0+\s*$", r"\1")


class RepeatedIds:
    """Finds the ids that an earlier row has too, by 64-bit fingerprints under a fresh key.

    Fingerprints are compared a part at a time, outside of memory. Only where some meet are ids compared, so the answer
    is exact; then the memory grows with the rows that repeat. Of a table in the order of its ids none repeats: as long
    as they ascend, no fingerprints are made, which takes a third of the time of loading a table.

    Args:
        folder: holds the fingerprints; None for the system's own.
    """

    def __init__(self, folder: Path | None) -> None:
        self._key = os.urandom(KEY_BYTES)
        self._prints = Partitions(Scratch(folder))
        self._has_ascended, self._ascending = True, 0
        self._last = pa.nulls(0, pa.large_string())

    def take(self, ids: pa.Array) -> None:
        """Take the ids of some rows, a large_string array; nulls repeat nothing."""
        self._has_ascended = self._has_ascended and self._do_ascend_with(ids)
        if not self._has_ascended:
            self._note(ids)
        elif len(ids):
            self._last = ids[-1:]
        self._ascending += self._has_ascended

    def rows(self, ids: Callable[[], Iterable[pa.Array]]) -> NDArray[np.int64]:
        """Return (repeating, 2): the positions of the ids that an earlier row has too, increasing, and of that row.

        Args:
            ids: returns all of them again, as they came.
        """
        if self._has_ascended:
            return np.empty((0, 2), np.int64)
        for chunk in islice(ids(), self._ascending):
            self._note(chunk)
        parts = (np.sort(prints.view(np.uint64)) for (prints,) in self._prints.parts())
        meeting = np.concatenate([np.empty(0, np.uint64), *(part[1:][part[1:] == part[:-1]] for part in parts)])
        return _confirmed(ids(), self._key, meeting) if meeting.size else np.empty((0, 2), np.int64)

    def _do_ascend_with(self, ids: pa.Array) -> bool:
        """Return whether all ids to these ascend."""
        return not ids.null_count and _ascend(pa.concat_arrays([self._last, ids[:1]])) and _ascend(ids)

    def _note(self, ids: pa.Array) -> None:
        """Make fingerprints."""
        prints = _fingerprints(ids.drop_null() if ids.null_count else ids, self._key)
        self._prints.append(leading_bits(prints), [prints])


def _ascend(ids: pa.Array) -> bool:
    """Return whether each id is longer than the one before, or larger and as long: so numbers ascend too."""
    offsets, text = string_buffers(ids)
    lengths = np.diff(offsets)
    edges = np.flatnonzero(np.diff(lengths, prepend=0, append=0)).tolist()
    alike = (text[offsets[a] : offsets[b]].view(f"S{lengths[a]}") for a, b in pairwise(edges))
    are_longer = bool(lengths.all() and (lengths[1:] >= lengths[:-1]).all())
    return are_longer and all(bool((some[1:] > some[:-1]).all()) for some in alike)


def _fingerprints(ids: pa.Array, key: bytes) -> NDArray[np.uint64]:
    """Return half of each id's token under the key."""
    return tokens(ids, key).view(np.uint64)[:, 0]


def _confirmed(ids: Iterable[pa.Array], key: bytes, meeting: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Compare the rows whose fingerprints meet by their ids."""
    start, positions, values = 0, [], []
    for chunk in ids:
        valid = np.flatnonzero(chunk.is_valid().to_numpy(zero_copy_only=False))
        suspect = valid[np.isin(_fingerprints(chunk.drop_null(), key), meeting)]
        positions.append(suspect + start)
        values.append(chunk.take(pa.array(suspect)))
        start += len(chunk)
    rows = np.concatenate(positions)
    codes = pa.chunked_array(values).combine_chunks().dictionary_encode().indices.to_numpy()
    _, first = np.unique(codes, return_index=True)
    return np.delete(np.column_stack([rows, rows[first][codes]]), first, axis=0)


def _filled(part: pa.Array) -> pa.Array:
    """Return an id column as a large_string array of its own, "" where there is none."""
    return string_array(*string_buffers(part.fill_null("") if part.null_count else part))


def _normalised(part: pa.Array, steps: Sequence[str], low: int, high: int) -> pa.Array:
    """Run the steps on one id column, whose bytes are from `low` to `high`."""
    # White space of ASCII is not above the blank, and ASCII is its own form C.
    if "strip" in steps and (low <= ord(" ") or high >= _ASCII_END):
        part = pc.utf8_trim_whitespace(part)
    if "casefold" in steps:
        part = pc.utf8_lower(part) if high >= _ASCII_END else _lower(part)
    return pc.utf8_normalize(part, "NFC") if "nfc" in steps and high >= _ASCII_END else part


def _lower(part: pa.Array) -> pa.Array:
    """Return texts of ASCII in lower case."""
    offsets, text = string_buffers(part)
    is_upper = text - np.uint8(ord("A")) < 26  # other signs are more, or begin again at 255
    return string_array(offsets, text + is_upper.view(np.uint8) * np.uint8(32))


def _broken(part: pa.Array, steps: Sequence[str]) -> NDArray[np.bool_]:
    """Return where an id column is not what a step of numbers needs; what is empty is said as such."""
    if {"first", "last", "digits"} & {*steps}:  # which leave whole numbers to "integer"
        is_broken = pc.match_substring_regex(part, _DECIMALS)
    elif "integer" in steps:
        is_broken = pc.invert(pc.match_substring_regex(part, rf"{_INTEGER}|^\s*$"))
    else:
        return np.zeros(len(part), np.bool_)
    return np.asarray(is_broken.to_numpy(zero_copy_only=False), np.bool_)


def _numbered(part: pa.Array, steps: Sequence[str]) -> pa.Array:
    """Run the steps of numbers on one id column; where it is broken, the result does not matter."""
    if "first" in steps:
        part = pc.replace_substring_regex(part, "(?s)^[^0-9]*([0-9]*).*$", r"\1")
    if "last" in steps:
        part = pc.replace_substring_regex(part, "(?s)^.*?([0-9]*)[^0-9]*$", r"\1")
    if "digits" in steps:
        part = pc.replace_substring_regex(part, "[^0-9]", "")
    if "integer" in steps:
        part = pc.replace_substring_regex(part, _INTEGER, r"\1\2")
        part = pc.replace_substring_regex(pc.replace_substring_regex(part, "^-0$", "0"), r"^\s+$", "")
    if width := zfill_width(steps):
        is_shorter = pc.and_(pc.greater(pc.utf8_length(part), 0), pc.less(pc.utf8_length(part), width))
        part = pc.if_else(is_shorter, pc.utf8_lpad(part, width, "0"), part)
    return part


def _separated(part: pa.Array, low: int) -> NDArray[np.bool_]:
    """Return where an id column, whose bytes are from `low` on, holds the separator."""
    if low > ord(SEPARATOR):
        return np.zeros(len(part), np.bool_)
    return np.asarray(pc.match_substring(part, SEPARATOR).to_numpy(zero_copy_only=False), np.bool_)


def _byte_range(part: pa.Array) -> tuple[int, int]:
    """Return the smallest and the largest byte of an id column.

    Raises:
        InvalidInputError: a value has too many characters.
    """
    offsets, text = string_buffers(part)
    # What has few bytes has few characters.
    if np.diff(offsets).max(initial=0) > _LONGEST_FIELD and pc.max(pc.utf8_length(part)).as_py() > _LONGEST_FIELD:
        raise InvalidInputError(
            f"an id is longer than {_LONGEST_FIELD:,} characters", where="ids", remedy="Give respondents shorter ids."
        )
    return int(text.min(initial=255)), int(text.max(initial=0))
