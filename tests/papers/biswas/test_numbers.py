"""Which of the paper's formulas agree, and by how much the others do not."""

from collections import defaultdict
from functools import cache
from math import exp

import pytest

from veiltab.papers.biswas.theorem_numbers import comparisons

found_of_all = cache(comparisons)


WRONG = {
    # n pi (1 - pi) f (1 - f) more than is printed, whatever epsilon.
    "proof of Theorem 3.2": [195_681.4889, 19_627.40987, 1371.963127],
    "Theorem 3.3": [-1.000038],
    "Section 3, after Theorem 3.3 ('lim c = nq/(p-q)')": [-50_000 / (exp(epsilon) - 1) for epsilon in (1, 2, 4)],
    "Theorem 3.5, equation 6": [-194_315.9222, -22_293.2679, -1499.973639],
    "Theorem 3.5": [0],
    "Theorem 3.6 ('0 <= g <= n iff 0 <= c <= n on an average')": [0.0651852],
    "Theorem 5.1": [18_388.94118] * 3,
}
"""Source of what the paper has wrong -> our numbers."""


def test_what_the_paper_has_wrong_and_by_how_much() -> None:
    found = defaultdict[str, list[float | None]](list)
    for one in found_of_all():
        if not one.agrees:
            found[one.source.partition("Maple, ")[2]].append(one.ours)
    assert found == {source: pytest.approx(numbers, rel=1e-6) for source, numbers in WRONG.items()}


def test_every_disagreement_has_its_reason() -> None:
    assert all(one.note for one in found_of_all() if not one.agrees)
    assert sum(one.agrees for one in found_of_all()) == 23
