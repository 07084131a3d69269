"""Linked data on three sets, beside what a trusted curator could do: python -m benchmarks.linked --seeds 3.

The plan `linked` is simulated with the kernels that the parties run, without the parties: 44,000 people, delta 1e-6, of
Adult's fourteen attributes, of eight dense ones and of thirty (made_people.py). Everything after the noise is the
product's own. Beside it, in the same run: the same plan with Gaussian noise of the same mu, which takes somebody who
may hold the whole table; independent columns, which anybody may draw; and a bootstrap of the true rows: what another
sample would differ by. Errors are mean total variation distances of the drawn rows from the true ones, over all pairs
and all triples. On Adult the last column is the area under the ROC curve of gradient boosting, trained on the drawn
rows to predict salary, for 4,842 people who were held out. With --expected, the distance of pairs that a report of
the file expects without the truth stands beside the true one.
"""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product
from math import isnan, nan, prod, sqrt
from pathlib import Path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from benchmarks.made_people import dense, wide
from benchmarks.printing import console
from veiltab.common.command.cli import note
from veiltab.common.core.domain import Domain, Symbols, symbol_dtype
from veiltab.common.core.mechanism import GammaDiagonal, perturb
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.tabulation import tabulate
from veiltab.common.privacy.planning.workload_prices import workload_mechanisms, workload_prices
from veiltab.common.privacy.pricing.price import Price
from veiltab.common.release.tables import Prospect, linked_tables
from veiltab.common.schemes.without_replacement import WithoutReplacement
from veiltab.common.study.file import Study, load_study
from veiltab.play.studies.linked_tables import STUDY_FILE, truth
from veiltab.researcher.drawing.style import ACCENT, INK, SOFT, check_picture, logarithmic, write_picture
from veiltab.researcher.estimates.estimation import ReleaseDesign
from veiltab.researcher.estimates.table_result import TableResult
from veiltab.researcher.microdata.comparison import fractions_of, mean_distance
from veiltab.researcher.microdata.expectation import expected_error
from veiltab.researcher.model.choosing import chosen_tables
from veiltab.researcher.model.fitting import fit
from veiltab.researcher.model.measurement import Measurement
from veiltab.researcher.model.row_drawing import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DELTA = Decimal("1e-6")
TRUSTED_SECONDS = 1500
TRAINED = 44_000
TARGET = "salary"

METHODS = {
    "true rows": "themselves",
    "veiltab": "nobody holds the table",
    "Gaussian": "a trusted curator, the same plan and mu",
    "AIM": "a trusted curator, dpmm's AIM",
    "MST": "a trusted curator, dpmm's MST",
    "independent": "every attribute for itself",
    "bootstrap": "the true rows, drawn with replacement",
}

Axes = tuple[int, ...]
Noise = Callable[[Axes, Price, GammaDiagonal], TableResult | Measurement]
"""Measures the table of some attributes at a price, or with the mechanism of that price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one file of rows reaches.

    Args:
        pairs: mean total variation distance over all pairs.
        triples: over all triples.
        auc: area under the ROC curve for people who were held out.
        expected: the distance of pairs that is expected without the truth; NaN if it was not computed.
    """

    pairs: float
    triples: float
    auc: float
    expected: float = nan


@dataclass(frozen=True, kw_only=True)
class People:
    """The rows that are released and those that are held out.

    Args:
        study: their study; its attributes are theirs.
        rows: symbols, shape (n, attributes).
        held_out: symbols of the others; none of made people.
    """

    study: Study
    rows: Rows
    held_out: Rows | None = None

    @property
    def domain(self) -> Domain:
        """Their attributes."""
        return self.study.domain([rule.name for rule in self.study.attributes])

    def fractions(self, axes: Axes) -> NDArray[np.float64]:
        """Return the true table of some attributes."""
        return fractions_of(self.rows, self.domain.shape, axes)

    def figures(self, drawn: Rows) -> Figures:
        """Return what a file reaches."""
        pairs, triples = (mean_distance(drawn, self.rows, self.domain.shape, size) for size in (2, 3))
        return Figures(pairs=pairs, triples=triples, auc=self._auc(drawn))

    def _auc(self, drawn: Rows) -> float:
        if self.held_out is None:
            return nan
        target = self.domain.names.index(TARGET)
        features = [axis for axis in range(len(self.domain.shape)) if axis != target]
        categorical = [self.domain.names[axis] not in ORDERED for axis in features]
        model = HistGradientBoostingClassifier(categorical_features=categorical, random_state=0)
        model.fit(drawn[:, features], drawn[:, target])
        chances = model.predict_proba(self.held_out[:, features])[:, 1]
        return float(roc_auc_score(self.held_out[:, target], chances))


ORDERED = {"age", "education", "education_years", "capital_gain", "capital_loss", "hours"}


def adult(seed: int) -> People:
    """Split Adult at random."""
    order = np.random.default_rng(seed).permutation(len(truth()))
    return People(study=load_study(STUDY_FILE), rows=truth()[order[:TRAINED]], held_out=truth()[order[TRAINED:]])


def dense_people(seed: int) -> People:
    """Make people of few attributes with strong dependences of three."""
    study, rows = dense(seed)
    return People(study=study, rows=rows)


def wide_people(seed: int) -> People:
    """Make people of thirty attributes."""
    study, rows = wide(seed)
    return People(study=study, rows=rows)


DATA: dict[str, Callable[[int], People]] = {"Adult": adult, "dense": dense_people, "wide": wide_people}


def veiltab_noise(people: People, rng: np.random.Generator) -> Noise:
    """Measure as the parties do."""

    def measured(axes: Axes, _: Price, mechanism: GammaDiagonal) -> TableResult:
        shape = [people.domain.shape[axis] for axis in axes]
        columns = list[Symbols]()
        for axis, size in zip(axes, shape, strict=True):
            column: Symbols = np.empty(len(people.rows), symbol_dtype(size))
            column[:] = people.rows[:, axis]
            columns.append(column)
        perturb(columns, shape, mechanism, CipherStream(rng.bytes(32)), columns)
        counts = np.zeros(mechanism.cells, np.int64)
        tabulate(columns, shape, counts)
        n = len(people.rows)
        design = ReleaseDesign(population=n, sample=n, mechanism=mechanism)
        names = tuple(people.domain.names[axis] for axis in axes)
        return TableResult(number=0, names=names, counts=counts, design=design)

    return measured


def gaussian_noise(people: People, rng: np.random.Generator) -> Noise:
    """Measure as a trusted curator could: to substitute a row moves a table by sqrt(2)/n at most."""

    def measured(axes: Axes, price: Price, _: GammaDiagonal) -> Measurement:
        values = people.fractions(axes)
        scale = sqrt(2) / (len(people.rows) * float(price.mu))
        noise = rng.normal(0.0, scale, values.size)
        names = tuple(people.domain.names[axis] for axis in axes)
        return Measurement(names=names, values=values + (noise - noise.mean()), weight=1 / scale**2)

    return measured


def linked_rows(
    people: People, epsilon: Decimal, noise: Noise, seed: bytes, *, is_expected: bool = False
) -> tuple[Rows, float]:
    """Return rows of the plan `linked`: its tables, then the chosen ones again, then a model of all.

    With them: the distance of their pairs that is expected without the truth, NaN unless that is wanted.
    """
    domain, n = people.domain, len(people.rows)
    plan = linked_tables(people.study, domain.names, Prospect(rows=n, epsilon=epsilon, delta=DELTA))
    tables = [tuple(domain.names.index(name) for name in table) for table in plan.tables]
    cells = [prod(domain.shape[axis] for axis in axes) for axes in tables]
    prices = workload_prices(cells, plan.repeats, epsilon, DELTA)
    scheme = WithoutReplacement(population=n, sample=n)
    first, again = workload_mechanisms(scheme, cells, prices)
    results = [noise(t, price, law) for t, price, law in zip(tables, prices.first, first, strict=True)]
    if prices.again is not None:
        for pair in chosen_tables(domain, list(map(_measurement, results)), rows=n, count=plan.repeats):
            axes = (domain.names.index(pair[0]), domain.names.index(pair[1]))
            results.append(noise(axes, prices.again, again[tables.index(axes)]))
    model = fit(domain, list(map(_measurement, results)), rows=n)
    rows = model.sample(n, seed)
    known = [one for one in results if isinstance(one, TableResult)]
    return rows, expected_error(known, model, rows, seed).pairs if is_expected and known else nan


def _measurement(result: TableResult | Measurement) -> Measurement:
    return result.measurement if isinstance(result, TableResult) else result


def independent_rows(people: People, rng: np.random.Generator) -> Rows:
    """Return rows whose attributes know nothing of one another."""
    return np.stack([rng.permutation(column) for column in people.rows.T], axis=1)


def trusted_rows(people: People, method: str, epsilon: Decimal, seed: int, python: Path) -> Rows | None:
    """Return rows that a trusted curator would draw (trusted.py); None if it fails or takes TRUSTED_SECONDS."""
    with TemporaryDirectory() as folder:
        source, target = Path(folder) / "people.npz", Path(folder) / "drawn.npz"
        np.savez(source, rows=people.rows, shape=np.array(people.domain.shape))
        script, asked = Path(__file__).with_name("trusted.py"), (method, str(epsilon), str(DELTA), str(seed))
        try:
            subprocess.run(  # noqa: S603 - our own script
                [str(python), str(script), str(source), str(target), *asked],
                check=True,
                capture_output=True,
                timeout=TRUSTED_SECONDS,
            )
        except subprocess.SubprocessError as error:
            note(f"  no rows: {type(error).__name__}")
            return None
        drawn: Rows = np.load(target)["rows"]
        return drawn


def measure(  # noqa: PLR0913 - what is measured
    data: str,
    epsilons: Sequence[Decimal],
    seeds: int,
    trusted: Path | None = None,
    trusted_seeds: int = 0,
    *,
    is_expected: bool = False,
) -> dict[tuple[str, Decimal | None], list[Figures]]:
    """Return the figures of each method, at each epsilon that matters to it, one for each seed."""
    found: dict[tuple[str, Decimal | None], list[Figures]] = {}
    for seed in range(seeds):
        people, rng = DATA[data](seed), np.random.default_rng(1000 + seed)
        note(f"{data}, seed {seed}: the true rows, independent columns, a bootstrap")
        found.setdefault(("true rows", None), []).append(people.figures(people.rows))
        found.setdefault(("independent", None), []).append(people.figures(independent_rows(people, rng)))
        bootstrap = people.rows[rng.integers(0, len(people.rows), len(people.rows))]
        found.setdefault(("bootstrap", None), []).append(people.figures(bootstrap))
        for epsilon in epsilons:
            for method, noise in (("veiltab", veiltab_noise), ("Gaussian", gaussian_noise)):
                note(f"{data}, seed {seed}: {method} at epsilon {epsilon}")
                rows, expected = linked_rows(
                    people, epsilon, noise(people, rng), rng.bytes(32), is_expected=is_expected
                )
                found.setdefault((method, epsilon), []).append(replace(people.figures(rows), expected=expected))
            if trusted is not None and seed < trusted_seeds:
                for method in ("MST", "AIM"):
                    note(f"{data}, seed {seed}: {method} at epsilon {epsilon}")
                    drawn = trusted_rows(people, method, epsilon, seed, trusted)
                    if drawn is not None:
                        found.setdefault((method, epsilon), []).append(people.figures(drawn))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of a method over the seeds.

    Args:
        method: its name.
        epsilon: that it keeps; None if it keeps none.
        mean: of the figures.
        spread: largest standard deviation of the two distances over the seeds; 0 for one seed.
    """

    method: str
    epsilon: Decimal | None
    mean: Figures
    spread: float


def summaries(found: dict[tuple[str, Decimal | None], list[Figures]]) -> list[Summary]:
    """Return the figures of each method over its seeds."""
    summed = []
    for (method, epsilon), figures in found.items():
        pairs, triples, auc, expected = (
            [getattr(one, name) for one in figures] for name in ("pairs", "triples", "auc", "expected")
        )
        spread = max(stdev(pairs), stdev(triples)) if len(figures) > 1 else 0.0
        mean = Figures(pairs=fmean(pairs), triples=fmean(triples), auc=fmean(auc), expected=fmean(expected))
        summed.append(Summary(method=method, epsilon=epsilon, mean=mean, spread=spread))
    return summed


def show(data: str, summed: Sequence[Summary], seeds: int) -> None:
    """Print the figures."""
    table = Table(title=f"{data}, {TRAINED:,} people, delta {DELTA}; mean of {seeds} seeds")
    for heading in ("method", "epsilon", "pairs", "expected", "triples", "spread", "AUC"):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for one in summed:
        numbers = (one.mean.pairs, one.mean.expected, one.mean.triples, one.spread, one.mean.auc)
        name = f"{one.method}: {METHODS[one.method]}"
        table.add_row(name, str(one.epsilon or ""), *("" if isnan(number) else f"{number:.4f}" for number in numbers))
    console().print(table)


def draw(found: Mapping[str, Sequence[Summary]], path: Path) -> None:
    """Draw the errors of pairs and of triples against epsilon, a column of panels for each set of data."""
    looks = {"veiltab": (INK, "o", "veiltab: nobody holds the table"), "Gaussian": (ACCENT, "s", METHODS["Gaussian"])}
    looks |= {"AIM": ("#3c7d4f", "^", METHODS["AIM"]), "MST": ("#8a6d3b", "v", METHODS["MST"])}

    def paint(figure: "Figure") -> None:
        grid = figure.subplots(2, len(found), squeeze=False)
        for place, (size, (data, summed)) in enumerate(product(("pairs", "triples"), found.items())):
            axes = grid.flat[place]
            for method, (colour, mark, label) in looks.items():
                points = [(float(one.epsilon or 0), getattr(one.mean, size)) for one in summed if one.method == method]
                if points:
                    axes.plot(*zip(*points, strict=True), mark + "-", color=colour, ms=7, label=label)
            for method, style in (("independent", ":"), ("bootstrap", "--")):
                level = next(getattr(one.mean, size) for one in summed if one.method == method)
                axes.axhline(level, color="#56616d", ls=style, lw=1.4, label=METHODS[method])
            axes.set_title(f"{data}: {size}", loc="left", fontweight="bold", color=INK)
            axes.set_xlabel("epsilon of the whole release")
            axes.set_ylabel("mean total variation distance")
            axes.grid(color=SOFT, lw=0.6)
            logarithmic(axes, "x", "y")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)

    write_picture(path, (3.4 * len(found) + 1, 7.2), paint, option="--picture")


@click.command()
@click.option("--epsilon", "epsilons", multiple=True, default=("0.5", "1", "3"), show_default=True)
@click.option("--data", multiple=True, type=click.Choice(list(DATA)), default=tuple(DATA), show_default=True)
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--trusted", type=click.Path(path_type=Path, exists=True), help="Python with dpmm: AIM and MST beside.")
@click.option("--trusted-seeds", type=click.IntRange(min=1), default=1, show_default=True, help="Of AIM and MST.")
@click.option("--expected", "is_expected", is_flag=True, help="Expected errors of pairs too: five times as long.")
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), help="Draw the errors here (.svg, .png).")
def main(  # noqa: PLR0913, PLR0917 - one argument an option
    epsilons: tuple[str, ...],
    data: tuple[str, ...],
    seeds: int,
    trusted: Path | None,
    trusted_seeds: int,
    picture: Path | None,
    *,
    is_expected: bool,
) -> None:
    """Measure linked data beside what a trusted curator could do."""
    if picture is not None:
        check_picture(picture)
    found = {}
    for one in data:
        wanted = [Decimal(epsilon) for epsilon in epsilons]
        figures = measure(one, wanted, seeds, trusted, trusted_seeds, is_expected=is_expected)
        found[one] = summaries(figures)
        show(one, found[one], seeds)
    if picture is not None:
        draw(found, picture)


if __name__ == "__main__":
    main()
