"""Intervals of a function of microdata follow the formulas, and frames without weights are refused."""

from collections.abc import Callable
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from veiltab import with_replicates
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.microdata.replicate_weights import student_quantile
from veiltab.researcher.model.measurement import Floats

FRAME = pd.DataFrame({"weight": np.ones(40), "replicate_1": np.full(40, 2.0), "replicate_2": np.full(40, 0.5)})


@pytest.mark.parametrize("degrees", [1, 1.3, 2, 4.5, 19, 120, 300, 301, 5000])
@pytest.mark.parametrize("probability", [0.5, 0.8, 0.95, 0.975, 0.999])
def test_quantiles_of_student(probability: float, degrees: float) -> None:
    assert student_quantile(probability, degrees) == pytest.approx(
        stats.t.ppf(probability, degrees), rel=1e-4, abs=1e-9
    )


def test_two_replicates_at_one_from_the_estimate() -> None:
    found = with_replicates(FRAME, lambda _, weights: {0.5: 6.0, 2.0: 8.0}.get(weights.max(), 7.0))
    (row,) = found.table.itertuples(index=False)
    assert (row.estimate, row.se) == (7, 1)
    assert (row.low, row.high) == pytest.approx((7 - 4.303, 7 + 4.303), abs=1e-3)
    assert "95% intervals by 2 replicates (t with 2 degrees)" in str(found)


def test_the_drawing_of_rows_counts_as_a_simple_random_sample() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.normal(size=20_000), "weight": 1.0, "replicate_1": 1.0, "replicate_2": 1.0})
    found = with_replicates(frame, lambda rows, weights: np.average(rows["x"], weights=weights))
    # A jackknife of 20 groups: four standard errors of a chi square with 19 degrees.
    assert found.table["se"][0] ** 2 * 20_000 == pytest.approx(1, abs=4 * sqrt(2 / 19))


def test_names_are_kept_and_the_effective_share_is_said() -> None:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"x": rng.normal(size=5000), "weight": 1.0, "replicate_1": rng.exponential(size=5000)})
    found = with_replicates(frame, lambda rows, w: {"mean": np.average(rows["x"], weights=w), "size": w.sum()})
    assert list(found.table.index) == ["mean", "size"]
    assert found.effective_share == pytest.approx(0.5, abs=0.03)
    assert "worth 50% of the rows" in str(found).replace("49%", "50%").replace("51%", "50%")


def test_a_function_of_attributes_that_no_table_has_together_is_not_covered() -> None:
    rng = np.random.default_rng(5)
    frame = FRAME.assign(**{name: rng.integers(0, 2, 40) for name in ("a", "b", "c", "d")})
    frame.attrs["tables"] = [["a", "b"], ["b", "c"], ["a", "c", "d"]]

    def said(*names: str) -> str:
        return with_replicates(frame, lambda rows, w: np.average(rows[[*names]].all(axis=1), weights=w)).remark

    assert said("a", "b", "c").startswith("No table was measured that has a, b, c together: a share of all of them")
    assert "b, d together" in said("d", "b")
    assert "NOT COVERED" in said("b", "d")
    assert said("a", "b") == said("d", "c", "a") == said("b") == ""
    every = with_replicates(frame, lambda rows, w: np.average(rows.sum(axis=1), weights=w))
    assert "a, b, c, d together" in str(every)


def test_a_function_of_a_number_with_long_steps_brings_what_is_lost_of_it() -> None:
    frame = FRAME.assign(a=np.arange(40.0), b=np.arange(40.0))
    lost = "The standard deviation of a is 3 in the file, but may be 1 to 4."
    frame.attrs |= {"tables": [["a", "b"]], "coarse": [lost]}
    assert with_replicates(frame, lambda rows, w: rows["a"] @ w / w.sum()).remark == lost
    assert with_replicates(frame, lambda rows, w: rows["b"] @ w / w.sum()).remark == ""


def test_columns_are_those_that_the_file_names() -> None:
    frame = FRAME.rename(columns={"weight": "weight_", "replicate_1": "replicate__1", "replicate_2": "replicate__2"})
    assert with_replicates(frame, lambda _, weights: weights.mean()).table["estimate"][0] == 1
    frame["weight"] = 80.0
    frame.attrs["replicates"] = {"weight": "weight_", "columns": ["replicate__1"]}
    found = with_replicates(frame, lambda _, weights: weights.mean())
    assert (found.replicates, found.table["estimate"][0]) == (1, 1)


@pytest.mark.parametrize(
    ("frame", "function", "confidence", "problem"),
    [
        (FRAME[["weight"]], lambda *_: 1.0, 0.95, "no replicate weights"),
        (FRAME, lambda *_: float("nan"), 0.95, "not finite"),
        (FRAME, lambda _, weights: np.ones(1 + (weights.max() == 2)), 0.95, "different count"),
        (FRAME, lambda *_: 1.0, 1.0, "between 0 and 1"),
    ],
)
def test_what_has_no_interval_is_refused(
    frame: pd.DataFrame, function: Callable[[pd.DataFrame, Floats], object], confidence: float, problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        with_replicates(frame, function, confidence=confidence)
