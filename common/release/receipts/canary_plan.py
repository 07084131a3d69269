"""How well a server's noise is tested: how many canaries a release has for that, and what so many show.

The tests are those of `noise_tests`. What is planned and what it shows follow from public sizes, by exact binomial
laws.
"""

from bisect import bisect_left
from collections.abc import Sequence
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from math import ceil, isqrt, prod

from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.core.numbers.counts import Binomial, accepted, is_tail_within
from veiltab.common.dataclass import dataclass
from veiltab.common.release.receipts.noise_test_kinds import Family
from veiltab.common.release.receipts.noise_tests import JOINT_LEVEL, SAMPLED_LEVEL
from veiltab.common.release.table_spec import TableSpec

POWER = Decimal("0.999")
"""Probability with which canaries show what they are said to show."""

LEAST_PLANNED = 1024
"""Canaries that are planned at the least."""

MOST_PLANNED = 2**20
"""Canaries that are planned at the most, unless the release has more rows; a request may ask for more."""

_HALF = Fraction(1, 2)
_ONE_SIDE = (1 - POWER) / 2
_TOOTH = 8
_THOUSAND = 1000


class HowTested(Enum):
    """Whether a server's noise is tested enough."""

    ENOUGH = "enough"
    TOO_LITTLE = "too little"
    NOT = "not"

    def is_at_least(self, other: "HowTested") -> bool:
        """Return whether it is tested as well as the other, or better."""
        order = list(HowTested)
        return order.index(self) <= order.index(other)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTest:
    """What the canaries of a table, or of the table with the weakest test, show.

    Args:
        canaries: that are tested at the least.
        share: the largest share of its noise, in all columns or in one, at which a server is found with probability
            .999; 0 where one that adds none, or leaves a column as it came, may pass.
    """

    canaries: int
    share: Fraction

    @property
    def tested(self) -> HowTested:
        """Whether a server is found that leaves out half of its noise, of all columns or of one."""
        if not self.canaries:
            return HowTested.NOT
        return HowTested.ENOUGH if self.share >= _HALF else HowTested.TOO_LITTLE

    def facts(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return {"tested": self.tested.value, "shows_noise_below": float(self.share), "in_words": self.sentence}

    @property
    def sentence(self) -> str:
        """Return what is found, in words."""
        words = f"one that leaves out {float(1 - self.share):.3g} or more of its noise, of all columns or of one, is"
        words += " found with probability .999"
        match self.tested:
            case HowTested.ENOUGH:
                return f"the server is tested enough: {words}"
            case HowTested.TOO_LITTLE if self.share:
                return f"the server is tested too little: {words}, and one that leaves out less may pass"
            case HowTested.TOO_LITTLE:
                return (
                    "the server is tested too little: one that adds no noise, or leaves a column as it came, may pass"
                )
            case HowTested.NOT:
                return "the server is not tested: nothing shows that it adds its noise"


@lru_cache(maxsize=256)
def planned_canaries(server: GammaDiagonal, sizes: tuple[int, ...], rows: int) -> int:
    """Return how many canaries a release has: as many as test the server enough, up to `most_planned`.

    Args:
        server: what the server is to run.
        sizes: alphabet sizes of all columns.
        rows: data rows of the release.

    Returns:
        c, at least 1,024, the same on every machine.
    """
    most, high = most_planned(rows), LEAST_PLANNED

    def is_shown(canaries: int) -> bool:
        return canaries >= most or _shows(server, sizes, canaries, _HALF)

    while not is_shown(high):
        high = min(2 * high, most)
    return max(LEAST_PLANNED, high // 2 + bisect_left(range(high // 2, high), 1, key=is_shown))


def most_planned(rows: int) -> int:
    """Return how many canaries are planned at the most beside so many rows."""
    return max(MOST_PLANNED, rows)


def canaries_to_sample(tested: int, *, population: int, sample: int) -> int:
    """Return how many canaries to hide where the server samples, so that it publishes so many; see `sampled_canaries`.

    Canaries take the places of rows there: at most half of them.
    """
    target = min(tested + 8 * (isqrt(tested) + 1), sample // 2)
    return ceil(Fraction(target * population, sample - target))


def sampled_canaries(spec: TableSpec) -> tuple[int, int]:
    """Return how many canaries a server may publish, from and to: all, or of an honest sample those that tests accept.

    A sample without replacement spreads less than a binomial number, so the bounds are wide enough.
    """
    if not spec.sampling.is_by_server:
        return spec.canaries, spec.canaries
    share = Fraction(spec.published_rows, spec.uploaded_rows)
    return accepted(Binomial.of(spec.canaries, share), SAMPLED_LEVEL / 2, SAMPLED_LEVEL / 2)


def server_test(spec: TableSpec) -> ServerTest:
    """Return what the canaries of a table show."""
    sizes = tuple(column.size for column in spec.columns)
    return shown_by(spec.server_mechanism, sizes, sampled_canaries(spec)[0])


@lru_cache(maxsize=1024)
def shown_by(server: GammaDiagonal, sizes: tuple[int, ...], canaries: int) -> ServerTest:
    """Return what so many tested canaries show."""
    shares = [Fraction(thousandths, _THOUSAND) for thousandths in range(_THOUSAND + 1)]
    missed = bisect_left(shares, 1, key=lambda share: not _shows(server, sizes, canaries, share))
    return ServerTest(canaries=canaries, share=shares[max(0, missed - 1)])


def _shows(server: GammaDiagonal, sizes: Sequence[int], canaries: int, share: Fraction) -> bool:
    """Whether so many canaries show that only a share of the noise was added, of all columns or of any one."""
    replacement, some = 1 - server.retention, 1 - Fraction(1, prod(sizes))
    level = Family.AMOUNT.share * JOINT_LEVEL / 2
    fewest, _ = accepted(Binomial.of(canaries, replacement * some), level, Decimal(0))

    def is_seen(size: int) -> bool:
        own, rest = 1 - Fraction(1, size), 1 - Fraction(size, prod(sizes))
        changes = share * some + (1 - share) * rest
        law = Binomial.of(canaries, replacement * changes)
        return is_tail_within(law, fewest, 1 - POWER, 1) or (
            changes > 0 and _column_shows(law, len(sizes), own / some, share * own / changes)
        )

    # Without any other column, it is all of them that are left out.
    return is_tail_within(Binomial.of(canaries, replacement * some * share), fewest, 1 - POWER, 1) and all(
        is_seen(size) for size in set(sizes) if size > 1
    )


def _column_shows(changed: Binomial, columns: int, honest: Fraction, share: Fraction) -> bool:
    """Whether the changes of a column among the changed canaries are too few.

    Args:
        changed: law of the changed canaries.
        honest: share of them in which the column of an honest server changes.
        share: the same of the server.
    """
    level = Family.COLUMN.share * JOINT_LEVEL / columns / 2
    least, _ = accepted(changed, _ONE_SIDE, Decimal(0))

    def is_seen(number: int) -> bool:
        fewest, _ = accepted(Binomial.of(number, honest), level, Decimal(0))
        return is_tail_within(Binomial.of(number, share), fewest, _ONE_SIDE, 1)

    # The power rises in teeth of a few changes each.
    return all(is_seen(number) for number in range(least, least + _TOOTH))
