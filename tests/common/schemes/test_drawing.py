"""Every sampling scheme draws what it says: the right law, the right sizes, the same rows from the same key."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from veiltab.common.core.sampling import uniform_indices
from veiltab.common.errors import InvalidInputError
from veiltab.common.schemes import Scheme, scheme_of
from veiltab.common.schemes.poisson import poisson_size

ALPHA = 1e-4
CASES = [("wor", None), ("wr", None), ("must.ow", 3), ("must.wo", 3), ("must.ww", 3)]


def key_of(number: int) -> bytes:
    return number.to_bytes(32, "big")


def tokens_of(n: int) -> NDArray[np.uint8]:
    words = np.arange(n, dtype=">u8")
    return np.ascontiguousarray(np.stack([words, words ^ np.uint64(0x5DEECE66D)], axis=1)).view(np.uint8).reshape(n, 16)


def exact_law(name: str, n: int, m: int, b: int | None) -> Counter[tuple[int, ...]]:
    """Every ordered sample with its number of ways, by walking through all draws."""
    law: Counter[tuple[int, ...]] = Counter()
    different = [t for t in product(range(n), repeat=b or m) if len(set(t)) == len(t)]
    if name == "wor":
        law.update(different)
        return law
    first = different if name == "must.ow" else list(product(range(n), repeat=b or m))
    if name == "wr":
        law.update(first)
        return law
    for rows in first:
        places = product(range(len(rows)), repeat=m)
        for chosen in places:
            if name != "must.wo" or len(set(chosen)) == m:
                law[tuple(rows[i] for i in chosen)] += 1
    return law


@pytest.mark.long
@pytest.mark.parametrize(("name", "b"), CASES)
def test_ordered_samples_have_the_law_of_the_scheme(name: str, b: int | None) -> None:
    n, m, trials = 4, 2, 8000
    scheme: Scheme = scheme_of(name, population=n, sample=m, stage=b)
    tokens = tokens_of(n)
    seen = Counter(tuple(scheme.draw(tokens, key_of(k)).tolist()) for k in range(trials))
    law = exact_law(name, n, m, b)
    assert set(seen) <= set(law)
    ways = sum(law.values())
    observed = [seen[sample] for sample in law]
    expected = [trials * count / ways for count in law.values()]
    assert chisquare(observed, expected).pvalue > ALPHA


@pytest.mark.parametrize(("name", "b"), CASES)
def test_the_same_key_draws_the_same_rows_and_another_key_others(name: str, b: int | None) -> None:
    scheme = scheme_of(name, population=5000, sample=300, stage=None if b is None else 400)
    one = scheme.draw(tokens_of(5000), key_of(1))
    assert one.tolist() == scheme.draw(tokens_of(5000), key_of(1)).tolist()
    assert one.tolist() != scheme.draw(tokens_of(5000), key_of(2)).tolist()
    assert len(one) == 300
    assert one.min() >= 0
    assert one.max() < 5000
    assert (len(set(one.tolist())) == 300) == (name == "wor")


# Eight of 1000 rows under one key; the stages' keys are derived from it.
KNOWN = [
    ("wor", None, [965, 368, 711, 32, 156, 591, 793, 866]),
    ("poisson", None, [965, 368, 711, 32, 156, 591, 793, 866]),
    ("wr", None, [528, 791, 572, 388, 669, 841, 314, 948]),
    ("must.ow", 10, [690, 783, 442, 783, 111, 783, 44, 111]),
    ("must.wo", 10, [426, 176, 871, 34, 278, 255, 291, 684]),
    ("must.ww", 10, [500, 684, 871, 684, 34, 684, 278, 34]),
]


@pytest.mark.parametrize(("name", "b", "rows"), KNOWN)
def test_known_answers(name: str, b: int | None, rows: list[int]) -> None:
    scheme = scheme_of(name, population=1000, sample=8, stage=b)
    assert scheme.draw(tokens_of(1000), bytes(range(32))).tolist() == rows


def test_known_answers_of_indices_and_sizes() -> None:
    key = bytes(range(32))
    assert uniform_indices(3, 10, key).tolist() == [1, 0, 2, 1, 2, 1, 0, 0, 2, 0]
    assert uniform_indices(2**40 + 1, 3, key).tolist() == [455698957206, 314788610497, 877966362842]
    assert poisson_size(10**6, 400, key) == 380


def test_indices_of_several_pieces_do_not_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.common.core.sampling._WORDS", 16)
    assert len(set(uniform_indices(2**40, 100, bytes(32)).tolist())) == 100


@pytest.mark.parametrize("n", [1, 2, 3, 1000, 2**40 + 1])
def test_uniform_indices_are_uniform(n: int) -> None:
    found = uniform_indices(n, 60_000, key_of(n))
    assert found.min() >= 0
    assert found.max() < n
    bins = np.bincount((found * 7 // n) if n > 7 else found, minlength=min(n, 7))
    if n >= 3:
        expected = (
            np.bincount((np.arange(n) * 7 // n), minlength=7) / n
            if 7 < n <= 1000
            else np.full(len(bins), 1 / len(bins))
        )
        assert chisquare(bins, 60_000 * expected).pvalue > ALPHA


def test_a_poisson_size_is_binomial() -> None:
    n, expected, trials = 50, 20, 5000
    sizes = Counter(poisson_size(n, expected, key_of(k)) for k in range(trials))
    from scipy.stats import binom  # noqa: PLC0415 - only this test looks inside

    law = binom(n, expected / n).pmf(np.arange(8, 33))
    observed = np.array([sizes[k] for k in range(8, 33)])
    inside = observed.sum()
    assert trials - inside < 20
    assert chisquare(observed, law / law.sum() * inside).pvalue > ALPHA


def test_a_poisson_sample_may_be_everyone_and_not_nobody() -> None:
    assert poisson_size(7, 7, key_of(1)) == 7
    with pytest.raises(InvalidInputError, match="1 to n = 7"):
        poisson_size(7, 8, key_of(1))
    sizes = []
    for k in range(100):
        try:
            sizes.append(poisson_size(5, 1, key_of(k)))
        except InvalidInputError as error:
            assert "came out empty" in str(error)  # noqa: PT017 - which of them does is up to the stream
    assert 0 < len(sizes) < 100
    assert min(sizes) == 1
