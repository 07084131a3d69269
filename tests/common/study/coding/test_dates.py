from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veiltab.common.errors import InvalidInputError
from veiltab.common.study.coding.coding import DROP, UNKNOWN, Coding
from veiltab.common.study.coding.dates import DateBins, today
from veiltab.play.studies.dummy_tables import first_days


@pytest.mark.parametrize(
    ("edges", "labels"),
    [
        (("1990", "2000-07", "2010"), ("1990-01 to 2000-06", "2000-07 to 2009-12")),
        (("1990", "2000", "2001"), ("1990 to 1999", "2000")),
        (("2000-02", "2000-03", "2000-05"), ("2000-02", "2000-03 to 2000-04")),
        (("2000-02-28", "2000-03-01", "2000-03-02"), ("2000-02-28 to 2000-02-29", "2000-03-01")),
        (("1999-12-31", "2000-01-01", "2001-01"), ("1999-12-31", "2000")),
    ],
)
def test_names_read_as_the_coarsest_units(edges: tuple[str, ...], labels: tuple[str, ...]) -> None:
    assert DateBins(edges=edges).labels == labels


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("1989-12-31", None),
        ("1990-01-01", 0),
        ("2000-06-30T23:59:59.999Z", 0),
        ("2000-07-01 00:00", 1),
        ("2000-07-01 00:00:00.000000", 1),
        ("2009-12-31 23:59+02:00", 1),
        ("2010-01-01", None),
        ("2000-07", 1),
        ("2000-7-1", None),
        ("2000-02-30", None),
        ("01.07.2000", None),
    ],
)
def test_a_date_is_in_the_bin_of_its_day(value: str, place: int | None) -> None:
    assert DateBins(edges=("1990", "2000-07", "2010")).bin(value) == place


def test_a_year_or_month_alone_counts_where_it_lies_in_one_bin() -> None:
    assert DateBins(edges=("1990", "2000", "2010")).bin("1999") == 0
    assert DateBins(edges=("1990", "2000-07-02", "2010")).bin("2000-07") is None


def test_other_writings_have_a_format() -> None:
    bins = DateBins(edges=("1990", "2000-07", "2010"), format="%d.%m.%Y %H:%M")
    assert [bins.bin(value) for value in ("30.06.2000 23:59", "01.07.2000 00:00", "2000-07-01")] == [0, 1, None]
    assert list(first_days(bins)) == ["01.01.1990 00:00", "01.07.2000 00:00"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("%d-%b-%Y", ("08-MAY-1951", "8-mai-1951", "08-May-1951", "8-mayo-1951")),
        ("%d. %b %Y", ("8. Mai 1951", "08. May 1951")),
        ("%b %d, %Y", ("May 8, 1951", "Mai 08, 1951")),
        ("%d %b %Y", ("8 mai 1951", "8 mai. 1951")),
        ("%d %b. %Y", ("8 mai 1951", "8 mai. 1951")),
        ("%d%b%Y:%H:%M:%S", ("08MAY1951:00:00:00",)),
    ],
)
def test_months_have_names(text: str, values: tuple[str, ...]) -> None:
    bins = DateBins(edges=("1951-05-08", "1951-05-09", "2000"), format=text)
    assert [bins.bin(value) for value in values] == [0] * len(values)
    assert [bins.bin(value) for value in first_days(bins)] == [0, 1]
    assert bins.bin("08-XYZ-1951") is None


def test_one_digit_beside_a_name_is_a_day() -> None:
    bins = DateBins(edges=("1951-05-01", "1951-05-02", "1951-06-01"), format="%d%b%Y")
    assert bins.bin("1MAY1951") == 0


@pytest.mark.parametrize(("first", "years"), [(1926, (1926, 1999, 2000, 2025)), (1900, (1926, 1999, 1900, 1925))])
def test_a_person_names_the_century_of_two_digits(first: int, years: tuple[int, ...]) -> None:
    bins = DateBins(edges=tuple(str(year) for year in range(1900, 2027)), format="%d/%m/%y", first_year=first)
    assert [bins.labels[bins.bin(f"08/05/{year % 100:02}") or 0] for year in years] == [str(year) for year in years]


def test_the_month_of_a_date_of_two_digits_may_stand_alone() -> None:
    assert DateBins(edges=("2000-07", "2001"), format="%m/%y", first_year=1969).bin("07/00") == 0
    assert DateBins(edges=("1900-01", "2001"), format="%d/%m/%y", first_year=1801).bin("29/02/00") is None


@pytest.mark.parametrize(("text", "first"), [("%d/%m/%y", None), ("%d/%m/%Y", 1926), ("", 1926), ("%d/%m/%y", 26)])
def test_two_digits_and_a_first_year_need_one_another(text: str, first: int | None) -> None:
    with pytest.raises(InvalidInputError, match="first_year"):
        DateBins(edges=("1990", "2000"), format=text, first_year=first)


def test_dates_after_today_need_the_word_of_the_study() -> None:
    tomorrow, edges = (today() + timedelta(days=1)).isoformat(), ("1990", "9999")
    assert DateBins(edges=edges).bin(today().isoformat()) == 0
    assert DateBins(edges=edges).bin(tomorrow) is None
    assert DateBins(edges=edges).trouble(tomorrow) == "dates after today"
    assert DateBins(edges=edges, future_dates=True).bin(tomorrow) == 0


@pytest.mark.parametrize(
    ("edges", "text", "problem"),
    [
        (("1990",), "", "do not increase"),
        (("1990", "1990-01"), "", "do not increase"),
        (("1990-1", "2000"), "", "'1990-1', which is not a year, month or day"),
        (("1990-02-30", "2000"), "", "which is not a year, month or day"),
        (("0000", "2000"), "", "which is not a year, month or day"),
        (("1990", "2000"), "%d.%m", "lacks %Y"),
        (("1990", "2000-02"), "%Y", "lacks %m"),
        (("1990", "2000-02-02"), "%Y-%m", "lacks %d"),
        (("1990", "2000"), "%Y %A", "is not known"),
        (("1990", "2000"), "%Y %b %m", "is not known"),
        (("1990", "2000"), "%Y %y", "is not known"),
        (("1990", "2000"), "%Y%", "is not known"),
    ],
)
def test_bins_that_no_date_fits_are_refused(edges: tuple[str, ...], text: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        DateBins(edges=edges, format=text)


def test_missing_dates_follow_the_rule() -> None:
    bins = DateBins(edges=("1990", "2000"))
    coding = Coding(categories=(*bins.labels, "missing"), dates=bins, missing="missing")
    assert [coding.code(raw) for raw in ("1990-05-05", "NA", None, "2000-01-01")] == [0, 1, 1, UNKNOWN]
    assert Coding(categories=bins.labels, dates=bins).code("") == DROP
    with pytest.raises(InvalidInputError, match="dates stands beside recode or bins"):
        Coding(categories=bins.labels, dates=bins, recode=(("x", bins.labels[0]),))
    with pytest.raises(InvalidInputError, match="2 categories for 1 bins"):
        Coding(categories=("a", "b"), dates=bins)


@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)), st.lists(st.dates(), min_size=2, max_size=6, unique=True))
def test_bins_agree_with_comparing_dates(day: date, edges: list[date]) -> None:
    edges.sort()
    bins = DateBins(edges=tuple(edge.isoformat() for edge in edges), future_dates=True)
    expected = [place for place, low in enumerate(edges[:-1]) if low <= day < edges[place + 1]]
    assert bins.bin(day.isoformat()) == (expected[0] if expected else None)
    assert bins.bin(day.strftime("%Y-%m-%dT23:59")) == bins.bin(day.isoformat())
    for place, example in enumerate(first_days(bins)):
        assert bins.bin(example) == place
        assert bins.bin((edges[place + 1] - timedelta(days=1)).isoformat()) == place
