"""Splits the noise of a release between the curators and the server: 1 - r = (1 - r_c)(1 - r_s).

The split changes neither the guarantee against the researcher nor the error; it decides what the pairs of parties face
(see veiltab.common.privacy.coalitions).
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil

from veiltab.common.core.mechanism import UNIT, GammaDiagonal, TwoSidedNoise
from veiltab.common.errors import InvalidInputError

DEFAULT_SPLIT = Decimal(0)
"""The curators' part s of the noise where nobody asks for another."""

_PRECISION = 60


def check_split(split: Decimal) -> None:
    """Refuse a split outside [0, 1)."""
    if not (split.is_finite() and 0 <= split < 1 and -split.as_tuple().exponent <= 18):  # type: ignore[operator]
        raise InvalidInputError(
            "the curators' part of the noise is a number from 0 to below 1 with at most 18 digits, as 0.5",
            where="noise_split",
        )


def parse_split(text: str) -> Decimal:
    """Read a split.

    Raises:
        InvalidInputError: no number, or outside [0, 1).
    """
    try:
        split = Decimal(text)
    except ArithmeticError:
        split = Decimal("NaN")
    check_split(split)
    return split


def two_sided(least: GammaDiagonal, split: Decimal) -> TwoSidedNoise:
    """Return the noise of both sides that together is at least as much as that of one mechanism.

    1 - r_c = (1 - r)^s, rounded to 2^-64; then the least r_s with (1 - r_c)(1 - r_s) <= 1 - r, exactly.

    Args:
        least: the mechanism with the least noise that keeps what was asked for.
        split: s in [0, 1): the curators' part.

    Returns:
        The two probabilities, the same on every machine.
    """
    check_split(split)
    curators = 0
    if least.retention > 0:
        with localcontext(prec=_PRECISION):
            kept = Decimal(least.retention.numerator) / Decimal(least.retention.denominator)
            curators = min(int((1 - kept**split) * UNIT), UNIT - 1)
    server = ceil(UNIT * (1 - least.retention / Fraction(UNIT - curators, UNIT)))
    return TwoSidedNoise(cells=least.cells, curator_replacement=curators, server_replacement=max(1, server))
