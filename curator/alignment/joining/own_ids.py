"""The digests of the ids of a table, as both sides of a link take them."""

from collections.abc import Iterator
from itertools import pairwise

from veiltab.common.oblivious.code import Bits
from veiltab.common.oblivious.function import digests
from veiltab.curator.formats.columns.arrow_buffers import string_buffers
from veiltab.curator.table.table_rows import TableRows

_PIECE = 2**14


class DigestedIds:
    """The digests of the ids of a table's respondents, computed piece by piece whenever they are read.

    Args:
        key: h of the link, which hub and spoke tossed.
    """

    def __init__(self, table: TableRows, key: bytes) -> None:
        self._table = table
        self._key = key

    def __len__(self) -> int:
        """Number of ids."""
        return len(self._table)

    def pieces(self) -> Iterator[Bits]:
        """Yield the digests, (rows, 64), in file order."""
        for batch in self._table.batches():
            for start in range(0, len(batch.ids), _PIECE):
                offsets, text = string_buffers(batch.ids.slice(start, _PIECE))
                texts = text.tobytes()
                yield digests((texts[a:b] for a, b in pairwise(offsets.tolist())), self._key)
