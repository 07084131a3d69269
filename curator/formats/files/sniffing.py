"""Finds how a text file is written from its beginning: encoding, separator, quote. Reading it checks the rest.

Where two forms fit equally well, nothing is guessed: both are named.
"""

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass

from veiltab.common.errors import InvalidInputError

HEAD_BYTES = 1 << 16
"""The beginning of a file by which it is judged."""

_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_ENCODINGS = {"utf-8": "UTF-8", "utf-16": "UTF-16", "windows-1252": "Windows-1252", "latin-1": "Latin-1"}
_UNMARKED = {"utf-16-le": "UTF-16 without a byte order mark", "utf-16-be": "UTF-16 without a byte order mark"}
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MOSTLY = 0.5
_C1 = frozenset(range(0x80, 0xA0))
_NOT_IN_1252 = frozenset({0x81, 0x8D, 0x8F, 0x90, 0x9D})


@dataclass(frozen=True, slots=True, kw_only=True)
class TextForm:
    """How a text file is written.

    Args:
        separator: between the values of a row.
        encoding: Python's name.
        quote: around values that hold a separator.
        has_mark: whether it begins with the byte order mark of UTF-8.
    """

    separator: str = ","
    encoding: str = "utf-8"
    quote: str = '"'
    has_mark: bool = False

    @property
    def description(self) -> str:
        """Return the form for people."""
        mark = " with a byte order mark" if self.has_mark else ""
        quote = ", single quotes" if self.quote == "'" else ""
        return f"looks {_SEPARATORS[self.separator]}-separated, {(_ENCODINGS | _UNMARKED)[self.encoding]}{mark}{quote}"


def sniff(head: bytes, encoding: str = "") -> TextForm:
    """Return the form of a file from its beginning.

    Args:
        head: at most HEAD_BYTES of it, decompressed.
        encoding: what a person says it is; "" to look.

    Raises:
        InvalidInputError: no encoding fits, or two separators fit equally well; without a place.
    """
    chosen = _known_encoding(encoding, head) if encoding else _encoding(head)
    text = codecs.getincrementaldecoder(chosen)(errors="replace").decode(head).removeprefix("\ufeff")
    quote = _quote(text)
    return TextForm(
        separator=_separator(text, quote, is_whole=len(head) < HEAD_BYTES),
        encoding=chosen,
        quote=quote,
        has_mark=head.startswith(codecs.BOM_UTF8),
    )


def _known_encoding(name: str, head: bytes) -> str:
    try:
        known = codecs.lookup(name).name
    except LookupError:
        known = ""
    names = {codecs.lookup(one).name: one for one in _ENCODINGS}
    if known not in names:
        raise InvalidInputError(
            f"encoding {name[:40]!r} is not known here", remedy=f"Give one of: {', '.join(_ENCODINGS)}."
        )
    if names[known] == "utf-16" and not head.startswith(_UTF16_MARKS):
        # In most texts the higher byte of most characters is 0.
        return "utf-16-le" if head[1::2].count(0) >= head[::2].count(0) else "utf-16-be"
    return names[known]


def _encoding(head: bytes) -> str:
    if head.startswith(_UTF16_MARKS):
        return "utf-16"
    if b"\0" in head:
        raise InvalidInputError(
            "the file holds bytes 0, so it is no text in UTF-8",
            remedy="If it is UTF-16 without a byte order mark, save it as UTF-8, or say --encoding utf-16.",
        )
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        used = _C1.intersection(head)
        return "latin-1" if not used or used & _NOT_IN_1252 else "windows-1252"
    return "utf-8"


def _quote(text: str) -> str:
    """Return the quote of a header whose names are all in single quotes, or else the usual one."""
    first = text.lstrip("\r\n").partition("\n")[0].rstrip("\r")
    for separator in _SEPARATORS:
        names = first.split(separator)
        if all(len(name) > 1 and name[0] == name[-1] == "'" for name in names):
            return "'"
    return '"'


def _separator(text: str, quote: str, *, is_whole: bool) -> str:
    """Return the separator by which most rows have as many values as the header; a comma if there is none."""
    # A quoted value is one value, whatever it holds; it begins where a value does.
    quoted = rf"(?<![^,;\t|\r\n]){quote}(?:[^{quote}]|{quote}{quote})*{quote}"
    rows = [row for row in re.split(r"[\r\n]+", re.sub(quoted, "", text)) if row]
    complete = rows if is_whole else rows[:-1] or rows
    shares = {one: share for one in _SEPARATORS if (share := _agreement(complete, one))}
    best = [one for one, share in shares.items() if share == max(shares.values())]
    if len(best) > 1:
        raise InvalidInputError(
            f"the values may be separated by {' or by '.join(f'{_SEPARATORS[one]}s' for one in best)}",
            remedy="Put names and values that hold one of these characters in double quotes.",
        )
    return best[0] if best and (best[0] == "," or shares[best[0]] > _MOSTLY) else ","


def _agreement(rows: Sequence[str], separator: str) -> float:
    """Return the part of the rows that have as many values as the header; 0 if it has one value."""
    if not rows or separator not in rows[0]:
        return 0
    return sum(row.count(separator) == rows[0].count(separator) for row in rows) / len(rows)
