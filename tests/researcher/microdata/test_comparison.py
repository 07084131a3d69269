import numpy as np
import pytest

from veiltab.researcher.microdata.comparison import distance, fractions_of, mean_distance

ONE = np.array([[0, 1, 0], [1, 2, 0], [1, 0, 1], [0, 1, 1]])
OTHER = np.array([[0, 1, 0], [0, 2, 0]])
SHAPE = (2, 3, 2)


def test_fractions_are_in_c_order_of_the_attributes_as_named() -> None:
    assert fractions_of(ONE, SHAPE, (1, 0)).tolist() == [0, 0.25, 0.5, 0, 0, 0.25]


def test_distance_is_half_the_sum_of_differences() -> None:
    assert distance(np.array([0.5, 0.5, 0]), np.array([0.2, 0.5, 0.3])) == pytest.approx(0.3)


def test_the_mean_is_over_every_table_of_so_many_attributes() -> None:
    single = [0.5, 0.25, 0.5]  # by hand
    assert mean_distance(ONE, OTHER, SHAPE, 1) == pytest.approx(np.mean(single))
    pairs = [
        distance(fractions_of(ONE, SHAPE, axes), fractions_of(OTHER, SHAPE, axes)) for axes in ((0, 1), (0, 2), (1, 2))
    ]
    assert mean_distance(ONE, OTHER, SHAPE, 2) == pytest.approx(np.mean(pairs))
    assert mean_distance(ONE, ONE, SHAPE, 3) == 0
