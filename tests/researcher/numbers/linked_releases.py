"""Linked releases of published data sets: every pair of attributes is a table, as a workload of pairs prices them."""

import csv
import gzip
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import combinations
from pathlib import Path

import numpy as np

from tests.researcher.numbers.rounding import Column, Floats
from veiltab.common.core.domain import Domain
from veiltab.common.privacy.planning.workload_prices import workload_mechanisms, workload_prices
from veiltab.common.schemes.without_replacement import WithoutReplacement
from veiltab.researcher.estimates.estimation import Estimate, ReleaseDesign

TABLES = Path(__file__).parents[3] / "docs" / "tutorial"
People = Mapping[str, Column]


def serum() -> People:
    """Return the people of `flchain` who are in both tables of the tutorial, as three parties would have them."""
    laboratory = _rows("serum/laboratory.csv.gz", "Patienten-Nr", ";")
    residents = _rows("serum/residents.csv.gz", "number", ",")
    both = sorted(laboratory.keys() & residents.keys())
    age = np.array([float(residents[one]["age"]) for one in both])
    group = np.array([float(laboratory[one]["Gruppe"]) for one in both])
    ages = ((*range(50, 90, 5), 90, 110), (50, 65, 80, 110))
    return {
        "sex": _categories([residents[one]["sex"] for one in both]),
        "dead": _categories([residents[one]["dead"] for one in both]),
        "flc": Column(values=np.digitize(group, [3.5, 7.5]), categories=("low", "mid", "high")),
        "year": _categories([laboratory[one]["Jahr"] for one in both]),
        **{f"age{place or ''}": Column(values=age, grid=grid, number="c/age") for place, grid in enumerate(ages)},
    }


def insurance() -> People:
    """Return the wives of `HI` who are in both tables of the tutorial."""
    survey = _rows("insurance/survey.csv.gz", "Person", ",")
    pension = _rows("insurance/pension.csv.gz", "member no", ",")
    both = sorted(survey.keys() & pension.keys())
    experience = np.array([min(float(survey[one]["experience"]), 50.0) for one in both])
    hours = np.array([min(float(pension[one]["hours"]), 80.0) for one in both])
    return {
        "education": _categories([survey[one]["education"] for one in both]),
        "region": _categories([survey[one]["region"] for one in both]),
        "insured": _categories([pension[one]["whi"] for one in both]),
        "hours": Column(values=hours, grid=(0, 20, 40, 60, 80), number="b/hours"),
        "experience": Column(values=experience, grid=(0, 10, 20, 30, 50), number="a/experience"),
        "experience1": Column(values=experience, grid=(0, 15, 30, 50), number="a/experience"),
    }


def releases(people: People, epsilon: str, runs: int, seed: int) -> Iterator[list[Estimate]]:
    """Yield the tables of linked releases of everyone at some epsilon, and delta 1e-6."""
    rng, pairs = np.random.default_rng(seed), list(combinations(people, 2))
    domains = [Domain(attributes=tuple(people[name].attribute(name) for name in pair)) for pair in pairs]
    n, cells = len(people[pairs[0][0]].values), [one.cells for one in domains]
    prices = workload_prices(cells, 0, Decimal(epsilon), Decimal("1e-6"))
    mechanisms, _ = workload_mechanisms(WithoutReplacement(population=n, sample=n), cells, prices)
    designs = [ReleaseDesign(population=n, sample=n, mechanism=one) for one in mechanisms]
    for _ in range(runs):
        symbols = [{name: people[name].symbols(rng) for name in pair} for pair in pairs]  # each table rounds anew
        tables = []
        for domain, design, pair in zip(domains, designs, symbols, strict=True):
            true = np.bincount(np.ravel_multi_index(list(pair.values()), domain.shape), minlength=domain.cells)
            kept = rng.binomial(true, float(design.mechanism.retention))
            noise = rng.multinomial(n - kept.sum(), np.full(domain.cells, 1 / domain.cells))
            tables.append(Estimate(domain=domain, design=design, counts=kept + noise))
        yield tables


def true_slopes(people: People, response: str, terms: Sequence[str]) -> Floats:
    """Return the coefficients of the true rows, the intercept first."""
    y = people[response].values.astype(np.float64)
    columns: list[Floats] = [np.ones(len(y))]
    for one in (people[term] for term in terms):
        values = one.values.astype(np.float64)
        columns += [values] if one.grid else [1.0 * (values == place) for place in range(1, len(one.categories))]
    return np.asarray(np.linalg.lstsq(np.stack(columns, axis=1), y, rcond=None)[0])


def _rows(name: str, key: str, delimiter: str) -> dict[int, dict[str, str]]:
    """Return the rows of a table by the number of their person."""
    with gzip.open(TABLES / name, "rt", encoding="utf-8-sig", newline="") as file:
        return {
            int(float(row[key].strip().lower().lstrip("w-"))): row for row in csv.DictReader(file, delimiter=delimiter)
        }


def _categories(texts: Sequence[str]) -> Column:
    categories = tuple(sorted(set(texts)))
    return Column(values=np.array([categories.index(one) for one in texts]), categories=categories)
