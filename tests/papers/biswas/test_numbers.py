"""Which of the paper's formulas agree, and by how much the others do not."""

from functools import cache
from math import exp

import pytest

from veiltab.papers.biswas.theorem_numbers import comparisons
from veiltab.papers.experiment import Comparison, Verdict

found_of_all = cache(comparisons)


def about(source: str) -> list[Comparison]:
    found = [one for one in found_of_all() if source in one.source]
    assert found, source
    return found


@pytest.mark.parametrize(
    "source", ["Definition 2.4", "equation 4", "Theorem 2.1", "Theorem 3.1", "Theorem 3.4", "Remark 2"]
)
def test_what_the_paper_has_right(source: str) -> None:
    assert all(one.agrees for one in about(source))


def test_the_limit_of_theorem_3_2_is_right_and_the_way_there_is_not() -> None:
    proof = about("proof of Theorem 3.2")
    assert all(one.agrees for one in about("Theorem 3.2") if one not in proof)
    for one in proof:
        # n pi (1 - pi) f (1 - f) at f = .08 and pi = .1, whatever epsilon.
        assert one.ours is not None
        assert one.ours - one.printed == pytest.approx(50_000 * 0.1 * 0.9 * 0.08 * 0.92, rel=1e-6)
        assert not one.agrees


def test_the_rate_of_theorem_3_3_comes_from_a_division() -> None:
    proof, theorem = about("Theorem 3.3")[-2:]
    assert proof.agrees
    assert theorem.ours == pytest.approx(-1, abs=0.001)
    assert not theorem.agrees


def test_theorem_3_5_is_reversed_everywhere() -> None:
    *differences, share = about("Theorem 3.5")
    for one in differences:
        assert one.ours is not None
        assert one.printed > 0 > one.ours
    assert (share.printed, share.ours) == (1, 0)


def test_theorem_3_6_fails_for_c() -> None:
    g, wang, c = about("Theorem 3.6")
    assert g.agrees
    assert wang.agrees
    assert c.verdict is Verdict.READING
    assert c.ours is not None
    assert c.ours < 0.1


def test_the_limit_of_c_has_the_other_sign() -> None:
    for one, epsilon in zip(about("after Theorem 3.3"), (1, 2, 4), strict=True):
        assert one.printed == pytest.approx(50_000 / (exp(epsilon) - 1))
        assert one.ours == pytest.approx(-one.printed)


def test_theorem_5_1_needs_rates_unrelated_to_the_values() -> None:
    *biases, variance = about("Theorem 5.1")
    assert [one.agrees for one in biases] == [False] * 3
    assert all(one.ours is not None and one.ours > 1000 for one in biases)
    assert variance.agrees


def test_every_disagreement_has_its_reason() -> None:
    assert all(one.note for one in found_of_all() if not one.agrees)
    assert sum(one.agrees for one in found_of_all()) == 23
