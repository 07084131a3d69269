"""The result of one table: its noisy rows, counted, and what is public about how they came to be."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Domain
from veiltab.common.core.mechanism import invert
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import IntegrityError
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.schemes import scheme_of
from veiltab.researcher.estimates.uncertainty import ReleaseDesign, total_variance

if TYPE_CHECKING:
    from veiltab.researcher.model.fitting import Model
    from veiltab.researcher.model.measurement import Measurement


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableResult:
    """One table of a release as it was measured.

    Args:
        number: of the table in its release, from 0; a table that ran twice has two results, of two numbers.
        names: its attributes, in study order.
        counts: noisy rows in each cell, shape (K,), in C order over `names`.
        design: how the rows were sampled and randomised.
    """

    number: int
    names: tuple[str, ...]
    counts: NDArray[np.int64]
    design: ReleaseDesign

    @property
    def measurement(self) -> "Measurement":
        """The table as a model takes it: unbiased fractions, weighted by their mean variance at the uniform table."""
        from veiltab.researcher.model.measurement import Measurement  # noqa: PLC0415 - not for releases of one table

        cells = self.design.mechanism.cells
        return Measurement(
            names=self.names,
            values=invert(self.counts, self.design.mechanism),
            weight=cells / total_variance(1 / cells, self.design),
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is done to the table as it was measured, a sentence each."""
        return ()

    def with_links(self, fractions: NDArray[np.float64], _key: bytes) -> NDArray[np.float64]:
        """Return what a table of respondents is before noise, where it is played: itself, unless links are wrong."""
        return fractions


def table_result(number: int, names: tuple[str, ...], spec: TableSpec, histogram: bytes) -> TableResult:
    """Return the result of a table.

    Args:
        names: its attributes whose keys were given, in order of the histogram.
        histogram: its counts as they travel.

    Raises:
        IntegrityError: the counts are not those of the table.
    """
    counts = np.frombuffer(histogram, "<i8").astype(np.int64)
    cells = int(np.prod([spec.column(name).size for name in names]))
    if len(counts) != cells:
        raise IntegrityError("a table has other cells than its release says", where=f"release {spec.release_id}")
    return TableResult(
        number=number, names=names, counts=counts, design=design_of(spec, cells, counted=int(counts.sum()))
    )


def fitted(domain: Domain, tables: Sequence[TableResult]) -> "Model":
    """Return the model of the tables of a release.

    Raises:
        InvalidInputError: an attribute of the domain is in none of them.
    """
    from veiltab.researcher.model.fitting import fit  # noqa: PLC0415 - not for releases of one table

    return fit(domain, [one.measurement for one in tables], rows=tables[0].design.population)


def design_of(spec: TableSpec, cells: int, *, counted: int) -> ReleaseDesign:
    """Return the design of the rows of data that were counted.

    Where the server samples, canaries may be among the m rows that it drew. Given their number, the rows of data are a
    simple random sample of their own size, and so the design is that of a smaller sample.

    Args:
        cells: of the attributes whose keys were given.
        counted: rows of data.

    Raises:
        IntegrityError: another number of rows than the release can have.
    """
    fewest = max(spec.sample - spec.canaries, 0) if spec.sampling.is_by_server else spec.sample
    if not fewest <= counted <= spec.sample:
        raise IntegrityError("the counted rows are not the m rows of the release", where=f"release {spec.release_id}")
    return ReleaseDesign(
        population=spec.population,
        sample=counted,
        mechanism=spec.mechanism.marginal(cells),
        scheme=scheme_of(spec.scheme, population=spec.population, sample=counted, stage=spec.stage),
    )
