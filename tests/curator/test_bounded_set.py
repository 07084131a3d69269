"""A bounded set remembers names, and never more than it may."""

import pytest

from veiltab.curator.budget import bounded_set
from veiltab.curator.budget.bounded_set import BoundedSet


def test_one_name_too_many_makes_all_others_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_set, "MOST", 3)
    names = BoundedSet()
    for name in "abc":
        names.add(name)
    assert [name in names for name in "abcd"] == [True, True, True, False]
    names.add("d")
    assert [name in names for name in "abcd"] == [False, False, False, True]
