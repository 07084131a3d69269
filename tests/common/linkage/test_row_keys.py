"""Keys of rows: what agrees, what sits out, and that passes have keys of their own."""

import tracemalloc

import pyarrow as pa
import pytest

from tests.worlds.studies import FIELDS
from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.identity_rule import IdentityRule
from veiltab.common.linkage.ladder import MOST_PASSES, FieldKind, Pass, default_ladder, ladder_of
from veiltab.common.linkage.placebo import moved_date, moved_postcode, placebo_keys
from veiltab.common.linkage.row_keys import NormalRows, identity_columns, normal_rows, pass_keys
from veiltab.play.linkage.open_rule import candidates

KINDS = {name: FieldKind(name) for name in FIELDS}
ROW = ("Maria", "Lopez", "1980-02-03", "f", "1234")


def identity(*ladder: str, fields: dict[str, FieldKind] = KINDS) -> IdentityRule:
    return IdentityRule(fields=tuple(fields.items()), hub="hub", ladder=ladder_of(ladder or default_ladder(fields)))


def rows_of(*rows: tuple[str | None, ...]) -> NormalRows:
    return normal_rows(identity(), "ymd", list(zip(*rows, strict=True)))


def agrees(key: str, one: tuple[str | None, ...], other: tuple[str | None, ...]) -> bool:
    step = Pass(1, key)
    found = candidates(pass_keys(step, rows_of(one)), pass_keys(step, rows_of(other)))
    assert found == candidates(pass_keys(step, rows_of(other)), pass_keys(step, rows_of(one)))
    return found == [0]


@pytest.mark.parametrize(
    ("key", "other", "does_agree"),
    [
        ("given family birth sex", ("maria", "LÓPEZ", "1980/2/3", "Female", "9"), True),
        ("given family birth sex", ("Marie", "Lopez", "1980-02-03", "f", "1234"), False),
        ("given:3 family:3 birth", ("Marianne", "Lopes", "1980-02-03", "m", ""), True),
        ("given:1 family birth", ("Mary", "Lopez", "1980-02-03", "", ""), True),
        ("given:sound birth", ("Marie", "x", "1980-02-03", "", ""), True),
        ("given:sound birth", ("Tom", "x", "1980-02-03", "", ""), False),
        ("given+family birth", ("Lopez", "Maria", "1980-02-03", "", ""), True),
        ("given+family birth", ("Lopez", "Lopez", "1980-02-03", "", ""), False),
        ("given family birth:year birth:month+birth:day", ("Maria", "Lopez", "1980-03-02", "", ""), True),
        ("given family birth:year birth:month+birth:day", ("Maria", "Lopez", "1980-03-03", "", ""), False),
        ("given family birth:month birth:day", ("Maria", "Lopez", "1990-02-03", "", ""), True),
        ("given~ family", ("Mara", "Lopez", "", "", ""), True),
        ("given~ family", ("Mariia", "Lopez", "", "", ""), True),
        ("given~ family", ("Amria", "Lopez", "", "", ""), True),
        ("given~ family", ("Mar", "Lopez", "", "", ""), False),
        ("given~ family", ("Mara", "Lopes", "", "", ""), False),
        ("birth~ given", ("Maria", "", "1980-02-04", "", ""), True),
        ("birth~ given", ("Maria", "", "1981-02-04", "", ""), False),
    ],
)
def test_what_agrees(key: str, other: tuple[str, ...], does_agree: bool) -> None:  # noqa: FBT001 - a column of the table
    assert agrees(key, ROW, other) is does_agree


@pytest.mark.parametrize(
    "key",
    ["given family birth sex", "given+family birth", "given~ family", "birth~ given", "given:sound", "birth:year"],
)
@pytest.mark.parametrize("lacking", [("", None, "1900-01-01", "?", "-"), ("1", "2", "3", "4", "")])
def test_a_row_that_lacks_a_component_sits_out(key: str, lacking: tuple[str | None, ...]) -> None:
    assert pass_keys(Pass(1, key), rows_of(lacking, ROW))[0] == ()
    assert pass_keys(Pass(1, key), rows_of(lacking, ROW))[1] != ()


def test_keys_of_passes_differ_though_their_components_agree() -> None:
    (one,), (other,) = (pass_keys(Pass(number, "given family"), rows_of(ROW)) for number in (1, 2))
    assert one[0][1:] == other[0][1:]
    assert one != other


def test_components_do_not_run_into_one_another() -> None:
    assert not agrees("given family", ("ann", "elopez", "", "", ""), ("anne", "lopez", "", "", ""))


def test_a_key_longer_than_256_bytes_counts_as_missing() -> None:
    long, longest = ("a" * 200, "b" * 55, "", "", ""), ("a" * 200, "b" * 54, "", "", "")
    assert pass_keys(Pass(1, "given family"), rows_of(long)) == [()]
    assert len(pass_keys(Pass(1, "given family"), rows_of(longest))[0][0]) == 256
    assert pass_keys(Pass(1, "given family"), rows_of(("a" * 10**6, "b", "", "", ""))) == [()]
    assert pass_keys(Pass(1, "family~ given"), rows_of(("a" * 250, "bcdefgh", "", "", ""))) == [()]


def test_no_variants_are_made_of_a_text_that_no_key_holds() -> None:
    """Those of 18,432 letters, which 1,024 characters of a table can become, would take 300 MB."""
    tracemalloc.start()
    assert pass_keys(Pass(1, "postcode~"), rows_of(("", "", "", "", "\ufdfa" * 1024))) == [()]
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()


def test_variants_of_a_name_are_of_its_first_letters() -> None:
    (keys,) = pass_keys(Pass(1, "given~"), rows_of(("abcdefghijklmnop", "", "", "", "")))
    assert len(keys) == 13
    assert max(map(len, keys)) == 14
    (keys,) = pass_keys(Pass(1, "given~"), rows_of(("aaa", "", "", "", "")))
    assert len(keys) == 2


def test_one_letter_has_no_empty_variant() -> None:
    assert len(pass_keys(Pass(1, "given~"), rows_of(("a", "", "", "", "")))[0]) == 1
    assert not agrees("given~", ("a", "", "", "", ""), ("b", "", "", "", ""))


def test_columns_of_arrow_and_lists_are_one() -> None:
    columns = [["Ann", None, "Ann"], ["B", "C", ""], ["1980-01-01", "", "x"], ["f", "m", None], ["1", "2", "3"]]
    arrays = [pa.array(column, pa.large_string()) for column in columns]
    for step in identity().ladder:
        assert pass_keys(step, normal_rows(identity(), "ymd", columns)) == pass_keys(
            step, normal_rows(identity(), "ymd", arrays)
        )


def test_columns_that_do_not_fit_are_refused() -> None:
    for columns in ([["a"]] * 4, [["a"]] * 4 + [["a", "b"]]):
        with pytest.raises(InvalidInputError, match="columns of identity fields"):
            normal_rows(identity(), "ymd", columns)


def test_fields_come_back_from_the_text_in_the_place_of_an_id() -> None:
    texts = pa.array(["a\x1fb\x1f\x1f\x1f1", "\x1f\x1f\x1f\x1f"], pa.large_string())
    found = [column.to_pylist() for column in identity_columns(texts, identity())]
    assert found == [["a", ""], ["b", ""], ["", ""], ["", ""], ["1", ""]]
    assert [column.to_pylist() for column in identity_columns(texts.slice(0, 0), identity())] == [[]] * 5
    with pytest.raises(InvalidInputError, match="other than 5 identity fields"):
        identity_columns(pa.array(["a\x1fb"], pa.large_string()), identity())


@pytest.mark.parametrize(
    ("without", "keys", "deletions"),
    [((), 12, 5), (("sex",), 12, 5), (("postcode",), 5, 2), (("sex", "postcode"), 4, 2)],
)
def test_default_ladders(without: tuple[str, ...], keys: int, deletions: int) -> None:
    kinds = {name: kind for name, kind in KINDS.items() if name not in without}
    names = default_ladder(kinds, deletions)
    assert len(names) == keys + deletions
    assert identity(*names, fields=kinds).ladder == ladder_of(names)
    assert all(step.fields <= kinds.keys() for step in ladder_of(names))
    assert default_ladder({**kinds, "number": FieldKind.NUMBER}) == ("number", *names[:keys])
    with pytest.raises(InvalidInputError, match="deletions"):
        default_ladder(kinds, deletions + 1)


def test_ladders_of_no_keys_or_too_many_are_refused() -> None:
    for names in ([], [f"given:{n % 9 + 1}" for n in range(MOST_PASSES + 1)]):
        with pytest.raises(InvalidInputError, match="the ladder has"):
            ladder_of(names)


@pytest.mark.parametrize(
    "key",
    ["", "given:0", "given:year", "birth:sound", "sex~", "sex:1", "given:3~", "given~+family", "given given", "x"],
)
def test_keys_that_are_none_are_refused(key: str) -> None:
    with pytest.raises(InvalidInputError, match="key"):
        identity(key)


def test_the_description_covers_all_that_decides() -> None:
    texts = {
        identity().description(),
        identity("given").description(),
        identity("given", "family").description(),
        identity("family", "given").description(),
        identity("given", fields={**KINDS, "postcode": FieldKind.TEXT}).description(),
        IdentityRule(fields=tuple(KINDS.items()), hub="other", ladder=ladder_of(["given"])).description(),
        IdentityRule(
            fields=tuple(KINDS.items()), hub="hub", ladder=ladder_of(["given"]), default_dates=()
        ).description(),
        IdentityRule(fields=tuple(KINDS.items()), hub="hub", ladder=ladder_of(["given"]), placebo=True).description(),
    }
    assert len(texts) == 8
    assert "placebo" not in identity().description()


def test_moved_dates_differ_in_every_part_and_are_dates() -> None:
    for month in range(1, 13):
        for day in range(1, 29):
            date = f"1980{month:02}{day:02}"
            moved = moved_date(date)
            assert moved[:4] == "1983"
            assert moved[4:6] != date[4:6]
            assert moved[6:] != date[6:]
            assert 1 <= int(moved[4:6]) <= 12
            assert 1 <= int(moved[6:]) <= 28
    assert moved_date("19800131") == "19830614"
    assert moved_date("") == moved_postcode("") == ""
    assert moved_postcode("1234az") == "4567fe"


def test_a_run_with_moved_dates_finds_no_true_pair() -> None:
    rows = rows_of(ROW, ("Bob", "Jones", "1970-05-06", "m", "99"))
    for step in ladder_of(default_ladder(KINDS, 5)):
        keys = placebo_keys(step, rows)
        assert keys is not None
        assert all(keys)
        assert not {key for row in keys for key in row} & {key for row in pass_keys(step, rows) for key in row}
    assert placebo_keys(Pass(1, "given family"), rows) is None
    assert placebo_keys(Pass(1, "given postcode"), rows) != pass_keys(Pass(1, "given postcode"), rows)
