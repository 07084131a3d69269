"""What a tally becomes: named estimates with errors, and sentences where something is to beware of."""

from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest

from veiltab.common.errors import InvalidInputError, NotReadyError
from veiltab.researcher.frequency.estimators import Estimator, default_estimator
from veiltab.researcher.frequency.frequencies import bias_of, estimate, total_variation
from veiltab.researcher.frequency.intervals import score_interval
from veiltab.researcher.frequency.tally import Tally
from veiltab.researcher.frequency.variances import variance_estimate

HALF, TENTH, ONE = Fraction(1, 2), Fraction(1, 10), Fraction(1)


def tally(rates: tuple[Fraction, ...] = (HALF, HALF), reports: tuple[int, ...] = (50, 100)) -> Tally:
    return Tally(
        counts=np.array([[30, 15, 5], [20, 20, 60]]) * np.sign(reports)[:, None],
        reports=np.array(reports),
        populations=(100, 200),
        rates=rates,
        p=Fraction(3, 5),
        q=Fraction(1, 5),
        labels=("a", "b", "c"),
        strata=("young", "old"),
    )


def test_by_hand() -> None:
    found = estimate(tally())
    assert found.estimator is Estimator.HAJEK
    assert found.labels == ("a", "b", "c")
    # n (N/S - q)/(p - q) = 300 (50/150 - 1/5)/(2/5)
    np.testing.assert_allclose(found.counts, [100, 25, 175])
    np.testing.assert_allclose(found.fractions, [1 / 3, 1 / 12, 7 / 12])
    np.testing.assert_allclose(found.projected, found.counts)
    np.testing.assert_array_equal(found.shares(found.low), found.low / 300)
    assert (found.biased, found.warning) == ("", "")
    with pytest.raises(FrozenInstanceError):
        found.population = 3  # type: ignore[misc]


@pytest.mark.parametrize("which", list(Estimator))
def test_the_parts_come_from_their_modules(which: Estimator) -> None:
    one = tally(rates=(HALF, TENTH), reports=(50, 100))
    found = estimate(one, which.value, confidence=0.8)
    assert (found.estimator, found.confidence, found.population) == (which, 0.8, 300)
    np.testing.assert_allclose(found.standard_errors**2, variance_estimate(one, which))
    np.testing.assert_array_equal([found.low, found.high], score_interval(one, which, 0.8))
    assert found.projected.sum() == pytest.approx(300)
    assert (found.projected >= 0).all()


def test_the_default_follows_the_rates() -> None:
    assert default_estimator(tally()) is Estimator.HAJEK
    assert default_estimator(tally(rates=(HALF, TENTH))) is Estimator.HORVITZ_THOMPSON
    assert estimate(tally(rates=(HALF, TENTH))).biased == ""


def test_who_is_biased_says_so() -> None:
    equal, everyone, different = tally().design, tally(rates=(ONE, ONE)).design, tally(rates=(HALF, TENTH)).design
    assert [which for which in Estimator if bias_of(which, everyone)] == []
    assert [which for which in Estimator if bias_of(which, equal)] == [Estimator.C]
    assert [which for which in Estimator if not bias_of(which, different)] == [Estimator.HORVITZ_THOMPSON]
    assert "takes nodes that did not report for nodes that did" in bias_of(Estimator.C, equal)
    assert "mean rate, 0.233333" in bias_of(Estimator.T, different)


@pytest.mark.parametrize("which", [Estimator.T, Estimator.G, Estimator.C, Estimator.C_HAT])
def test_weighing_reports_alike_under_rates_that_differ_is_warned_of(which: Estimator) -> None:
    assert "horvitz_thompson is unbiased here" in estimate(tally(rates=(HALF, TENTH)), which).warning
    assert estimate(tally(), which).warning == ""


def test_reports_that_chance_does_not_explain_are_named() -> None:
    found = estimate(tally(rates=(HALF, TENTH)))
    assert "100 instead of about 20 in stratum old" in found.warning
    assert "young" not in found.warning
    silent = tally(reports=(50, 0))
    assert "0 instead of about 100 in stratum old" in estimate(silent, Estimator.HORVITZ_THOMPSON).warning
    # At one rate hajek uses neither rate nor reports' number, but something went wrong all the same.
    assert estimate(silent).warning.endswith("Were nodes away, or did some answer twice?")


def test_nothing_to_estimate() -> None:
    with pytest.raises(NotReadyError, match="no node has reported"):
        estimate(tally(reports=(0, 0)))


def test_unknown_estimators_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="no estimator 'hayek'"):
        estimate(tally(), "hayek")


def test_total_variation() -> None:
    truth = np.array([0.5, 0.5, 0.0])
    assert total_variation(truth, truth) == 0
    assert total_variation(np.array([0.6, 0.5, -0.1]), truth) == pytest.approx(0.1)
    np.testing.assert_allclose(total_variation(np.array([[0, 0, 1.0], [0.5, 0.5, 0]]), truth), [1, 0])
