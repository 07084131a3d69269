"""The quantile of an interval, against the chi-squared distribution."""

import pytest
from scipy.stats import chi2

from veiltab.common.core.numbers.confidence import CONFIDENCE, squared_quantile
from veiltab.common.errors import InvalidInputError


@pytest.mark.parametrize("confidence", [1e-6, 0.5, 0.9, CONFIDENCE, 0.99, 1 - 1e-9])
def test_the_square_of_a_normal_number_has_one_degree_of_freedom(confidence: float) -> None:
    assert squared_quantile(confidence) == pytest.approx(chi2.ppf(confidence, 1), rel=1e-6)


@pytest.mark.parametrize("confidence", [-0.1, 0.0, 1.0, 1.5, float("nan")])
def test_a_confidence_is_a_probability_between_0_and_1(confidence: float) -> None:
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        squared_quantile(confidence)
