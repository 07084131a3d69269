"""Numbers drawn back within their steps have the moments of the numbers that were rounded, in all and by group."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.researcher.microdata import made_linked
from veiltab.common.core.domain import Attribute, Domain
from veiltab.researcher.microdata import synthesis
from veiltab.researcher.microdata.drawn_numbers import PARTS, DrawnNumbers, part_law
from veiltab.researcher.microdata.drawn_together import DrawnTogether
from veiltab.researcher.microdata.files import write_rows
from veiltab.researcher.microdata.synthesis import Microdata, synthesise
from veiltab.researcher.model.measurement import Floats
from veiltab.researcher.model.row_drawing import Rows, Uniforms

PEOPLE = 40_000
POINTS = np.array([0.0, 10, 20, 30, 50, 80, 100])
LABELS = tuple(f"{point:g}" for point in POINTS)
DOMAIN = Domain(
    attributes=(
        Attribute(name="hours", categories=(*LABELS, "missing"), number="alice hours"),
        Attribute(name="town", categories=("a", "b", "c")),
        Attribute(name="arm", categories=("old", "new")),
    )
)


def rounded(numbers: Floats, random: np.random.Generator) -> Rows:
    """Return the symbols of numbers, rounded at random to the points."""
    place = np.clip(np.searchsorted(POINTS, numbers, side="right") - 1, 0, len(POINTS) - 2)
    part = (numbers - POINTS[place]) / (POINTS[place + 1] - POINTS[place])
    symbols: Rows = place + (random.random(len(numbers)) < part)
    return symbols


def people(law: Callable[[np.random.Generator, Rows, Rows], Floats]) -> tuple[Floats, Rows]:
    """Return numbers that depend on town and arm, and the rows that are drawn of them."""
    random = np.random.default_rng(8)
    town = random.integers(0, 3, PEOPLE)
    arm = (random.random(PEOPLE) < 0.2 + 0.3 * town).astype(np.int64)
    numbers = law(random, town, arm).clip(0, 100)
    return numbers, np.stack([rounded(numbers, random), town, arm], axis=1)


LAWS: dict[str, Callable[[np.random.Generator, Rows, Rows], Floats]] = {
    "smooth": lambda random, town, arm: random.normal(35 + 8 * town - 6 * arm, 13, PEOPLE),
    "heavy tail": lambda random, town, arm: random.lognormal(2 + 0.3 * town + 0.4 * arm, 0.8, PEOPLE),
    "many at an end": lambda random, town, arm: (
        random.normal(35 + 8 * town, 13, PEOPLE) * (random.random(PEOPLE) < 0.5 + 0.3 * arm)
    ),
}


@pytest.mark.parametrize("law", LAWS)
def test_means_slopes_and_variances_are_those_of_the_numbers(law: str) -> None:
    numbers, rows = people(LAWS[law])
    drawn = DrawnNumbers(DOMAIN, 0, rows).draw(rows, Uniforms(law.encode()).numbers(PEOPLE))
    points = POINTS[rows[:, 0]]
    design = np.stack([np.ones(PEOPLE), rows[:, 1] == 1, rows[:, 1] == 2, rows[:, 2]], axis=1)

    def slopes(values: Floats) -> Floats:
        found: Floats = np.linalg.lstsq(design, values, rcond=None)[0]
        return found

    rounding = (points - numbers).std() / np.sqrt(PEOPLE)
    assert abs(drawn.mean() - points.mean()) < 5 * rounding
    np.testing.assert_allclose(slopes(drawn), slopes(points), atol=0.07 * np.ptp(slopes(numbers)) + 10 * rounding)
    assert drawn.std() == pytest.approx(numbers.std(), rel=0.02)
    assert points.std() > 1.03 * numbers.std()
    if law == "smooth":
        np.testing.assert_allclose(np.quantile(drawn, [0.1, 0.5, 0.9]), np.quantile(numbers, [0.1, 0.5, 0.9]), atol=1.5)


def test_a_number_lies_in_the_steps_beside_its_point() -> None:
    _, rows = people(LAWS["smooth"])
    rows[:100, 0] = len(POINTS)
    drawn = DrawnNumbers(DOMAIN, 0, rows).draw(rows, Uniforms(b"").numbers(PEOPLE))
    assert np.isnan(drawn[:100]).all()
    ends = np.r_[POINTS[0], POINTS, POINTS[-1]]
    symbols = rows[100:, 0]
    assert ((ends[symbols] <= drawn[100:]) & (drawn[100:] <= ends[symbols + 2])).all()
    np.testing.assert_array_equal(drawn[100:], drawn[100:].round(1))
    assert len(np.unique(drawn)) > 700


@pytest.mark.parametrize("shares", [[0.4, 0.1, 0.5], [0.1, 0.2, 0.2, 0.4, 0.1], [0.5, 0.5]])
def test_the_law_has_the_shares_of_the_points(shares: list[float]) -> None:
    law, up = part_law(np.array(shares)), (np.arange(PARTS) + 0.5) / PARTS
    found = np.append(law @ (1 - up), 0) + np.append(0, law @ up)
    np.testing.assert_allclose(found, shares, atol=2e-3)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_few_rows_get_numbers_too(rows: int) -> None:
    _, some = people(LAWS["smooth"])
    drawn = DrawnNumbers(DOMAIN, 0, some[:rows]).draw(some, Uniforms(b"").numbers(PEOPLE))
    assert np.isfinite(drawn).all()
    every = np.array([[len(POINTS), 0, 0]])
    assert np.isnan(DrawnNumbers(DOMAIN, 0, every).draw(every, np.array([0.5]))).all()


@pytest.mark.parametrize(("correlation", "scale"), [(0.8, 4.0), (-0.7, 16.0), (0.0, 4.0)])
def test_numbers_have_the_covariances_of_their_points_and_say_what_steps_hide(correlation: float, scale: float) -> None:
    random = np.random.default_rng(4)
    normals = random.normal(size=(2, PEOPLE))
    normals[1] = correlation * normals[0] + np.sqrt(1 - correlation**2) * normals[1]
    numbers = (30 + scale * normals).clip(0, 100)
    attributes = [Attribute(name=name, categories=LABELS, number=f"bob {name}") for name in ("x", "y")]
    domain = Domain(attributes=(*attributes, *DOMAIN.attributes[1:]))
    rows = np.stack([rounded(numbers[0], random), rounded(numbers[1], random), *np.zeros((2, PEOPLE), np.int64)], 1)
    together = DrawnTogether(domain, rows)
    drawn = np.stack([*together.draw(rows, Uniforms(b"more")).values()])
    points, alone = POINTS[rows[:, :2].T], DrawnNumbers(domain, 0, rows).draw(rows, Uniforms(b"").numbers(PEOPLE))
    wanted = np.cov(points)[0, 1]
    assert np.cov(drawn)[0, 1] == pytest.approx(wanted, abs=0.05 * abs(wanted) + 0.03 * scale**2)
    assert np.cov(drawn)[0, 1] == pytest.approx(np.cov(numbers)[0, 1], abs=0.1 * scale**2)
    assert drawn[0].std() == pytest.approx(alone.std(), rel=0.02)
    names = [said.split(" is ")[0] for said in together.losses]
    if scale == 4:
        assert names == [f"The standard deviation of {name}" for name in ("x", "y")]
        least, most = (float(word.strip(",")) for word in together.losses[0].split("may be ")[1].split(" ")[:3:2])
        assert least <= 4 <= most
    else:
        assert names == []


@pytest.mark.parametrize(("scale", "is_named"), [(16.0, False), (4.0, True)])
def test_a_second_attribute_of_a_column_tells_its_variance(scale: float, *, is_named: bool) -> None:
    random = np.random.default_rng(5)
    numbers = (30 + scale * random.normal(size=PEOPLE)).clip(0, 100)
    attributes = [Attribute(name=name, categories=LABELS, number="bob x") for name in ("x", "again")]
    domain = Domain(attributes=(*attributes, *DOMAIN.attributes[1:]))
    rows = np.stack([rounded(numbers, random), rounded(numbers, random), *np.zeros((2, PEOPLE), np.int64)], 1)
    together = DrawnTogether(domain, rows)
    drawn = together.draw(rows, Uniforms(b"more"))[0]
    assert bool(abs(drawn.var() / numbers.var() - 1) > 0.1) == is_named
    assert any(one.startswith("The standard deviation of x is") for one in together.losses) == is_named


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Microdata:
    """Return microdata of which one attribute was rounded."""
    first, second, wage, town = made_linked.DOMAIN.attributes
    number = Attribute(name="wage", categories=("0", "10", "missing"), number="bob wage")
    domain = Domain(attributes=(first, second, number, town))
    assert number.size == wage.size
    monkeypatch.setattr(made_linked, "DOMAIN", domain)
    monkeypatch.setattr(synthesis, "CHUNK", 2**15)
    tables = made_linked.measured(made_linked.people(), seed=5)
    return synthesise(domain, made_linked.status(), tables, rows=40_000, seed="numbers")


@pytest.mark.parametrize("suffix", [".parquet", pytest.param(".csv", marks=pytest.mark.long)])
def test_a_file_has_the_numbers_of_the_frame(made: Microdata, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows{suffix}"
    made.write(path)
    frame = made.frame()
    found = pd.read_parquet(path) if suffix == ".parquet" else pd.read_csv(path)
    np.testing.assert_array_equal(found["wage"], frame["wage"])
    assert frame["wage"].dtype == np.float64
    assert frame["wage"].isna().mean() == pytest.approx(made.model.marginal(["wage"])[2], abs=0.01)
    assert frame["wage"].dropna().between(0, 10, inclusive="neither").mean() > 0.9
    assert made.provenance.facts(made.domain)["numbers"]["columns"] == ["wage"]
    assert [said[:34] for said in made.provenance.facts(made.domain)["coarse"]] == [
        "The standard deviation of wage is "
    ]
    frame_again = made.frame()
    pd.testing.assert_frame_equal(frame, frame_again)


def test_copies_have_numbers_of_their_own(made: Microdata, tmp_path: Path) -> None:
    copies = synthesise(made.domain, made_linked.status(), made.tables, rows=2000, copies=2, seed="numbers")
    first, second = (copies.frame(copy)["wage"] for copy in (1, 2))
    assert not np.array_equal(first.dropna()[:500], second.dropna()[:500])
    files = copies.write(tmp_path / "rows.csv")
    np.testing.assert_array_equal(pd.read_csv(files[1])["wage"], second)


def test_a_number_that_is_missing_is_an_empty_cell(tmp_path: Path) -> None:
    rows = np.array([[7, 0, 0], [1, 1, 1]])
    write_rows(tmp_path / "rows.csv", DOMAIN, [(rows, {0: np.array([np.nan, 12.5])})], {})
    assert (tmp_path / "rows.csv").read_text() == '"hours","town","arm"\n,"a","old"\n12.5,"b","new"\n'
