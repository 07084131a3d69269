"""Spellings of one value agree once they are normalised, and what is not a value counts as missing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.identity_rule import MISSING_VALUES
from veiltab.common.linkage.ladder import FieldKind
from veiltab.common.linkage.normalisation import DATE_ORDERS, normal_name, normaliser, plain
from veiltab.common.linkage.soundex import soundex


def normal(kind: str, text: str, order: str = "ymd") -> str:
    return normaliser(FieldKind(kind), order, ("1900-01-01", "12-24"), MISSING_VALUES)(text)


@pytest.mark.parametrize(
    ("kind", "spellings", "value"),
    [
        ("given", ("José", "JOSE", " jose ", "Jose\u0301", "Dr. José", "jo-se"), "jose"),
        ("given", ("Anne Marie", "Anne-Marie", "ANNE  MARIE", "Anne·Marie"), "annemarie"),
        ("family", ("Müller", "MULLER", "Mu\u0308ller", "Muller Jr.", "Prof. Dr. Müller, PhD"), "muller"),
        ("family", ("van der Berg", "Berg, van der", "Van Der Berg", "VANDERBERG", "Berg van der"), "vanderberg"),
        ("family", ("O'Neill", "O\u2019Neill", "ONEILL", "O Neill", "O\u02bcNeill", "O\u02bbNeill"), "oneill"),
        ("family", ("N\ua78cGuessan", "N\u02b9Guessan", "N\uff07GUESSAN", "N`Guessan"), "nguessan"),
        (
            "given",
            (
                "\u0641\u0627\u0637\u0645\u0629 \u0643\u0631\u064a",
                "\u0641\u0627\u0637\u0645\u0647 \u06a9\u0631\u06cc",
                "\u0641\u0627\u0637\u0645\u0647 \u0643\u0631\u0649",
            ),
            "\u0641\u0627\u0637\u0645\u0647\u0643\u0631\u064a",
        ),
        (
            "given",
            ("\u0623\u062d\u0645\u062f", "\u0627\u062d\u0645\u062f", "\u0623\u062d\u0640\u0645\u064e\u062f"),
            "\u0627\u062d\u0645\u062f",
        ),
        ("given", ("\u05d0\u05b7\u05e0\u05b8\u05d4", "\u05d0\u05e0\u05d4"), "\u05d0\u05e0\u05d4"),
        ("family", ("UNKNOWN", "[Unknown]", "N/A", "null", "XX", "x.x.", "Baby", "Unbekannt", "Not known"), ""),
        ("family", ("Søren", "SOREN"), "soren"),
        ("family", ("Иванов", "ИВАНОВ"), "иванов"),
        ("family", ("김", "\u1100\u1175\u11b7"), "김"),
        ("given", ("", "  ", "-", "123", "?"), ""),
        ("sex", ("m", "M", "Male", "1", "man", " m.", "Mann", "männlich", "Varón", "HOMBRE", "Uomo"), "m"),
        ("sex", ("f", "F", "female", "2", "W", "weiblich", "Frau", "v", "Vrouw", "mujer", "Donna"), "f"),
        ("sex", ("x", "other", "D"), "x"),
        ("sex", ("", "0", "9", "unknown", "male or female"), ""),
        ("postcode", ("1234 AB", "1234ab", "1234-AB"), "1234ab"),
        ("postcode", ("01234", "1234", "1234.0", "D-01234", "01 234"), "1234"),
        ("postcode", ("12345-6789", "12345"), "12345"),
        ("number", ("0012345", "12345", "12345.0", "12 345"), "12345"),
        ("number", ("A-0012", "a0012"), "a0012"),
        ("text", ("St. Mary's,  Parish", "st mary s parish"), "st mary s parish"),
    ],
)
def test_spellings_of_one_value(kind: str, spellings: tuple[str, ...], value: str) -> None:
    assert {normal(kind, one) for one in spellings} == {value}


def test_titles_and_particles_stay_where_they_are_the_name() -> None:
    assert normal("family", "Dr") == "dr"
    assert normal("family", "Le") == "le"
    assert normal("given", "Juan de la Cruz") == "juandelacruz"


@pytest.mark.parametrize(
    ("order", "spellings"),
    [
        ("ymd", ("1980-02-03", "1980/2/3", "19800203", "1980.02.03", "1980-02-03T00:00:00Z", "1980 2 3")),
        ("dmy", ("03.02.1980", "3/2/1980", "3-2-1980", "03021980", " 3. 2. 1980 ", "1980-02-03")),
        ("mdy", ("02/03/1980", "2/3/1980", "02031980", "1980-02-03", "03-FEB-1980", "Feb 3, 1980")),
        ("ymd", ("03-FEB-1980", "03FEB1980", "3. Februar 1980", "1980-FEB-03", "03FEB1980:00:00:00")),
        ("dmy:1926", ("03.02.80", "3/2/80", "03-FEB-80", "03FEB80", "030280", "03.02.1980", "1980-02-03")),
        ("ymd:1926", ("80-02-03", "800203", "80-FEB-03", "03-FEB-1980")),
    ],
)
def test_dates_in_a_stated_order(order: str, spellings: tuple[str, ...]) -> None:
    assert {normal("birth", one, order) for one in spellings} == {"19800203"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1980",
        "1980-02-30",
        "0000-01-01",
        "03-FEB-80",
        "1980-12-24",
        "03-XYZ-1980",
        "80-02-03",
        "1900-01-01",
        "03.02.1980",
        "1980-02-03-04",
    ],
)
def test_what_is_not_a_date_is_missing(text: str) -> None:
    assert normal("birth", text) == ""


def test_an_order_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="date_order"):
        normal("birth", "1980-02-03", "dym")


@given(st.text(max_size=30))
def test_every_normalisation_is_its_own(text: str) -> None:
    for kind in FieldKind:
        once = normal(kind.value, text)
        assert normal(kind.value, once) == once


@given(st.text(max_size=30), st.sampled_from(FieldKind), st.sampled_from(DATE_ORDERS))
def test_no_separator_or_sign_is_left(text: str, kind: FieldKind, order: str) -> None:
    value = normaliser(kind, order, ())(text)
    assert not any(one in value for one in "\x1f\x00\n\t,.;-'")
    assert value == value.strip()


@given(st.text(st.characters(max_codepoint=0x24F, categories=["L"]), max_size=20))
def test_case_and_marks_of_latin_letters_do_not_count(text: str) -> None:
    assert normal_name(text.upper(), is_family=False) == normal_name(text.upper().lower(), is_family=False)
    assert plain(text) == plain(plain(text))


@pytest.mark.parametrize(
    ("name", "code"),
    [
        # Of the National Archives, and of Knuth's The Art of Computer Programming, volume 3.
        ("lee", "l000"),
        ("pfister", "p236"),
        ("tymczak", "t522"),
        ("ashcraft", "a261"),
        ("euler", "e460"),
        ("ghosh", "g200"),
        ("lukasiewicz", "l222"),
        ("robert", "r163"),
        ("honeyman", "h555"),
        ("", ""),
        ("иванов", ""),
    ],
)
def test_soundex(name: str, code: str) -> None:
    assert soundex(name) == code
