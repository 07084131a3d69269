import numpy as np
import pytest

from tests.worlds.domains import domain_of
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.model.measurement import Measurement, one_way, tables_of

DOMAIN = domain_of(2, 3, 4)


def measured(*names: str, seed: int = 0, weight: float = 1.0) -> Measurement:
    values = np.random.default_rng(seed).normal(size=DOMAIN.subset(names).cells)
    return Measurement(names=names, values=values + (1 - values.sum()) / values.size, weight=weight)


def test_tables_of_the_same_attributes_are_averaged_by_weight_whatever_their_order() -> None:
    first, second = measured("a", "b", weight=1.0), measured("b", "a", seed=1, weight=3.0)
    tables = tables_of(DOMAIN, [first, second, measured("c")])
    table = tables[0, 1]
    expected = (first.values.reshape(2, 3) + 3 * second.values.reshape(3, 2).T) / 4
    assert table.weight == 4.0
    assert np.allclose(table.values, expected)
    assert set(tables) == {(0, 1), (2,)}


def test_a_sum_of_cells_adds_their_variances() -> None:
    table = tables_of(DOMAIN, [measured("a", "b", "c", weight=24.0)])[0, 1, 2]
    margin = table.marginal((0, 2))
    assert margin.weight == 24.0 / 3
    assert np.allclose(margin.values, table.values.sum(axis=1))


def test_single_attributes_pool_every_table_that_contains_them() -> None:
    pair, single = measured("a", "b", weight=6.0), measured("a", seed=1, weight=8.0)
    a, b = one_way(tables_of(DOMAIN.subset(["a", "b"]), [pair, single]), 2)
    assert np.allclose(a.values, (2 * pair.values.reshape(2, 3).sum(axis=1) + 8 * single.values) / 10)
    assert (a.weight, b.weight) == (10.0, 3.0)


def test_an_attribute_outside_every_table_is_named() -> None:
    with pytest.raises(InvalidInputError, match="no table measures b, c"):
        tables_of(DOMAIN, [measured("a")])


@pytest.mark.parametrize(
    ("names", "values", "weight", "says"),
    [
        ((), [1.0], 1.0, "no attribute, or one of them twice"),
        (("a", "a"), [1.0, 0.0, 0.0, 0.0], 1.0, "the measurement has no attribute, or one of them twice"),
        (("a",), [0.5, float("nan")], 1.0, "finite"),
        (("a",), [[0.5, 0.5]], 1.0, "vector"),
        (("a",), [0.5, 0.6], 1.0, "sum to 1"),
        (("a",), [0.5, 0.5], 0.0, "positive"),
        (("a",), [0.5, 0.5], float("inf"), "finite"),
    ],
)
def test_what_is_no_measurement_is_refused(
    names: tuple[str, ...], values: list[float], weight: float, says: str
) -> None:
    with pytest.raises(InvalidInputError, match=says):
        Measurement(names=names, values=np.array(values), weight=weight)


def test_values_that_do_not_fit_the_domain_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="has 3 cells, not 2"):
        tables_of(DOMAIN.subset(["b"]), [Measurement(names=("b",), values=np.array([0.5, 0.5]), weight=1.0)])
    with pytest.raises(InvalidInputError, match="no attribute 'd'"):
        tables_of(DOMAIN, [Measurement(names=("d",), values=np.array([0.5, 0.5]), weight=1.0)])
