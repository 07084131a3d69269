"""Smith: Differential privacy and the secrecy of the sample; his lemma, and the exact value.

A mechanism that is epsilon0-private, run on a sample that takes each row with probability eta, is
ln(1 + eta (e^epsilon0 - 1))-private; the post proves 2 eta for epsilon0 = 1. Relation: one row is added or removed.
"""

from collections.abc import Mapping, Sequence
from math import e, expm1, log, log1p, sqrt

import numpy as np

from veiltab.common.schemes.poisson import Poisson
from veiltab.papers.experiment import Comparison, Curve, Figure, Findings, Panel, Plain, Settings, Task, Verdict
from veiltab.papers.privacy.amplification import amplify
from veiltab.papers.privacy.profiles import Pure

POST = "Smith, Lemma 3"
_POPULATION = 10_000
_RATES = tuple(place / 100 for place in range(1, 100))
_SIMULATED = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_RUNS, _QUICK_RUNS = 2_000_000, 200_000
_BASES = (("0.5", 0.5), ("1", 1.0), ("ln 3", log(3)), ("2", 2.0))


class Smith:
    """The amplification lemma, exact and simulated at its worst case."""

    name = "smith"
    title = "Smith: Differential privacy and the secrecy of the sample"

    def tasks(self, settings: Settings) -> Sequence[Task]:
        """Return the points to compute."""
        runs = settings.runs(_RUNS, _QUICK_RUNS)
        return [
            Task(key=f"rate={rate}", function=simulated, arguments={"rate": rate, "epsilon": 1.0, "runs": runs})
            for rate in _SIMULATED
        ]

    def findings(self, settings: Settings, results: Mapping[str, Plain]) -> Findings:  # noqa: ARG002 - the protocol's
        """Return the figure and the comparisons."""
        return Findings(figures=(_figure(results),), comparisons=_comparisons(results))


EXPERIMENT = Smith()


def exact(rate: float, epsilon: float) -> float:
    """Return epsilon on a Poisson sample, nats, by the product's accountant."""
    scheme = Poisson(population=_POPULATION, sample=round(rate * _POPULATION))
    return amplify(scheme, Pure(epsilon0=epsilon), epsilon).epsilon


def simulated(arguments: Plain, generator: np.random.Generator) -> Plain:
    """Return the log likelihood ratio of the mechanism for which the lemma is tight, estimated from runs.

    The base mechanism reports whether a row is in the data, by binary randomised response at epsilon. On a sample it
    says yes with probability (1-rate)/(1+e^epsilon) + rate e^epsilon/(1+e^epsilon) if the row is there, and with
    probability 1/(1+e^epsilon) if it is not.

    Args:
        arguments: rate, epsilon (nats), runs (of each of the two data sets).

    Returns:
        estimate (nats), low and high: 4 standard errors, by the delta method (rounded up).
    """
    rate, runs = arguments["rate"], arguments["runs"]
    truth = 1 / (1 + np.exp(-arguments["epsilon"]))
    number = generator.binomial(runs, rate)
    # Half a yes more on both sides keeps the logarithm finite when runs are few.
    present = 0.5 + generator.binomial(number, truth) + generator.binomial(runs - number, 1 - truth)
    absent = 0.5 + generator.binomial(runs, 1 - truth)
    estimate = log(present / absent)
    error = sqrt(1 / present + 1 / absent)
    return {"estimate": estimate, "low": estimate - 4 * error, "high": estimate + 4 * error}


def _figure(results: Mapping[str, Plain]) -> Figure:
    return Figure(
        name="smith-lemma-3",
        title="Smith, Lemma 3: epsilon of a 1-private mechanism on a secret sample",
        panels=(_lemma(results), _beyond()),
        caption=(
            "Left: the lemma's 2 eta and the exact ln(1 + eta(e - 1)), attained by randomised response about one row's"
            " presence (points, from runs). Right: the exact value over 2 eta, for other base mechanisms; the constant"
            " 2 is enough up to a base epsilon of ln 3. The post has no figure."
        ),
    )


def _lemma(results: Mapping[str, Plain]) -> Panel:
    points = [(rate, results[f"rate={rate}"]) for rate in _SIMULATED]
    return Panel(
        title="base epsilon = 1",
        x_label="sampling rate eta (probability)",
        y_label="epsilon on the sample (nats)",
        curves=(
            Curve(label="bound 2 eta (Lemma 3)", x=_RATES, y=tuple(2 * rate for rate in _RATES), style="dashed"),
            Curve(label="exact ln(1 + eta(e - 1))", x=_RATES, y=tuple(exact(rate, 1.0) for rate in _RATES)),
            Curve(
                label="a row is removed: -ln(1 - eta(1 - 1/e))",
                x=_RATES,
                y=tuple(_removed(r) for r in _RATES),
                style="dotted",
            ),
            Curve(
                label="tight example, simulated",
                x=tuple(rate for rate, _ in points),
                y=tuple(one["estimate"] for _, one in points),
                low=tuple(one["low"] for _, one in points),
                high=tuple(one["high"] for _, one in points),
                style="points",
            ),
        ),
    )


def _removed(rate: float) -> float:
    """Return the largest log ratio in the other direction, nats: less than `exact`."""
    return -log1p(rate * expm1(-1.0))


def _beyond() -> Panel:
    curves = [
        Curve(label=f"base epsilon {text}", x=_RATES, y=tuple(exact(rate, base) / (2 * rate) for rate in _RATES))
        for text, base in _BASES
    ]
    ends = (_RATES[0], _RATES[-1])
    return Panel(
        title="exact epsilon over 2 eta",
        x_label="sampling rate eta (probability)",
        y_label="ratio; the lemma's bound holds below 1",
        curves=(*curves, Curve(label="2 eta itself", x=ends, y=(1.0, 1.0), style="dashed")),
    )


def _comparisons(results: Mapping[str, Plain]) -> tuple[Comparison, ...]:
    excess = max(exact(rate, 1.0) - 2 * rate for rate in _RATES)
    return (
        Comparison(
            what="most by which the exact epsilon exceeds 2 eta, over rates .01 to .99",
            source=POST,
            printed=0,
            ours=max(0.0, excess),
            tolerance=0,
        ),
        Comparison(
            what="rates at which the simulated tight example and the exact value differ by over 4 standard errors",
            source=POST,
            printed=0,
            ours=sum(abs(one["estimate"] - exact(rate, 1.0)) > _bar(one) for rate, one in _pairs(results)),
            tolerance=0,
            note="By chance one does in fewer than one of a thousand replays with many runs.",
        ),
        Comparison(
            what="epsilon on the sample, at rate .1",
            source=POST,
            printed=0.2,
            ours=exact(0.1, 1.0),
            tolerance=0,
            note="The lemma is a bound: the exact value is at most e - 1 = 1.718 times the rate.",
            otherwise=Verdict.BOUND,
        ),
        Comparison(
            what="rate at which a 1-private mechanism becomes .1-private (the post: epsilon / 2)",
            source=POST,
            printed=0.05,
            ours=expm1(0.1) / (e - 1),
            tolerance=0,
            note="The lemma is a bound: by the exact (e^epsilon - 1)/(e - 1) a fifth more rows may take part.",
            otherwise=Verdict.BOUND,
        ),
    )


def _pairs(results: Mapping[str, Plain]) -> list[tuple[float, Plain]]:
    return [(rate, results[f"rate={rate}"]) for rate in _SIMULATED]


def _bar(one: Plain) -> float:
    return float(one["high"] - one["estimate"])
