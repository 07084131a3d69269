"""Puts a curator's table in the ascending order of its tokens, a part at a time."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Symbols
from veiltab.common.storage.files import written_whole
from veiltab.common.storage.partitions import Partitions, leading_bits
from veiltab.common.storage.scratch import Scratch
from veiltab.curator.intersection import TOKEN_LENGTH, Tokens, sorted_order
from veiltab.curator.table_rows import TableRows
from veiltab.curator.tokens import tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    rows: int
    symbols: tuple[int, ...]


class TokenOrder:
    """The symbols of a curator's table, in the ascending order of its tokens.

    The tokens have a file of their own, as the other curators read them. The symbols are in scratch space: they lie
    beside respondents that nobody shares.

    Args:
        table: the rows.
        scratch: holds the symbols.
    """

    def __init__(self, table: TableRows, scratch: Scratch) -> None:
        self._table = table
        self._scratch = scratch
        self._pieces: list[_Written] = []

    def write(self, key: bytes, own: Path, order: Path | None) -> None:
        """Sort the table.

        Args:
            key: of the tokens.
            own: file to write the tokens to; it is there whole or not at all.
            order: file to write the rows of the tokens to, int64, or None.
        """
        parts = self._partitioned(key, has_rows=order is not None).parts()
        with ExitStack() as files:
            token_file = files.enter_context(written_whole(own))
            order_file = None if order is None else files.enter_context(written_whole(order))
            for unsorted, *fields in parts:
                ascending = sorted_order(unsorted.view(np.uint8))
                token_file.write(unsorted.take(ascending, axis=0).data)
                if order_file is not None:
                    order_file.write(fields.pop().take(ascending).data)
                symbols = tuple(self._scratch.append(field.take(ascending)) for field in fields)
                self._pieces.append(_Written(rows=len(ascending), symbols=symbols))

    def tokens(self, own: Path) -> Iterator[Tokens]:
        """Yield the tokens of each piece of the sorted table, from their file."""
        with own.open("rb") as file:
            for piece in self._pieces:
                yield np.frombuffer(file.read(TOKEN_LENGTH * piece.rows), np.uint8).reshape(-1, TOKEN_LENGTH)

    def symbols(self) -> Iterator[dict[str, Symbols]]:
        """Yield the symbols of each piece of the sorted table, by attribute."""
        for piece in self._pieces:
            yield {
                name: self._scratch.read(start, piece.rows * type_.itemsize).view(type_)
                for (name, type_), start in zip(self._table.types.items(), piece.symbols, strict=True)
            }

    def _partitioned(self, key: bytes, *, has_rows: bool) -> Partitions:
        """Return tokens, symbols and perhaps row numbers by the leading bits of the tokens."""
        partitions, start = Partitions(Scratch(self._scratch.folder)), 0
        for batch in self._table.batches():
            made = tokens(batch.ids, key)
            fields: list[NDArray[np.generic]] = [made.view("<u8"), *batch.columns.values()]
            if has_rows:
                fields.append(np.arange(start, start + len(made), dtype="<i8"))
            partitions.append(leading_bits(made.view(">u8")[:, 0]), fields)
            start += len(made)
        return partitions
