"""A server that cheats, to show that it is caught: the product's own server with its perturbation replaced.

    python -m veiltab.play.demos.cheating_server lazy server serve ...

No option of the product does this: a study's server runs `veiltab server serve`.
"""

import runpy
import sys
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from fractions import Fraction
from functools import partial
from math import ceil, prod
from typing import assert_never

import numpy as np

from veiltab.common.core.domain import Symbols
from veiltab.common.core.mechanism import UNIT, GammaDiagonal, perturb_chunk
from veiltab.common.core.randomness import ByteSource
from veiltab.server.release import perturbation


class Cheat(Enum):
    """How a server cheats."""

    LAZY = "lazy"
    HALF = "half"
    OTHER = "other"
    SWAP = "swap"
    COLUMN = "column"
    SHIFT = "shift"

    @property
    def meaning(self) -> str:
        """What the server does, for people."""
        match self:
            case Cheat.LAZY:
                return "adds no noise"
            case Cheat.HALF:
                return "replaces half as many rows as it must"
            case Cheat.OTHER:
                return "replaces rows with another probability"
            case Cheat.SWAP:
                return "exchanges the columns"
            case Cheat.COLUMN:
                return "leaves a column as it came, and replaces the others as much more often"
            case Cheat.SHIFT:
                return "adds 1 to every column where it must draw a row"
            case _:
                assert_never(self)

    @property
    def launcher(self) -> tuple[str, ...]:
        """How to start `veiltab` so that its server cheats."""
        return (sys.executable, "-m", "veiltab.play.demos.cheating_server", self.value)


def perturb_dishonestly(  # noqa: PLR0913 - what perturb_chunk takes
    inputs: Sequence[Symbols],
    sizes: Sequence[int],
    mechanism: GammaDiagonal,
    source: ByteSource,
    outputs: Sequence[Symbols],
    *,
    chunk: int,
    cheat: Cheat,
) -> None:
    """Do something else than perturb_chunk with one chunk of rows; arguments as there."""
    match cheat:
        case Cheat.LAZY:
            for column, out in zip(inputs, outputs, strict=True):
                out[:] = column
        case Cheat.HALF | Cheat.OTHER:
            other = replace(mechanism, replacement=_replacement(cheat, mechanism.replacement))
            perturb_chunk(inputs, sizes, other, source, outputs, chunk=chunk)
        case Cheat.SWAP:
            perturb_chunk(inputs, sizes, mechanism, source, outputs, chunk=chunk)
            # Every curator gets another column back, so that every one of them finds it.
            columns = [out.astype(np.uint32) for out in outputs]
            for out, size, neighbour in zip(outputs, sizes, [*columns[1:], columns[0]], strict=True):
                np.copyto(out, neighbour % size, casting="unsafe")
        case Cheat.COLUMN:
            outputs[0][:] = inputs[0]
            rest = GammaDiagonal(cells=prod(sizes[1:]), replacement=_as_many_changes(mechanism, prod(sizes[1:])))
            perturb_chunk(inputs[1:], sizes[1:], rest, source, outputs[1:], chunk=chunk)
        case Cheat.SHIFT:
            perturb_chunk(inputs, sizes, mechanism, source, outputs, chunk=chunk)
            changed = np.any([out != column for out, column in zip(outputs, inputs, strict=True)], axis=0)
            for column, size, out in zip(inputs, sizes, outputs, strict=True):
                np.copyto(out, np.where(changed, (column.astype(np.int64) + 1) % size, column), casting="unsafe")
        case _:
            assert_never(cheat)


def _as_many_changes(mechanism: GammaDiagonal, cells: int) -> int:
    """Return r in units of 2^-64 at which rows of fewer cells change as often, or at most always."""
    replacement = mechanism.replacement * (1 - Fraction(1, mechanism.cells)) / (1 - Fraction(1, max(cells, 2)))
    return min(UNIT, ceil(replacement))


def _replacement(cheat: Cheat, units: int) -> int:
    """Return r in units of 2^-64: half of it, or twice as much, or a quarter where twice would be above 1."""
    if cheat is Cheat.HALF:
        return (units + 1) // 2
    return 2 * units if 2 * units <= UNIT else units // 4


def main() -> None:
    """Replace the perturbation, then run the command line."""
    cheat = Cheat(sys.argv.pop(1))
    perturbation.perturb_chunk = partial(perturb_dishonestly, cheat=cheat)  # type: ignore[attr-defined] # its import
    runpy.run_module("veiltab", run_name="__main__")


if __name__ == "__main__":
    main()
