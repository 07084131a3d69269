import pytest

from veiltab.common.core.texts.spelling import quoted, same_person_key


def test_a_word_of_two_scripts_is_shown_with_escapes() -> None:
    assert quoted("Gen\u00e8ve, \u0411\u0435\u0440\u043d") == "'Gen\u00e8ve, \u0411\u0435\u0440\u043d'"
    assert quoted("G\u0435n\u00e8ve East") == r"'G\u0435n\xe8ve East'"


@pytest.mark.parametrize(
    "name", ["Ana D\u0131az", "Ana Di\u0251z", "Ana Diaʐ", "Ana Dia\u1d22", "Ana Điaz", "Ana Ðiaz", "Ana Ɗiaz"]
)
def test_a_name_in_letters_that_look_like_it_is_the_same_person_s(name: str) -> None:
    assert same_person_key(name) == same_person_key("Ana Díaz")


def test_another_name_is_another_person_s_and_capitals_of_other_scripts_look_alike() -> None:
    assert same_person_key("Ana Díaz") != same_person_key("Ana Ruiz")
    assert same_person_key("\u0422\u041e\u041c \u0421\u041e\u0425") == same_person_key("Tom Cox")
    assert same_person_key("\u0391\u039d\u039d\u0391") == same_person_key("Anna")
