"""The paper's definitions and theorems in numbers, beside the exact moments."""

from fractions import Fraction
from math import exp, log

import numpy as np

from veiltab.papers.biswas.krr_design import krr_design
from veiltab.papers.biswas.populations import (
    EPSILONS,
    EVERYBODY,
    LAWS,
    NODES,
    PAPER,
    RATES,
    VALUES,
    design,
    randomiser,
    truth,
    with_share,
)
from veiltab.papers.biswas.rounds import MODE
from veiltab.papers.biswas.second_round import STRATA, strata
from veiltab.papers.biswas.variances import claimed, exact
from veiltab.papers.experiment import Comparison, Verdict
from veiltab.researcher.frequency.estimators import Estimator
from veiltab.researcher.frequency.variances import moments

_PI = RATES[0]
_ROUNDING = 1e-9
"""Largest relative difference that counts as rounding."""

_UNBIASED = 1e-6
"""Largest bias, in nodes, that counts as rounding."""

_STRATUM_RATES = (Fraction(1, 20), Fraction(1, 10), Fraction(3, 10), Fraction(9, 10))
"""Rates that differ between the strata, and so with what their nodes hold."""


def comparisons() -> tuple[Comparison, ...]:
    """Return the comparisons, in the order of the paper."""
    return (
        *_direct_encoding(),
        *_bias_of_c(),
        *_unbiased(),
        *_approximate_variance(),
        *_normalised(),
        *_reversed(),
        *_within_range(),
        *_general(),
    )


def formula(  # noqa: PLR0913, PLR0917 - one argument a fact
    what: str, where: str, printed: float, ours: float, error: str = "", tolerance: float | None = None
) -> Comparison:
    """Compare a value of a printed formula with ours, up to rounding errors; `error` says what the paper got wrong."""
    return Comparison(
        what=what,
        source=f"{PAPER}, {where}",
        printed=printed,
        ours=ours,
        tolerance=_ROUNDING * max(abs(printed), 1e-3) if tolerance is None else tolerance,
        note=error,
        otherwise=Verdict.PAPER_ERRS if error else Verdict.NOT_EXPLAINED,
    )


def _direct_encoding() -> list[Comparison]:
    rows = []
    for epsilon in EPSILONS:
        c = 1 / (exp(float(epsilon)) + VALUES - 1)
        oracle = randomiser(epsilon)
        rows += [
            formula(f"q of direct encoding, 100 values, epsilon = {epsilon}", "Definition 2.4", c, float(oracle.q)),
            formula(f"p, epsilon = {epsilon}", "Definition 2.4", c * exp(float(epsilon)), float(oracle.p)),
        ]
    return rows


def _mean(estimator: Estimator, epsilon: str, rate: str) -> np.ndarray:
    """Return the expected estimates of Bin(100, .5), shape (100,) (nodes)."""
    holders = truth("one")
    mean: np.ndarray = holders[0] + moments(estimator, holders, design(epsilon, rate)).bias
    return mean


def _bias_of_c() -> list[Comparison]:
    holders, rate = float(truth("one")[0, MODE - 1]), float(_PI)
    rows = []
    for epsilon in EPSILONS:
        missed = NODES / (exp(float(epsilon)) - 1)
        rows += [
            formula(
                f"mean of c for the value {MODE}, pi = {_PI}, epsilon = {epsilon}",
                "equation 4",
                holders * rate - missed * (1 - rate),
                float(_mean(Estimator.C, epsilon, _PI)[MODE - 1]),
            ),
            formula(
                f"mean of c as pi goes to 0, epsilon = {epsilon}",
                "Section 3, after Theorem 3.3 ('lim c = nq/(p-q)')",
                missed,
                -missed,
                "The sign: by equation 4 the limit is -nq/(p-q). The same sentence calls it negative, which is right.",
            ),
        ]
    everybody = max(float(abs(_mean(Estimator.C, epsilon, EVERYBODY) - truth("one")[0]).max()) for epsilon in EPSILONS)
    low = np.mean([_mean(Estimator.C, epsilon, rate) <= truth("one")[0] for epsilon in EPSILONS for rate in RATES])
    return [
        *rows,
        _zero("largest bias of c if everybody reports (nodes)", "Theorem 2.1", everybody),
        formula(
            "share of values, rates below 1 and epsilons at which c is too low on average", "Theorem 2.1", 1, float(low)
        ),
    ]


def _zero(what: str, where: str, ours: float, error: str = "") -> Comparison:
    """Compare with a bias that the paper says is zero."""
    return formula(what, where, 0, ours, error, _UNBIASED)


def _unbiased() -> list[Comparison]:
    theorems = ((Estimator.G, "Theorem 3.1"), (Estimator.C_HAT, "Theorem 3.4"))
    return [
        _zero(
            f"largest bias of {which}, over values, populations, rates and epsilons (nodes)",
            where,
            max(
                float(abs(moments(which, truth(law), design(epsilon, rate)).bias).max())
                for law in LAWS
                for epsilon in EPSILONS
                for rate in RATES
            ),
        )
        for which, where in theorems
    ]


def _variance(estimator: Estimator, epsilon: str, rate: str, share: str) -> float:
    return NODES * exact(VALUES, epsilon, rate, share, estimator)


def _approximate_variance() -> list[Comparison]:
    rows = []
    for epsilon in EPSILONS:
        p, q, rate = float(randomiser(epsilon).p), float(randomiser(epsilon).q), float(_PI)
        rows.append(
            formula(
                f"variance of g as f goes to 0, pi = {_PI}, epsilon = {epsilon}",
                "Theorem 3.2",
                NODES * (q - q * q * rate) / ((p - q) ** 2 * rate),
                _variance(Estimator.G, epsilon, _PI, "0"),
            )
        )
        f = 0.08
        chance = f * p + (1 - f) * q
        printed = NODES * rate * (f * p * (1 - p) + (1 - f) * q * (1 - q) + chance**2 * (1 - rate)) / (p - q) ** 2
        rows.append(
            formula(
                f"variance of c at f = .08, pi = {_PI}, epsilon = {epsilon}",
                "proof of Theorem 3.2",
                printed,
                _variance(Estimator.C, epsilon, _PI, "0.08"),
                "The nodes' values are fixed, so the square of the mean stands where the mean of the squares"
                " f p^2 + (1-f) q^2 belongs; n pi (1-pi) f (1-f) is missing, which vanishes with f.",
            )
        )
    rows.append(
        formula(
            f"variance of g over that of c as f goes to 0, pi = {_PI}, epsilon = 1",
            "Theorem 3.2",
            1 / float(_PI) ** 2,
            _variance(Estimator.G, "1", _PI, "0") / _variance(Estimator.C, "1", _PI, "0"),
        )
    )
    p, q = float(randomiser("1").p), float(randomiser("1").q)
    rows.append(
        formula(
            "variance of c as f goes to 0 if everybody reports, epsilon = 1",
            "Remark 2 (Wang, Blocki, Li, Jha)",
            NODES * q * (1 - q) / (p - q) ** 2,
            _variance(Estimator.C, "1", EVERYBODY, "0"),
        )
    )
    return rows


def _slope(small: float, large: float, factor: float) -> float:
    """Return by which power of a quantity something grows, if the quantity is `factor` times as large."""
    return log(large / small) / log(factor)


def _normalised() -> list[Comparison]:
    rates = ("0.001", "0.01")
    small, large = (_variance(Estimator.G, "1", rate, "0") for rate in rates)
    divided_small, divided_large = (
        one / (NODES * float(rate)) ** 2 for one, rate in zip((small, large), rates, strict=True)
    )
    return [
        Comparison(
            what="power of pi in the variance of g/(n pi), pi from .001 to .01",
            source=f"{PAPER}, proof of Theorem 3.3",
            printed=-3,
            ours=_slope(divided_small, divided_large, 10),
            tolerance=0.01,
            note="Tolerance: the power is reached as pi goes to 0.",
        ),
        Comparison(
            what="power of pi in the variance of the estimated share g/n, pi from .001 to .01",
            source=f"{PAPER}, Theorem 3.3",
            printed=-3,
            ours=_slope(small, large, 10),
            tolerance=0.01,
            note="g estimates n f whatever pi, so its share is g/n and its variance falls as 1/(pi n). The theorem's"
            " 1/pi^3 comes from dividing an estimate of all nodes by the number n pi of reports; Definition 3.1 divides"
            " the variance by the mean n f, which does not hold pi either.",
            otherwise=Verdict.PAPER_ERRS,
        ),
    ]


def _reversed() -> list[Comparison]:
    rows = []
    for epsilon in EPSILONS:
        ours = _variance(Estimator.C_HAT, epsilon, _PI, "0.08")
        printed = NODES * claimed(VALUES, epsilon, _PI, "0.08")
        base = _variance(Estimator.G, epsilon, _PI, "0.08")
        rows.append(
            formula(
                f"Var c_hat - Var g at f = .08, pi = {_PI}, epsilon = {epsilon} (nodes squared)",
                "Theorem 3.5, equation 6",
                printed - base,
                ours - base,
                "Reversed: the covariance of the count with the number of reports is left out. The difference is"
                " -n(1-pi) q [q + 2f(p-q)]/(pi (p-q)^2).",
            )
        )
    larger = [
        moments(Estimator.C_HAT, truth(law), design(epsilon, rate)).variance
        >= moments(Estimator.G, truth(law), design(epsilon, rate)).variance
        for law in LAWS
        for epsilon in EPSILONS
        for rate in RATES
    ]
    return [
        *rows,
        formula(
            "share of values, populations, rates below 1 and epsilons at which Var c_hat >= Var g",
            "Theorem 3.5",
            1,
            float(np.mean(larger)),
            "Reversed: it is Var g > Var c_hat wherever not everybody reports.",
        ),
    ]


def _within_range() -> list[Comparison]:
    inside = {
        which: [
            (mean >= -_UNBIASED) & (mean <= NODES)
            for mean in (_mean(which, epsilon, rate) for epsilon in EPSILONS for rate in RATES)
        ]
        for which in (Estimator.C, Estimator.G)
    }
    return [
        formula(
            "share of values, rates below 1 and epsilons at which the mean of g is between 0 and n",
            "Theorem 3.6",
            1,
            float(np.mean(inside[Estimator.G])),
        ),
        formula(
            "share at which the mean of c is, where c counts among the m nodes that report (Wang's c)",
            "Theorem 3.6 ('0 <= g <= n iff 0 <= c <= n on an average')",
            1,
            # That c is pi g: its mean lies between 0 and n pi where that of g lies between 0 and n.
            float(np.mean(inside[Estimator.G])),
        ),
        Comparison(
            what="share at which the mean of c is, with the sampling of equation 4",
            source=f"{PAPER}, Theorem 3.6 ('0 <= g <= n iff 0 <= c <= n on an average')",
            printed=1,
            ours=float(np.mean(inside[Estimator.C])),
            tolerance=_ROUNDING,
            note="The proof takes the mean of Wang's c, of nodes that all report, and the theorem then holds. With the"
            " sampling of equation 4 the mean is negative wherever f < q(1-pi)/(pi(p-q)).",
            otherwise=Verdict.READING,
        ),
    ]


def _general() -> list[Comparison]:
    populations = [nodes for _, nodes, _ in STRATA]
    rows = []
    for epsilon in EPSILONS:
        spec = krr_design(populations, _STRATUM_RATES, randomiser(epsilon).mechanism)
        bias = moments(Estimator.T, strata(), spec).bias
        rows.append(
            _zero(
                f"largest bias of T at rates .05 to .9 by stratum, epsilon = {epsilon} (nodes)",
                "Theorem 5.1",
                float(abs(bias).max()),
                "The proof takes every node's value for a draw from the same f. T is unbiased only if the rates are"
                " uncorrelated with the values; Horvitz and Thompson's estimator always is.",
            )
        )
    return [*rows, *_nobody_holds()]


def _nobody_holds() -> list[Comparison]:
    """Compare Var*(T), the variance for a value that no node holds, at rates that differ."""
    populations = [nodes for _, nodes, _ in STRATA]
    nobody = np.concatenate([with_share(VALUES, Fraction(0), nodes) for nodes in populations])
    spec = krr_design(populations, _STRATUM_RATES, randomiser("1").mechanism)
    p, q = float(spec.p), float(spec.q)
    summed = sum(
        n * q * float(rate) * (1 - q * float(rate)) for n, rate in zip(populations, _STRATUM_RATES, strict=True)
    )
    printed = NODES**2 * summed / ((NODES * float(spec.mean_rate)) ** 2 * (p - q) ** 2)
    equal = krr_design(populations, (Fraction(_PI),) * len(populations), randomiser("1").mechanism)
    both = [moments(which, strata(), equal) for which in (Estimator.T, Estimator.G)]
    return [
        formula(
            "variance of T as f goes to 0, rates .05 to .9 by stratum, epsilon = 1",
            "Theorem 5.1",
            printed,
            float(moments(Estimator.T, nobody, spec).variance[0]),
        ),
        _zero(
            "largest difference of T and g in bias and variance at equal rates",
            "Remark 2",
            float(max(abs(both[0].bias - both[1].bias).max(), abs(both[0].variance - both[1].variance).max())),
        ),
    ]
