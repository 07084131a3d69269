"""The largest gamma whose release keeps an (epsilon, delta): the inverse of the order certificate.

Relation: substitution of one row; against the researcher. Both guarantees of a release hold together: the pure one of
the secret sample, and the (epsilon, delta) one of the secret order, which is far stronger.
"""

from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import inf

from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.core.numbers.elementary import exp, log
from veiltab.common.core.numbers.rounding import exp_below
from veiltab.common.privacy.shuffle import OrderCertificate, check_delta
from veiltab.common.privacy.threshold_search import largest_allowed
from veiltab.common.schemes.simple_random import gamma_for_pure_epsilon

_DIGITS = Context(prec=7, rounding=ROUND_FLOOR)
"""gamma - 1 keeps seven digits: its search stops as close to the largest that is allowed."""

_STEP = Fraction(1, 10**6)
_LARGEST_LOG = 60.0
"""ln(gamma - 1) beyond which a release is as good as without noise."""


def calibrate(  # noqa: PLR0913 - one argument a quantity
    *,
    population: int,
    sample: int,
    cells: int,
    epsilon: Decimal,
    delta: Decimal,
    max_local_epsilon: Decimal | None = None,
    presence: Fraction = Fraction(1),
) -> GammaDiagonal:
    """Return the mechanism with the least noise that keeps (epsilon, delta), and a cap on ln gamma if there is one.

    Args:
        population: n, rows.
        sample: m, rows, without replacement.
        cells: K.
        epsilon: nats.
        delta: in (0, 1).
        max_local_epsilon: most ln gamma a row may face from who knows the sample, nats.
        presence: probability that a row takes part, by coins that the adversary sees; below 1 where m = n alone.

    Returns:
        A mechanism with certificate delta(epsilon) <= delta; certified as it runs, after rounding.

    Raises:
        InvalidInputError: out of range.

    Source: Theorem A (see veiltab.common.privacy.shuffle); the pure gamma is always enough (Lin, Wang, Rane,
    Theorem 3.2).
    """
    check_delta(float(delta))
    ceiling = None if max_local_epsilon is None else exp_below(max_local_epsilon) - 1
    floor = gamma_for_pure_epsilon(epsilon, population=population, sample=sample) - 1
    if ceiling is not None and ceiling <= floor:
        return GammaDiagonal.from_gamma(cells, 1 + ceiling)

    def certificate(gamma: Fraction) -> OrderCertificate:
        return OrderCertificate(population=population, sample=sample, cells=cells, gamma=gamma, presence=presence)

    def excess(log_a: float) -> float:
        """How far ln delta lies above what is allowed."""
        its_delta = certificate(1 + Fraction(exp(log_a))).delta(float(epsilon))
        return log(its_delta / float(delta)) if its_delta > 0 else -inf

    # The blanket of n rows hides one row as well as about 2.5 ln(1/delta) / epsilon0^2 noisy rows a cell would.
    sampled = log(1 + float(floor))
    guess = log(sample * sampled * sampled / (2.5 * log(1 / float(delta))))
    best = largest_allowed(log(float(floor)), guess, _LARGEST_LOG if ceiling is None else log(float(ceiling)), excess)
    a = max(Fraction(_DIGITS.create_decimal(Decimal(exp(best)))), floor)
    while True:
        mechanism = GammaDiagonal.from_gamma(cells, 1 + a)
        if a == floor or certificate(mechanism.gamma).delta(float(epsilon)) <= delta:
            return mechanism
        a = max(a * (1 - _STEP), floor)
