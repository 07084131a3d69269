"""From a tally to frequencies: estimates, errors, intervals, and warnings."""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.numbers.confidence import CONFIDENCE
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError, NotReadyError
from veiltab.researcher.estimates.projection import project_to_simplex
from veiltab.researcher.frequency.design import RoundDesign
from veiltab.researcher.frequency.estimators import Estimator, default_estimator, point_estimates
from veiltab.researcher.frequency.intervals import score_interval
from veiltab.researcher.frequency.tally import Tally
from veiltab.researcher.frequency.variances import variance_estimate

_MEAN_RATE = frozenset({Estimator.C, Estimator.G, Estimator.C_HAT, Estimator.T})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frequencies:
    """How many of the n nodes hold each value, estimated from the reports of a round.

    Args:
        estimator: which estimator `counts` comes from.
        labels: names of the d values.
        population: n, nodes.
        confidence: probability that one value's interval holds its true count.
        counts: the raw estimate, shape (d,) (nodes); possibly negative or above n.
        standard_errors: of `counts`, from the tally alone, shape (d,) (nodes).
        low: lower ends of the score intervals, shape (d,) (nodes).
        high: upper ends, shape (d,) (nodes).
        projected: n times the nearest probability table to counts/n, shape (d,) (nodes): biased, never farther from
            the truth.
        biased: a sentence if `counts` is biased, else empty.
        warning: sentences of caution for the reader, else empty.
    """

    estimator: Estimator
    labels: tuple[str, ...]
    population: int
    confidence: float
    counts: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    projected: NDArray[np.float64]
    biased: str = ""
    warning: str = ""

    @property
    def fractions(self) -> NDArray[np.float64]:
        """The raw estimate as fractions of the nodes, shape (d,) (probabilities)."""
        return self.shares(self.counts)

    def shares(self, nodes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return counts (or standard errors, interval ends, projected counts) as fractions of the n nodes."""
        return nodes / self.population


def estimate(tally: Tally, estimator: Estimator | str | None = None, confidence: float = CONFIDENCE) -> Frequencies:
    """Estimate how many nodes hold each value.

    Args:
        estimator: an estimator or its name; by default hajek at one rate and horvitz_thompson otherwise.
        confidence: probability that one value's interval holds its true count.

    Returns:
        Estimates with standard errors and intervals, one of each a value.

    Raises:
        InvalidInputError: an unknown estimator, or a confidence outside (0, 1).
        NotReadyError: there is no report.
    """
    which = default_estimator(tally) if estimator is None else _named(estimator)
    if not tally.reports.sum():
        raise NotReadyError(
            "no node has reported, so there is nothing to estimate", remedy="Wait for reports, or open another round."
        )
    design = tally.design
    counts = point_estimates(which, tally.counts, tally.reports, design)
    low, high = score_interval(tally, which, confidence)
    return Frequencies(
        estimator=which,
        labels=tally.labels,
        population=design.population,
        confidence=confidence,
        counts=counts,
        standard_errors=np.sqrt(variance_estimate(tally, which)),
        low=low,
        high=high,
        projected=design.population * project_to_simplex(counts / design.population),
        biased=bias_of(which, design),
        warning=" ".join([*_about_rates(which, design), *_about_reports(which, tally)]),
    )


def total_variation(estimated: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return half the sum of |estimated - truth| over the values.

    Args:
        estimated: fractions, shape (..., d); raw ones may be negative.
        truth: fractions, shape (d,) or like `estimated`.

    Returns:
        Shape (...), float64.
    """
    distance: NDArray[np.float64] = np.abs(estimated - truth).sum(axis=-1) / 2
    return distance


def bias_of(estimator: Estimator, design: RoundDesign) -> str:
    """Return a sentence that says why an estimator is biased in a round; empty if it is not.

    Source: Biswas, Cormode, Maple, Theorem 2.1 (c); Theorem 5.1 needs rates unrelated to the values.
    """
    if estimator is Estimator.C and design.mean_rate < 1:
        return (
            "c is biased: it takes nodes that did not report for nodes that did, which lowers every count f n by"
            " (1 - rate) (f n + n q/(p - q)), rate being the mean rate if rates differ but are unrelated to the values."
        )
    if design.one_rate:
        return ""
    match estimator:
        case Estimator.C | Estimator.G | Estimator.C_HAT | Estimator.T:
            return (
                f"{estimator} is biased unless the strata's rates are unrelated to their values: it uses the mean rate,"
                f" {float(design.mean_rate):.6g}, for every node."
            )
        case Estimator.HAJEK:
            return "hajek is a ratio of two estimates: its bias is far below its standard error unless reports are few."
        case Estimator.HORVITZ_THOMPSON:
            return ""


def _named(estimator: Estimator | str) -> Estimator:
    try:
        return Estimator(estimator)
    except ValueError:
        names = ", ".join(Estimator)
        raise InvalidInputError(f"there is no estimator {estimator!r}", remedy=f"Choose from {names}.") from None


def _about_rates(estimator: Estimator, design: RoundDesign) -> list[str]:
    if design.one_rate or estimator not in _MEAN_RATE:
        return []
    sentence = f"The strata report at different rates, and {estimator} weighs every report alike: "
    return [sentence + "horvitz_thompson is unbiased here."]


def _about_reports(estimator: Estimator, tally: Tally) -> list[str]:
    """Return a sentence about strata whose reports contradict their rate: nodes failed, or the population is wrong."""
    sentences = []
    for name, received, nodes, rate in zip(
        tally.strata, tally.reports.tolist(), tally.populations, tally.rates, strict=True
    ):
        expected = nodes * float(rate)
        if abs(received - expected) > 6 * sqrt(expected * (1 - float(rate))) + 6:
            sentences.append(f"{received} instead of about {expected:.0f} in stratum {name}")
    if not sentences:
        return []
    listed = "; ".join(sentences[:3]) + ("; ..." if len(sentences) > 3 else "")
    hint = (
        "Were nodes away, or did some answer twice?"
        if estimator is Estimator.HAJEK and tally.design.one_rate
        else f"{estimator} relies on the rates and the populations."
    )
    return [f"Reports that chance does not explain: {listed}. {hint}"]
