import csv
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import STUDY_HEAD
from tests.curator.made_rows import columns_in, ids_in
from tests.worlds.studies import attribute_text
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.coding.coding import DROP, UNKNOWN
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.curator.formats.files import text_file
from veiltab.curator.table import column_coding, ids
from veiltab.curator.table.ids import RepeatedIds, normalised_ids
from veiltab.curator.table.table import Table
from veiltab.curator.table.table_reading import load_table, read_table

STUDY = (
    STUDY_HEAD.replace('complete = true\nid_columns = ["id"]', 'complete = true\nid_columns = ["first", "last"]')
    + '[[curator]]\nname = "carol"\nendpoint = "localhost:7403"\nid_columns = ["id"]\nnormalise = []\n'
    + attribute_text(
        "colour",
        "alice",
        'column = "Colour"',
        'categories = ["red", "green", "other"]',
        'recode = { r = "red", blue = "other" }',
    )
    + attribute_text("age", "alice", "bins = [0, 18, 65]", 'missing_values = ["", "-"]', 'missing = "unknown"')
    + attribute_text("sex", "bob", 'column = "last"', 'categories = ["f", "m"]')
)


@pytest.fixture(scope="module")
def study() -> Study:
    return study_from_bytes(STUDY.encode(), "s.toml")


def write(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def symbols(table: Table) -> dict[str, list[int]]:
    return {name: values.tolist() for name, values in columns_in(table.respondents).items()}


def test_a_table_is_coded_in_file_order(tmp_path: Path, study: Study) -> None:
    path = write(tmp_path, 'other, id ,Colour,age\nx, A1 , r,17\n"y,z",a2,"green",-\n,a3,NA,3\n\n,a4,blue,65\n')
    table = load_table(path, study, "alice")
    assert ids_in(table.respondents) == ["a1", "a2", "a4"]
    assert symbols(table) == {"colour": [0, 1, 2], "age": [0, 2, 1]}
    assert (table.rows, table.rows_read, table.rows_dropped) == (3, 4, 1)
    assert table.left_out == "1 of 4 rows left out, which miss colour (1)"
    assert [str(values.dtype) for values in columns_in(table.respondents).values()] == ["uint8", "uint8"]
    assert {batch.ids.type for batch in table.respondents.batches()} == {pa.large_string()}


def test_large_alphabets_take_two_bytes(tmp_path: Path) -> None:
    names = ", ".join(f'"c{i}"' for i in range(300))
    text = STUDY.replace('["red", "green", "other"]', f"[{names}]").replace(
        'recode = { r = "red", blue = "other" }', ""
    )
    path = write(tmp_path, "id,Colour,age\na,c299,1\nb,c256,1\n")
    table = load_table(path, study_from_bytes(text.encode(), "s"), "alice")
    colours = columns_in(table.respondents)["colour"]
    assert colours.tolist() == [299, 256]
    assert colours.dtype == np.dtype("<u2")


def test_a_curator_without_attributes_has_ids_alone(tmp_path: Path, study: Study) -> None:
    table = load_table(write(tmp_path, "id\n b\nB\n"), study, "carol")
    assert (ids_in(table.respondents), columns_in(table.respondents)) == ([" b", "B"], {})


def test_composite_ids_and_an_id_column_that_is_an_attribute_too(tmp_path: Path, study: Study) -> None:
    table = load_table(write(tmp_path, "first,last\nab,f\na,m\n"), study, "bob")
    assert ids_in(table.respondents) == ["ab\x1ff", "a\x1fm"]
    assert symbols(table) == {"sex": [0, 1]}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "the file is empty"),
        ("id,Colour,age\n", "the file has no rows"),
        ("id,Colour,age\na,NA,3\nb,?,3\n", "all 2 rows miss a value"),
        ("id,colour,age\na,red,3\n", "column 'Colour' is not in the header"),
        ("id,Colour,age,age \na,red,3,4\n", "column 'age' is 2 times in the header"),
        ("id,Colour,age\na,red,3\nZebra,red\nb,red,3,kay-9\n", "2 rows have more or fewer values.*first in rows 3, 4"),
        (b"id,Colour,age\n" + b"a,red,3\n" * 9000 + b"b,Zebra\xff,3\n", "in row 9002, the file is not UTF-8 text"),
        (b"id,Colour,age\n" + b"a,red,3\n" * 9000 + b"Zebra\xff,red,3\n", "in row 9002, the file is not UTF-8 text"),
        (b"id\xff,Colour,age\na,red,3\n", "column 'id' is not in the header .looks comma-separated, Latin-1"),
        ("id,Colour,age\na,red,3\n".encode("utf-16-le"), "bytes 0, so it is not a text in UTF-8"),
        (b'id,Colour,age\nZebra,"' + b"x" * (3 << 20) + b"\n", "row 2 opens a quote that is never closed"),
        ("id,Colour,age\na,Zebra,3\nb,red,3\nc,kay-9,3\n", "'Colour'.*in 2 rows, first in rows 2, 4"),
        ("id,Colour,age\na,red,Zebra\nb,red,66\n", "'age'.*outside the bins.*in 2 rows, first in rows 2, 3"),
        ("id,Colour,age\n,red,3\nb,red,3\n  ,NA,3\n", r"2 rows have an empty id \(id\)"),
        (
            "id,Colour,age\nZebra,red,3\nb,red,3\n zebra,NA,3\nZEBRA,red,3\n",
            "2 rows repeat the id.*apart: row 4 that of row 2, row 5 that of row 2\\..*from t group by",
        ),
        ("id,Colour,age\nZeb\x1fra,red,3\n", r"1 row has the control character U\+001F"),
    ],
)
def test_a_malformed_table_is_not_quoted(tmp_path: Path, study: Study, content: str | bytes, problem: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(InvalidInputError, match=problem) as caught:
        load_table(path, study, "alice")
    assert caught.value.where == str(path)
    assert caught.value.remedy
    assert not any(secret.lower() in str(caught.value).lower() for secret in ("Zebra", "kay-9"))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_the_ids_of_several_columns_are_not_confused(tmp_path: Path, study: Study) -> None:
    with pytest.raises(InvalidInputError, match=r"1 row has an empty id \(first, last\), first in row 3"):
        load_table(write(tmp_path, "first,last\na,m\n,m\n"), study, "bob")
    parts = [pa.array(["a", "ab", "x\x1f"]), pa.array(["bc", "c", "y"])]
    ids = normalised_ids(parts, ())
    assert ids.values.to_pylist() == ["a\x1fbc", "ab\x1fc", None]
    assert [ids.empty.tolist(), ids.separated.tolist()] == [[False] * 3, [False, False, True]]


@pytest.mark.parametrize("name", ["t.docx", "t", "t.csv.zip", "t.gz"])
def test_other_kinds_of_file_are_refused(tmp_path: Path, study: Study, name: str) -> None:
    with pytest.raises(InvalidInputError, match="unsupported file type"):
        load_table(write(tmp_path, "id\n", name), study, "alice")


def test_a_directory_and_an_absent_file_are_refused(tmp_path: Path, study: Study) -> None:
    folder = tmp_path / "t.csv"
    folder.mkdir()
    with pytest.raises(InvalidInputError, match="this is a directory"):
        load_table(folder, study, "alice")
    with pytest.raises(InvalidInputError, match="No such file"):
        load_table(tmp_path / "none.parquet", study, "alice")
    for name in ("none", "none/"):
        with pytest.raises(InvalidInputError, match="none: no such file or folder"):
            load_table(tmp_path / name, study, "alice")
    (tmp_path / "tt.csvx").touch()
    with pytest.raises(InvalidInputError, match=r"tt\.csv: the file cannot be read .*Did you mean 't\.csv'\?"):
        load_table(tmp_path / "tt.csv", study, "alice")
    with pytest.raises(InvalidInputError, match="no curator 'zoe'"):
        load_table(tmp_path / "none.parquet", study, "zoe")


def test_the_table_of_another_curator_is_named(tmp_path: Path, study: Study) -> None:
    with pytest.raises(InvalidInputError, match=r"table of curator bob.*Give that of alice, or --name bob\."):
        load_table(write(tmp_path, "first,last\na,f\n"), study, "alice")
    with pytest.raises(InvalidInputError, match="column 'Colour' is not in the header"):
        load_table(write(tmp_path, "first,id,age\na,f,3\n"), study, "alice")


def test_parquet_and_csv_of_one_table_have_one_digest(tmp_path: Path, study: Study) -> None:
    text = write(tmp_path, "id,Colour,age\n1,red,17\n2,blue,18\n3,,20\n4, r,-\n")
    columns = {"id": pa.array([1, 2, 3, 4]), "Colour": pa.array(["red", "blue", None, "r "]).dictionary_encode()}
    for number, age in enumerate(([17.0, 18.0, 20.0, None], [17, 18, 20, None], ["17", "18.0", "20", "-"])):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(
            pa.table({**columns, "age": pa.array(age), "unused": pa.array([[1]] * 4)}), path, row_group_size=3
        )
        table = load_table(path, study, "alice")
        assert symbols(table) == {"colour": [0, 2, 0], "age": [0, 1, 2]}
        assert table.content_digest == load_table(text, study, "alice").content_digest


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"id": ["a"], "Colour": ["red"]}, "column 'age' is not in the header"),
        ({"id": [1.5], "Colour": ["red"], "age": [1]}, "column 'id' has the type double"),
        ({"id": ["a"], "Colour": [["red"]], "age": [1]}, "column 'Colour' has the type list"),
        ({"id": ["a"], "Colour": [b"red"], "age": [1]}, "column 'Colour' has the type binary"),
        ({"id": ["a", None], "Colour": ["red"] * 2, "age": [1] * 2}, "1 row has an empty id"),
        ({"id": ["a"], "Colour": ["red"], "age": [float("nan")]}, "in 1 row, first in row 2"),
        ({"id": pa.array([], pa.string()), "Colour": [], "age": []}, "the file has no rows|has the type"),
    ],
)
def test_a_malformed_parquet_is_refused(
    tmp_path: Path, study: Study, columns: dict[str, list[object]], problem: str
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns), path)
    with pytest.raises(InvalidInputError, match=problem):
        load_table(path, study, "alice")


def test_the_digest_depends_on_content_and_order_alone(tmp_path: Path, study: Study) -> None:
    tables = {
        "base": ["a,red,1", "bc,green,20", "d,blue,20"],
        "same": [" A,r,2", "BC ,green,64", "x,NA,3", "d,blue,20"],
        "order": ["bc,green,20", "a,red,1", "d,blue,20"],
        "symbol": ["a,red,1", "bc,green,20", "d,red,20"],
        "id": ["a,red,1", "bc,green,20", "e,blue,20"],
        "border": ["ab,red,1", "c,green,20", "d,blue,20"],
    }
    digests = {}
    for name, rows in tables.items():
        path = write(tmp_path, "\n".join(["id,Colour,age", *rows, ""]), f"{name}.csv")
        digests[name] = load_table(path, study, "alice").content_digest
    assert digests.pop("same") == digests["base"]
    assert len(set(digests.values())) == 5
    # Part of the format: a new version must not take a table that it has aligned for another one.
    assert digests["base"] == "2cfa0d06afb7f2e576a5a8993b5c6b88927f791e473beaa3f979ede318a2f309"


def test_quoted_line_ends_are_part_of_a_value_wherever_blocks_end(
    tmp_path: Path, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_file, "_BLOCK_BYTES", 301)  # beside rows of 14 to 17 bytes: all places are cut
    path = write(tmp_path, "id,note,Colour,age\n" + "".join(f'{i},"a\nb, c",red,1\n' for i in range(4000)))
    assert load_table(path, study, "alice").rows == 4000


def test_batches_do_not_show(tmp_path: Path, study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    colours = ["red", "green", "blue", " r", "NA"]
    rows = [f"Id{i * 7919 % 100_000},{colours[i * 31 % 5]},{i % 66}" for i in range(5000)]
    path = write(tmp_path, "\n".join(["id,Colour,age", *rows, ""]))
    whole = load_table(path, study, "alice")
    monkeypatch.setattr(text_file, "_BLOCK_BYTES", 300)
    monkeypatch.setattr(column_coding, "_MOST_CACHED", 3)
    cut = load_table(path, study, "alice")
    assert len([*cut.respondents.batches()]) > 100 > len([*whole.respondents.batches()])
    assert cut.content_digest == whole.content_digest
    assert symbols(cut) == symbols(whole)
    path.write_text("\n".join(["id,Colour,age", *rows, rows[0], "x,Zebra,1", "y,Zebra,1", ""]), "utf-8")
    errors = [error.problem for error in read_table(path, study, "alice").errors]
    assert errors[0].endswith("row 5002 that of row 2")
    assert errors[1].endswith("in 2 rows, first in rows 5003, 5004")


RAW = st.sampled_from(["red", " red", "r", "green ", "blue", "NA", "", "?", "pink", "re,d", 'g"n', "a\nb"])
AGE = st.sampled_from(["NA", "0", "17.99", "18", "65", "65.1", "-1", "-", "", "x", "1e1"])
ID = st.text(st.sampled_from('aAbB \t\u00e9\u00c9e\u0301\u0130\u03a3,"'), max_size=4)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(ID, RAW, AGE), max_size=12))
def test_reading_agrees_with_the_csv_module_row_by_row(
    rows: list[tuple[str, str, str]], tmp_path_factory: pytest.TempPathFactory, study: Study
) -> None:
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerows([("id", "Colour", "age"), *rows])
    path = write(tmp_path_factory.getbasetemp(), text.getvalue(), "random.csv")
    reading = read_table(path, study, "alice")

    rules = study.attributes_of("alice")
    kept: list[tuple[str, list[int]]] = []
    ids, dropped, unknown, empty, repeated = set[str](), 0, [0, 0], 0, 0
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            codes = [rule.coding.code(row[rule.column]) for rule in rules]
            key = pc.utf8_normalize(pc.utf8_lower(row["id"].strip()), "NFC").as_py()
            dropped += DROP in codes
            unknown = [n + (code == UNKNOWN) for n, code in zip(unknown, codes, strict=True)]
            empty += not key
            repeated += key != "" and key in ids
            ids.add(key)
            if key and min(codes) >= 0:
                kept.append((key, codes))
    assert reading.rows_read == len(rows)
    assert (reading.rows_dropped, reading.empty_ids, reading.repeated_ids) == (dropped, empty, repeated)
    assert [found.unknown_rows for found in reading.columns] == unknown
    assert ids_in(reading.respondents) == [key for key, _ in kept]
    read = columns_in(reading.respondents)
    assert [read[rule.name].tolist() for rule in rules] == [[codes[i] for _, codes in kept] for i in (0, 1)]
    assert bool(reading.errors) == (bool(empty or repeated or any(unknown)) or not kept)


@given(chunks=st.lists(st.lists(st.none() | st.text(st.sampled_from("ab\u00e9"), max_size=3), max_size=8), max_size=5))
def test_repeated_rows_are_those_seen_before(chunks: list[list[str | None]]) -> None:
    seen, expected = set[str](), []
    for position, key in enumerate(key for chunk in chunks for key in chunk):
        if key is not None:
            if key in seen:
                expected.append(position)
            seen.add(key)
    assert repeated_rows([pa.array(chunk, pa.large_string()) for chunk in chunks]) == expected


@pytest.mark.parametrize("times", [2, 5, 3000])
def test_what_repeats_is_found_however_often_it_does(times: int) -> None:
    every = np.random.default_rng(times).permutation([*"abc"] * times + [str(number) for number in range(9999)])
    chunks = [pa.array(some, pa.large_string()) for some in np.split(every, [1, 700, 5000, 9000])]
    assert len(repeated_rows(chunks)) == 3 * (times - 1)


def repeated_rows(ids: list[pa.Array]) -> list[int]:
    repeats = RepeatedIds(None)
    for chunk in ids:
        repeats.take(chunk)
    every = [text for chunk in ids for text in chunk.to_pylist()]
    rows = repeats.rows(lambda: ids)
    assert all(every.index(every[row]) == first < row for row, first in rows.tolist())
    return [int(row) for row in rows[:, 0]]


def test_fingerprints_that_meet_by_chance_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "_fingerprints", lambda ids, _: np.zeros(len(ids), np.uint64))
    assert repeated_rows([pa.array(["a", "b", None, "b", "a"], pa.large_string())]) == [3, 4]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((), [" \u00c9a\u00a0", "E\u0301A"]),
        (("strip",), ["\u00c9a", "E\u0301A"]),
        (("casefold",), [" \u00e9a\u00a0", "e\u0301a"]),
        (("nfc",), [" \u00c9a\u00a0", "\u00c9A"]),
        (("nfc", "casefold", "strip"), ["\u00e9a", "\u00e9a"]),
    ],
)
def test_each_step_of_normalisation(steps: tuple[str, ...], expected: list[str]) -> None:
    assert normalised_ids([pa.array([" \u00c9a\u00a0", "E\u0301A"])], steps).values.to_pylist() == expected


@given(
    ids=st.lists(
        st.text(st.sampled_from("aZ \t\x1c\x1f\x20\x7f0\u00c9e\u0301\u00a0"), max_size=4) | st.none(), max_size=6
    ),
    ascii_only=st.booleans(),
)
def test_the_short_cuts_for_ascii_change_nothing(ids: list[str | None], ascii_only: bool) -> None:  # noqa: FBT001 - the product's signature
    if ascii_only:
        ids = [key for key in ids if key is None or key.isascii()]
    steps = ("strip", "casefold", "nfc")
    whole = normalised_ids([pa.array(ids, pa.string())], steps).values.to_pylist()
    expected = []
    for key in ids:
        clean = pc.utf8_normalize(pc.utf8_lower(pc.utf8_trim_whitespace(key or "")), "NFC").as_py()
        expected.append(None if not clean or "\x1f" in (key or "") else clean)
    assert whole == expected


def test_reading_a_long_table_says_how_far_it_is(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("veiltab.common.observe.progress._TELL_SECONDS", 0.0)
    monkeypatch.setattr("veiltab.curator.formats.files.parquet.BATCH_ROWS", 2)
    path = tmp_path / "alice.parquet"
    pq.write_table(pa.table({"id": ["a", "b", "c", "d"], "Colour": ["red"] * 4, "age": ["1"] * 4}), path)
    read_table(path, study, "alice")
    assert capsys.readouterr().err.splitlines() == ["reading the table: 50 %", "reading the table: 100 %"]
