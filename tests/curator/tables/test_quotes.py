"""Quotes that do not close: nobody is lost without a word, whatever the separator, the encoding and the place."""

import csv
import gzip
import io
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import STUDY
from tests.curator.tables.test_text_file import rows_of, write
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import study_from_bytes
from veiltab.curator.check.inspection import inspect_table
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.columns.named_columns import NamedColumns
from veiltab.curator.formats.columns.refusals import NotedRows
from veiltab.curator.formats.files.quoting import WatchedText
from veiltab.curator.formats.files.sniffing import TextForm
from veiltab.curator.formats.opening import open_table

BEFORE = "".join(f"{row};ok;ok\n" for row in range(2, 17))
AFTER = "".join(f"{row};ok;ok\n" for row in range(18, 30))


def table(row: str) -> str:
    return f"id;city;note\n{BEFORE}{row}\n{AFTER}"


BROKEN = {
    '17;ok;"see file': "row 17 opens a quote that is never closed",
    '"17;ok;ok': "row 17 opens a quote that is never closed",
    '17;"North" Ltd;ok': "in row 17, a value goes on behind the quote that closes it",
    '17;"the \\"north\\"";ok': "in row 17, a value goes on behind the quote",
    '17;"a" ;ok': "in row 17, a value goes on behind the quote",
    '17;ok;"see file\n18;ok;ok\n19;ok;ok"': "in row 17, a quoted value goes over 3 lines that look like rows",
    '17;"a;ok\n18;ok";ok': "in row 17, a quoted value goes over 2 lines that look like rows",
}


@pytest.mark.parametrize("row", BROKEN)
@pytest.mark.parametrize("form", ["utf-8", "utf-8-sig", "utf-16", "windows-1252", "gz", "query"])
def test_a_quote_that_does_not_close_is_refused_with_its_row(tmp_path: Path, row: str, form: str) -> None:
    text = table(row)
    if form == "gz":
        place = TableAddress(location=str(write(tmp_path, gzip.compress(text.encode()), "t.csv.gz")))
    else:
        path = write(tmp_path, text.encode("utf-8" if form == "query" else form))
        place = TableAddress(location=str(path), query="select id, city from t" if form == "query" else "")
    with pytest.raises(InvalidInputError, match=BROKEN[row]) as caught:
        rows_of(place)
    assert "Close it" in caught.value.remedy


def test_a_quote_far_from_the_beginning_is_named_by_its_row(tmp_path: Path) -> None:
    rows = [f"{row};{'x' * 40};y" for row in range(2, 90_002)]
    rows[70_000] = '70002;"a;b'
    with pytest.raises(InvalidInputError, match="row 70002 opens a quote that is never closed"):
        rows_of(write(tmp_path, ("id;a;b\n\n" + "\r\n".join(rows)).encode()))
    rows[70_000] = '70002;"a" b;c'
    with pytest.raises(InvalidInputError, match="in row 70002, a value goes on"):
        rows_of(write(tmp_path, ("id;a;b\n\n" + "\r\n".join(rows)).encode()))


def test_quotes_that_are_signs_and_values_of_several_lines_are_read_as_they_are(tmp_path: Path) -> None:
    text = 'id,size,note\n1,5" pipe,"two, \nlines"\n2,"say ""no""","a\n\nb, c"\n3,a"b"c,""\n4,"",d""\n'
    expected = [tuple(row) for row in csv.reader(io.StringIO(text), strict=True)]
    path = write(tmp_path, text.encode())
    assert rows_of(path) == expected
    source = open_table(path)
    for _ in NamedColumns(source, ["id"], ()).batches():
        pass
    assert source.description.endswith("2 rows with a value of several lines, first in rows 2, 3")
    assert source.lines == 7


def test_a_check_says_how_many_lines_there_are_and_which_rows_stand_at_the_ends(tmp_path: Path) -> None:
    study = study_from_bytes(STUDY, "s.toml")
    path = write(tmp_path, b"\xef\xbb\xbf\xef\xbb\xbfid,sex,age\n\nx-1,m,old\r\nx-2,m,old\n\nx-9,f,young")
    report = inspect_table(path, study, "alice").as_dict()
    assert (report["lines"], report["rows"]) == (4, 3)
    assert "row 2 has the id 'x-1'; row 4 has the id 'x-9'" in inspect_table(path, study, "alice").as_text()


VALUE = st.text(st.sampled_from('ab5 ,;"\n'), max_size=5)


def written(rows: list[tuple[str, str, str]], separator: str, quoting: Literal[0, 1]) -> str:
    file = io.StringIO()
    csv.writer(file, delimiter=separator, quoting=quoting, lineterminator="\n").writerows(rows)
    return file.getvalue()


@st.composite
def broken_files(draw: st.DrawFn) -> tuple[set[str], str]:
    """Return ids, and a file that had them until a quote was put in or taken out."""
    values = draw(st.lists(st.tuples(VALUE, VALUE), min_size=1, max_size=8))
    rows = [(f"x{number}", *pair) for number, pair in enumerate(values)]
    quoting: Literal[0, 1] = 1 if draw(st.booleans()) else 0  # of all values, of those that need it
    text = written([("id", "one", "two"), *rows], draw(st.sampled_from(",;")), quoting)
    place = draw(st.integers(0, len(text)))
    quotes = [at for at, sign in enumerate(text) if sign == '"']
    if draw(st.booleans()) and quotes:
        place = draw(st.sampled_from(quotes))
        return {row[0] for row in rows}, text[:place] + text[place + 1 :]
    return {row[0] for row in rows}, f'{text[:place]}"{text[place:]}'


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=broken_files())
def test_of_one_broken_quote_nothing_is_lost_in_silence(tmp_path: Path, case: tuple[set[str], str]) -> None:
    """The file is refused, or a row begins with each id, or rows of several lines are named."""
    ids, text = case
    try:
        source = open_table(write(tmp_path, text.encode()))
        read = [one for batch in NamedColumns(source, ["id"], ()).batches() for one in batch.texts["id"].to_pylist()]
    except InvalidInputError:
        return
    lost = [one for one in ids if not any(text.replace('"', "").startswith(one) for text in read)]
    assert not lost or "several lines" in source.description


class QuoteByQuote(WatchedText):
    """Takes no rows for plain, but follows each quote."""

    def _count_plain_rows(self, _: bytes) -> None:
        return None


def watched(text: bytes, size: int, kind: type[WatchedText]) -> tuple[int, NotedRows, str]:
    """Return the lines, the rows of several lines and the refusal of a text that is read some bytes at a time."""
    form = TextForm(separator=",", encoding="utf-8", quote='"', has_mark=False, skipped=0)
    found, refusal = kind("t.csv", io.BytesIO(text), form), ""
    try:
        while found.read(size):
            pass
    except InvalidInputError as error:
        refusal = error.problem
    return (0 if refusal else found.lines), found.long_rows, refusal


@settings(deadline=None, max_examples=400)
@given(text=st.text('aa",,\n\r ', max_size=300), quoted=st.booleans(), size=st.integers(5, 120))
def test_quotes_and_rows_are_those_of_the_whole_wherever_it_is_cut(text: str, quoted: bool, size: int) -> None:  # noqa: FBT001 - drawn
    rows = [[value.replace('"', '""') for value in row.split(",")] for row in text.split("\n")]
    body = "\n".join(",".join(f'"{value}"' for value in row) for row in rows) if quoted else text
    data = f"h,i\n{body}".encode()
    assert watched(data, size, WatchedText) == watched(data, len(data), QuoteByQuote)
