"""Theorem A in exact rationals, term by term, and the exact law of small releases: what quick calculations meet."""

from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import comb, factorial

from veiltab.common.core.numbers.rounding import exp_below
from veiltab.common.privacy.shuffle import OrderCertificate


def enumerated(  # noqa: PLR0913, PLR0917 - a formula
    n: int, m: int, cells: int, gamma: Fraction, e: Fraction, presence: Fraction = Fraction(1)
) -> Fraction:
    """The formula of Theorem A, term by term."""
    w, a, q = Fraction(m, n), gamma - 1, gamma + cells - 1
    elsewhere = q / presence - cells
    total = Fraction(0)
    for h0, h1, hr in product(range(m + 1), repeat=3):
        rest = m - h0 - h1 - hr
        if rest < 0 or (cells == 2 and hr):
            continue
        gain = w * a * (h0 - e * h1) - (e - 1) * (w * (h0 + h1 + hr) + (1 - w) * m)
        if gain <= 0:
            continue
        ways = factorial(m) // (factorial(h0) * factorial(h1) * factorial(hr) * factorial(rest))
        total += ways * gain * Fraction(cells - 2) ** hr * elsewhere**rest / (q / presence) ** m
    return total / m


def bracketed(bound: OrderCertificate, epsilon: float) -> tuple[Fraction, Fraction]:
    """The formula at a rational just below e^epsilon and at one just above it."""
    e = max(Fraction(1), exp_below(Decimal(epsilon)))
    facts = bound.population, bound.sample, bound.cells, bound.gamma
    return (enumerated(*facts, e * (1 + Fraction(1, 10**57)), bound.presence), enumerated(*facts, e, bound.presence))


@cache
def output_law(truth: tuple[int, ...], cells: int, gamma: Fraction) -> dict[tuple[int, ...], Fraction]:
    """The law of the histogram of independent gamma-diagonal outputs on given rows."""
    law = {(0,) * cells: Fraction(1)}
    q = gamma + cells - 1
    for x in truth:
        grown: dict[tuple[int, ...], Fraction] = {}
        for counts, p in law.items():
            for y in range(cells):
                after = (*counts[:y], counts[y] + 1, *counts[y + 1 :])
                grown[after] = grown.get(after, Fraction(0)) + p * (gamma if x == y else 1) / q
        law = grown
    return law


@cache
def release_law(table: tuple[int, ...], m: int, cells: int, gamma: Fraction) -> dict[tuple[int, ...], Fraction]:
    """The law of what a researcher learns of a secret sample in secret order: the histogram."""
    total: dict[tuple[int, ...], Fraction] = {}
    for rows in combinations(range(len(table)), m):
        for counts, p in output_law(tuple(sorted(table[i] for i in rows)), cells, gamma).items():
            total[counts] = total.get(counts, Fraction(0)) + p / comb(len(table), m)
    return total
