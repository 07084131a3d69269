"""The common base of MUST's two-stage schemes."""

from abc import ABC
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.derivation import derive
from veiltab.common.core.numbers.rounding import exp_above, ln_above
from veiltab.common.core.sampling import Gathering, Grouping, Rows, held_in_memory, in_memory, uniform_pieces
from veiltab.common.dataclass import dataclass
from veiltab.common.schemes.scheme import Relation, Scheme, SizeLaw

_LARGEST = 600
"""Epsilon of a second stage beyond which its amplification is not computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoStage(Scheme, ABC):
    """Stage one draws b of n respondents, stage two m of those b.

    Args:
        stage: b, rows after stage one.
    """

    relation: ClassVar[Relation] = Relation.SUBSTITUTION
    size_law: ClassVar[SizeLaw] = SizeLaw.FIXED
    is_simple_random: ClassVar[bool] = False

    stage: int

    def _first_rows(self, tokens: NDArray[np.uint8], key: bytes, grouping: Grouping) -> Iterator[Rows]:
        """Yield the b rows of stage one piece by piece: with replacement, unless a scheme overrides it."""
        del tokens, grouping
        return uniform_pieces(self.population, self.stage, key)

    def _second_places(self, key: bytes, grouping: Grouping) -> Iterator[Rows]:
        """Yield which m of the b rows stage two draws, piece by piece: likewise."""
        del grouping
        return uniform_pieces(self.stage, self.sample, key)

    def draw(self, tokens: NDArray[np.uint8], key: bytes) -> Rows:
        """Return the rows of stage one that stage two draws, in its order; see Scheme."""
        return np.concatenate(list(self.draw_pieces(tokens, key, in_memory, held_in_memory)))

    def draw_pieces(
        self, tokens: NDArray[np.uint8], key: bytes, grouping: Grouping, gathering: Gathering
    ) -> Iterator[Rows]:
        """Yield them piece by piece; see Scheme."""
        first = self._first_rows(tokens, derive(key, "stage one"), grouping)
        return gathering(first, self.stage, self._second_places(derive(key, "stage two"), grouping), self.sample)

    def _second_stage(self, gamma: Fraction) -> tuple[Decimal, Fraction | None]:
        """Return epsilon_2 = m ln(1 + (gamma - 1)/b) of draws with replacement, and e^epsilon_2 - 1; both rounded up.

        None stands for an epsilon beyond _LARGEST.
        """
        epsilon = self.sample * ln_above(1 + (gamma - 1) / self.stage)
        return epsilon, exp_above(epsilon) - 1 if epsilon < _LARGEST else None
