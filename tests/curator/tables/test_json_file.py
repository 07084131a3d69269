"""JSON files: digits stay as they are, and what is not one well-formed table is refused with its row."""

import gzip
from pathlib import Path

import pytest

from tests.curator.made_rows import columns_in, ids_in
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import Study
from veiltab.curator.formats.columns.named_columns import NamedColumns, read_header
from veiltab.curator.formats.opening import open_table
from veiltab.curator.table.table_reading import load_table, read_table

ROW = b'{"pid": 1, "land": "A", "wage": 1.5, "kids": 0}'
OTHER = b'{"pid": 2, "land": "B", "wage": 2, "kids": 1}'


def texts_of(path: Path, *names: str) -> list[list[str | None]]:
    """Return columns as ids are read."""
    batches = list(NamedColumns(open_table(path), names, ()).batches())
    return [[text for batch in batches for text in batch.texts[name].to_pylist()] for name in names]


def test_numbers_stay_the_digits_that_the_file_has(tmp_path: Path) -> None:
    numbers = ["12345678901234567890123", "0.12345678901234567890", "1.10", "-0", "1e400", "7" * 5000]
    (tmp_path / "t.json").write_text("".join(f'{{"pid": {one}}}' for one in numbers))
    assert texts_of(tmp_path / "t.json", "pid") == [numbers]


def test_values_are_texts_as_json_writes_them(tmp_path: Path) -> None:
    text = '\ufeff [ {"a": "\\u00e9\\ud83d\\ude00\\"", "b": true}\n, {"b": null, "a": null},{"a":"x","b":false} ] \n'
    (tmp_path / "t.json").write_text(text, "utf-8")
    assert texts_of(tmp_path / "t.json", "a", "b") == [['\u00e9\U0001f600"', None, "x"], ["true", None, "false"]]


@pytest.mark.parametrize("piece", [1, 2, 7])
@pytest.mark.parametrize("as_list", [False, True])
def test_pieces_may_end_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int, *, as_list: bool) -> None:
    monkeypatch.setattr("veiltab.curator.formats.files.json_file._PIECE", piece)
    monkeypatch.setattr("veiltab.curator.formats.columns.source.BATCH_ROWS", 2)
    rows = ['{"a": "' + "\u00e9{}[],\\\\" * n + f'", "b": {n}.5}}' for n in range(5)]
    (tmp_path / "t.json").write_text(f"[{', '.join(rows)}]" if as_list else "\n\n".join(rows) + "\n", "utf-8")
    expected = [["\u00e9{}[],\\" * n for n in range(5)], [f"{n}.5" for n in range(5)]]
    assert texts_of(tmp_path / "t.json", "a", "b") == expected


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b" \n", "the file has no rows"),
        (b"[]", "the file has no rows"),
        (b"{'pid': 1}", "row 2 is not a well-formed JSON object"),
        (ROW + b"\n" + OTHER[:-1], "row 3 is not a well-formed JSON object, or is cut off"),
        (ROW + b"\n" + OTHER[:-9] + b"\n" + ROW, "row 3 is not a well-formed"),
        (ROW + b"\nnull\n", "row 3 is not a well-formed"),
        (ROW + b",\n" + OTHER, "row 3 is not a well-formed"),
        (b"[" + ROW + b"," + OTHER, "row 4 is not a well-formed JSON object, or is cut off"),
        (b"[" + ROW + b"," + OTHER + b",]", "row 4 is not a well-formed"),
        (b"[," + ROW + b"]", "row 2 is not a well-formed"),
        (b"[" + ROW + b"]" + OTHER, "row 3 is not a well-formed"),
        (ROW + OTHER.replace(b"2,", b"NaN,"), "row 3 is not a well-formed"),
        (ROW + OTHER.replace(b"1}", b"1,}"), "row 3 is not a well-formed"),
        (ROW + OTHER.replace(b"2,", b"[" * 100_000), "row 3 is not a well-formed"),
        (ROW + OTHER.replace(b"B", b"B" * (2 << 20)) + ROW, "row 3 is not a well-formed"),
        (ROW + OTHER.replace(b"B", b"\xff"), "in row 3, the file is not UTF-8 text"),
        (ROW + OTHER + b"\xc3", "in row 4, the file is not UTF-8 text"),
        (ROW.decode().encode("utf-16"), "in row 2, the file is not UTF-8 text"),
        (ROW + OTHER.replace(b"B", b"\\ud800"), "column 'land' holds half of a character, first in row 3"),
        (ROW + OTHER.replace(b'"B"', b'"B", "land": "zebra"'), "row 3 has a name twice"),
        (ROW + OTHER.replace(b"2,", b'{"zebra": 1},'), "column 'pid' holds a JSON object in row 3"),
        (ROW + OTHER.replace(b"2,", b'["zebra"],'), "column '(pid|wage)' holds a JSON list in row 3"),
        (ROW.replace(b"1,", b'{"zebra": 1},'), "column 'pid' has the type object"),
        (ROW + OTHER.replace(b"2,", b'"zebra",'), "column '(pid|wage)' holds numbers, and texts from row 3 on"),
        (ROW + OTHER.replace(b'"B"', b"true"), "column 'land' holds texts, and truth values from row 3 on"),
        (ROW + OTHER.replace(b'"land": "B", ', b"") + OTHER.replace(b'"B"', b'"B", "zebra": 1') + OTHER, "2 rows have"),
    ],
)
def test_what_is_not_one_well_formed_table_is_refused(tmp_path: Path, study: Study, data: bytes, problem: str) -> None:
    for path, written in ((tmp_path / "t.json", data), (tmp_path / "t.json.gz", gzip.compress(data))):
        path.write_bytes(written)
        with pytest.raises(InvalidInputError, match=problem) as caught:
            load_table(path, study, "alice")
        assert caught.value.where == str(path)
        assert "zebra" not in str(caught.value)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_rows_with_other_names_are_counted(tmp_path: Path, study: Study) -> None:
    lacking, more = OTHER.replace(b'"land": "B", ', b""), OTHER.replace(b'"B"', b'"B", "more": 1')
    (tmp_path / "t.ndjson").write_bytes(b"\n".join((ROW, lacking, OTHER, more)))
    with pytest.raises(InvalidInputError, match="2 rows have other names than the first one, first in rows 3, 5"):
        load_table(tmp_path / "t.ndjson", study, "alice")


def test_a_compressed_file_that_is_cut_off_is_refused(tmp_path: Path, study: Study) -> None:
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(ROW + OTHER)[:-9])
    with pytest.raises(InvalidInputError, match="the file cannot be read to its end"):
        load_table(tmp_path / "t.json.gz", study, "alice")
    (tmp_path / "t.json").touch()
    with pytest.raises(InvalidInputError, match="the file is empty"):
        load_table(tmp_path / "t.json", study, "alice")


def test_names_may_come_in_any_order_and_numbers_in_texts_are_looked_at(tmp_path: Path, study: Study) -> None:
    first = b'{"land": "A", "kids": 0, "pid": "01", "wage": "3,25", "more": [1]}'
    (tmp_path / "t.json").write_bytes(
        first + b'{"pid": "2", "more": {"a": 1}, "wage": "1.000,5", "kids": 1, "land": "B"}'
    )
    table = load_table(tmp_path / "t.json", study, "alice")
    assert ids_in(table.respondents) == ["01", "2"]
    assert [values.tolist() for values in columns_in(table.respondents).values()] == [[0, 1], [0, 1], [0, 1]]
    assert table.description == "JSON objects, decimal comma in wage"
    assert read_header(open_table(tmp_path / "t.json")) == {
        "land": "",
        "kids": "",
        "pid": "",
        "wage": "",
        "more": "list",
    }


def test_numbers_that_nobody_wrote_have_a_decimal_point(tmp_path: Path, study: Study) -> None:
    (tmp_path / "t.json").write_bytes(ROW.replace(b"1.5", b"1.234") + OTHER.replace(b'2, "kids', b'1.2e3, "kids'))
    reading = read_table(tmp_path / "t.json", study, "alice")
    assert not reading.errors
    assert columns_in(reading.respondents)["wage"].tolist() == [0, 1]
