import pytest

from veiltab.common.core.texts.message_fields import text_from_proto, whole_from_proto, words_from_proto
from veiltab.common.errors import InvalidInputError


def test_a_text_has_so_many_printable_characters() -> None:
    assert text_from_proto("ü" * 256, "name") == "ü" * 256
    for text in ("x" * 257, "a\x1b[2J", "a\nb"):
        with pytest.raises(InvalidInputError, match="name: the text is longer than 256 characters"):
            text_from_proto(text, "name")


def test_words_are_cut_to_so_many_bytes_and_stay_on_one_line() -> None:
    assert words_from_proto("a\nb\x1b[2J") == "a b [2J"
    assert words_from_proto("x" * 1025) == "x" * 1024
    assert words_from_proto("x" * 1023 + "ü") == "x" * 1023  # no half of a character
    assert words_from_proto("abcdef", 3) == "abc"


def test_a_whole_number_is_one_that_a_database_keeps() -> None:
    for number in (0, 2**63 - 1):
        assert whole_from_proto(number, "length") == number
    for number in (-1, 2**63):
        with pytest.raises(InvalidInputError, match=f"length: the number is not between 0 and {2**63 - 1}"):
            whole_from_proto(number, "length")
