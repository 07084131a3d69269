"""Microdata: rows drawn from the model of a release, with replicate weights for intervals (replicate_weights.py).

The rows are those of the best single file, spread evenly over the model. For packages that read several files and no
weights, each replicate can be drawn as a file of its own instead.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veiltab.common.core.derivation import derive
from veiltab.common.core.domain import Domain
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.extras import importing
from veiltab.common.process.cores import cores
from veiltab.common.tasks.engine import InProcess, in_order
from veiltab.common.tasks.pool import Pool
from veiltab.researcher.estimates.table import labelled
from veiltab.researcher.estimates.table_result import TableResult, fitted
from veiltab.researcher.microdata.drawn_together import DrawnTogether
from veiltab.researcher.microdata.files import Chunk, Weights, copy_paths, whole_numbers, write_rows
from veiltab.researcher.microdata.provenance import ABSENT_ROWS, Provenance, weight_columns
from veiltab.researcher.microdata.replays import played_errors
from veiltab.researcher.microdata.replicate_weights import Kinds, replicate_counts, signs
from veiltab.researcher.model.fitting import Model
from veiltab.researcher.model.measurement import Axes, Floats
from veiltab.researcher.model.raking import drawn_evenly
from veiltab.researcher.model.row_drawing import Rows, Uniforms
from veiltab.researcher.status.release_status import Status

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 100_000_000
"""Most rows of a file; memory does not grow with them, but disks and hours do."""

MOST_REPLICATES = 100

MOST_WEIGHTS = 200_000_000
"""Rows times replicates: 800 MB of memory."""

DEFAULT_REPLICATES = 20
"""Unless said."""

LARGE = 20_000
"""Cells of a junction tree beyond which a replay takes seconds, and processes of their own are worth their start."""

CHUNK = 2**18
"""Rows that are drawn and written at once."""

Progress = Callable[[int, int], None]
"""Told how many parts of a work are done, of how many."""


def no_progress(_done: int, _whole: int) -> None:
    """Tell nobody."""


@dataclass(frozen=True, kw_only=True)
class Microdata:
    """Rows drawn from the model of a release.

    Args:
        tables: as they were measured, to which the model is fitted.
        model: that the rows are drawn from.
        first: rows of the file, its first CHUNK at most.
        numbers: draws its numbers.
        errors: D_i of each replicate (replays.py).
    """

    domain: Domain
    tables: tuple[TableResult, ...]
    model: Model
    first: Rows
    numbers: DrawnTogether
    errors: tuple[Mapping[Axes, Floats], ...]
    provenance: Provenance

    def __repr__(self) -> str:
        """Return its size, attributes and seed, on one line."""
        origin = self.provenance
        size = f"rows={origin.rows}, replicates={origin.replicates}" + (", as copies" if origin.copies else "")
        return f"Microdata({size}, attributes={self.domain.names!r}, seed={origin.seed!r})"

    def chunks(self) -> Iterator[Rows]:
        """Yield the rows as symbols of shape (rows, attributes); the same at every call."""
        secret, rows = _secret(self.provenance.seed), self.provenance.rows
        yield self.first
        for start in range(CHUNK, rows, CHUNK):
            yield self.model.sample(min(CHUNK, rows - start), derive(secret, f"rows {start}"))

    def rows(self) -> Rows:
        """Return all rows, shape (rows, attributes)."""
        return np.concatenate(list(self.chunks()))

    def _with_numbers(self, rows: Rows, what: str) -> Chunk:
        """Return rows, and the numbers of each column of numbers, drawn for them."""
        key = derive(_secret(self.provenance.seed), f"numbers {what}")
        return rows, self.numbers.draw(rows, Uniforms(key))

    def file_chunks(self, copy: int | None = None) -> Iterator[Chunk]:
        """Yield the rows of the file, or of a copy, and their numbers; the same at every call."""
        chunks = self.chunks() if copy is None else iter([self.copy(copy)])
        for place, rows in enumerate(chunks):
            yield self._with_numbers(rows, f"chunk {place}" if copy is None else f"copy {copy}")

    @cached_property
    def _kinds(self) -> Kinds:
        return Kinds(self.rows())

    def weights(self) -> Weights | None:
        """Return the replicate weights, shape (rows, M), float32, each column with the mean 1; None without any."""
        if not self.errors or self.provenance.copies:
            return None
        weights: Weights = np.empty((self.provenance.rows, len(self.errors)), np.float32)
        for replicate in range(len(self.errors)):
            weights[:, replicate] = (self._counts(replicate) / self._kinds.counts)[self._kinds.places]
        return weights

    def copy(self, number: int) -> Rows:
        """Return the rows of a copy, counted from 1: as many as the file has, drawn evenly by its weights.

        Raises:
            InvalidInputError: there is no such copy.
        """
        if not 1 <= number <= self.provenance.copies:
            raise InvalidInputError(f"there are copies 1 to {self.provenance.copies}, not {number}")
        key = derive(_secret(self.provenance.seed), f"copy {number}")
        return drawn_evenly(self._kinds.rows, self._counts(number - 1), self.provenance.rows, Uniforms(key))

    def _counts(self, replicate: int) -> Floats:
        sign = signs(len(self.errors), derive(_secret(self.provenance.seed), "signs"))[replicate]
        return replicate_counts(self._kinds.rows, self._kinds.counts, self.errors[replicate], sign, self.domain.shape)

    def frame(self, copy: int | None = None) -> "pd.DataFrame":
        """Return the file, or a copy, as a DataFrame; `attrs` has the provenance.

        Args:
            copy: counted from 1, where there are copies.

        Returns:
            Ordered categories of each attribute, or numbers drawn within their steps (drawn_numbers.py); then `weight`
            and the replicate weights if there are any.
        """
        with importing("researcher", "a data frame"):
            import pandas as pd  # noqa: PLC0415 - not where the extra is missing

        chunks, weights = list(self.file_chunks(copy)), self.weights() if copy is None else None
        columns: dict[str, Any] = {}
        for axis, attribute in enumerate(self.domain.attributes):
            if attribute.number:
                columns[attribute.name] = np.concatenate([numbers[axis] for _, numbers in chunks])
            else:
                symbols = np.concatenate([rows[:, axis] for rows, _ in chunks])
                whole = whole_numbers(symbols, attribute)
                columns[attribute.name] = labelled(symbols, attribute) if whole is None else whole.to_pandas()
        if weights is not None:
            first, *others = weight_columns(self.domain, weights.shape[1])
            columns[first] = np.ones(len(weights), np.float32)
            columns |= dict(zip(others, weights.T, strict=True))
        frame = pd.DataFrame(columns)
        frame.attrs |= self.provenance.facts(self.domain, copy)
        return frame

    def write(self, path: str | Path) -> tuple[Path, ...]:
        """Write the file, or every copy to a file that is numbered before the suffix.

        Args:
            path: ends in .parquet or .csv (see files.py); an existing file is replaced.

        Returns:
            The files.

        Raises:
            InvalidInputError: another suffix, or a place that cannot be written.
        """
        copies = self.provenance.copies
        if not copies:
            write_rows(Path(path), self.domain, self.file_chunks(), self.provenance.facts(self.domain), self.weights())
            return (Path(path),)
        paths = copy_paths(Path(path), copies)
        for copy, file in enumerate(paths, 1):
            write_rows(file, self.domain, self.file_chunks(copy), self.provenance.facts(self.domain, copy))
        return paths


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replay:
    """Plays a release once, as a task of an engine.

    Args:
        key: 32 bytes; the same key plays the same errors.
    """

    tables: tuple[TableResult, ...]
    model: Model
    key: bytes

    def perform(self) -> Mapping[Axes, Floats]:
        """Return D (replays.py)."""
        return played_errors(self.tables, self.model, self.key)


def _played(replays: Sequence[Replay], progress: Progress) -> Iterator[Mapping[Axes, Floats]]:
    """Yield the errors of replays, in order; large models are played on all cores."""
    if not replays:
        return
    with closing(Pool(cores()) if replays[0].model.wider.cells > LARGE else InProcess()) as engine:
        for done, errors in enumerate(in_order(engine.perform(replays)), 1):
            progress(done, len(replays))
            yield errors


def check_size(rows: int, replicates: int, copies: int) -> None:
    """Refuse numbers of rows, replicates or copies that cannot be drawn, before any work.

    Raises:
        InvalidInputError: they are out of range.
    """
    if not 1 <= rows <= MOST_ROWS:
        raise InvalidInputError(f"{rows:,} rows were asked for, not 1 to {MOST_ROWS:,}", where="rows")
    if not 0 <= replicates <= MOST_REPLICATES:
        raise InvalidInputError(f"there are 0 to {MOST_REPLICATES} replicates, not {replicates:,}", where="replicates")
    if copies % 2 or not 0 <= copies <= MOST_REPLICATES:
        raise InvalidInputError(
            f"there are 2, 4, ... or {MOST_REPLICATES} copies, not {copies:,}",
            where="copies",
            remedy="Half of the copies are on each side of the file: take an even number.",
        )
    if rows * max(replicates, copies) > MOST_WEIGHTS:
        raise InvalidInputError(
            f"rows times replicates are at most {MOST_WEIGHTS:,}",
            where="rows",
            remedy="Draw fewer rows, or fewer replicates; 0 replicates for a file without intervals.",
        )


def synthesise(  # noqa: PLR0913 - one argument a choice
    domain: Domain,
    status: Status,
    tables: Sequence[TableResult],
    *,
    rows: int,
    replicates: int = 0,
    copies: int = 0,
    seed: str,
    progress: Progress = no_progress,
) -> Microdata:
    """Return microdata of a release.

    Args:
        domain: the attributes of the rows.
        status: of the release; it is ready.
        tables: as they were measured; those with other attributes are left out.
        replicates: M, how often the release is played again for the weights; 0 for none.
        copies: the same as files without weights, so many; 0 for one file.
        seed: any text; the same seed gives the same rows.
        progress: told how many of how many replays are done, 0 once the model is fitted; may raise, to end the work.

    Raises:
        InvalidInputError: numbers out of range, or an attribute that no table has.
        FailedReleaseError: there is no result.
    """
    check_size(rows, replicates, copies)
    description = status.description()
    tables = _tables_of(domain, tables, status.release_id)
    model = fitted(domain, tables)
    secret, count = _secret(seed), copies or replicates
    progress(0, count)
    first = model.sample(min(CHUNK, rows), derive(secret, "rows 0"))
    numbers = DrawnTogether(domain, first)
    replays = [Replay(tables=tables, model=model, key=derive(secret, f"replay {one}")) for one in range(count)]
    return Microdata(
        domain=domain,
        tables=tables,
        model=model,
        first=first,
        numbers=numbers,
        errors=tuple(_played(replays, progress)),
        provenance=Provenance(
            study_digest=status.study_digest,
            release=status.release_id,
            release_digest=description.digest().hex(),
            epsilon=status.epsilon,
            delta="" if description.delta is None else str(description.delta),
            respondents=tables[0].design.population,
            tables=tuple(table.names for table in tables),
            model=model.kind,
            graph=model.graph,
            seed=seed,
            rows=rows,
            replicates=count,
            copies=copies,
            links=" ".join(dict.fromkeys(remark for one in tables for remark in one.remarks)),
            coarse=(*numbers.losses, *([ABSENT_ROWS] if any(one.has_absent for one in domain.attributes) else [])),
            unjoined=sum(model.wider.containing(pair) is None for pair in combinations(range(len(domain.names)), 2)),
        ),
    )


def _tables_of(domain: Domain, tables: Sequence[TableResult], release_id: str) -> tuple[TableResult, ...]:
    """Return the tables whose attributes are all in the domain, or refuse an attribute that none of them has."""
    parts = tuple(one for one in tables if set(one.names) <= set(domain.names))
    measured = {name for one in parts for name in one.names}
    missing = [name for name in domain.names if name not in measured]
    if missing:
        raise InvalidInputError(
            f"no table of the release has {', '.join(missing)}",
            where=f"release {release_id}",
            remedy="Name the other attributes, or release a table with each.",
        )
    return parts


def _secret(seed: str) -> bytes:
    return hashlib.sha256(b"veiltab microdata\0" + seed.encode()).digest()
