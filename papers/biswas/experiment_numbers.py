"""The numerical statements of Sections 4 and 6, beside the simulated rounds."""

from collections.abc import Mapping
from itertools import pairwise
from math import exp, log

from veiltab.common.collection.population import parse_population
from veiltab.papers.biswas.distance_figures import ratio_of_distances
from veiltab.papers.biswas.populations import EPSILONS, EVERYBODY, LAWS, NODES, PAPER, RATES, truth
from veiltab.papers.biswas.rounds import MODE, distance_key
from veiltab.papers.experiment import Comparison, Plain, Verdict

Results = Mapping[str, Plain]

_DRASTIC = 1.5
"""Largest factor that still counts as 'not a drastic difference'."""

_FLAT = 0.1
"""Largest power of the number of reports that still counts as 'does not decrease significantly'."""

_ERRORS = 4
"""Largest deviation that counts as chance, in standard errors."""

_KINDS = (("raw", "raw estimates"), ("projected", "projected estimates"))


def comparisons(results: Results) -> tuple[Comparison, ...]:
    """Return the comparisons, in the order of the paper."""
    return (
        *_set_up(),
        *_simulated_means(results),
        _improves(results),
        *_reports(results),
        *_saturation(results),
        *_a_tenth(results),
    )


def _set_up() -> list[Comparison]:
    sizes = {
        "Binomial(100, .5)": (101, "A binomial of 100 has the values 0 to 100."),
        "Binomial(50, .6) + Binomial(50, .4), read as a sum": (101, "The sum has the values 0 to 100."),
        "Binomial(50, .6) + Binomial(50, .4), read as a mixture": (
            parse_population(LAWS["mixture"]).values + 1,
            "The mixture has the values 0 to 50.",
        ),
    }
    # The population omits the value 0.
    sizes["Binomial(100, .5)"] = (parse_population(LAWS["one"]).values + 1, sizes["Binomial(100, .5)"][1])
    return [
        Comparison(
            what="data points of each population",
            source=f"{PAPER}, Section 4",
            printed=50_000,
            ours=float(min(truth(law).sum() for law in LAWS)),
            tolerance=0,
        ),
        *(
            Comparison(
                what=f"values of {name}",
                source=f"{PAPER}, Section 4 ('a domain of size 100')",
                printed=100,
                ours=float(size),
                tolerance=0,
                note=f"{why} Here 0, which hardly any node would hold, is left out and the domain is 1 to 100.",
                otherwise=Verdict.READING,
            )
            for name, (size, why) in sizes.items()
        ),
    ]


def _simulated_means(results: Results) -> list[Comparison]:
    """Compare the means of simulated estimates with equations 4 and Theorems 3.1 and 3.4."""
    holders, rate = float(truth("one")[0, MODE - 1]), float(RATES[0])
    rows = []
    for epsilon in EPSILONS:
        one = results[distance_key("one", epsilon, RATES[0])]
        low = holders * rate - NODES / (exp(float(epsilon)) - 1) * (1 - rate)
        for which, where, printed in (
            ("c", "equation 4", low),
            ("g", "Theorem 3.1", holders),
            ("c_hat", "Theorem 3.4", holders),
        ):
            mean, error = one[which]["mode"]
            rows.append(
                Comparison(
                    what=f"simulated mean of {which}, value {MODE}, pi = {RATES[0]}, epsilon = {epsilon} (nodes)",
                    source=f"{PAPER}, {where}",
                    printed=printed,
                    ours=mean,
                    tolerance=_ERRORS * error,
                    note=f"Tolerance: {_ERRORS} standard errors of the simulation.",
                )
            )
    return rows


def _distance(results: Results, epsilon: str, rate: str, kind: str, which: str = "c_hat") -> float:
    return float(results[distance_key("one", epsilon, rate)][which][kind][0])


def _simulated_rates(results: Results) -> list[str]:
    """Return the rates that were simulated, in increasing order."""
    return [rate for rate in (*RATES, EVERYBODY) if distance_key("one", EPSILONS[0], rate) in results]


def _improves(results: Results) -> Comparison:
    rates = _simulated_rates(results)
    falls = [
        _distance(results, epsilon, after, "raw", "g") < _distance(results, epsilon, before, "raw", "g")
        for epsilon in EPSILONS
        for before, after in pairwise(rates)
    ]
    return Comparison(
        what="share of steps of pi at which the total variation of g falls, simulated",
        source=f"{PAPER}, Section 4 ('as we increase pi, g approximates the original distribution better')",
        printed=1,
        ours=sum(falls) / len(falls),
        tolerance=0.05,
        note="Tolerance: one step of 27 or fewer may be hidden by chance.",
    )


def _reports(results: Results) -> list[Comparison]:
    rows = []
    for rate in (RATES[0], RATES[-1]):
        mean, error = results[distance_key("one", EPSILONS[0], rate)]["reports"]
        rows.append(
            Comparison(
                what=f"mean number of reports, pi = {rate}, simulated",
                source=f"{PAPER}, Figure 3 (communication cost O(n pi))",
                printed=NODES * float(rate),
                ours=mean,
                tolerance=_ERRORS * error,
                note=f"Tolerance: {_ERRORS} standard errors of the simulation.",
            )
        )
    return rows


def _saturation(results: Results) -> list[Comparison]:
    """Compare how the distance falls from half of the nodes to all of them."""
    return [
        Comparison(
            what=f"power of the number of reports with which the total variation of {name} falls, pi from .5 to 1,"
            f" epsilon = {epsilon}",
            source=f"{PAPER}, Section 6 ('after a point, the TV distance doesn't decrease significantly')",
            printed=0,
            ours=log(_distance(results, epsilon, EVERYBODY, kind) / _distance(results, epsilon, "0.5", kind)) / log(2),
            tolerance=_FLAT,
            note="There is no such point: twice the reports take off 29 percent at every pi (1/sqrt(2)), or somewhat"
            " less once projected. What flattens is the absolute gain, as for any average.",
            otherwise=Verdict.READING,
        )
        for kind, name in _KINDS
        for epsilon in EPSILONS
    ]


def _a_tenth(results: Results) -> list[Comparison]:
    settings = [(kind, name, epsilon) for kind, name in _KINDS for epsilon in EPSILONS]
    return [
        Comparison(
            what=f"total variation at pi = .1 over that at pi = 1, {name}, epsilon = {epsilon}",
            source=f"{PAPER}, Section 6 ('do not engender a drastic difference')",
            printed=1,
            ours=ratio_of_distances(results, epsilon, kind),
            tolerance=_DRASTIC - 1,
            note=f"Tolerance: a factor of {_DRASTIC:g}. {_why(kind, epsilon)}",
            otherwise=Verdict.READING,
        )
        for kind, name, epsilon in [*settings, ("projected", _KINDS[1][1], "0.1")]
    ]


def _why(kind: str, epsilon: str) -> str:
    if kind == "raw":
        return "Noise falls as 1/sqrt(pi): a factor of 3.2. The paper does not say its epsilon."
    if epsilon == "0.1":
        return (
            "The claim holds where epsilon is so small that neither estimate is of use (both distances are above .9)."
        )
    return "The smaller epsilon is, the smaller the factor; not until both estimates are of no use does it vanish."
