import gzip
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from veiltab.common.errors import InvalidInputError
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.columns.named_columns import NamedColumns, read_header
from veiltab.curator.formats.files.sniffing import sniff
from veiltab.curator.formats.opening import open_table

ROWS = (("id", "wage", "ort, Land"), ("1", "3,5", "M\u00fcnchen"), ("2", "4,25", "Ko\u0142o | Sopot; PL"))


def write(folder: Path, data: bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def rows_of(table: Path | TableAddress) -> list[tuple[str | None, ...]]:
    source = open_table(table)
    names = list(read_header(source))
    found: list[tuple[str | None, ...]] = [tuple(names)]
    for batch in NamedColumns(source, names, ()).batches():
        found += zip(*(batch.texts[name].to_pylist() for name in names), strict=True)
    return found


def text(rows: tuple[tuple[str, ...], ...], separator: str, quote: str = '"') -> str:
    return "".join(separator.join(f"{quote}{value}{quote}" for value in row) + "\r\n" for row in rows)


@pytest.mark.parametrize(
    ("separator", "encoding", "name", "looks"),
    [
        (",", "utf-8", "t.csv", "looks comma-separated, UTF-8"),
        (";", "utf-8-sig", "t.csv", "looks semicolon-separated, UTF-8 with a byte order mark"),
        ("\t", "utf-16", "t.tsv", "looks tab-separated, UTF-16"),
        ("|", "utf-16", "t.txt", "looks bar-separated, UTF-16"),
        (";", "utf-8", "t.csv.gz", "looks semicolon-separated, UTF-8, compressed by gzip"),
    ],
)
def test_a_text_file_is_read_in_any_form(tmp_path: Path, separator: str, encoding: str, name: str, looks: str) -> None:
    data = text(ROWS, separator).encode(encoding)
    path = write(tmp_path, gzip.compress(data) if name.endswith(".gz") else data, name)
    assert rows_of(path) == list(ROWS)
    assert open_table(path).description == looks


def test_text_that_is_no_utf_8_is_taken_for_latin_1_or_windows_1252(tmp_path: Path) -> None:
    latin = write(tmp_path, "id;ort\n1;M\u00fcnchen\n".encode("latin-1"))
    assert open_table(latin).description == "looks semicolon-separated, Latin-1"
    assert rows_of(latin)[1] == ("1", "M\u00fcnchen")
    windows = write(tmp_path, "id,ort\n1,\u201eM\u00fcnchen\u201c \u20ac\n".encode("windows-1252"), "w.csv")
    assert open_table(windows).description == "looks comma-separated, Windows-1252"
    assert rows_of(windows)[1] == ("1", "\u201eM\u00fcnchen\u201c \u20ac")


def test_single_quotes_are_quotes_if_every_name_has_them(tmp_path: Path) -> None:
    path = write(tmp_path, text(ROWS, ",", "'").encode())
    assert rows_of(path) == list(ROWS)
    assert open_table(path).description == "looks comma-separated, UTF-8, single quotes"
    assert rows_of(write(tmp_path, b"id,'x\n1,2\n", "other.csv")) == [("id", "'x"), ("1", "2")]


def test_what_its_beginning_does_not_show_is_said_by_a_person(tmp_path: Path) -> None:
    path = write(tmp_path, b"id,ort\n" + b"1,Bonn\n" * 20_000 + b"2,K\xf6ln\n")
    with pytest.raises(InvalidInputError, match="in row 20002, the file is not UTF-8 text") as caught:
        rows_of(path)
    assert "--encoding windows-1252" in caught.value.remedy
    assert rows_of(TableAddress(location=str(path), encoding="cp1252"))[-1] == ("2", "K\u00f6ln")
    with pytest.raises(InvalidInputError, match="encoding 'klingon' is not known"):
        open_table(TableAddress(location=str(path), encoding="klingon"))


def test_a_row_that_contradicts_the_separator_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, b"id;x\n" + b"1;a\n" * 30_000 + b"2,a\n")
    with pytest.raises(InvalidInputError, match=r"1 row has more or fewer values.*in row 30002 \(looks semi"):
        rows_of(path)


@pytest.mark.parametrize(
    ("head", "problem"),
    [(b"a,b;c\n1,2;3\n", "by commas or by semicolons"), (b"a\tb|c\n", "by tabs or by bars"), (b"a\0b\0,\0", "bytes 0")],
)
def test_a_form_that_is_not_clear_is_refused(head: bytes, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        sniff(head)


@pytest.mark.parametrize(
    ("head", "separator"),
    [(b"id\n1;2\n", ","), (b"a|b\n1\n2\n3\n", ","), (b"a;b,c\n1;2\n3;4\n", ";"), (b'"a;b",c\n1,2\n', ","), (b"", ",")],
)
def test_the_separator_is_the_one_by_which_rows_agree_with_the_header(head: bytes, separator: str) -> None:
    assert sniff(head).separator == separator


@pytest.mark.parametrize("data", [b"\x1f\x8b\x08", gzip.compress(b"id,x\n" + b"1,2\n" * 50_000)[:-30]])
def test_a_damaged_compressed_file_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(InvalidInputError, match="cannot be read to its end"):
        rows_of(write(tmp_path, data, "t.csv.gz"))


def test_a_name_that_does_not_say_whether_the_file_is_compressed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="the file is not compressed by gzip"):
        rows_of(write(tmp_path, b"plain", "t.csv.gz"))
    for name in ("t.csv", "t.json"):
        with pytest.raises(InvalidInputError, match="the file is compressed by gzip"):
            open_table(write(tmp_path, gzip.compress(b"id,x\n1,2\n"), name))


def test_a_header_with_signs_of_another_encoding_hints_at_its_encoding(tmp_path: Path) -> None:
    header = "Nr;Beschäftigt\n1;2\n".encode("cp850")
    with pytest.raises(InvalidInputError, match="may be in another encoding: save it as UTF-8"):
        list(NamedColumns(open_table(write(tmp_path, header)), ["Beschäftigt"], ()).batches())


def test_a_column_that_is_not_there_comes_with_the_nearest_one_and_the_header(tmp_path: Path) -> None:
    source = open_table(write(tmp_path, b"ID;Wage_2020;sex\n1;2;3\n"))
    for name, near in (("id", "ID"), ("wage2020", "Wage_2020"), ("wage", "Wage_2020"), ("sexe", "sex")):
        with pytest.raises(InvalidInputError, match=f"column {name!r} is not in the header .looks semicolon") as caught:
            list(NamedColumns(source, [name], ()).batches())
        assert caught.value.remedy.startswith(
            f"The column nearest to {name!r} is {near!r}. The header is: 'ID', 'Wage_2020', "
        )
    with pytest.raises(InvalidInputError, match=r"looks semicolon-separated.*\)\. The header is"):
        list(NamedColumns(source, ["height"], ()).batches())


def test_a_first_row_of_values_is_not_shown(tmp_path: Path) -> None:
    source = open_table(write(tmp_path, b"kay-9,17\nzebra,3\n"))
    with pytest.raises(InvalidInputError, match="seems to hold values") as caught:
        list(NamedColumns(source, ["id"], ()).batches())
    assert "kay" not in str(caught.value)


VALUE = st.text(st.sampled_from("aZ0 ,;|\t'.\u00e9\n"), min_size=1, max_size=6).filter(str.strip)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(VALUE, VALUE, VALUE), max_size=6),
    separator=st.sampled_from(",;\t|"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]),
)
def test_every_form_gives_the_rows_that_were_written(
    rows: list[tuple[str, str, str]], separator: str, encoding: str, tmp_path: Path
) -> None:
    table = (("id", "name", "place"), *rows)
    assert rows_of(write(tmp_path, text(table, separator).encode(encoding))) == list(table)


@pytest.mark.parametrize("first", ["sep=;\r\n", '"SEP=;"\n'])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_the_separator_that_a_first_line_says_is_taken(tmp_path: Path, first: str, encoding: str) -> None:
    path = write(tmp_path, f"{first}id;a,b\n1;ü,x\n2;".encode(encoding))
    assert rows_of(path) == [("id", "a,b"), ("1", "ü,x"), ("2", "")]
    with pytest.raises(InvalidInputError, match="in row 2, a value goes on"):
        rows_of(write(tmp_path, f'{first}id;a\n1;"x"y\n'.encode(encoding)))


PEOPLE = [f"{number} f {number * 7 % 100}" for number in range(20)]


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ("\n".join(["id sex wage", *PEOPLE]), "separated by blanks"),
        ("\n".join(['"id" "sex"', *(f'"{row}" {row} "f"' for row in range(20))]), "separated by blanks"),
        ("\n".join(["id      sex  wage", *(f"{row:<8}f    {row * 7:<4}" for row in range(20))]), "a fixed width"),
        ("Extract of 2025\n\nid;sex;wage\n" + "1;2;3\n" * 20, "row 1 has fewer values than most rows below it: 1"),
        ("Extract of 2025\n\n" + "1\tf\t3\n" * 20, "1 instead of 3, separated by tabs"),
        ("Wages; 2025\nid;sex;wage\n" + "1;f;3\n" * 20, "2 instead of 3, separated by semicolons"),
        ("Wages\n" + "1,f,3\n" * 20, "1 instead of 3, separated by commas"),
    ],
)
def test_rows_that_have_more_values_than_the_first_are_not_taken_for_one_column(head: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        sniff(head.encode())


@pytest.mark.parametrize("name", ["re\u0301gion", "r\u00e9gion"])
def test_a_column_is_found_however_its_accents_are_stored(tmp_path: Path, name: str) -> None:
    source = open_table(write(tmp_path, "re\u0301gion,wage\nnorth,1\n".encode()))
    assert list(read_header(source)) == ["r\u00e9gion", "wage"]
    (batch,) = NamedColumns(source, [name], ()).batches()
    assert batch.texts[name].to_pylist() == ["north"]


def test_a_column_alone_is_read() -> None:
    for text in ("id\n" + "1\n" * 20, "name\n" + "Ann Lee\n" * 20, "id,x\n" + "1,2\n" * 3 + "1\n" * 2):
        assert sniff(text.encode()).separator == ","
