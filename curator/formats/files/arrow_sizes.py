"""How much memory the record batches of an Arrow file take, by what the file states, before they are unpacked.

pyarrow does not tell it. The layout is that of Footer, Message and RecordBatch in Arrow's File.fbs and Message.fbs.
"""

import struct
from collections.abc import Iterator
from os import SEEK_END
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

_MAGIC = b"ARROW1"
_DICTIONARIES, _BATCHES = 2, 3
_DICTIONARY_HEADER = 2
_VERSION_5 = 4


def largest_batch(path: Path) -> int:
    """Return the bytes of the largest record batch of a file, with all dictionaries.

    Raises:
        ArrowInvalid: the file is not an Arrow file.
        OSError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            footer = _footer(file)
            dictionaries = sum(_unpacked(file, *block) for block in footer.blocks(_DICTIONARIES))
            return dictionaries + max((_unpacked(file, *block) for block in footer.blocks(_BATCHES)), default=0)
    except (struct.error, IndexError, OverflowError):
        raise pa.ArrowInvalid from None


class _Flat:
    """A table of a flatbuffer: its fields lie where its list of offsets says."""

    def __init__(self, data: bytes, start: int) -> None:
        self._data, self._start = data, start

    @classmethod
    def root(cls, data: bytes) -> "_Flat":
        """Return the table that a flatbuffer begins with."""
        return cls(data, *struct.unpack_from("<I", data))

    def field(self, number: int) -> int:
        """Return where a field lies; 0 if it is left out."""
        (back,) = struct.unpack_from("<i", self._data, self._start)
        offsets = self._start - back
        (size,) = struct.unpack_from("<H", self._data, offsets)
        place = 4 + 2 * number
        (offset,) = struct.unpack_from("<H", self._data, offsets + place) if place < size else (0,)
        return self._start + offset if offset else 0

    def byte(self, number: int) -> int:
        """Return a field of one byte; 0 if it is left out."""
        return self._data[place] if (place := self.field(number)) else 0

    def table(self, number: int) -> "_Flat":
        """Return the table that a field refers to."""
        return _Flat(self._data, self._referred(number))

    def structs(self, number: int, layout: str) -> Iterator[tuple[int, ...]]:
        """Yield the structures that a field lists."""
        if not self.field(number):
            return
        start = self._referred(number)
        (count,) = struct.unpack_from("<I", self._data, start)
        for place in range(count):
            yield struct.unpack_from(layout, self._data, start + 4 + place * struct.calcsize(layout))

    def blocks(self, number: int) -> Iterator[tuple[int, ...]]:
        """Yield (where a message begins, bytes before its body) of those that a footer lists."""
        return self.structs(number, "<qi12x")

    def _referred(self, number: int) -> int:
        place = self.field(number)
        (offset,) = struct.unpack_from("<I", self._data, place)
        return place + int(offset)


def _footer(file: BinaryIO) -> _Flat:
    end = file.seek(0, SEEK_END) - len(_MAGIC) - 4
    (size,) = struct.unpack("<i", _read(file, end, 4))
    return _Flat.root(_read(file, end - size, size))


def _unpacked(file: BinaryIO, start: int, before_body: int) -> int:
    """Return the bytes of a record batch or a dictionary once its buffers are unpacked."""
    head = _read(file, start, before_body)
    # Files before Arrow 0.15 lack the mark of four bytes before the length.
    message = _Flat.root(head[8 if head.startswith(b"\xff\xff\xff\xff") else 4 :])
    batch = message.table(2)
    if message.byte(1) == _DICTIONARY_HEADER:
        batch = batch.table(1)
    # Until version 4 of the format, compression is said among the message's own remarks.
    is_compressed = bool(batch.field(3) or (message.byte(0) < _VERSION_5 and message.field(4)))
    return sum(
        _stated(file, start + before_body + offset, length) if is_compressed and length else length
        for offset, length in batch.structs(2, "<qq")
    )


def _stated(file: BinaryIO, start: int, length: int) -> int:
    """Return the bytes of a buffer once it is unpacked: it begins with them, or with -1 if it is not compressed."""
    (size,) = struct.unpack("<q", _read(file, start, 8))
    return length if size < 0 else int(size)


def _read(file: BinaryIO, start: int, size: int) -> bytes:
    if not 0 <= start <= start + size <= file.seek(0, SEEK_END):
        raise pa.ArrowInvalid
    file.seek(start)
    return file.read(size)
