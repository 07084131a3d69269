"""Arrow's arrays through their buffers: most of their methods import `pyarrow.compute`, and others pandas."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def string_buffers(texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return where each text of a string or large_string array starts and ends (rows + 1 offsets), and all bytes."""
    if not len(texts):
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    _, ends, data = texts.buffers()
    ends = np.frombuffer(ends, np.int32 if pa.types.is_string(texts.type) else np.int64)
    offsets = ends[texts.offset : texts.offset + len(texts) + 1].astype(np.int64, copy=False)
    text = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return offsets - offsets[0] if offsets[0] else offsets, text[offsets[0] : offsets[-1]]


def string_array(offsets: NDArray[np.int64], text: NDArray[np.uint8]) -> pa.Array:
    """Return the large_string array of these buffers."""
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(text))


def entries_of(indices: pa.Array, absent: int) -> NDArray[np.int32]:
    """Return the dictionary entry of each value, `absent` where there is none."""
    validity, entries = indices.buffers()
    place = slice(indices.offset, indices.offset + len(indices))
    entries = np.frombuffer(entries, str(indices.type))[place].astype(np.int32, copy=False)
    if not indices.null_count:
        return entries
    is_valid = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")[place]
    return np.where(is_valid, entries, np.int32(absent))
