"""Match rates: the law of their noise, the rows that one row of a spoke changes, and files that are none."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import exp

import numpy as np
import pytest
from scipy.stats import chisquare

from tests.common.linkage.small_links import Row, hub_links
from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.match_rates import MatchRates, below_by_key, changed_rows, geometric, rates_of

DRAWS = 6_000
RATES = MatchRates(
    study="s",
    curator="registry",
    attribute="age",
    categories=("young", "old"),
    linked=(90, -1),
    unlinked=(10, 3),
    epsilon=Decimal("0.5"),
)


def drawn(rate: Fraction, seed: int = 1) -> list[int]:
    below = below_by_key(seed.to_bytes(32))
    return [geometric(rate, below) for _ in range(DRAWS)]


@pytest.mark.parametrize("bound", [1, 2, 3, 255, 256, 257, 3 * 10**20])
def test_numbers_of_a_key_are_uniform_and_the_same_again(bound: int) -> None:
    below, again = below_by_key(bytes(32)), below_by_key(bytes(32))
    values = [below(bound) for _ in range(DRAWS)]
    assert values == [again(bound) for _ in range(DRAWS)]
    thirds = [sum(part * bound <= 3 * value < (part + 1) * bound for value in values) for part in range(3)]
    sizes = [-(-(part + 1) * bound // 3) + (-part * bound // 3) for part in range(3)]
    seen = [count for count, size in zip(thirds, sizes, strict=True) if size]
    assert sum(thirds) == DRAWS
    assert len(seen) == 1 or chisquare(seen, [DRAWS * size / bound for size in sizes if size]).pvalue > 1e-3


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(1, 20), Fraction(7, 3)], ids=str)
def test_the_noise_has_the_two_sided_geometric_law(rate: Fraction) -> None:
    values = np.array(drawn(rate))
    ratio = exp(-rate)
    most = max(2, int(4 / rate))
    law = np.array([(1 - ratio) / (1 + ratio) * ratio ** abs(z) for z in range(-most, most + 1)])
    counts = np.array([np.sum(values == z) for z in range(-most, most + 1)])
    enough = law * DRAWS >= 5
    seen, expected = np.append(counts[enough], 0), np.append(law[enough], 0)
    seen[-1], expected[-1] = DRAWS - seen.sum(), 1 - expected.sum()
    assert chisquare(seen, expected * DRAWS).pvalue > 1e-3


def test_the_standard_deviation_is_that_of_the_law() -> None:
    ratio = exp(-0.25)
    slowly = sum(z * z * (1 - ratio) / (1 + ratio) * ratio ** abs(z) for z in range(-400, 401))
    assert RATES.sd**2 == pytest.approx(slowly, rel=1e-9)
    assert np.std(drawn(Fraction(RATES.epsilon) / 2)) == pytest.approx(RATES.sd, rel=0.05)


def statuses(spoke: Sequence[Row], hub: Sequence[Row]) -> tuple[list[bool], list[bool]]:
    """Return which rows of the spoke, and of the hub, are linked."""
    links = hub_links(spoke, hub)
    return [row in links for row in range(len(spoke))], [row in links.values() for row in range(len(hub))]


def differences(rows: Sequence[Row], most: int, hub_rows: int) -> Iterator[tuple[str, int, int]]:
    """Yield what was done to a spoke, and how many rows of its table of rates and of the hub's it changed."""
    for hub in combinations_with_replacement(rows, hub_rows):
        for size in range(most + 1):
            for spoke in combinations_with_replacement(rows, size):
                own, other = statuses(spoke, hub)
                for row in rows:
                    more, at_hub = statuses((*spoke, row), hub)
                    yield "added", 1 + sum(map(bool.__ne__, own, more)), sum(map(bool.__ne__, other, at_hub))
                    for place in range(size):
                        new, at_hub = statuses((*spoke[:place], row, *spoke[place + 1 :]), hub)
                        rest = sum(a != b for n, (a, b) in enumerate(zip(own, new, strict=True)) if n != place)
                        yield "altered", 1 + rest, sum(map(bool.__ne__, other, at_hub))


def test_one_row_of_a_spoke_changes_so_many_rows_of_the_tables() -> None:
    rows = list(product((0, 1, None), (0, 1)))
    at_spoke, at_hub = dict.fromkeys(("added", "altered"), 0), dict.fromkeys(("added", "altered"), 0)
    for what, own, other in differences(rows, 3, 2):
        at_spoke[what] = max(at_spoke[what], own)
        at_hub[what] = max(at_hub[what], other)
    assert tuple(at_spoke.values()) == changed_rows(is_hub=False)
    assert tuple(at_hub.values()) == changed_rows(is_hub=True)


def test_a_file_is_read_as_it_was_written() -> None:
    text = json.dumps({**asdict(RATES), "epsilon": "0.5", "sd": RATES.sd})
    assert rates_of(text, "rates.json") == RATES


@pytest.mark.parametrize(
    "change",
    [
        {"linked": [1]},
        {"linked": [1, 2.5]},
        {"linked": "12"},
        {"epsilon": "0"},
        {"epsilon": "NaN"},
        {"epsilon": "much"},
        {"categories": None},
        {"curator": 3},
    ],
    ids=str,
)
def test_a_file_that_is_no_table_is_refused(change: dict[str, object]) -> None:
    plain = {**asdict(RATES), "epsilon": "0.5"} | change
    with pytest.raises(InvalidInputError, match="no table of match rates"):
        rates_of(json.dumps(plain), "rates.json")
    for text in ("", "[]", "7", '{"linked": [1]}'):
        with pytest.raises(InvalidInputError, match="no table of match rates"):
            rates_of(text, "rates.json")
