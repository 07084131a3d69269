"""Taking the pads off perturbed columns and counting the noisy rows.

Perturbation commutes with the pads, so what comes off is the gamma-diagonal mechanism's output on the sampled rows.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.domain import Symbols, symbol_dtype
from common.errors import IntegrityError
from common.files import written_whole
from common.pads import decrypt
from common.randomness import CipherStream
from common.release import Column
from common.symbols import check_symbols, subtract
from common.tabulation import tabulate


def decrypt_column(noisy: Path, column: Column, rows: int, key: bytes | Path, out: Path) -> None:
    """Decrypt one perturbed column into a file of symbols.

    symbol = perturbed ciphertext - pad mod K_a

    Args:
        noisy: file of the perturbed ciphertext.
        column: its attribute and alphabet size.
        rows: sampled rows m.
        key: 32 bytes of a stream cipher, or the file of a one-time pad.
        out: file for the (m,) noisy symbols.

    Raises:
        IntegrityError: a file has another length, or a symbol lies outside the alphabet.

    Source: Lin, Wang, Rane, Lemma 3.1; their text adds the pad where it must subtract.
    """
    ciphertext = _symbols(noisy, column, rows)
    check_symbols(ciphertext, column.size)
    plain: Symbols = np.empty(rows, symbol_dtype(column.size))
    if isinstance(key, Path):
        pad = _symbols(key, column, rows)
        check_symbols(pad, column.size)
        subtract(ciphertext, pad, column.size, plain)
    else:
        decrypt(ciphertext, column.size, CipherStream(key), plain)
    with written_whole(out) as file:
        file.write(plain.data)


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
