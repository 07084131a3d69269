"""Receipts: what the canaries of a release say about the server that perturbed it.

A canary row changes in some of the tested columns with probability p = r_s (1 - 1/K), K the product of their sizes. So
the number of c canaries that changed is Bin(c, p), whatever the data. A server that adds no noise, half of it, another
r, or that exchanges columns gives another number. The bounds of what is accepted come from decimal arithmetic: every
party and every verifier computes the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import factorial, prod

from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.release.spec import Column, ReleaseSpec

FALSE_ALARM = Decimal("1e-9")
"""Probability that an honest server fails the tests of a release, all of them together."""

POWER = Decimal("0.999")
"""Probability with which the planned canaries show that half of the noise is missing."""

LEAST_CAP = 1024
"""Canaries that a release may have however few its rows are."""

_LEAST_CHANGES = 260
"""Changed canaries about which the search begins, where p is small."""

_STEPS = 1000
_PRECISION = 30
_NEGLIGIBLE = Decimal("1e-25")


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The result of one test of one release.

    Args:
        tester: the curator, or "" for the desk's test over all columns.
        canaries: c, rows that were tested.
        changed: how many of them changed.
        low: fewest that are accepted.
        high: most that are accepted.
        expected: c p, to three decimals.
        sd: sqrt(c p (1 - p)), to three decimals.
    """

    tester: str
    canaries: int
    changed: int
    low: int
    high: int
    expected: Decimal
    sd: Decimal

    @property
    def passed(self) -> bool:
        """Whether the server's noise can be that of the release."""
        return self.low <= self.changed <= self.high

    @property
    def tested_by(self) -> str:
        """Who tested, in words."""
        return f"curator {self.tester}" if self.tester else "desk"

    def facts(self) -> dict[str, object]:
        """Return the receipt for JSON; "curator" is empty where the desk tested."""
        return {
            "curator": self.tester,
            "tested_by": self.tested_by,
            "canaries": self.canaries,
            "changed": self.changed,
            "expected": float(self.expected),
            "sd": float(self.sd),
            "low": self.low,
            "high": self.high,
            "passed": self.passed,
        }

    def sentence(self, columns_of: str) -> str:
        """Return the receipt in words.

        Args:
            columns_of: the curator whose columns were tested; "" for all columns.
        """
        where = f"{columns_of}'s columns" if columns_of else "the columns"
        return (
            f"of {self.canaries:,} canaries {self.changed:,} changed in {where}, {round(self.expected):,} +-"
            f" {round(self.sd):,} expected ({self.low:,} to {self.high:,} are accepted)"
        )


def receipt_of(
    spec: ReleaseSpec, tester: str, *, canaries: int, changed: int, columns: Sequence[Column] | None = None
) -> Receipt:
    """Return the receipt of a test.

    Args:
        spec: of the release.
        tester: a curator with columns in the release, who tests those; "" tests all columns.
        canaries: rows that were tested: c, or those among the sampled places where the server samples.
        changed: how many changed in any tested column.
        columns: what was tested; None for all columns that the tester has to test.
    """
    changes = change_probability(spec, tester, columns)
    low, high = accepted(canaries, changes, level_of(spec))
    with localcontext(prec=_PRECISION):
        p = Decimal(changes.numerator) / Decimal(changes.denominator)
        expected, variance = canaries * p, canaries * p * (1 - p)
        thousandth = Decimal("0.001")
        return Receipt(
            tester=tester,
            canaries=canaries,
            changed=changed,
            low=low,
            high=high,
            expected=expected.quantize(thousandth),
            sd=variance.sqrt().quantize(thousandth),
        )


def change_probability(spec: ReleaseSpec, tester: str, columns: Sequence[Column] | None = None) -> Fraction:
    """Return p = r_s (1 - 1/K), exactly; K the cells of the tested columns.

    Without `columns` these are all of a curator's, or all of the release where the tester is "".
    """
    if columns is None:
        columns = spec.columns_of(tester) if tester else spec.columns
    return _changes(spec.server_mechanism, prod(column.size for column in columns))


def level_of(spec: ReleaseSpec) -> Decimal:
    """Return the false alarm of each test: one a curator with columns, and the desk's."""
    return _level(len({column.owner for column in spec.columns}))


@lru_cache(maxsize=256)
def planned_canaries(server: GammaDiagonal, owned_cells: tuple[int, ...], rows: int) -> int:
    """Return how many canaries show every curator with probability .999 that half of the noise is missing.

    The least number, to within a thousandth.

    Args:
        server: what the server is to run.
        owned_cells: product of the sizes of each curator's columns.
        rows: data rows of the release; more canaries than these, and than 1024, are not planned.

    Returns:
        c, the same on every machine.
    """
    hardest = min(_changes(server, cells) for cells in owned_cells)
    level, most = _level(len(owned_cells)), max(LEAST_CAP, rows)
    if hardest == 0:
        return 0
    high = min(most, max(16, int(_LEAST_CHANGES / hardest)))
    while not _shows(high, hardest, Fraction(1, 2), level):
        if high >= most:
            return most
        high = min(2 * high, most)
    low = high // 2
    while high - low > 1 + high // _STEPS:
        middle = (low + high) // 2
        low, high = (low, middle) if _shows(middle, hardest, Fraction(1, 2), level) else (middle, high)
    return high


def shown_share(server: GammaDiagonal, owned_cells: tuple[int, ...], canaries: int) -> float:
    """Return the largest share of the noise at which every curator finds with probability .999 that some is missing.

    0 where not even a server without any noise is found. For display.
    """
    hardest = min(_changes(server, cells) for cells in owned_cells)
    level = _level(len(owned_cells))
    if not _shows(canaries, hardest, Fraction(0), level):
        return 0.0
    low, high = 0, 1000
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _shows(canaries, hardest, Fraction(middle, 1000), level) else (low, middle)
    return low / 1000


def shown_by_canaries(spec: ReleaseSpec) -> float:
    """Return the largest share of its noise at which a server is found with probability .999; see `shown_share`."""
    tested = spec.canaries * spec.published_rows // spec.uploaded_rows
    return shown_share(spec.server_mechanism, cells_of_owners(spec.columns), tested)


def cells_of_owners(columns: Sequence[Column]) -> tuple[int, ...]:
    """Return the product of the sizes of each curator's columns, in order of the curators' names."""
    owners = sorted({column.owner for column in columns})
    return tuple(prod(column.size for column in columns if column.owner == owner) for owner in owners)


@lru_cache(maxsize=256)
def accepted(canaries: int, changes: Fraction, level: Decimal) -> tuple[int, int]:
    """Return the fewest and the most changed canaries that the two-sided test accepts.

    Args:
        canaries: c.
        changes: p.
        level: most probability of Bin(c, p) outside, half of it on each side.
    """
    fewest = _least_with(canaries, changes, level / 2)
    most = canaries - _least_with(canaries, 1 - changes, level / 2)
    return fewest, most


def _changes(server: GammaDiagonal, cells: int) -> Fraction:
    return (1 - server.retention) * (1 - Fraction(1, cells))


def _level(owners: int) -> Decimal:
    return FALSE_ALARM / (owners + 1)


def _shows(canaries: int, changes: Fraction, share: Fraction, level: Decimal) -> bool:
    """Whether so many canaries show that only a share of the noise was added."""
    fewest = _least_with(canaries, changes, level / 2)
    return fewest > 0 and _at_most(fewest - 1, canaries, changes * share) >= POWER


def _least_with(trials: int, p: Fraction, level: Decimal) -> int:
    """Return the least k with P(Bin(trials, p) <= k) > level: what is below it is rejected."""
    low, high = 0, min(trials, int(trials * p) + 1)
    if _at_most(low, trials, p) > level:
        return 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _at_most(middle, trials, p) > level else (middle, high)
    return high


def _at_most(k: int, trials: int, p: Fraction) -> Decimal:
    """Return P(Bin(trials, p) <= k): the terms from the largest downwards, until they no longer matter."""
    if p == 0 or k >= trials:
        return Decimal(1)
    if p == 1:
        return Decimal(0)
    mean = int(trials * p)
    if k > mean:
        return 1 - _at_most(trials - k - 1, trials, 1 - p)
    with localcontext(prec=_PRECISION):
        odds = Decimal(p.denominator - p.numerator) / Decimal(p.numerator)
        total = term = Decimal(1)
        for j in range(k, 0, -1):
            term *= j * odds / (trials - j + 1)
            total += term
            if term < _NEGLIGIBLE * total:
                break
        return total * _term(k, trials, p)


def _term(k: int, trials: int, p: Fraction) -> Decimal:
    """Return P(Bin(trials, p) = k)."""
    with localcontext(prec=_PRECISION):
        kept = Decimal(p.denominator - p.numerator) / Decimal(p.denominator)
        logarithm = _ln_choose(trials, k) + (trials - k) * kept.ln()
        if k:
            logarithm += k * (Decimal(p.numerator) / Decimal(p.denominator)).ln()
        return logarithm.exp()


def _ln_choose(n: int, k: int) -> Decimal:
    return _ln_factorial(n) - _ln_factorial(k) - _ln_factorial(n - k)


@lru_cache(maxsize=4096)
def _ln_factorial(n: int) -> Decimal:
    """Return ln n!: the product itself, or Stirling's series, whose error is below its last term (1e-27)."""
    with localcontext(prec=_PRECISION + 10):
        if n < 200:
            return Decimal(factorial(n)).ln()
        x = Decimal(n)
        series = sum(
            (Decimal(b.numerator) / (Decimal(b.denominator) * x ** (2 * i + 1)) for i, b in enumerate(_STIRLING)),
            Decimal(0),
        )
        return (x + Decimal("0.5")) * x.ln() - x + (2 * _PI).ln() / 2 + series


_PI = Decimal("3.14159265358979323846264338327950288419716939937510")
_STIRLING = (
    Fraction(1, 12),
    Fraction(-1, 360),
    Fraction(1, 1260),
    Fraction(-1, 1680),
    Fraction(1, 1188),
    Fraction(-691, 360360),
)
"""Coefficients of 1/n, 1/n^3, ... of ln n! - (n + 1/2) ln n + n - ln(2 pi)/2."""
