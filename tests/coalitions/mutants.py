"""Products of which one protection is switched off: what the coalitions must notice."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from tests.coalitions import games
from veiltab.common.core import pads
from veiltab.common.core.domain import Symbols
from veiltab.curator.columns.noise_and_canaries import CuratorsNoise


@contextmanager
def no_noise_of_the_curators() -> Iterator[None]:
    """Encrypt the rows as they are."""
    with patch.object(CuratorsNoise, "_with_noise", lambda _self, column, _size, _key, _first: iter([column[:]])):
        yield


@contextmanager
def no_pads() -> Iterator[None]:
    """Encrypt nothing."""

    def zeros(out: Symbols, _size: int, _source: object, *, label: int, chunk: int) -> None:
        del label, chunk
        out[:] = 0

    with patch.object(pads, "fill_uniform", zeros):
        yield


@contextmanager
def the_order_of_the_table() -> Iterator[None]:
    """Release the sampled rows as they stand in the table."""
    drawn = games.drawn_persons
    with patch.object(games, "drawn_persons", lambda design, releases: np.sort(drawn(design, releases), axis=1)):
        yield
