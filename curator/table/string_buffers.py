"""Texts of Arrow through their buffers, without the functions that load pandas or Arrow's computations."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def string_buffers(ids: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return where each id of a large_string array starts and ends (rows + 1 offsets), and the bytes of all."""
    if not len(ids):
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    _, ends, data = ids.buffers()
    offsets = np.frombuffer(ends, np.int64)[ids.offset : ids.offset + len(ids) + 1]
    text = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return offsets - offsets[0] if offsets[0] else offsets, text[offsets[0] : offsets[-1]]
