"""How often intervals hold the truth when some links are wrong: with and without the correction, and for kin."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.researcher.linkage_errors.made_links import (
    AGE,
    OWNERS,
    SHARES,
    Floats,
    people,
    released,
    relinked,
    undone,
)
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.linkage_errors.corrected import corrected
from veiltab.researcher.linkage_errors.linkage_error import LinkageErrors, LinkError
from veiltab.researcher.questions.question import Question, answer

SHARE, SD = 0.05, 0.01
BY_AGE = np.array([[0.0125], [0.025], [0.05], [0.1125]])
"""Shares of wrong links of each age."""

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
    wrong: float | Floats = SHARE,
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
        wrong: share of wrong links, or that of each age.
        seed: of all.
    """
    rng, counts = np.random.default_rng(seed), people(n, SHARES)
    truth, held = truth_of(counts)[what], np.zeros(0)
    for _ in range(draws):
        table = released(relinked(counts, wrong, rng, kin=kin), gamma, rng)
        made = make(table, max(SHARE + SD * rng.standard_normal(), 0.0))
        found: TableEstimate | Analysis = made if what == "cells" else answer(QUESTIONS[what], made)
        within = (found.low <= truth) & (truth <= found.high)
        held = within.astype(np.float64) + (held if held.size else 0.0)
    return held / draws


def plain(table: TableEstimate, _share: float) -> TableEstimate:
    return table


def corrected_by(table: TableEstimate, share: float) -> TableEstimate:
    return undone(table, share, SD)


def hull(table: TableEstimate, share: float) -> TableEstimate:
    return undone(table, share, SD, least=0.0)


def by_age(table: TableEstimate, drawn: float) -> TableEstimate:
    """Undo shares that were counted by age, each to a tenth of it; `drawn` is the seed of their errors, 0 of none."""
    errors = np.random.default_rng(int(1e12 * drawn)).normal(0, 0.1, 4) * (drawn > 0)
    of = {
        category: LinkError(share=float(share * (1 + error)), sd=float(0.1 * share))
        for category, share, error in zip(AGE.categories, BY_AGE.reshape(-1), errors, strict=True)
    }
    known = LinkError(share=max(one.share for one in of.values()), by="age", of=of)
    return corrected(table, LinkageErrors(of=known), OWNERS)


@pytest.mark.parametrize("what", ["cells", "slope"])
def test_the_correction_holds_where_plain_intervals_do_not(what: str) -> None:
    one = {"n": 20_000, "gamma": 2000, "draws": 50}
    assert covered(corrected_by, what, **one).mean() >= 0.9
    assert covered(plain, what, **one).mean() < 0.5
    # Ignoring the error of the share is not enough.
    assert covered(undone, what, **one).mean() < 0.9


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


def test_of_unequal_ages_one_share_and_its_hull_miss_the_truth_and_every_answer_warns() -> None:
    assert covered(corrected_by, "cells", n=20_000, gamma=2000, draws=40, wrong=BY_AGE).mean() < 0.75
    assert covered(hull, "cells", n=20_000, gamma=2000, draws=40, wrong=BY_AGE).mean() < 0.9
    table = undone(released(people(20_000, SHARES), 2000, np.random.default_rng(2)), SHARE, SD)
    assert "Intervals NOT COVERED at 95%, each on its own." in str(answer(QUESTIONS["means"], table))


def test_shares_by_age_hold_where_ages_are_linked_wrongly_unequally_often() -> None:
    assert 0.93 <= covered(by_age, "cells", n=20_000, gamma=2000, draws=60, wrong=BY_AGE).mean() <= 0.98
    table = by_age(released(people(20_000, SHARES), 2000, np.random.default_rng(2)), 0.0)
    said = answer(QUESTIONS["means"], table)
    assert said.remarks[0] == "Corrected for wrong links: of the links with bank shares of 0.0125 to 0.1125 by age."
    assert "Intervals at 95%, each on its own." in str(said)


@pytest.mark.long
@pytest.mark.parametrize("what", ["cells", "means", "slope", "log odds"])
@pytest.mark.parametrize(("n", "gamma"), [(20_000, 200), (20_000, 2000), (100_000, 2000)])
def test_shares_by_age_have_nominal_coverage(n: int, gamma: int, what: str) -> None:
    found = covered(by_age, what, n=n, gamma=gamma, draws=400, wrong=BY_AGE)
    assert 0.93 <= found.mean() <= 0.97
