"""Whatever differs between two study files is named."""

from dataclasses import fields

import pytest

from tests.common.study.other import CHANGES, FULL
from veiltab.common.study.differences import study_differences
from veiltab.common.study.file import AnalystMember, CuratorMember, NodeGroup, Study, study_from_bytes

RIGHT = study_from_bytes(FULL, "study.toml")


def changed(name: str) -> Study:
    old, new, _ = CHANGES[name]
    assert FULL.count(old) == 1
    return study_from_bytes(FULL.replace(old, new), name)


@pytest.mark.parametrize("name", CHANGES)
def test_each_change_is_named(name: str) -> None:
    other = changed(name)
    assert CHANGES[name][2] in study_differences(other, RIGHT)
    assert study_differences(RIGHT, other)
    assert other.digest != RIGHT.digest


def test_the_same_bytes_do_not_differ() -> None:
    assert study_differences(RIGHT, study_from_bytes(FULL, "elsewhere.toml")) == ""


def test_every_field_of_a_study_is_changed() -> None:
    others = [changed(name) for name in CHANGES]
    for field in fields(Study):
        assert any(getattr(other, field.name) != getattr(RIGHT, field.name) for other in others), field.name
    for kind, members in ((CuratorMember, "curators"), (AnalystMember, "analysts"), (NodeGroup, "nodes")):
        for field in (field for field in fields(kind) if (kind, field.name) != (CuratorMember, "name")):
            first = _first(getattr(RIGHT, members))
            assert any(getattr(_first(getattr(o, members)), field.name) != getattr(first, field.name) for o in others)


def _first(members: object) -> object:
    return members[0] if isinstance(members, tuple) else members


def test_much_that_differs_is_cut() -> None:
    other = study_from_bytes(
        FULL.replace(b"[1, 12]", b"[21, 99]").replace(b"A survey", b"B").replace(b'"fleet"', b'"crowd"'), "other"
    )
    said = study_differences(other, RIGHT)
    assert "with 21, 22, 23, 24, 25, 26 and 73 more and without 1, 2, 3, 4, 5, 6 and 6 more" in said
    assert "gives another title, gives another nodes" in said
