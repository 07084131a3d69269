"""Finds how a text file is written from its beginning: encoding, separator, quote. Reading it checks the rest.

Where two forms fit equally well, nothing is guessed: both are named.
"""

import codecs
import re
from collections import Counter
from collections.abc import Sequence

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError

HEAD_BYTES = 1 << 16
"""The beginning of a file by which it is judged."""

_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_ENCODINGS = {"utf-8": "UTF-8", "utf-16": "UTF-16", "windows-1252": "Windows-1252", "latin-1": "Latin-1"}
_UNMARKED = {"utf-16-le": "UTF-16 without a byte order mark", "utf-16-be": "UTF-16 without a byte order mark"}
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MOSTLY = 0.5
_SAID = re.compile(r'"?sep=([,;\t|])"?[ \t]*(?:\r\n?|\n)', re.IGNORECASE)
_WORD = re.compile(r'"[^"]*"|[\S\t]+')
_FEW_ROWS = 3
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
        skipped: bytes before the header: those of a line such as `sep=;`, for Excel.
    """

    separator: str = ","
    encoding: str = "utf-8"
    quote: str = '"'
    has_mark: bool = False
    skipped: int = 0

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
        InvalidInputError: no encoding fits, or two separators fit equally well, or none, and the rows below the first
            one have more values than it; without a place.
    """
    codec = _known_encoding(encoding, head) if encoding else _encoding(head)
    text = codecs.getincrementaldecoder(codec)(errors="replace").decode(head).removeprefix("\ufeff")
    match = _SAID.match(text)
    text = text[match.end() :] if match else text
    quote = _quote(text)
    if match and codec == "utf-16":  # what comes has no mark any more
        codec = "utf-16-le" if head.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
    return TextForm(
        separator=match[1] if match else _separator(text, quote, is_whole=len(head) < HEAD_BYTES),
        skipped=head.index(match[0].encode(codec)) + len(match[0].encode(codec)) if match else 0,
        encoding=codec,
        quote=quote,
        has_mark=head.startswith(codecs.BOM_UTF8),
    )


def _known_encoding(name: str, head: bytes) -> str:
    try:
        codec = codecs.lookup(name).name
    except LookupError:
        codec = ""
    names = {codecs.lookup(one).name: one for one in _ENCODINGS}
    if codec not in names:
        raise InvalidInputError(
            f"encoding {name[:40]!r} is not known here", remedy=f"Give one of: {', '.join(_ENCODINGS)}."
        )
    if names[codec] == "utf-16" and not head.startswith(_UTF16_MARKS):
        # In most texts the higher byte of most characters is 0.
        return "utf-16-le" if head[1::2].count(0) >= head[::2].count(0) else "utf-16-be"
    return names[codec]


def _encoding(head: bytes) -> str:
    if head.startswith(_UTF16_MARKS):
        return "utf-16"
    if b"\0" in head:
        raise InvalidInputError(
            "the file holds bytes 0, so it is not a text in UTF-8",
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
    rows = [row for row in re.split(r"[\r\n]+", re.sub(quoted, "q", text)) if row]
    complete = rows if is_whole else rows[:-1] or rows
    shares = {one: share for one in _SEPARATORS if (share := _agreement(complete, one))}
    best = [one for one, share in shares.items() if share == max(shares.values())]
    if len(best) > 1:
        raise InvalidInputError(
            f"the values may be separated by {' or by '.join(f'{_SEPARATORS[one]}s' for one in best)}",
            remedy="Put names and values that hold one of these characters in double quotes.",
        )
    if not best or shares[best[0]] <= _MOSTLY:
        _check_rows(complete)
    return best[0] if best and (best[0] == "," or shares[best[0]] > _MOSTLY) else ","


def _check_rows(rows: Sequence[str]) -> None:
    """Refuse rows of which most have several values, where the first one has fewer.

    Raises:
        InvalidInputError: blanks separate the values, or the first row is a title.
    """
    if len(rows) <= _FEW_ROWS:
        return
    words = Counter(len(_WORD.findall(row)) for row in rows[1:])
    count, times = words.most_common(1)[0]
    if len(_WORD.findall(rows[0])) in {count, count - 1} - {0, 1} and times > _MOSTLY * len(rows):
        raise InvalidInputError(
            "the values seem to be separated by blanks, or to have a fixed width",
            remedy="Save the table with commas, semicolons, tabs or bars between the values.",
        )
    for separator, name in _SEPARATORS.items():
        count, times = Counter(row.count(separator) for row in rows[1:]).most_common(1)[0]
        if count > rows[0].count(separator) and times > _MOSTLY * len(rows):
            fewer = f"{rows[0].count(separator) + 1} instead of {count + 1}, separated by {name}s"
            raise InvalidInputError(
                f"row 1 has fewer values than most rows below it: {fewer}",
                remedy="Delete a title above the header; write a name above each column.",
            )


def _agreement(rows: Sequence[str], separator: str) -> float:
    """Return the part of the rows that have as many values as the header; 0 if it has one value."""
    if not rows or separator not in rows[0]:
        return 0
    return sum(row.count(separator) == rows[0].count(separator) for row in rows) / len(rows)
