"""Pieces of a long array, cut anew: they come in one length and are worked on in another."""

from collections.abc import Iterable
from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

A = TypeVar("A", bound=NDArray[Any])


class Pieces(Generic[A]):
    """An array that comes in pieces of any length.

    Args:
        pieces: at least one, all of one type.
    """

    def __init__(self, pieces: Iterable[A]) -> None:
        self._pieces = iter(pieces)
        self._rest: list[A] = []
        self._here = 0

    def take(self, rows: int) -> A:
        """Return the next `rows` elements, or fewer at the end."""
        while (not self._rest or self._here < rows) and (piece := next(self._pieces, None)) is not None:
            self._rest.append(piece)
            self._here += len(piece)
        whole = self._rest[0] if len(self._rest) == 1 else np.concatenate(self._rest)
        self._rest, self._here = [cast("A", whole[rows:])], max(len(whole) - rows, 0)
        return cast("A", whole[:rows])
