"""A measured table whose wrong links are undone before a model is fitted to it, and put in where it is played again."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from veiltab.common.core.derivation import derive
from veiltab.common.dataclass import dataclass, fields, replace
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.estimates.table_result import TableResult
from veiltab.researcher.linkage_errors.inversion import Correction, Floats, mixed
from veiltab.researcher.linkage_errors.linkage_error import MOST, Leg, LinkageErrors, correction_text
from veiltab.researcher.model.measurement import Measurement
from veiltab.researcher.model.row_drawing import Uniforms


def linked_results(
    tables: Sequence[TableResult], errors: LinkageErrors, owners: Mapping[str, str], sizes: Mapping[str, int]
) -> tuple[TableResult, ...]:
    """Return the tables of a release, those across curators with their wrong links to undo.

    Args:
        owners: attribute -> its curator, of all attributes of the study.
        sizes: attribute -> how many categories it has.

    Raises:
        InvalidInputError: the legs are not known, or a share is a range: a file has one value.
    """
    results = []
    for table in tables:
        legs = tuple(leg for leg in errors.legs(owners, table.names) if len(leg.names) < len(table.names))
        if any(leg.error.by for leg in legs):
            raise InvalidInputError(
                "shares of wrong links by category are undone in tables that were measured, and not in a model",
                where="linkage error",
                remedy="Ask for a table that was measured with their attribute, or give one share.",
            )
        ranges = [leg.error for leg in legs if leg.error.least is not None]
        if ranges:
            raise InvalidInputError(
                f"the share of wrong links is a range, {ranges[0].least:g} to {ranges[0].share:g}, and a model has one",
                where="linkage error",
                remedy="Give one share, perhaps with its standard deviation; make a second file for the other end.",
            )
        values = {field.name: getattr(table, field.name) for field in fields(TableResult)}
        shape = tuple(sizes[name] for name in table.names)
        results.append(LinkedResult(**values, legs=legs, shape=shape) if legs else table)
    return tuple(results)


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkedResult(TableResult):
    """One table across curators.

    Args:
        legs: whose attributes come by links, each with one share.
    """

    legs: tuple[Leg, ...]
    shape: tuple[int, ...]

    @property
    def measurement(self) -> Measurement:
        """The corrected table; its weight is that of the release times (1 - l)^2 of each leg, at most the right one."""
        observed = super().measurement
        legs = [(axes, leg.error.share) for axes, leg in zip(self._axes, self.legs, strict=True)]
        values = Correction(observed.values, self.shape, legs).table
        return replace(observed, values=values, weight=observed.weight * prod((1 - share) ** 2 for _, share in legs))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is corrected."""
        return correction_text(self.legs)

    def with_links(self, fractions: Floats, key: bytes) -> Floats:
        """Return what links make of a table, their share drawn about the one that is undone with its own error.

        Args:
            fractions: of the respondents, shape (K,).
            key: 32 bytes; one key draws the same shares for all tables.
        """
        legs = []
        for axes, leg in zip(self._axes, self.legs, strict=True):
            (normal,) = Uniforms(derive(key, f"links {leg.curator}")).normals(1)
            legs.append((axes, float(np.clip(leg.error.share + leg.error.sd * normal, 0.0, MOST))))
        return mixed(fractions, self.shape, legs)

    @property
    def _axes(self) -> list[tuple[int, ...]]:
        return [tuple(map(self.names.index, leg.names)) for leg in self.legs]
