"""Microdata: rows drawn from the model of a release, in one or several copies.

One copy is drawn from the model as it was fitted: the best single file. Several copies are for intervals: each is drawn
from a model of its own, fitted to noisy tables that are drawn anew from the first model (redrawing.py), so that the
copies differ by what the noise of the release left unknown, and combining.py can count it. Each of them is therefore
farther from the truth than a single copy; their mean is not.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from veiltab.common.core.derivation import derive
from veiltab.common.core.domain import Domain
from veiltab.common.errors import InvalidInputError
from veiltab.common.extras import importing
from veiltab.researcher.microdata.files import Rows, copy_paths, write_rows
from veiltab.researcher.microdata.provenance import Parameters, Provenance
from veiltab.researcher.microdata.redrawing import redrawn
from veiltab.researcher.model.fitting import Model
from veiltab.researcher.release_status import Status
from veiltab.researcher.table import labelled
from veiltab.researcher.table_result import TableResult, fitted

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 100_000_000
"""Most rows of a copy; memory does not grow with them, but disks and hours do."""

MOST_COPIES = 100

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
        domain: their columns.
        tables: as they were measured, to which the first model is fitted.
        models: one a copy.
        provenance: where they come from.
    """

    domain: Domain
    tables: tuple[TableResult, ...]
    models: tuple[Model, ...]
    provenance: Provenance

    def __repr__(self) -> str:
        """Return its size, attributes and seed, on one line."""
        known = self.provenance
        size = f"rows={known.rows}, copies={known.copies}"
        return f"Microdata({size}, attributes={self.domain.names!r}, seed={known.seed!r})"

    def chunks(self, copy: int = 1) -> Iterator[Rows]:
        """Yield the rows of a copy, counted from 1, as symbols of shape (rows, attributes); the same at every call.

        Raises:
            InvalidInputError: there is no such copy.
        """
        if not 1 <= copy <= len(self.models):
            raise InvalidInputError(f"there are copies 1 to {len(self.models)}, not {copy}")
        secret, rows = _secret(self.provenance.seed), self.provenance.rows
        for start in range(0, rows, CHUNK):
            seed = derive(secret, f"rows {copy} {start}")
            yield self.models[copy - 1].sample(
                min(CHUNK, rows - start), seed, independent=self.provenance.parameters is Parameters.DRAWN
            )

    def frame(self, copy: int = 1) -> "pd.DataFrame":
        """Return a copy, counted from 1, as a DataFrame of ordered categories; `attrs` has the provenance."""
        with importing("researcher", "a data frame"):
            import pandas as pd  # noqa: PLC0415 - an optional package

        rows = np.concatenate(list(self.chunks(copy)))
        frame = pd.DataFrame(
            {
                attribute.name: labelled(rows[:, axis], attribute)
                for axis, attribute in enumerate(self.domain.attributes)
            }
        )
        frame.attrs |= self.provenance.facts(self.domain, copy)
        return frame

    def write(self, path: str | Path) -> tuple[Path, ...]:
        """Write every copy: to the file named, or to files numbered before the suffix if there are several.

        Args:
            path: ends in .parquet or .csv (see files.py); an existing file is replaced.

        Returns:
            The file of each copy.

        Raises:
            InvalidInputError: another suffix, or a place that cannot be written.
        """
        paths = copy_paths(Path(path), len(self.models))
        for copy, file in enumerate(paths, 1):
            write_rows(file, self.domain, self.chunks(copy), self.provenance.facts(self.domain, copy))
        return paths


def check_size(rows: int, copies: int) -> None:
    """Refuse numbers of rows or copies that cannot be drawn, before any work.

    Raises:
        InvalidInputError: they are out of range.
    """
    if not 1 <= rows <= MOST_ROWS:
        raise InvalidInputError(f"a copy has 1 to {MOST_ROWS:,} rows, not {rows:,}", where="rows")
    if not 1 <= copies <= MOST_COPIES:
        raise InvalidInputError(f"there are 1 to {MOST_COPIES} copies, not {copies:,}", where="copies")


def drawn_anew(domain: Domain, tables: Sequence[TableResult], model: Model, key: bytes) -> tuple[TableResult, ...]:
    """Return the tables of a release as they would have come if the model were the truth.

    Args:
        domain: all attributes.
        tables: as they were released.
        model: that stands for the respondents.
        key: 32 bytes; the same key draws the same tables.
    """
    return tuple(
        replace(
            table,
            counts=redrawn(
                model.marginal(table.names), domain.subset(table.names), table.design, derive(key, f"table {number}")
            ),
        )
        for number, table in enumerate(tables)
    )


def synthesise(  # noqa: PLR0913 - one argument a choice
    domain: Domain,
    status: Status,
    tables: Sequence[TableResult],
    *,
    rows: int,
    copies: int,
    seed: str,
    progress: Progress = no_progress,
) -> Microdata:
    """Return microdata of a release.

    Args:
        domain: the attributes of the rows.
        status: of the release; it is ready.
        tables: as they were measured; those with other attributes are left out.
        rows: of each copy.
        copies: one, from the fitted model; or several for combining rules, each from a model of its own.
        seed: any text; the same seed gives the same rows.
        progress: told before each model how many of how many are fitted; may raise, and so end the work.

    Raises:
        InvalidInputError: numbers out of range, or an attribute that no table has.
        FailedReleaseError: there is no result.
    """
    check_size(rows, copies)
    description = status.description()
    tables = _tables_of(domain, tables, status.release_id)
    several = copies if copies > 1 else 0
    progress(0, 1 + several)
    model = fitted(domain, tables)
    secret = _secret(seed)
    models: list[Model] = [] if several else [model]
    for copy in range(1, several + 1):
        progress(copy, 1 + several)
        key = derive(secret, f"copy {copy}")
        models.append(fitted(domain, drawn_anew(domain, tables, model, key)))
    return Microdata(
        domain=domain,
        tables=tables,
        models=tuple(models),
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
            copies=copies,
            parameters=Parameters.FITTED if copies == 1 else Parameters.DRAWN,
        ),
    )


def _tables_of(domain: Domain, tables: Sequence[TableResult], release_id: str) -> tuple[TableResult, ...]:
    """Return the tables whose attributes are all in the domain, or refuse an attribute that none of them has."""
    chosen = tuple(one for one in tables if set(one.names) <= set(domain.names))
    measured = {name for one in chosen for name in one.names}
    missing = [name for name in domain.names if name not in measured]
    if missing:
        raise InvalidInputError(
            f"no table of the release has {', '.join(missing)}",
            where=f"release {release_id}",
            remedy="Name the other attributes, or release a table with each.",
        )
    return chosen


def _secret(seed: str) -> bytes:
    return hashlib.sha256(b"veiltab microdata\0" + seed.encode()).digest()
