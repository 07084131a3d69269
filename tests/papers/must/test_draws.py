"""Subsets against the laws that the schemes promise; alpha = 1e-4 a test, seeded."""

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import chisquare

from tests.common.schemes.made_up import OneRespondent
from tests.conftest import refuses
from veiltab.common.errors import InvalidInputError
from veiltab.common.schemes import SCHEMES
from veiltab.papers.must.designs import Design, Tabulated
from veiltab.papers.must.draws import draw

ALPHA = 1e-4
SMALL = Design(population=7, sample=4, stage=5)
WIDE = Design(population=60, sample=4, stage=9)


def counted(observed: Sequence[float], expected: Sequence[float]) -> float:
    """The p value of counts, bins below 5 expected lumped into their neighbour."""
    seen, due = [0.0], [0.0]
    for a, b in zip(observed, expected, strict=True):
        if due[-1] >= 5:
            seen.append(0.0)
            due.append(0.0)
        seen[-1] += a
        due[-1] += b
    if due[-1] < 5:
        seen[-2:], due[-2:] = [sum(seen[-2:])], [sum(due[-2:])]
    return float(chisquare(seen, np.array(due) * sum(seen) / sum(due)).pvalue)


@pytest.mark.parametrize("design", [SMALL, WIDE])
@pytest.mark.parametrize("name", SCHEMES)
def test_a_row_is_drawn_as_often_as_the_scheme_says(name: str, design: Design) -> None:
    scheme, trials = design.scheme(name), 20_000
    subsets = draw(scheme, trials, np.random.default_rng(1))
    law = scheme.multiplicities()
    for row in (0, design.population - 1):
        copies = ((subsets.rows == row) & subsets.used).sum(axis=1)
        seen = np.bincount(copies, minlength=len(law))[: len(law)]
        assert seen.sum() == trials
        assert counted(seen.tolist(), (trials * law).tolist()) > ALPHA


def test_a_scheme_that_is_not_the_paper_s_is_refused() -> None:
    with refuses(InvalidInputError, where="draws"):
        draw(OneRespondent(population=5, sample=2), 1, np.random.default_rng(6))
    with refuses(InvalidInputError, where="scheme poisson"):
        Tabulated.of(SMALL.scheme("poisson"))
    with refuses(InvalidInputError, where="design"):
        SMALL.scheme("srs")


@pytest.mark.parametrize("name", ["wor", "wr", "must.wo", "must.ow", "must.ww"])
def test_a_tabulated_scheme_is_the_scheme(name: str) -> None:
    scheme = SMALL.scheme(name)
    assert Tabulated.of(scheme).eta == scheme.eta
    assert Tabulated.of(scheme).multiplicities().tolist() == scheme.multiplicities().tolist()
