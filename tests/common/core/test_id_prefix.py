import pytest

from veiltab.common.core.texts.id_prefix import whole_id
from veiltab.common.errors import InvalidInputError, NotFoundError


def named(prefix: str, *ids: str) -> str:
    return whole_id(prefix, ids, kinds=["release"], where="--release", remedy="List them.")


def test_an_id_is_named_by_so_much_of_it_as_no_other_begins_with() -> None:
    assert named("ab", "abcd", "acbd", "ffab") == "abcd"
    assert named("abcd", "abcd", "acbd") == "abcd"


def test_a_whole_id_goes_before_one_that_begins_with_it() -> None:
    assert named("ab", "abcd", "ab") == "ab"


def test_a_prefix_of_several_ids_is_refused_with_all_of_them() -> None:
    with pytest.raises(InvalidInputError) as refused:
        named("a", "acbd", "abcd", "ffab")
    assert str(refused.value) == "--release: 2 releases have this prefix. Give more of the id: abcd, acbd."


def test_a_long_list_is_cut() -> None:
    with pytest.raises(InvalidInputError, match=r"a00, .*, a09 and 5 more\.$"):
        named("a", *(f"a{number:02}" for number in range(15)))


@pytest.mark.parametrize("prefix", ["", "b", "abcde"])
def test_no_id_is_guessed(prefix: str) -> None:
    with pytest.raises(NotFoundError, match=r"--release: no such release\. List them\."):
        named(prefix, "abcd", "acbd")
