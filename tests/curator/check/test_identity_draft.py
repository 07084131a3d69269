"""Curators without a common number draft their parts of a study, and the parts make one."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.ladder import FieldKind
from veiltab.common.study.drafts.draft import draft_from_bytes
from veiltab.common.study.file import load_study
from veiltab.common.study.toml_text import toml_text
from veiltab.curator.check.drafted_table import propose_table
from veiltab.curator.check.inspection import inspect_table
from veiltab.deploy.cli import veiltab
from veiltab.play.registers.people import Row, made_registers


def written(path: Path, header: Sequence[str], rows: Sequence[Row], *, order: str = "ymd", mark: str = "-") -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*header, "colour", "score"])
        for number, (given, family, birth, sex, postcode) in enumerate(rows):
            parts = dict(zip("ymd", birth.split("-"), strict=True)) if birth else {}
            written_date = mark.join(parts[one] for one in order) if parts else ""
            writer.writerow([given, family, written_date, sex, postcode, "red" if number % 3 else "blue", number % 5])
    return path


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    made = made_registers(400, "drafts")
    return {
        "residents": written(
            tmp_path / "r.csv", ("given_name", "Surname", "date_of_birth", "sex", "Zip code"), made.hub
        ),
        "clinic": written(
            tmp_path / "c.csv",
            ("Vorname", "Nachname", "Geburtsdatum", "Geschlecht", "PLZ"),
            made.spoke,
            order="dmy",
            mark=".",
        ),
    }


def run(*options: object) -> Result:
    return CliRunner().invoke(veiltab, ["study", *(str(option) for option in options)])


def draft(tables: Mapping[str, Path], name: str, folder: Path, *options: str) -> Path:
    """Draft the part of a curator, whose attributes have names that no other has."""
    path = folder / f"{name}.toml"
    done = run("draft", "--name", name, "--table", tables[name], "--identity", "--yes", "--out", path, *options)
    assert done.exit_code == 0, done.output
    text = path.read_text()
    for column in ("colour", "score"):
        text = text.replace(f'name = "{column}"', f'name = "{name}-{column}"\ncolumn = "{column}"')
    path.write_text(text)
    return path


def test_fields_are_known_by_names_and_values(tables: dict[str, Path]) -> None:
    proposal = propose_table(tables["residents"], "residents", with_identity=True)
    assert proposal.ids.identity == {
        "given": ("given_name",),
        "family": ("Surname",),
        "birth": ("date_of_birth",),
        "sex": ("sex",),
        "postcode": ("Zip code",),
    }
    assert proposal.ids.date_order == "ymd"
    assert [one.rule.column for one in proposal.attributes] == ["colour", "score"]
    other = propose_table(tables["clinic"], "clinic", with_identity=True)
    assert list(other.ids.identity) == ["given", "family", "birth", "sex", "postcode"]
    assert other.ids.date_order == "dmy"
    assert "given from Vorname" in other.ids.as_text()
    assert other.rows == other.respondents == 400


def test_two_drafts_make_a_study_that_reads_both_tables(tables: dict[str, Path], tmp_path: Path) -> None:
    drafts = [draft(tables, name, tmp_path) for name in tables]
    options = ("--study", "linked", "--server", "cloud.example.org:7400", "--researcher", "rosa=rosa.example.org:7410")
    addresses = [f"--curator={name}={name}.example.org:7401" for name in tables]
    path = tmp_path / "study.toml"
    without = run("merge", *drafts, *options, *addresses, "--out", path, "--yes")
    assert isinstance(without.exception, InvalidInputError)
    assert "nobody is the hub. Name it." in str(without.exception)
    done = run("merge", *drafts, *options, *addresses, "--out", path, "--yes", "--hub", "residents", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["ok"]
    made = load_study(path)
    assert made.identity is not None
    assert made.identity.names == ["given", "family", "birth", "sex", "postcode"]
    assert (made.identity.hub, len(made.identity.ladder)) == ("residents", 12)
    for name, table in tables.items():
        report = inspect_table(table, made, name)
        assert report.ok
        assert report.identity is not None
        assert all(one.present > 380 for one in report.identity.fields)


def test_a_number_with_a_name_of_its_own_goes_into_the_study(tables: dict[str, Path], tmp_path: Path) -> None:
    drafts = [draft(tables, name, tmp_path, "--field", "card:number=score") for name in tables]
    path = tmp_path / "study.toml"
    made = run("merge", *drafts, "--study", "linked", "--hub", "residents", "--yes", "--out", path)
    assert made.exit_code == 0, made.output
    identity = load_study(path).identity
    assert identity is not None
    assert identity.names == ["given", "family", "birth", "sex", "postcode", "card"]
    assert identity.kinds["card"] is FieldKind.NUMBER
    assert [dict(one.identity)["card"] for one in load_study(path).curators] == [("score",), ("score",)]


def test_a_field_that_one_curator_lacks_is_said_with_the_alignment(tables: dict[str, Path], tmp_path: Path) -> None:
    drafts = [draft(tables, "residents", tmp_path), draft(tables, "clinic", tmp_path, "--without", "PLZ")]
    for alignment in ("oblivious", "tokens"):
        path = tmp_path / f"{alignment}.toml"
        more = ("--hub", "residents", "--alignment", alignment, "--yes", "--out", path)
        made, checked = run("merge", *drafts, "--study", "linked", *more), run("check", path)
        identity = load_study(path).identity
        assert identity is not None
        keys = len([step for step in identity.ladder if "postcode" in step.fields])
        for done in (made, checked):
            assert f"{keys} of 12 keys need postcode, which clinic lacks" in done.output
        assert json.loads(run("check", path, "--json").output)["alignment"] == alignment


def test_ids_and_identity_do_not_mix(tables: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "ids.csv").write_text("id,tint\n1,red\n2,blue\n3,red\n")
    lab, path = tmp_path / "lab.toml", tmp_path / "s.toml"
    run("draft", "--name", "lab", "--table", tmp_path / "ids.csv", "--yes", "--out", lab)
    done = run("merge", lab, draft(tables, "clinic", tmp_path), "--study", "s", "--yes", "--out", path)
    assert not path.exists()
    assert "one has ids and the other an identity" in done.output


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (("alpha", "Surname", "dob", "sex", "zip"), "no column is given"),
        (("alpha", "beta", "gamma", "sex", "zip"), "no column is given or family or birth"),
        (("first name", "Surname", "dob", "gender", "last_name"), "no column is"),
        (("first name", "Surname", "Geburtsname", "sex", "zip"), "no column is birth"),
    ],
)
def test_what_is_not_there_is_said(header: tuple[str, ...], said: str, tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", header, made_registers(60, "drafts").hub)
    if header[-1] == "last_name":
        assert propose_table(path, "clinic", with_identity=True).ids.identity["family"] == ("Surname",)
        return
    with pytest.raises(InvalidInputError, match=said) as refusal:
        propose_table(path, "clinic", with_identity=True)
    assert refusal.value.remedy


@pytest.mark.parametrize(
    "header",
    [
        "Rufname,Familienname,Geb.-Datum,Geschl,PLZ Wohnort",
        "Vorname,Nachname,geboren,sex,Postleitzahl",
        "Vornamen,Name Familie,gebdat,Geschlecht,postnr",
        "Forenames,Last name,DOB,Gender code,Post Code",
        "Prénoms,Nom d'usage,Date naiss.,Sexe,Code postal",
        "Nombre,Apellido1,Fecha nacimiento,Género,CP",
        "Voornamen,Geslachtsnaam,Geb_datum,Geslacht,Postkode",
    ],
)
def test_columns_of_agencies_are_known(header: str, tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", columns := header.split(","), made_registers(60, "x").spoke)
    fields = zip(("given", "family", "birth", "sex", "postcode"), ((one,) for one in columns), strict=True)
    assert [*propose_table(path, "clinic", with_identity=True).ids.identity.items()] == [*fields]


def test_a_person_names_columns_by_hand(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", ("a", "b", "c", "d", "e"), made_registers(60, "x").spoke)
    options = ["draft", "--name", "clinic", "--table", path, "--identity", "--yes", "--out", tmp_path / "clinic.toml"]
    fields = [f"--field={one}" for one in ("birth=c", "given=a", "family=b", "postcode=d", "postcode=e")]
    done = run(*options, *fields)
    assert done.exit_code == 0, done.output
    assert "no sex seen; if the table has one, name its column with --field sex=COLUMN" in done.output
    assert '"birth" = ["c"]' in (text := (tmp_path / "clinic.toml").read_text())
    assert '"postcode" = ["d", "e"]' in text
    for wrong, said in (
        (["--field", "age=c"], "'age', whose kind is not known"),
        (["--field", "birth"], "names no field and column"),
        (["--field", "birth=z"], "column 'z' is not in the header"),
        (["--field", "birth=c", "--field", "given=c"], "--field and --without name"),
        (["--field", "birth=c", "--without", "c"], "--field and --without name"),
        (["--field", "birth=c"], "no column is given or family"),
    ):
        refused = run(*options[:-1], tmp_path / "other.toml", *wrong)
        assert isinstance(refused.exception, InvalidInputError)
        assert said in str(refused.exception)


def test_dates_in_another_order_than_a_person_says_are_noted(tables: dict[str, Path]) -> None:
    for order, notes in (("dmy", 0), ("mdy", 1)):
        ids = propose_table(tables["clinic"], "clinic", with_identity=True, date_order=order).ids
        assert len(ids.notes) == notes
        assert not notes or "of the dates of Geburtsdatum can be read in the order mdy" in ids.as_text()


def test_two_columns_of_one_field_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", ("first_name", "Surname", "dob", "sex", "zip"), made_registers(60, "x").hub)
    path.write_text(path.read_text().replace("colour", "last name"))
    with pytest.raises(InvalidInputError, match="several columns could be family: Surname, last name"):
        propose_table(path, "clinic", with_identity=True)
    assert propose_table(path, "clinic", with_identity=True, without=["last name"]).ids.identity["family"] == (
        "Surname",
    )


def test_dates_that_may_be_read_in_two_orders_need_a_word(tmp_path: Path) -> None:
    rows: list[Row] = [(f"a{'b' * n}", "lee", f"1980-0{n}-0{10 - n}", "f", "1") for n in range(1, 10)]
    path = written(tmp_path / "t.csv", ("first_name", "Surname", "dob", "sex", "zip"), rows, order="dmy", mark="/")
    with pytest.raises(InvalidInputError, match="may be read in two orders"):
        propose_table(path, "clinic", with_identity=True)
    assert propose_table(path, "clinic", with_identity=True, date_order="mdy").ids.date_order == "mdy"


@pytest.mark.parametrize("mark", ["/", ""])
def test_two_digits_of_a_year_need_a_first_year(tmp_path: Path, mark: str) -> None:
    rows = [(f"a{'b' * n}", "lee", f"{n}-05-08", "f", "1") for n in range(10, 99)]
    path = written(tmp_path / "t.csv", ("first_name", "Surname", "dob", "sex", "zip"), rows, order="dmy", mark=mark)
    with pytest.raises(InvalidInputError, match="years of dob have two digits, which name no century"):
        propose_table(path, "clinic", with_identity=True, date_order="dmy")
    proposal = propose_table(path, "clinic", with_identity=True, date_order="dmy", first_year=1926)
    draft = draft_from_bytes(toml_text(proposal.draft()).encode(), "")
    assert (draft.first_year, draft.date_order, proposal.ids.notes) == (1926, "dmy", ())
    assert "first_year = 1926" in toml_text(proposal.draft())


def test_options_that_exclude_one_another(tables: dict[str, Path]) -> None:
    for more in (("--id", "PLZ", "--identity"), ("--date-order", "dmy"), ("--field", "birth=PLZ")):
        done = run("draft", "--name", "clinic", "--table", tables["clinic"], "--json", *more)
        assert isinstance(done.exception, InvalidInputError)
