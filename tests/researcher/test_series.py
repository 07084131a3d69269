"""Series of waves: their changes cover the true ones; pictures; and what is no series."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.researcher.numbers.rounding import Column, estimates
from veiltab import series
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.comparisons import conditional_shares
from veiltab.researcher.analysis.contrasts import Contrast
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.estimates.estimation import Estimate
from veiltab.researcher.numbers.means import means
from veiltab.researcher.questions.question import Question, answer

N = 3000
GRID = (0.0, 20.0, 40.0, 80.0)


def wave(number: int) -> dict[str, Column]:
    """Return the people of a wave: half of them are those of the one before, with other hours."""
    rng = np.random.default_rng(number)
    sex = np.resize([0, 1, 1], N)
    hours = np.clip(30 + 3 * number + 5 * sex + rng.normal(0, 12, N), 0, 80)
    return {
        "sex": Column(values=sex, categories=("f", "m")),
        "hours": Column(values=hours, grid=GRID, number="alice/hours"),
    }


def releases(number: int, runs: int = 1, kept: float = 0.7) -> list[Estimate]:
    return list(estimates(wave(number), 2000, kept, runs, seed=50 + number))


def asked(number: int) -> Analysis:
    return means(releases(number)[0], "hours", ["sex"])


def test_waves_stand_side_by_side_in_numbers_and_in_a_picture() -> None:
    waves = {f"2026-0{number + 1}": asked(number) for number in range(3)}
    found = series(waves)
    assert found.labels["wave"] == ("2026-01", "2026-01", "2026-02", "2026-02", "2026-03", "2026-03")
    np.testing.assert_array_equal(found.estimate, np.concatenate([one.estimate for one in waves.values()]))
    changes = series(waves, as_changes=True)
    np.testing.assert_allclose(changes.estimate, np.diff(found.estimate.reshape(3, 2), axis=0).ravel())
    assert "change of the mean of hours" in changes.title
    assert "whether some are the same or not" in changes.remarks[0]
    svg = found.plot().svg
    assert all(text in svg for text in ("2026-01", "2026-03", "wave", ">m<"))


def test_ends_of_a_change_come_from_opposite_ends_of_its_waves() -> None:
    before, after = (
        replace(
            asked(0), labels={"sex": ("f",)}, estimate=np.array([middle]), low=np.array([low]), high=np.array([high])
        )
        for middle, low, high in ((0.0, -1.0, 3.0), (10.0, 8.0, 11.0))
    )
    found = series({"a": before, "b": after}, as_changes=True)
    assert (found.estimate[0], found.low[0]) == (10, pytest.approx(10 - 13**0.5))
    assert found.high[0] == pytest.approx(10 + 2**0.5)


def other_question(number: int) -> Analysis:
    return conditional_shares(releases(number)[0].marginal(["sex"]))


def ratio(number: int) -> Analysis:
    table = releases(number)[0]
    return answer(Question(given=("sex",), contrast=Contrast.RATIO), table)


@pytest.mark.parametrize(
    ("ask", "problem"),
    [
        (lambda: series({"a": asked(0)}), "one wave"),
        (lambda: series({}), "one wave"),
        (lambda: series({"a": asked(0), "b": other_question(1)}), "different questions"),
        (lambda: series({"a": asked(0), "b": replace(asked(1), confidence=0.9)}), "different questions"),
        (lambda: series({"a": ratio(0), "b": ratio(1)}, as_changes=True), "change of a ratio"),
    ],
)
def test_what_is_no_series_is_refused(ask: Callable[[], Analysis], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        ask()


def test_a_wave_keeps_the_labels_of_an_attribute_of_its_name() -> None:
    first, second = (means(releases(number)[0], "hours", ["sex"]) for number in (0, 1))
    named = [replace(one, labels={"wave": one.labels["sex"]}) for one in (first, second)]
    found = series(dict(zip("ab", named, strict=True)))
    assert found.labels == {"wave": ("f", "m", "f", "m"), "wave_": ("a", "a", "b", "b")}
    assert found.along == "wave_"


def test_waves_of_two_study_files_name_neither() -> None:
    first, second = (replace(means(releases(n)[0], "hours"), study_digest=str(n) * 64) for n in (0, 1))
    assert series({"a": first, "b": second}).study_digest == ""
    assert series({"a": first, "b": replace(second, study_digest="0" * 64)}).study_digest == "0" * 64
