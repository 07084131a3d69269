"""Follows the quotes of a text table while its bytes pass: a parser takes a quote that never closes for a long value.

Quotes count where a value begins; elsewhere they are signs like others. Within quotes a quote is written twice.
"""

import codecs
import re
from itertools import pairwise
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from veiltab.common.errors import InvalidInputError
from veiltab.curator.formats.columns.refusals import NotedRows, refusal
from veiltab.curator.formats.columns.source import LONGEST
from veiltab.curator.formats.files.sniffing import TextForm

Words = NDArray[np.uint64]
_ONE, _LAST = np.uint64(1), np.uint64(63)
_REMEDY = "Close it, and write a quote within a quoted value twice, or save the file anew from the program it is from."


class WatchedText:
    """A text file that is checked while a parser reads it.

    Attributes:
        lines: its lines that are not empty, the header among them.
        long_rows: rows with a value of several lines.
        refused: why it is refused; a parser between may lose the class of an error.
    """

    closed = False

    def __init__(self, where: str, file: BinaryIO, form: TextForm) -> None:
        self.lines, self.long_rows = 0, NotedRows()
        self.refused: InvalidInputError | None = None
        self._where, self._file, self._quote = where, file, ord(form.quote)
        is_wide = form.encoding.startswith("utf-16")
        self._decoder = codecs.getincrementaldecoder(form.encoding)(errors="replace") if is_wide else None
        self._is_border = np.isin(np.arange(256), list(f"{form.separator}\r\n".encode()))
        self._separator_sign = ord(form.separator)
        self._separator = re.compile(re.escape(form.separator).encode() + b"(?! )")
        self._rest, self._rows, self._width, self._is_at_end = b"", 0, 0, False

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def read(self, size: int = LONGEST) -> bytes:
        """Return the next bytes.

        Raises:
            InvalidInputError: a quote is never closed, or a value goes on behind the one that closes it, or a value
                holds lines that look like rows.
        """
        data = self._file.read(size)
        if not self._is_at_end:
            self._is_at_end = not data
            text = self._decoder.decode(data, final=not data).encode() if self._decoder else data
            try:
                self._check(self._rest + (text if self._rows else text.removeprefix(codecs.BOM_UTF8)))
            except InvalidInputError as error:
                self.refused = error
                raise
        return data

    def _check(self, text: bytes) -> None:
        """Check a text that begins with a row, and keep its last row, which may go on."""
        if self._width and (last := self._count_plain_rows(text)) is not None:
            self._rest = b"" if self._is_at_end else text[last:]
            return
        signs = np.frombuffer(text, np.uint8)
        quotes, wrong = self._quotes(signs)
        is_end = (signs == ord("\n")) | (signs == ord("\r"))
        starts = np.flatnonzero(~is_end & np.append(True, is_end)[:-1])
        rows = starts[np.searchsorted(quotes, starts) % 2 == 0]
        if wrong is not None:
            row = self._rows + np.count_nonzero(rows <= wrong)
            raise refusal(self._where, f"in row {row}, a value goes on behind the quote that closes it", _REMEDY)
        cut = len(text) if self._is_at_end or not len(starts) else int(rows[-1])
        if len(quotes) % 2 and (self._is_at_end or len(text) - cut > LONGEST):
            row = self._rows + np.count_nonzero(rows <= quotes[-1])
            raise refusal(self._where, f"row {row} opens a quote that is never closed", _REMEDY)
        lines, rows = starts[starts < cut], rows[rows < cut]
        if not self._width and len(rows):  # in a file that quotes all values, none has lines like rows
            header = text[rows[0] : rows[1] if len(rows) > 1 else cut]
            self._width = -1 if header[0] == self._quote else len(self._separator.findall(header)) or -1
        if len(rows) < len(lines):
            firsts = np.append(np.searchsorted(lines, rows), len(lines))
            for place in np.flatnonzero(np.diff(firsts) > 1).tolist():
                borders = np.append(lines, cut)[firsts[place] : firsts[place + 1] + 1].tolist()
                self._check_lines(self._rows + place + 1, [text[a:b] for a, b in pairwise(borders)])
        self.lines += len(lines)
        self._rows += len(rows)
        self._rest = text[cut:]

    def _count_plain_rows(self, text: bytes) -> int | None:
        """Count the rows of a text, before its end without the last one, which may go on; return where that begins.

        Nothing is counted, and None returned, unless each line is a row and each quote is right where it is: that shows
        in bits, a third of the work.
        """
        signs = np.frombuffer(text + b"\n" * (-len(text) % 64), np.uint8)
        quotes, ends = _bits(signs == self._quote), _bits((signs == ord("\n")) | (signs == ord("\r")))
        borders = quotes | ends | _bits(signs == self._separator_sign)
        within = _within(quotes)
        starts = ~ends & _before(ends, 1)
        rows = starts & ~_before(within, 0)
        opens, closes = quotes & within, quotes & ~within
        is_wrong = (opens & ~_before(borders, 1)) | (_before(closes, 0) & ~borders) | (starts ^ rows)
        words = np.flatnonzero(rows)
        if is_wrong.any() or not len(words):
            return None
        last = 64 * int(words[-1]) + int(rows[words[-1]]).bit_length() - 1
        if within[-1] >> _LAST and (self._is_at_end or len(text) - last > LONGEST):
            return None
        number = int(np.bitwise_count(rows).sum()) - (not self._is_at_end)
        self.lines += number
        self._rows += number
        return last

    def _check_lines(self, row: int, lines: list[bytes]) -> None:
        """Refuse a row of several lines if each has as many values as the header, as one with lost line ends has."""
        self.long_rows.note(row)
        if all(len(self._separator.findall(line)) == self._width for line in lines):
            problem = f"in row {row}, a quoted value goes over {len(lines)} lines that look like rows"
            raise refusal(self._where, problem, _REMEDY)

    def _quotes(self, signs: NDArray[np.uint8]) -> tuple[NDArray[np.intp], int | None]:
        """Return where quotes open and close, and where one closes that another sign follows."""
        quotes = np.flatnonzero(signs == self._quote)
        before, behind = np.maximum(quotes - 1, 0), np.minimum(quotes + 1, len(signs) - 1)
        begins = (quotes == 0) | self._is_border.take(signs.take(before))
        ends = (behind == quotes) | self._is_border.take(signs.take(behind))
        is_first = np.append(np.diff(quotes) == 1, False)[: len(quotes)]  # of two
        is_second = np.append(False, is_first)[: len(quotes)]
        if (begins | is_second)[::2].all() and (ends | is_first)[1::2].all():
            return quotes, None
        places, is_skipped = list[int](), False
        for at, opens, closes, is_double in zip(*(x.tolist() for x in (quotes, begins, ends, is_first)), strict=True):
            if is_skipped:
                is_skipped = False
            elif len(places) % 2 == 0:
                places += [at] if opens else []
            elif is_double:
                is_skipped = True
            elif closes:
                places.append(at)
            else:
                return np.array(places, np.intp), at
        return np.array(places, np.intp), None


def _bits(flags: NDArray[np.bool_]) -> Words:
    """Return flags, whose number is a multiple of 64, as bits of words, the first ones as the least."""
    return np.packbits(flags, bitorder="little").view("<u8")


def _before(bits: Words, first: int) -> Words:
    """Return in the place of each bit the one before it."""
    return (bits << _ONE) | np.append(np.uint64(first), bits[:-1] >> _LAST)


def _within(quotes: Words) -> Words:
    """Return of each bit whether the number of quotes up to it is odd."""
    odd = quotes.copy()
    for shift in (1, 2, 4, 8, 16, 32):
        odd ^= odd << np.uint64(shift)
    words = np.bitwise_xor.accumulate(odd >> _LAST)
    odd[1:] ^= -words[:-1]
    return odd
