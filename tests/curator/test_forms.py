"""How columns are written, in parts."""

import pyarrow as pa
import pytest

from veiltab.common.errors import InvalidInputError
from veiltab.common.study.form_matching import after, can_match, lost_zeros, without_partner
from veiltab.common.study.forms import Forms, check_forms, for_others
from veiltab.curator.check.id_forms import FormPart, FormReader, column_forms, few_alike, forms_text, plain_forms
from veiltab.curator.table.ids import SEPARATOR


def counts(*ids: str | None) -> tuple[FormPart, ...]:
    """The forms of values that come in two pieces, as those of a file may."""
    reader = FormReader()
    reader.take(pa.array(ids[: len(ids) // 2], pa.large_string()))
    reader.take(pa.array(ids[len(ids) // 2 :], pa.large_string()))
    return reader.parts()


def forms(*ids: str | None) -> Forms:
    return plain_forms(counts(*ids))


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (("1", "22", "333"), "9+"),
        (("0012", "1234"), "0999"),
        (("12", "34"), "99"),
        (("0", "7"), "9"),
        (("1.0", "22.0", " 7.00"), "9+.0"),
        (("ab-12", "cd-34"), "aa-99"),
        (("é1", "b2"), "a9"),
        (("٣1", "52"), "99"),
        (("12/24", "3/24", "127/24"), "9+/99"),
        (("0012/04", "1234/24"), "0999/09"),
        (("12\u00a0345", "12\u202f045"), "99\u2423099"),
        (("a" * 81, "b" * 81), "text"),
        (("a\n", "b\n"), "text"),
    ],
)
def test_one_form_that_all_rows_share(ids: tuple[str, ...], expected: str) -> None:
    assert forms(*ids) == ((expected, len(ids)),)
    check_forms([("id", ((expected, 1),))], ["id"])


def test_forms_in_parts() -> None:
    assert forms(*["00012345"] * 3, "12345", "2345", None, "", "12345678") == (("09999999", 4), ("9+", 2))
    assert forms("007", "0012", "15") == (("099", 1), ("0999", 1), ("99", 1))
    assert forms("1.0", "2.5", "33.0") == (("9+.0", 2), ("9.9", 1))
    assert forms() == ()


def test_letters_that_all_rows_share_are_kept_where_many_do() -> None:
    same = [f"gp-{one:04}" for one in range(500, 1500)]
    assert forms(*same) == (("GP-0999", 1000),)
    assert forms(*same[:9]) == (("aa-0999", 9),)
    assert forms(*same, "XY-1234") == (("aa-0999", 1001),)
    assert forms(*same, *(one[3:] for one in same[:400])) == (("GP-0999", 1000), ("0999", 400))


def test_columns_of_one_kind_of_text_alone_do_not_fill_the_memory() -> None:
    found = forms(*("x" * (one % 60) + "-" * (one % 59) for one in range(4000)))
    assert sum(rows for _, rows in found) == 3998
    assert len(found) == 20
    assert found[0][0] == "text"


def test_rows_and_examples_are_those_of_the_table() -> None:
    found = counts("12", None, "x-1", "34", "x-2")
    assert [(one.form, one.example, one.first_rows) for one in found] == [("99", "12", [2, 5]), ("a-9", "x-1", [4, 6])]
    assert forms_text(found) == "2 as 99 ('12' in row 2), 2 as a-9 ('x-1' in row 4)"


def test_each_id_column_has_its_forms() -> None:
    ids = [SEPARATOR.join(parts) for parts in (("ab", "01", "7"), ("cd", "12", "18"))]
    found = column_forms([pa.array(ids, pa.large_string())], 3)
    assert [plain_forms(one) for one in found] == [(("aa", 2),), (("09", 2),), (("9+", 2),)]


def test_values_that_share_their_form_with_few_are_named() -> None:
    found = counts(*map(str, range(1000, 3000)), "T-12", "1.5E+03")
    assert few_alike("id", found) == [
        "id: few are written as a-99, such as 'T-12', first in row 2002",
        "id: few are written as 9.9a+09, such as '1.5E+03', first in row 2003",
    ]
    assert few_alike("id", counts("1", "a")) == []


def test_others_learn_no_form_of_few_rows() -> None:
    assert for_others([("9999", 500), ("aa-9", 9), ("a", 3)]) == (("9999", 500), ("text", 12))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("9+", "999", True),
        ("9+", "0999", False),
        ("9999", "0999", True),
        ("9999", "09999", False),
        ("9+", "9+.0", False),
        ("GP-99", "aa-99", True),
        ("GP-99", "XY-99", False),
        ("GP-99", "99", False),
        ("9+/99", "999/09", True),
        ("text", "text", False),
    ],
)
def test_which_forms_can_match(one: str, other: str, *, expected: bool) -> None:
    assert can_match(one, other) is can_match(other, one) is expected


def test_rows_without_a_partner() -> None:
    own = (("09999999", 900), ("9999999", 100), ("text", 3))
    assert without_partner(own, (("09999999", 50),)) == (("9999999", 100), ("text", 3))
    assert without_partner(own, (("09999999", 50), ("text", 1))) == (("9999999", 100),)
    assert without_partner(own, (("09999999", 50), ("text", 20))) == ()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("0999 9+", True),
        ("0999 999", True),
        ("GP-0999 GP-999", True),
        ("0999 9999", False),
        ("0999 99999", False),
        ("0999 GP-999", False),
        ("text aa", False),
    ],
)
def test_leading_zeros_that_a_part_has_lost(written: str, *, expected: bool) -> None:
    assert lost_zeros(tuple((one, 1) for one in written.split())) is expected


@pytest.mark.parametrize(
    ("step", "before", "expected"),
    [
        ("integer", "99-9", "text"),
        ("digits", "GP-0999", "0999"),
        ("digits", "0999-09", "099999"),
        ("digits", "9+-9", "text"),
        ("digits", "a-9+", "9+"),
        ("first", "0999-9", "0999"),
        ("last", "9+-09", "09"),
        ("last", "9+.0", "text"),
        ("zfill:5", "a9", "a9"),
    ],
)
def test_a_form_after_a_step(step: str, before: str, expected: str) -> None:
    assert after(((before, 3),), ["strip", step]) == ((expected, 3),)


@pytest.mark.parametrize("form", ["", "1234", "90", "9+.00", "9\n", "9" * 81, "smith", "0", "a0"])
def test_what_is_no_form_is_refused(form: str) -> None:
    with pytest.raises(InvalidInputError, match="not a form"):
        check_forms([("id", ((form, 1),))], ["id"])
    with pytest.raises(InvalidInputError, match="has 0 rows"):
        check_forms([("id", (("9", 0),))], ["id"])
    with pytest.raises(InvalidInputError, match="has 'person', which names no respondent"):
        check_forms([("person", (("9", 1),))], ["id"])
