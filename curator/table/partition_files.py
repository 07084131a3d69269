"""Rows that tasks spread over files of a run, for others that put a section of them in order.

A task spreads consecutive rows: it writes them to a file by their leading bits. A section is a range of leading bits;
its rows are read from all of the files.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass
from veiltab.common.storage.partitions import PARTITION_BITS, Batch, Cut, Edges, Fields, parts_of
from veiltab.common.storage.run_files import RunFiles
from veiltab.common.storage.stored import Readable

SPREAD = 2**19
"""Rows that a task spreads, or a few more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The rows of a section, for tasks.

    Args:
        cuts: file, and which of its records.
    """

    run: RunFiles
    cuts: tuple[tuple[str, Cut], ...]

    def parts(self, forms: Fields) -> Iterator[list[NDArray[np.generic]]]:
        """Yield the fields of each part; `forms` have their types and widths."""
        return parts_of(self._opened(), forms)

    def _opened(self) -> Iterator[tuple[Readable, Cut]]:
        """Yield the records of each file, while it is open."""
        for name, cut in self.cuts:
            with self.run.file(name).opened() as file:
                yield file, cut


class SpreadRows:
    """What tasks have spread, in the order of the tasks.

    Args:
        name: with which their names begin.
        bits: how many leading bits tell partitions apart.
    """

    def __init__(self, run: RunFiles, name: str, *, bits: int = PARTITION_BITS) -> None:
        self._run = run
        self._name = name
        self._batches: list[Batch] = []
        self.counts = np.zeros(1 << bits, np.int64)
        """Rows of each partition."""

    def file(self, number: int) -> str:
        """Return the name of the file that a task writes."""
        return f"{self._name}-spread-{number}"

    def append(self, batch: Batch) -> None:
        """Take what the next task has written."""
        self._batches.append(batch)
        self.counts += batch.counts

    def section(self, edges: Edges) -> Section:
        """Return the rows of a section, given by the edges of its parts."""
        cuts = ((self.file(number), batch.cut(edges)) for number, batch in enumerate(self._batches))
        return Section(run=self._run, cuts=tuple(cuts))

    def delete(self) -> None:
        """Delete the files."""
        self._run.delete(*map(self.file, range(len(self._batches))))
