"""How often intervals hold the truth when some links are wrong: with and without the correction, and for kin."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.researcher.linkage_errors.made_links import SHARES, Floats, people, released, relinked, undone
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.questions.question import Question, answer

SHARE, SD = 0.05, 0.01
AGES, WAGES = np.arange(1, 5), np.arange(3)

QUESTIONS = {
    "means": Question(mean="wage", given=("age",)),
    "slope": Question(linear="wage ~ age"),
    "log odds": Question(model="wage=2 ~ age"),
}


def truth_of(counts: NDArray[np.int64]) -> Mapping[str, Floats]:
    """Return what the true people give."""
    table = counts / counts.sum()
    ages, wages = table.sum(axis=1), table.sum(axis=0)
    slope = (AGES @ table @ WAGES - (ages @ AGES) * (wages @ WAGES)) / (ages @ AGES**2 - (ages @ AGES) ** 2)
    odds = np.log(table[:, 2] / (ages - table[:, 2]))
    return {
        "cells": table.reshape(-1),
        "means": table @ WAGES / ages,
        "slope": np.array([wages @ WAGES - slope * (ages @ AGES), slope]),
        "log odds": np.array([odds[0], *(odds[1:] - odds[0])]),
    }


def covered(  # noqa: PLR0913 - one argument a choice
    make: Callable[[TableEstimate, float], TableEstimate],
    what: str,
    *,
    n: int,
    gamma: int,
    draws: int,
    kin: float = 0.0,
    seed: int = 0,
) -> Floats:
    """Return how often each interval held the truth.

    Args:
        make: corrects an estimate with a share that was estimated with SD.
        what: "cells" or a question.
        n: people.
        gamma: of the noise.
        draws: of links, noise and estimated shares.
        kin: share of wrong links that are of people of the same age.
        seed: of all.
    """
    rng, counts = np.random.default_rng(seed), people(n, SHARES)
    truth, held = truth_of(counts)[what], np.zeros(0)
    for _ in range(draws):
        table = released(relinked(counts, SHARE, rng, kin=kin), gamma, rng)
        made = make(table, max(SHARE + SD * rng.standard_normal(), 0.0))
        found: TableEstimate | Analysis = made if what == "cells" else answer(QUESTIONS[what], made)
        within = (found.low <= truth) & (truth <= found.high)
        held = within.astype(np.float64) + (held if held.size else 0.0)
    return held / draws


def plain(table: TableEstimate, _share: float) -> TableEstimate:
    return table


def corrected_by(table: TableEstimate, share: float) -> TableEstimate:
    return undone(table, share, SD)


def as_if_known(table: TableEstimate, share: float) -> TableEstimate:
    return undone(table, share)


def hull(table: TableEstimate, share: float) -> TableEstimate:
    return undone(table, share, SD, least=0.0)


@pytest.mark.parametrize("what", ["cells", "slope"])
def test_the_correction_holds_where_plain_intervals_do_not(what: str) -> None:
    one = {"n": 20_000, "gamma": 2000, "draws": 50}
    assert covered(corrected_by, what, **one).mean() >= 0.9
    assert covered(plain, what, **one).mean() < 0.5
    # Ignoring the error of the share is not enough.
    assert covered(as_if_known, what, **one).mean() < 0.9


def test_of_kin_the_hull_holds_and_one_share_does_not() -> None:
    assert covered(hull, "slope", n=20_000, gamma=2000, draws=30, kin=0.5).min() >= 0.95
    assert covered(corrected_by, "slope", n=20_000, gamma=2000, draws=30, kin=0.5).mean() < 0.7


@pytest.mark.long
@pytest.mark.parametrize("what", ["cells", "means", "slope", "log odds"])
@pytest.mark.parametrize(("n", "gamma"), [(20_000, 200), (20_000, 2000), (100_000, 2000)])
def test_coverage_is_nominal_with_five_in_a_hundred_wrong_links(n: int, gamma: int, what: str) -> None:
    found = covered(corrected_by, what, n=n, gamma=gamma, draws=400)
    assert 0.93 <= found.mean() <= 0.97
    assert found.min() > 0.9
    assert covered(plain, what, n=n, gamma=gamma, draws=100).mean() < 0.8


@pytest.mark.long
@pytest.mark.parametrize("kin", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("what", ["cells", "means", "slope"])
def test_the_hull_holds_whatever_the_wrong_links_are_like(what: str, kin: float) -> None:
    assert covered(hull, what, n=20_000, gamma=2000, draws=200, kin=kin).min() >= 0.93


def test_of_unequal_ages_the_hull_to_the_worst_share_holds_and_every_answer_warns() -> None:
    by_age, rng = np.array([0.0125, 0.025, 0.05, 0.1125])[:, None], np.random.default_rng(2)
    counts = people(20_000, SHARES)
    truth, held = truth_of(counts)["cells"], []
    for _ in range(40):
        table = released(relinked(counts, by_age, rng), 2000, rng)
        one, worst = undone(table, SHARE, SD), undone(table, float(by_age.max()), SD, least=0.0)
        held.append([(end.low <= truth) & (truth <= end.high) for end in (one, worst)])
        assert any("NOT COVERED" in remark for remark in answer(QUESTIONS["means"], worst).remarks)
    one_share, hull_of_worst = np.mean(held, axis=(0, 2))
    assert one_share < 0.75
    assert hull_of_worst > 0.95
