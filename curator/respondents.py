"""Respondents' ids: normalised so that spellings of one person meet, and searched for repetitions."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

SEPARATOR = "\x1f"
"""Between the parts of an id made of several columns (U+001F); no part may hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """Normalised ids of some rows.

    Args:
        values: one large_string a row; null where a part is empty or holds the separator.
        empty: rows with an empty part.
        separated: rows with a part that holds the separator.
    """

    values: pa.Array
    empty: int
    separated: int


def normalised_ids(parts: Sequence[pa.Array], steps: Sequence[str]) -> Ids:
    """Normalise the id columns of some rows and join them.

    Steps run in the order strip, casefold, nfc, whatever the order of `steps`. "casefold" lowers each character alone:
    unlike full case folding it keeps characters that fold to several (a sharp s stays one, it does not meet "ss").

    Args:
        parts: one text array an id column, all of one length.
        steps: which of strip (white space around), casefold and nfc (Unicode normalisation form C) to run.

    Returns:
        The composite ids, parts joined by SEPARATOR.
    """
    filled = [pc.fill_null(part, "") for part in parts]
    separated = _any([pc.match_substring(part, SEPARATOR) for part in filled])
    clean = [_normalised(part, steps) for part in filled]
    empty = _any([pc.equal(part, "") for part in clean])
    joined = pc.binary_join_element_wise(
        *[part.cast(pa.large_string()) for part in clean], pa.scalar(SEPARATOR, pa.large_string())
    )
    values = pc.if_else(pc.or_(empty, separated), pa.scalar(None, pa.large_string()), joined)
    return Ids(values=values, empty=_true(empty), separated=_true(separated))


def repeated_rows(ids: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return the positions of the ids that an earlier row has too, in increasing order; nulls repeat nothing.

    Rows are compared by 64-bit fingerprints under a fresh key (8 bytes a row, sorted in place); only rows whose
    fingerprints meet are compared by their ids, so the answer is exact.
    """
    weights = _Weights()
    prints = np.concatenate(
        [np.empty(0, np.uint64), *(weights.fingerprints(chunk.drop_null()) for chunk in ids.chunks)]
    )
    prints.sort()
    meeting = np.unique(prints[1:][prints[1:] == prints[:-1]])
    del prints
    return _confirmed(ids, weights, meeting) if meeting.size else np.empty(0, np.int64)


def string_buffers(ids: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return where each id of a large_string array starts and ends (rows + 1 offsets), and the bytes of all."""
    if not len(ids):
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    _, ends, data = ids.buffers()
    offsets = np.frombuffer(ends, np.int64)[ids.offset : ids.offset + len(ids) + 1]
    text = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return offsets - offsets[0], text[offsets[0] : offsets[-1]]


class _Weights:
    """One random 64-bit weight a byte position: an id's fingerprint is sum (byte + 1) weight mod 2^64.

    Two different ids meet with probability at most 2^-56 whoever chose them, since the weights are fresh.
    """

    def __init__(self) -> None:
        self._weights = np.empty(0, np.uint64)

    def fingerprints(self, ids: pa.Array) -> NDArray[np.uint64]:
        """Return the fingerprints of a large_string array without nulls."""
        offsets, text = string_buffers(ids)
        lengths = np.diff(offsets)
        longest = int(lengths.max(initial=0))
        if longest > len(self._weights):
            fresh = np.frombuffer(os.urandom(8 * (longest - len(self._weights))), np.uint64)
            self._weights = np.concatenate([self._weights, fresh])
        position = np.arange(len(text)) - np.repeat(offsets[:-1], lengths)
        sums = np.zeros(len(text) + 1, np.uint64)
        np.cumsum(self._weights[position] * (text.astype(np.uint64) + np.uint64(1)), out=sums[1:])
        return sums[offsets[1:]] - sums[offsets[:-1]]


def _confirmed(ids: pa.ChunkedArray, weights: _Weights, meeting: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Compare the rows whose fingerprints meet by their ids."""
    start, positions, values = 0, [], []
    for chunk in ids.chunks:
        valid = np.flatnonzero(chunk.is_valid().to_numpy(zero_copy_only=False))
        suspect = valid[np.isin(weights.fingerprints(chunk.drop_null()), meeting)]
        positions.append(suspect + start)
        values.append(chunk.take(pa.array(suspect)))
        start += len(chunk)
    rows = np.concatenate(positions)
    codes = pa.chunked_array(values).combine_chunks().dictionary_encode().indices.to_numpy()
    _, first = np.unique(codes, return_index=True)
    repeats: NDArray[np.int64] = np.delete(rows, first)
    return repeats


def _normalised(part: pa.Array, steps: Sequence[str]) -> pa.Array:
    """Run the steps on one id column."""
    if "strip" in steps:
        part = pc.utf8_trim_whitespace(part)
    if "casefold" in steps:
        part = pc.utf8_lower(part)
    return pc.utf8_normalize(part, "NFC") if "nfc" in steps else part


def _any(masks: Sequence[pa.Array]) -> pa.Array:
    """Return where any of the masks is true."""
    result = masks[0]
    for mask in masks[1:]:
        result = pc.or_(result, mask)
    return result


def _true(mask: pa.Array) -> int:
    """Return the number of true values."""
    return int(pc.sum(mask).as_py() or 0)
