"""The same options of a table on the command line, and the same keys in a party's file."""

import json
from pathlib import Path

from click.testing import CliRunner

from tests.curator.tables import written
from tests.curator.tables.test_forms import ROWS, STUDY
from veiltab.common.command.config import read_party_file
from veiltab.deploy.cli import veiltab

QUERY = "select pid, land, wage, kids from people where kids < 3 order by pid"


def checked(folder: Path, *options: str) -> dict[str, object]:
    (folder / "study.toml").write_bytes(STUDY)
    arguments = ["curator", "check", str(folder / "study.toml"), "--name", "alice", *options, "--json"]
    done = CliRunner().invoke(veiltab, arguments, standalone_mode=False)
    report: dict[str, object] = json.loads(done.output)
    assert (done.return_value == 0) == report["ok"]
    return report


def test_a_query_is_checked_as_a_file_is(tmp_path: Path) -> None:
    path = written.write_sqlite(tmp_path / "t.sqlite", ROWS)
    report = checked(tmp_path, "--table", str(path), "--query", QUERY)
    assert (report["ok"], report["rows"], report["description"]) == (True, 4, "a query of a SQLite file")
    refused = checked(tmp_path, "--table", str(path), "--query", "drop table people")
    assert "t.sqlite: the query is not a statement that reads." in str(refused["problems"])


def test_what_a_person_says_of_a_text_file_reaches_its_reader(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for encoding in ("utf-16-le", "utf-16-be"):
        path.write_bytes("pid;land;wage;kids\n1;A;1,234;0\nM\u00fcller;B;1,5;0\n".encode(encoding))
        options = ("--table", str(path), "--encoding", "utf-16")
        looks = "looks semicolon-separated, UTF-16 without a byte order mark, decimal comma in wage"
        report = checked(tmp_path, *options)
        assert (report["description"], report["rows"]) == (looks, 2)
    assert "in 1 row, first in row 3" in str(checked(tmp_path, *options, "--decimal", "point")["problems"])


def test_a_party_s_file_has_the_same(tmp_path: Path) -> None:
    path = tmp_path / "party.toml"
    path.write_text('table = "postgresql://ana@h/d"\nquery = "select 1"\nencoding = "latin-1"\ndecimal = "comma"\n')
    values, problems = read_party_file(path)
    assert not problems
    assert values == {"table": "postgresql://ana@h/d", "query": "select 1", "encoding": "latin-1", "decimal": "comma"}
    path.write_text('table = "book.xlsx#2020"\n')
    assert read_party_file(path)[0] == {"table": tmp_path / "book.xlsx#2020"}
