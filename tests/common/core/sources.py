"""Sources of bytes that play what a test wrote, or remember what they filled."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.randomness import ByteSource, CipherStream


def stream(number: int) -> CipherStream:
    return CipherStream(bytes([number]) * 32)


class Scripted:
    """Plays a script for each label, again and again."""

    def __init__(self, scripts: Mapping[int, NDArray[np.uint8]]) -> None:
        self.scripts = scripts

    def fill(self, out: memoryview, *, label: int, chunk: int) -> None:
        assert chunk == 0
        out[:] = np.resize(self.scripts[label], len(out)).tobytes()


class Spy:
    """Remembers every place that was filled, and what with."""

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.places: list[tuple[int, int]] = []
        self.fills: list[bytes] = []

    def fill(self, out: memoryview, *, label: int, chunk: int) -> None:
        self.source.fill(out, label=label, chunk=chunk)
        if len(out):
            self.places.append((label, chunk))
            self.fills.append(bytes(out))
