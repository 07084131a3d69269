"""The whole replay, quickly."""

import json
from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest

from veiltab.papers.biswas import EXPERIMENT
from veiltab.papers.experiment import Findings, Plain, Settings
from veiltab.papers.point import canonical

pytestmark = pytest.mark.long

SETTINGS = Settings(quick=True)


@cache
def results() -> Mapping[str, Plain]:
    tasks = EXPERIMENT.tasks(SETTINGS)
    return {
        task.key: json.loads(canonical(task.function(task.arguments, np.random.default_rng(place))))
        for place, task in enumerate(tasks)
    }


@cache
def findings() -> Findings:
    return EXPERIMENT.findings(SETTINGS, results())


def test_estimates_are_closer_at_nine_tenths_than_at_one() -> None:
    for figure in findings().figures[:3]:
        for tenth, nine in zip(figure.panels[:3], figure.panels[3:], strict=True):
            away = [np.abs(np.array(panel.curves[1].y) - np.array(panel.curves[2].y)).sum() for panel in (tenth, nine)]
            assert away[1] < 0.6 * away[0]


def test_figure_3_falls_and_c_lies_above() -> None:
    figure = findings().figures[3]
    for panel in figure.panels[:3]:
        c, g, c_hat, hajek = (np.array(curve.y) for curve in panel.curves[:4])
        assert (np.diff(c_hat) < 0).all()
        assert (c[:-1] > 2 * c_hat[:-1]).all()
        assert np.allclose([g, hajek], c_hat, rtol=0.1)
        assert c[-1] == pytest.approx(c_hat[-1])


def test_the_figure_of_theorem_3_5_has_g_above_c_hat_and_the_paper_above_both() -> None:
    figure = next(figure for figure in findings().figures if figure.name == "biswas-theorem-3-5")
    for panel in figure.panels[:2]:
        g, c_hat, paper = (np.array(curve.y) for curve in panel.curves[2:])
        assert (g >= c_hat).all()
        assert (paper >= g).all()
        assert all(low <= high for low, high in zip(panel.curves[0].low or (), panel.curves[0].high or (), strict=True))
    for panel in figure.panels[2:]:
        assert min(panel.curves[0].y) >= 1 >= max(panel.curves[-1].y)


def test_every_disagreement_has_its_reason_and_they_are_the_known_ones() -> None:
    found = findings().comparisons
    bad = [one for one in found if not one.agrees]
    assert all(one.note for one in bad)
    theorems = ("proof of Theorem 3.2", "lim c", "Theorem 3.3", "Theorem 3.5", "Theorem 3.6", "Theorem 5.1")
    statements = ("domain of size 100", "decrease significantly", "drastic difference")
    assert all(any(part in one.source for part in (*theorems, *statements)) for one in bad)
    assert len(bad) == 30
    assert [one.ours for one in found if "domain of size" in one.source] == [101, 101, 51]
