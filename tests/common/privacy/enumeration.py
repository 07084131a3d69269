"""Theorem A in exact rationals, term by term: what every quick calculation of it is measured with."""

from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import factorial

from veiltab.common.core.rounding import exp_below
from veiltab.common.privacy.shuffle import OrderCertificate


def enumerated(n: int, m: int, cells: int, gamma: Fraction, e: Fraction) -> Fraction:
    """The formula of Theorem A, term by term."""
    w, a, q = Fraction(m, n), gamma - 1, gamma + cells - 1
    total = Fraction(0)
    for h0, h1, hr in product(range(m + 1), repeat=3):
        rest = m - h0 - h1 - hr
        if rest < 0 or (cells == 2 and hr):
            continue
        gain = w * a * (h0 - e * h1) - (e - 1) * (w * (h0 + h1 + hr) + (1 - w) * m)
        if gain <= 0:
            continue
        ways = factorial(m) // (factorial(h0) * factorial(h1) * factorial(hr) * factorial(rest))
        total += ways * gain * Fraction(cells - 2) ** hr * a**rest / q**m
    return total / m


def bracketed(bound: OrderCertificate, epsilon: float) -> tuple[Fraction, Fraction]:
    """The formula at a rational just below e^epsilon and at one just above it."""
    e = max(Fraction(1), exp_below(Decimal(epsilon)))
    return (
        enumerated(bound.population, bound.sample, bound.cells, bound.gamma, e * (1 + Fraction(1, 10**57))),
        enumerated(bound.population, bound.sample, bound.cells, bound.gamma, e),
    )
