"""What is proposed for tables that nobody prepared, beside what public_tables.txt has, and for bad tables."""

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from veiltab.common.errors import InvalidInputError
from veiltab.common.study.drafts.draft import draft_from_bytes
from veiltab.common.study.toml_text import toml_text
from veiltab.curator.check import profile
from veiltab.curator.check.drafted_table import TableProposal, propose_table
from veiltab.curator.check.profile import profile_columns
from veiltab.curator.check.proposal import AttributeProposal
from veiltab.curator.formats.opening import open_table

Propose = Callable[..., TableProposal]
ROWS = 200
DAYS = [f"{1900 + row // 2}-{row % 12 + 1:02}-{row % 28 + 1:02}" for row in range(ROWS)]


@pytest.fixture
def propose(tmp_path: Path) -> Propose:
    def proposed(header: Sequence[str], rows: Sequence[Sequence[object]], **options: object) -> TableProposal:
        path = tmp_path / "alice.csv"
        lines = [",".join(header), *(",".join(map(str, row)) for row in rows)]
        path.write_text("\n".join([*lines, ""]), "utf-8")
        return propose_table(path, "alice", **options)  # type: ignore[arg-type] # options of the test

    return proposed


def written(proposal: TableProposal) -> dict[str, list[str]]:
    return {name: [part.form for part in parts] for name, parts in proposal.ids.forms.items()}


def column(propose: Propose, values: Sequence[object], **options: object) -> AttributeProposal | str:
    """The proposal for one column, or why it stays out."""
    proposal = propose(["id", "x"], list(enumerate(values, 1)), **options)
    if proposal.attributes:
        (attribute,) = proposal.attributes
        return attribute
    (omission,) = proposal.omissions
    assert omission.column == "x"
    return omission.reason


def attribute(propose: Propose, values: Sequence[object], **options: object) -> AttributeProposal:
    found = column(propose, values, **options)
    assert isinstance(found, AttributeProposal)
    return found


def coding(proposal: AttributeProposal) -> dict[str, object]:
    return {key: value for key, value in proposal.table.items() if key not in {"name", "owner", "column"}}


def test_few_rows_without_a_value_are_dropped_even_where_they_are_many_of_the_rows(propose: Propose) -> None:
    for missing, rule in ((4, {}), (5, {"missing": "category"})):
        found = attribute(propose, [*["NA"] * missing, *["yes", "no"] * 20])
        assert coding(found) == {"categories": ["no", "yes"], **rule}


def test_a_category_of_missing_values_has_a_name_of_its_own(propose: Propose) -> None:
    found = attribute(propose, ["missing", "drop", "category", ""] * 10)
    assert coding(found) == {
        "categories": ["category (value)", "drop (value)", "missing"],
        "recode": {"category": "category (value)", "drop": "drop (value)"},
        "missing": "category",
        "missing_category": "missing-2",
    }


def test_a_spelling_is_that_of_most_rows(propose: Propose) -> None:
    found = attribute(propose, [*["New  York"] * 5, *["NEW YORK"] * 9, *["Paris"] * 9, *["paris"] * 8])
    assert coding(found) == {"categories": ["NEW YORK", "Paris"], "recode": {"New  York": "NEW YORK", "paris": "Paris"}}


@pytest.mark.parametrize("count", [1, 4, 5])
def test_a_category_of_few_people_comes_with_a_warning(propose: Propose, count: int) -> None:
    found = attribute(propose, [*["single"] * 50, *["married"] * 50, *["nun"] * count])
    rows = "row has" if count == 1 else "rows have"
    told = f"{count} {rows} 'nun'; the study file tells every party that such a value occurs"
    assert found.warnings == (() if count == 5 else (told,))


def test_of_bins_and_numbers_only_the_outer_ones_tell_that_they_occur(propose: Propose) -> None:
    integers = attribute(propose, [*[1] * 50, 3, *[4] * 50, 6])
    assert coding(integers) == {"integers": [1, 6]}
    assert [warning.split(";")[0] for warning in integers.warnings] == ["1 row has '6'"]
    binned = attribute(propose, [*range(40), *range(40), 55, 99])
    assert [warning.split(";")[0] for warning in binned.warnings] == ["1 row has '[80, 100]'"]
    with_missing = attribute(propose, [*range(40), *range(40), *["NA"] * 9, 55, 99])
    assert with_missing.rule.coding.missing == "missing"
    assert with_missing.warnings == binned.warnings


def test_numbers_in_other_spellings_are_recoded(propose: Propose) -> None:
    assert coding(attribute(propose, ["1", "1.0", "02", "+3"] * 9)) == {
        "integers": [1, 3],
        "recode": {"+3": "3", "02": "2", "1.0": "1"},
    }


def test_whole_numbers_that_span_more_than_twelve_are_binned(propose: Propose) -> None:
    assert coding(attribute(propose, [1, 12] * 9)) == {"integers": [1, 12]}
    for as_numbers in (False, True):
        reasons = attribute(propose, [0, 30] * 9, as_numbers=as_numbers).reasons
        assert any("integers = [0, 30] instead keeps each number, as survival curves want" in one for one in reasons)
    assert not any("integers = " in one for one in attribute(propose, [0, 300] * 9).reasons)
    assert coding(attribute(propose, [1, 13] * 9)) == {"bins": [0, 5, 10, 15]}


def test_quantiles_only_where_they_are_asked_for(propose: Propose) -> None:
    values = [1000 + 7 * row for row in range(100)]
    assert coding(attribute(propose, values)) == {"bins": [1000, 1200, 1400, 1600, 1800]}
    found = attribute(propose, values, use_quantiles=True)
    assert coding(found) == {"bins": [1000, 1200, 1300, 1500, 1800]}
    assert "every party reads them" in found.warnings[0]


def test_numbers_get_a_grid_where_it_is_asked_for(propose: Propose) -> None:
    values = [1000 + 7 * row for row in range(100)]
    found = attribute(propose, values, as_numbers=True)
    assert coding(found) == {"kind": "number", "grid": [1000, 1200, 1400, 1600, 1800]}
    assert found.rule.attribute.number
    assert found.warnings == ()
    assert "every party reads them" in attribute(propose, values, as_numbers=True, use_quantiles=True).warnings[0]
    assert coding(attribute(propose, [1, 12] * 9, as_numbers=True)) == {"integers": [1, 12]}


def test_a_person_chooses_the_points_of_a_grid(propose: Propose) -> None:
    found = attribute(propose, [1000 + 7 * row for row in range(100)])
    assert coding(found.with_grid(["900", "1300", "1700"])) == {"kind": "number", "grid": [900, 1300, 1700]}
    clipped = found.with_grid(["1200", "1400"])
    assert coding(clipped) == {"kind": "number", "grid": [1200, 1400], "outside": "clip"}
    assert "no interval of a mean knows" in clipped.warnings[0]
    assert coding(clipped.with_edges(["1000", "1300", "1700"])) == {"bins": [1000, 1300, 1700]}
    for wrong in (["7"], ["3", "1"], ["a", "b"], []):
        with pytest.raises(InvalidInputError):
            found.with_grid(wrong)
    with pytest.raises(InvalidInputError, match="no grid"):
        attribute(propose, ["a", "b"] * 9).with_grid(["1", "2"])


def test_a_stray_text_among_numbers_is_named_with_its_row_and_counts_as_missing(propose: Propose) -> None:
    values = [f'"{row},5"' for row in range(100, 300)]
    found = attribute(propose, [*values[:150], "k.A.", *values[150:], "o.\u00c4."])
    assert found.table["missing_values"] == ["", "NA", "?", "k.A.", "o.\u00c4."]
    assert found.numbers == (Decimal("100.5"), Decimal("299.5"))
    first, second = found.warnings
    assert first.startswith("'k.A.' (row 152) is not a number, and counts as missing: every party reads it")
    assert second.startswith("'o.\u00c4.' (row 203) is not a number")


def test_dates_are_found_in_spite_of_a_stray_cell(propose: Propose) -> None:
    found = attribute(propose, [*DAYS, "00:00:00", "00:00:00"])
    assert "dates" in found.table
    assert found.table["missing_values"] == ["", "NA", "?", "00:00:00"]
    assert found.warnings[0].startswith("'00:00:00' (row 202) is not a date until today, and counts as missing")


def test_what_a_person_calls_missing_is_missing(propose: Propose) -> None:
    values = [*range(10), *range(9), 99] * 5
    assert coding(attribute(propose, values, missing={"x": ["99"]})) == {
        "integers": [0, 9],
        "missing_values": ["", "NA", "?", "99"],
        "missing": "category",
    }
    with pytest.raises(InvalidInputError, match="column 'y' is not in the header"):
        attribute(propose, values, missing={"y": ["99"]})


def test_letters_of_a_recode_are_shown_as_they_are(propose: Propose) -> None:
    shown = attribute(propose, ["m\u00e4nnlich", "m\u00e4nnlich", "M\u00e4nnlich", "w"] * 40).as_text()
    assert "recode: 'M\u00e4nnlich' is m\u00e4nnlich" in shown


def test_whole_numbers_may_have_edges(propose: Propose) -> None:
    chosen = attribute(propose, [*range(10)] * 9).with_edges(["0", "5", "9"])
    assert coding(chosen) == {"bins": [0, 5, 9]}


def test_edges_of_a_person(propose: Propose) -> None:
    found = attribute(propose, [*range(13, 90)] * 2)
    chosen = found.with_edges(["0", "18", "65", "120"])
    assert chosen.rule.attribute.categories == ("[0, 18)", "[18, 65)", "[65, 120]")
    assert chosen.table["bins"] == [0, 18, 65, 120]
    for edges, problem in (((0, 18, 65), "lie outside"), ((0, 90, 18), "do not increase"), ((0,), "do not increase")):
        with pytest.raises(InvalidInputError, match=problem):
            found.with_edges([str(edge) for edge in edges])


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["", "NA", "?"] * 5, "no row has a value"),
        (["a", " A", "NA"] * 5, "all rows have the same value"),
        (["1", "1.0", "1."] * 5, "all rows have the same value"),
        (["1994-03-01", "1994-03-02", ""] * 5, "all its dates are in one year"),
        (["01.03.1994", "3/4/94"] * 5, "its dates are written in several ways"),
        (["1994-03-01", "9999-12-31"] * 5, "5 of 10 dates are after today, the first is '9999-12-31' in row 3"),
        (["8/5/51", "30/4/26"] * 9, "two digits, which name no century: say the earliest year that they may mean"),
        ([f"{1930 + n}{n % 12 + 1:02}{n % 28 + 1:02}" for n in range(60)], "read as dates written %Y%m%d"),
        ([f"{n % 28 + 1:02}{n % 12 + 1:02}{30 + n}" for n in range(60)], "read as dates written %d%m%y"),
        (["01/03/1994", "03/04/1996"] * 5, "may be read in two ways: %d/%m/%Y or %m/%d/%Y"),
        (['"1,234"', '"2,345"', "3"] * 5, "may be read in two ways: 1,234 may be 1.234, with a decimal comma, or 1234"),
        ([*(f"Ann {row}" for row in range(9)), "Ann 0"], "almost every row has a text of its own"),
        ([f"town {row}" for row in range(65)] * 4, "65 different texts, and 64 at most are proposed"),
        (
            [*range(1000, 1200), "many", *"abcdefghi"],
            "200 of 210 values are numbers; the first that is none is 'many' in",
        ),
        (
            [*DAYS, "00:00:00", *"abcdefghi"],
            "200 of 210 values are dates; the first that is none is '00:00:00' in row 202",
        ),
        ([5 * number for number in (1, 10**16)] * 5, "its numbers are too large for bins"),
        (["x" * 81, "y"] * 5, "cannot be shown"),
    ],
)
def test_a_column_that_can_be_no_attribute_stays_out(propose: Propose, values: Sequence[object], reason: str) -> None:
    found = column(propose, values, id_columns=["id"])
    assert isinstance(found, str), coding(found)
    assert reason in found


def test_dates_get_bins_of_round_years(propose: Propose) -> None:
    found = attribute(propose, [f"{1987 + row % 30}-{row % 12 + 1:02}-01T10:00" for row in range(120)])
    assert coding(found) == {"dates": ["1985", "1990", "1995", "2000", "2005", "2010", "2015", "2020"]}
    assert found.rule.attribute.categories[:2] == ("1985 to 1989", "1990 to 1994")
    assert found.reasons == ("dates from 1987 to 2016; the edges are round years, not dates of the table",)
    german = attribute(propose, [f"{row % 28 + 1}.{row % 12 + 1}.{1999 + row % 2}" for row in range(60)])
    assert coding(german) == {"dates": ["1999", "2000", "2001"], "date_format": "%d.%m.%Y"}
    american = [f"{row % 12 + 1}/{row % 28 + 1}/{60 + row % 20}" for row in range(60)]
    assert coding(attribute(propose, american, first_year=1926)) == {
        "dates": ["1960", "1965", "1970", "1975", "1980"],
        "date_format": "%m/%d/%y",
        "first_year": 1926,
    }


def test_a_date_that_too_many_rows_have_is_asked_about(propose: Propose) -> None:
    found = attribute(propose, [*DAYS, *["1970-01-01"] * 40])
    assert found.warnings[0].startswith("40 rows have '1970-01-01', far more than have others: if it stands for")
    assert found.warnings[0].endswith("--missing 'x=1970-01-01'")
    assert not attribute(propose, DAYS).warnings
    numbers = attribute(propose, [100_000 + 37 * n for n in range(300)])
    assert "bins" in numbers.table


@pytest.mark.parametrize(
    ("codes", "told"),
    [((-9, -9, 999, 999), ("-9", "999")), ((-8, -9), ()), ((999, 17), ()), ((190, 190), ())],
)
def test_a_number_far_from_all_others_is_asked_about(
    propose: Propose, codes: Sequence[float], told: Sequence[str]
) -> None:
    found = attribute(propose, [*(18 + row % 70 for row in range(ROWS)), *codes])
    assert re.findall(r"2 rows have '(\S+)', far from .* --missing 'x=\1'", "\n".join(found.warnings)) == [*told]


@pytest.mark.parametrize(
    "date_format",
    [
        *("%d-%b-%Y", "%d%b%Y", "%d %b %Y", "%d. %b %Y", "%b %d, %Y", "%Y-%b-%d", "%d-%b-%y", "%d%b%y"),
        *("%d%b%Y:%H:%M:%S", "%d-%b-%y %H:%M", "%m/%d/%Y %H:%M:%S.%f"),
    ],
)
def test_names_of_months_and_times_are_read(propose: Propose, date_format: str) -> None:
    values = [date(1927 + row % 70, row % 12 + 1, row % 28 + 1).strftime(date_format).upper() for row in range(200)]
    quoted = [f'"{value}"' for value in values]
    assert coding(attribute(propose, quoted, first_year=1926))["date_format"] == date_format


def test_a_decimal_comma_is_read(propose: Propose) -> None:
    found = attribute(propose, ['"1,5"', '"1.234,50"', "30"] * 5)
    assert found.numbers == (Decimal("1.5"), Decimal("1234.50"))
    assert "with a decimal comma" in found.reasons[0]
    assert attribute(propose, ['"1,234"', "few", "many"] * 5).rule.attribute.categories == ("1,234", "few", "many")


@pytest.mark.parametrize("around", ["", " "])
def test_ids_of_a_spreadsheet_become_whole_numbers(propose: Propose, around: str) -> None:
    rows = [[f"{around}{row}.0{around}", "f" if row % 2 else "m"] for row in range(1, 200)]
    proposal = propose(["id", "sex"], rows)
    assert (proposal.ids.normalise, written(proposal)) == (("strip", "casefold", "nfc", "integer"), {"id": ["9+"]})
    assert "normalised by strip, casefold, nfc, integer" in proposal.ids.as_text()


def test_as_many_texts_as_there_may_be_become_categories(propose: Propose) -> None:
    found = attribute(propose, [f"town {row}" for row in range(64)] * 4)
    assert found.rule.attribute.categories[:3] == ("town 0", "town 1", "town 2")
    assert found.rule.attribute.size == 64
    assert len(found.warnings) == 6
    assert found.warnings[-1] == "59 more categories have as few rows"


def test_more_different_values_than_are_counted(propose: Propose, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "_MOST_DISTINCT", 1 << 10)
    proposal = propose(["income", "pid", "sex"], [[100 * row, f"p{row}", row % 2] for row in range(2000)])
    assert (proposal.ids.columns, proposal.respondents) == (("pid",), 2000)
    assert {one.name: coding(one) for one in proposal.attributes} == {
        "income": {"bins": [0, 50_000, 100_000, 150_000, 200_000]},
        "sex": {"integers": [0, 1]},
    }


def test_values_are_counted_up_to_a_limit(propose: Propose, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    propose(["id", "x"], [[row, max(row, 3)] for row in range(30)])
    monkeypatch.setattr("veiltab.curator.check.profile._MOST_DISTINCT", 10)
    unique, other = profile_columns(open_table(tmp_path / "alice.csv"), ["id", "x"])
    assert (len(unique.values), unique.counted, unique.is_unique) == (10, 10, True)
    assert (len(other.values), other.counted, other.is_unique) == (10, 13, False)
    assert (unique.high, other.high) == (Decimal(29), Decimal(29))


def test_names_that_are_no_attribute_names(propose: Propose) -> None:
    header = ["id", "Hours (week)", "hours-week", "Größe", "_x", "", "hours_2", "hours-week-2"]
    proposal = propose(header, [[row, *[row % 2] * 7] for row in range(9)])
    assert {one.rule.column: one.name for one in proposal.attributes} == {
        "Hours (week)": "hours-week",
        "hours-week": "hours-week-2",
        "Größe": "grosse",
        "_x": "x",
        "hours_2": "hours_2",
        "hours-week-2": "hours-week-2-2",
    }
    assert [(one.column, one.reason.split(";")[0]) for one in proposal.omissions] == [("", "columns without a name: 1")]


def test_ids(propose: Propose) -> None:
    rows = [[f"{row:04}", f"h{row % 50}", row // 50, "f" if row % 2 else "m"] for row in range(100)]
    header = ["pid", "household", "place", "sex"]
    assert propose(header, rows).ids.columns == ("pid",)
    both = propose(header, rows, id_columns=["household", "place"], without=["pid"])
    assert written(both) == {"household": ["H9+"], "place": ["9"]}
    assert [one.name for one in both.attributes] == ["sex"]
    assert [(one.column, one.reason) for one in both.omissions] == [("pid", "left out by --without")]
    # Numbers with decimals are no ids, unless the name of their column says so.
    lone = propose(["weight", "label"], [[row / 4, f"{row:04}"] for row in range(20)])
    assert written(lone) == {"label": ["0999"]}
    second = propose(header, rows, id_columns=["household", "place"])
    assert [one.column for one in second.omissions] == ["pid"]
    for id_columns, problem in (
        (["household"], "50 rows repeat the id"),
        (["ID"], "column 'ID' is not in the header. Columns: pid, household, place, sex"),
        (["pid", "pid"], "--id and --without name 'pid' twice"),
    ):
        with pytest.raises(InvalidInputError, match=problem):
            propose(header, rows, id_columns=id_columns)


@pytest.mark.parametrize(
    ("header", "rows", "problem"),
    [
        (["a", "b"], [[1, 2], [1, 3], [2, 3]], "in every row. If the ids have no name"),
        (["id", "b"], [[1, 2], [1, 3], [2, 3]], 'in every row; id repeats values, or .* group by "id"'),
        (["id", "b"], [[1, 2], ["NA", 2], [3, 2]], "id repeats values, or misses some"),
        (["a", "b"], [[1, "x"], [2, "y"]], "several columns have a different value in every row: a, b"),
        (["first name", "b"], [["Ann", 1], ["Bob", 1], ["Cy", 2]], "only first name .* its values have no digit"),
        (["born", "b"], [[day.replace("-", ""), 1] for day in DAYS], "only born .* its values are dates"),
        (["id", "x", " x "], [[1, 2, 3]], "2 columns are named 'x'"),
        (["id", "x"], [], "the file has no rows"),
        (["id", "x"], [[1, 2], [2]], "1 row has more or fewer values than the header"),
    ],
)
def test_tables_of_which_no_draft_can_be_made(
    propose: Propose, header: Sequence[str], rows: Sequence[Sequence[object]], problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        propose(header, rows)


def test_files_of_which_no_draft_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "wide.csv").write_bytes("id,x\n1,é\n".encode("utf-16-le"))
    for name, problem in (("empty.csv", "is empty"), ("wide.csv", "a text in UTF-8"), ("none.csv", "cannot be read")):
        with pytest.raises(InvalidInputError, match=problem):
            propose_table(tmp_path / name, "alice")
    with pytest.raises(InvalidInputError, match="is not a name"):
        propose_table(tmp_path / "empty.csv", "Alice B")


def test_a_parquet_file_with_columns_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "alice.parquet"
    table = {"id": range(20), "list": [[1]] * 20, "lean": [0.5, 1.5] * 10, "smokes": [True, False] * 10}
    pq.write_table(pa.table({name: pa.array(values) for name, values in table.items()}), path)
    proposal = propose_table(path, "alice")
    assert {one.name: coding(one) for one in proposal.attributes} == {
        "lean": {"bins": [Decimal("0.4"), *map(Decimal, ("0.6", "0.8", "1", "1.2", "1.4", "1.6"))]},
        "smokes": {"categories": ["false", "true"]},
    }
    assert [(one.column, one.reason[:16]) for one in proposal.omissions] == [("list", "it has the type ")]


def test_the_draft_has_what_is_left_of_the_attributes(propose: Propose) -> None:
    proposal = propose(["id", "x", "y"], [[row, row % 2, row % 3] for row in range(20)])
    kept = replace(proposal, attributes=proposal.attributes[1:])
    assert kept.draft()["attribute"] == [{"name": "y", "owner": "alice", "integers": [0, 2]}]
    assert kept.draft()["draft"] == {
        "curator": "alice",
        "id_columns": ["id"],
        "normalise": ["strip", "casefold", "nfc"],
        "forms": {"id": {"9+": 20}},
        "distinct_after": ["integer", "digits", "first", "last"],
    }


MARKED = ("", "NA", "drop", "category", "missing", "1", "2.50", "1e300", "-3", "1,5", "2001-02-03", " A", "a")
CELLS = st.one_of(
    st.sampled_from(MARKED),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5),
    st.decimals(-1000, 1000, allow_nan=False, places=2).map(str),
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(CELLS, CELLS), min_size=1), often=st.lists(CELLS, max_size=3), use_quantiles=st.booleans()
)
def test_whatever_a_table_holds_its_draft_is_valid_and_codes_every_value(
    tmp_path: Path, rows: list[tuple[str, str]], often: list[str], *, use_quantiles: bool
) -> None:
    path = tmp_path / "alice.csv"
    cells = [*rows, *((value, value) for value in often * 9)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerows([("id", "x", "y"), *((number, *row) for number, row in enumerate(cells))])
    try:
        # It reads the table again by the rules that it proposes, and refuses values that they do not know.
        proposal = propose_table(path, "alice", id_columns=["id"], use_quantiles=use_quantiles, is_as_it_is=True)
    except InvalidInputError as error:
        assert re.search("all [0-9]+ rows miss a value", str(error))  # noqa: PT017 - or there is a proposal
        return
    assert len(proposal.attributes) + len(proposal.omissions) == 2
    if proposal.attributes:
        draft = draft_from_bytes(toml_text(proposal.draft()).encode(), "")
        assert draft.attributes == tuple(one.table for one in proposal.attributes)
