"""`veiltab collect simulate`: the errors of the frequency estimators on a synthetic population."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from veiltab.common.collection.oracles import ORACLE_NAMES
from veiltab.common.command.cli import PATH, emit, note
from veiltab.common.command.new_files import NEW_FILE, force_option
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from veiltab.researcher.collection.simulation.simulation import Performance
    from veiltab.researcher.frequency.design import RoundDesign
    from veiltab.researcher.frequency.estimators import Estimator

Given = TypeVar("Given")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Setting:
    """The population of a simulation: names, n_si and rates of its strata."""

    names: tuple[str, ...]
    truth: "NDArray[np.int64]"
    rates: tuple[Fraction, ...]


@click.command(
    epilog="Example: veiltab collect simulate --nodes 50000 --distribution binomial:100:0.5 --domain 100 --epsilon 2"
    " --rate 0.1 --trials 200 --plot variance.svg"
)
@click.option(
    "--nodes", type=click.IntRange(min=1), help="Nodes, n, with one value each; by default those of --strata."
)
@click.option(
    "--distribution",
    help="Law of the values 1, 2, ...: binomial:N:P, uniform:D, zipf:D:S; law+law for a sum, law|law for a mixture.",
)
@click.option("--domain", type=click.IntRange(2, 65536), help="Values of the domain, d; by default the distribution's.")
@click.option("--epsilon", required=True, help="Epsilon of one report, nats.")
@click.option("--oracle", type=click.Choice(ORACLE_NAMES), default="krr", show_default=True, help="Local randomiser.")
@click.option("--rate", help="Probability that a node reports, above 0 and at most 1.")
@click.option("--trials", default=200, show_default=True, type=click.IntRange(2, 1_000_000), help="Simulated rounds.")
@click.option(
    "--strata",
    type=PATH,
    help="CSV file with the columns stratum, population, rate and, if values differ by stratum, distribution.",
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(min=0))
@click.option("--plot", type=NEW_FILE, help="Draw variance against value (.svg or .png).")
@force_option
def simulate(
    nodes: int | None,
    distribution: str | None,
    domain: int | None,
    epsilon: str,
    oracle: str,
    rate: str | None,
    trials: int,
    strata: Path | None,
    seed: int,
    plot: Path | None,
) -> None:
    """Simulate rounds and compare the estimators with their exact variances.

    Estimates are of counts. With --strata, populations and rates come from the file, and values from its column
    distribution, or else from --distribution.
    """
    from veiltab.common.collection.oracles import oracle_for
    from veiltab.common.core.numbers.rounding import parse_epsilon
    from veiltab.researcher.collection.simulation.simulation import simulate as simulated
    from veiltab.researcher.frequency.design import RoundDesign

    nats = parse_epsilon(epsilon, what="--epsilon")
    if strata is None:
        setting = _one_stratum(nodes, distribution, domain, rate)
    else:
        if rate is not None:
            note("--rate is not used: every stratum of --strata has its own.")
        setting = _many_strata(strata, nodes, distribution, domain)
    if plot is not None:
        from veiltab.researcher.drawing.style import check_picture

        check_picture(plot)
    randomiser = oracle_for(oracle, setting.truth.shape[1], nats)
    populations = tuple(setting.truth.sum(axis=1).tolist())
    design = RoundDesign(populations=populations, rates=setting.rates, p=randomiser.p, q=randomiser.q)
    results = simulated(setting.truth, design, trials=trials, seed=seed)
    title = f"{_title(design, setting.truth.shape[1])}, {oracle}, epsilon = {nats.normalize():f}, {trials} trials"
    if plot is not None:
        from veiltab.researcher.collection.simulation.simulate_picture import draw

        draw(results, title, plot)
    settings = {"epsilon": nats, "oracle": oracle, "trials": trials, "seed": seed}
    emit(settings | _as_dict(setting, design, results), _text(design, results, title))


def _one_stratum(nodes: int | None, distribution: str | None, domain: int | None, rate: str | None) -> _Setting:
    from veiltab.common.collection.population import parse_population, parse_rate

    chance = parse_rate(_require(rate, "--rate"), where="--rate")
    law = parse_population(_require(distribution, "--distribution"), where="--distribution")
    counts = law.counts(int(_require(nodes, "--nodes")), _size(domain, law.values))
    return _Setting(names=("all",), truth=counts[None, :], rates=(chance,))


def _many_strata(path: Path, nodes: int | None, distribution: str | None, domain: int | None) -> _Setting:
    import numpy as np

    from veiltab.common.collection.population import parse_population, parse_strata

    try:
        strata = parse_strata(path.read_text("utf-8-sig"), where=str(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInputError(f"the strata cannot be read ({reason})", where=str(path)) from None
    total = sum(stratum.population for stratum in strata)
    if nodes is not None and nodes != total:
        raise InvalidInputError(f"the strata of {path} have {total} nodes, not {nodes}", where="--nodes")
    common = parse_population(distribution) if distribution is not None else None
    laws = [stratum.distribution or common for stratum in strata]
    for stratum, law in zip(strata, laws, strict=True):
        if law is None:
            raise InvalidInputError(f"stratum {stratum.name} has no distribution of its own", where="--distribution")
    given_laws = [law for law in laws if law is not None]
    size = _size(domain, max(law.values for law in given_laws))
    truth = np.array([law.counts(one.population, size) for one, law in zip(strata, given_laws, strict=True)])
    return _Setting(names=tuple(one.name for one in strata), truth=truth, rates=tuple(one.rate for one in strata))


def _require(value: Given | None, option: str) -> Given:
    if value is None:
        raise InvalidInputError("this option was not given, nor --strata", where=option)
    return value


def _size(domain: int | None, values: int) -> int:
    """Return the size of the domain; a distribution refuses one that is too small."""
    return max(values, 2) if domain is None else domain


def _title(design: "RoundDesign", values: int) -> str:
    rates = sorted(set(design.rates))
    spread = f"{float(rates[0]):g}" + (f" to {float(rates[-1]):g} by stratum" if len(rates) > 1 else "")
    return f"{design.population} nodes, {values} values, rate {spread}"


def _as_dict(setting: _Setting, design: "RoundDesign", results: "dict[Estimator, Performance]") -> dict[str, object]:
    return {
        "nodes": design.population,
        "domain": setting.truth.shape[1],
        "p": design.p,
        "q": design.q,
        "strata": [
            {"stratum": name, "population": population, "rate": rate}
            for name, population, rate in zip(setting.names, design.populations, design.rates, strict=True)
        ],
        "truth": setting.truth.sum(axis=0),
        "estimators": {
            which.value: {
                **same_fields(one, ("bias", "variance", "total_variation", "trials")),
                "exact_bias": one.exact.bias,
                "exact_variance": one.exact.variance,
                "exact": one.exact.exact,
            }
            for which, one in results.items()
        },
    }


def _text(design: "RoundDesign", results: "dict[Estimator, Performance]", title: str) -> str:
    from veiltab.researcher.frequency.frequencies import bias_of

    lines = [
        f"{title}.",
        "",
        f"{'estimator':<18}{'total variation':>16}{'largest |bias|':>16}{'mean variance':>16}{'exact':>16}",
    ]
    lines += [
        f"{which:<18}{one.total_variation:>16.5f}{abs(one.bias).max():>16.1f}{one.variance.mean():>16.1f}"
        f"{one.exact.variance.mean():>16.1f}"
        for which, one in results.items()
    ]
    lines += ["", "Bias and variance are of counts; the total variation is between raw estimates and the truth."]
    lines += [sentence for which in results if (sentence := bias_of(which, design))]
    return "\n".join(lines)
