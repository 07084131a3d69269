"""Splits the noise of a release between the curators and the server: 1 - r = (1 - r_c)(1 - r_s).

The split changes neither the guarantee against the researcher nor the error; it decides what coalitions face (see
veiltab.common.privacy.coalitions). A cap on what they face may take more noise of a side than the split gives it.

Every curator computes the split for itself: it is the same on every machine, as exp and ln of decimals are correctly
rounded, and all else is whole numbers.
"""

from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from math import floor

from veiltab.common.core.mechanism import UNIT, GammaDiagonal, TwoSidedNoise
from veiltab.common.core.numbers.rounding import Parameter, exact_decimal, exp_below
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.calibration import calibrate
from veiltab.common.schemes import Scheme, check_certified

DEFAULT_SPLIT = Decimal("0.5")
"""The curators' part s of the noise where nobody asks for another."""

_ROUNDING = Decimal("0.9999998")
"""Part of a cap on pairs that is planned for, so that a card, which rounds up by 1e-7, states no more than the cap."""

_DECIMAL = Context(prec=60, rounding=ROUND_HALF_EVEN)


def check_split(split: Decimal) -> None:
    """Refuse a split outside [0, 1)."""
    if not (split.is_finite() and 0 <= split < 1 and -split.as_tuple().exponent <= 18):  # type: ignore[operator]
        raise InvalidInputError(
            "the curators' part of the noise is a number from 0 to below 1 with at most 18 digits, as 0.5",
            where="noise_split",
        )


def parse_split(value: Parameter) -> Decimal:
    """Read a split: a text, a decimal, or a number, which counts as Python shows it.

    Raises:
        InvalidInputError: no number, or outside [0, 1).
    """
    try:
        split = exact_decimal(value)
    except ArithmeticError:
        split = Decimal("NaN")
    check_split(split)
    return split


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSharing:
    """How the curators and the server share the noise of a release, and what coalitions may face at most.

    Args:
        split: s in [0, 1): the curators' part.
        max_local_epsilon: most that ln gamma(r_s) may be, nats: what a row loses to who knows whose it is and the
            curators' coins; None for no cap.
        max_pair_epsilon: most epsilon of the desk with the server, and of an analyst with curators, nats; None for no
            cap.
        is_sampled_by_server: whether the server draws the sample, and so has everyone's row.
    """

    split: Decimal = DEFAULT_SPLIT
    max_local_epsilon: Decimal | None = None
    max_pair_epsilon: Decimal | None = None
    pair_delta: Decimal
    is_sampled_by_server: bool = False

    def __post_init__(self) -> None:
        check_split(self.split)

    def of(self, least: GammaDiagonal, scheme: Scheme) -> TwoSidedNoise:
        """Return the noise of both sides that together is at least as much as that of one mechanism.

        The curators have their part of the split, or what the cap on the desk with the server needs; then the server
        has what is missing, or what the caps on what curators take part in need.

        Args:
            least: the mechanism with the least noise that keeps what was asked for.
            scheme: how rows are sampled.

        Raises:
            InvalidInputError: a cap on pairs for a scheme without a certificate.
        """
        curators = max(curators_part(least, self.split), self._curators_at_least(least.cells, scheme))
        server = max(servers_part(least, curators), self._server_at_least(least.cells, scheme, curators))
        return TwoSidedNoise(cells=least.cells, curator_replacement=curators, server_replacement=server)

    def _curators_at_least(self, cells: int, scheme: Scheme) -> int:
        if self.max_pair_epsilon is None:
            return 0
        check_certified(type(scheme))
        n = scheme.population
        return calibrate(
            population=n,
            sample=n if self.is_sampled_by_server else scheme.sample,
            cells=cells,
            epsilon=_DECIMAL.multiply(self.max_pair_epsilon, _ROUNDING),
            delta=self.pair_delta,
        ).replacement

    def _server_at_least(self, cells: int, scheme: Scheme, curators: int) -> int:
        enough = 1
        if self.max_local_epsilon is not None:
            enough = GammaDiagonal.from_gamma(cells, exp_below(self.max_local_epsilon)).replacement
        if self.max_pair_epsilon is None:
            return enough
        by_pairs = calibrate(
            population=scheme.sample,
            sample=scheme.sample,
            cells=cells,
            epsilon=_DECIMAL.multiply(self.max_pair_epsilon, _ROUNDING),
            delta=self.pair_delta,
            presence=Fraction(UNIT - curators, UNIT),
        )
        return max(enough, by_pairs.replacement)


def curators_part(least: GammaDiagonal, split: Decimal) -> int:
    """Return r_c with 1 - r_c = (1 - r)^s, rounded to 2^-64.

    Args:
        least: the mechanism with the least noise that keeps what was asked for, of replacement r.
        split: s in [0, 1).

    Returns:
        Units of 2^-64, 0..2^64 - 1.
    """
    if split == 0:
        return 0
    if least.retention == 0:
        return UNIT - 1
    retention = _DECIMAL.divide(Decimal(least.retention.numerator), Decimal(least.retention.denominator))
    curators = _DECIMAL.subtract(Decimal(1), _DECIMAL.exp(_DECIMAL.multiply(split, _DECIMAL.ln(retention))))
    return min(int(_DECIMAL.multiply(curators, Decimal(UNIT)).to_integral_value(ROUND_HALF_EVEN)), UNIT - 1)


def servers_part(least: GammaDiagonal, curators: int) -> int:
    """Return the least r_s from 1 with (1 - r_c)(1 - r_s) <= 1 - r, exactly.

    Args:
        least: the mechanism of replacement r.
        curators: r_c in units of 2^-64, below 2^64.

    Returns:
        Units of 2^-64, 1..2^64.
    """
    return max(1, UNIT - floor(least.retention * UNIT * UNIT / (UNIT - curators)))
