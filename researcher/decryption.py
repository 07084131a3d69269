"""Removes the pads from perturbed columns and counts the noisy rows.

Perturbation commutes with the pads, so the result is the gamma-diagonal mechanism's output on the sampled rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.pads import decrypt
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.symbols import check_symbols, subtract
from veiltab.common.core.tabulation import tabulate
from veiltab.common.errors import IntegrityError
from veiltab.common.release.spec import Column
from veiltab.common.storage.files import written_whole


def decrypt_column(  # noqa: PLR0913, PLR0917 - what decryption needs
    noisy: Path, column: Column, rows: int, key: bytes | Path, out: Path, places: "Places | None" = None
) -> None:
    """Decrypt one perturbed column into a file of symbols.

    symbol = perturbed ciphertext - pad mod K_a

    Args:
        noisy: file of the perturbed ciphertext.
        column: its attribute and alphabet size.
        rows: sampled rows m.
        key: 32 bytes of a stream cipher, or the file of a one-time pad.
        out: file for the (m,) noisy symbols.
        places: where the rows stood in the padded column, if the server sampled them.

    Raises:
        IntegrityError: a file has another length, or a symbol lies outside the alphabet.

    Source: Lin, Wang, Rane, Lemma 3.1; their text adds the pad where it must subtract.
    """
    ciphertext = _symbols(noisy, column, rows)
    check_symbols(ciphertext, column.size)
    if places is not None:
        ciphertext = places.put_back(ciphertext)
    plain: Symbols = np.empty(len(ciphertext), symbol_dtype(column.size))
    match key:
        case Path():
            pad = _symbols(key, column, len(ciphertext))
            check_symbols(pad, column.size)
            subtract(ciphertext, pad, column.size, plain)
        case bytes():
            decrypt(ciphertext, column.size, CipherStream(key), plain)
        case _:
            assert_never(key)
    if places is not None:
        plain = plain[places.where]
    with written_whole(out) as file:
        file.write(np.ascontiguousarray(plain).data)


@dataclass(frozen=True, slots=True)
class Places:
    """Where the rows that the server sampled stood among all that were uploaded.

    Args:
        where: (m,) ascending places below `total`.
        total: uploaded rows.
    """

    where: NDArray[np.int64]
    total: int

    def __post_init__(self) -> None:
        rises = np.all(np.diff(self.where) > 0)
        if not (len(self.where) and rises and self.where[0] >= 0 and self.where[-1] < self.total):
            raise IntegrityError("the sampled places are not ascending places of the uploaded rows", where="places")

    def put_back(self, column: Symbols) -> Symbols:
        """Return a column of `total` symbols with the sampled ones where their pads are."""
        whole: Symbols = np.zeros(self.total, column.dtype)
        whole[self.where] = column
        return whole


def count_rows(files: Sequence[Path], columns: Sequence[Column], rows: int) -> NDArray[np.int64]:
    """Return the (K,) counts of the noisy rows, cells in C order of `columns`."""
    shape = tuple(column.size for column in columns)
    histogram = np.zeros(int(np.prod(shape, dtype=object)), np.int64)
    tabulate([_symbols(f, c, rows) for f, c in zip(files, columns, strict=True)], shape, histogram)
    return histogram


def _symbols(path: Path, column: Column, rows: int) -> Symbols:
    if path.stat().st_size != column.byte_length(rows):
        raise IntegrityError("a column has another length than its release", where=f"attribute {column.attribute}")
    mapped: Symbols = np.memmap(path, dtype=symbol_dtype(column.size), mode="r")
    return mapped
