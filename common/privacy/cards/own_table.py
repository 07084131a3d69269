"""A table of pure epsilon that one curator releases alone, as others see it: at most one row's randomised response."""

from dataclasses import dataclass
from decimal import Decimal

from veiltab.common.core.mechanism import UNIT, TwoSidedNoise
from veiltab.common.core.numbers.rounding import exp_above
from veiltab.common.privacy.coalitions import Coalition, TwoSidedRelease
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.schemes import scheme_of

_UNBOUNDED = (Coalition.DESK_AND_CURATORS, Coalition.SERVER_AND_CURATORS, Coalition.DESK_SERVER_AND_CURATOR)
"""Coalitions that face rows or everything of any release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _OwnTable(TwoSidedRelease):
    def seen_by(self, coalition: Coalition) -> ReleaseDescription | None:
        if coalition in _UNBOUNDED:
            return None
        one_row = scheme_of("wor", population=1, sample=1)
        return ReleaseDescription(scheme=one_row, cells=2, gamma=self.noise.server.gamma)


def own_table(population: int, epsilon: Decimal) -> TwoSidedRelease:
    """Return the release: everybody but the curator faces epsilon, whoever puts together what they see.

    Randomised response of two values with ln gamma = epsilon dominates every mechanism of that pure epsilon.

    Args:
        population: common respondents n.
        epsilon: nats, at most 40.

    Source: Kairouz, Oh, Viswanath, The composition theorem for differential privacy (2015), Theorem 3.2.
    """
    # Rounded down, so that ln gamma is no less than epsilon.
    replacement = int(2 * UNIT / (exp_above(epsilon) + 1))
    noise = TwoSidedNoise(cells=2, curator_replacement=0, server_replacement=replacement)
    return _OwnTable(scheme=scheme_of("wor", population=population, sample=population), noise=noise)
