import hashlib
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest

from common.coding import DROP, UNKNOWN
from common.errors import InvalidInputError
from common.study import NORMALISE_STEPS, Study, load_study, study_from_bytes

TEXT = """
[study]
id = "s1"
title = "A study"
minimum_population = 50
maximum_cells = 4096
[budget]
epsilon = 0.1
[release]
sampling = "indices"
pad = "otp"
[server]
name = "cloud"
endpoint = "cloud.example.org:7400"
[[curator]]
name = "alice"
endpoint = "127.0.0.1:7401"
id_columns = ["id", "birth"]
normalise = ["strip"]
[[curator]]
name = "bob"
endpoint = "[::1]:7402"
id_columns = ["id"]
[[researcher]]
name = "rosa"
endpoint = "localhost:7410"
[[attribute]]
name = "age"
owner = "alice"
bins = [0, 17.5, 65]
[[attribute]]
name = "smokes"
owner = "bob"
column = "Smokes?"
categories = ["yes", "no", "unknown"]
recode = { y = "yes", n = "no" }
missing_values = ["", "-"]
missing = "unknown"
[[attribute]]
name = "sex"
owner = "alice"
categories = ["f", "m"]
"""


def study(text: str = TEXT) -> Study:
    return study_from_bytes(text.encode(), "s.toml")


def test_every_key_is_read() -> None:
    read = study()
    assert (read.id, read.title, read.minimum_population, read.maximum_cells) == ("s1", "A study", 50, 4096)
    assert (read.sampling, read.pad, read.server.endpoint) == ("indices", "otp", "cloud.example.org:7400")
    assert read.budget_epsilon == Decimal("0.1")
    assert read.digest == hashlib.sha256(TEXT.encode()).hexdigest()
    assert [c.name for c in read.curators] == ["alice", "bob"]
    assert read.curator("alice").id_columns == ("id", "birth")
    assert (read.curator("alice").normalise, read.curator("bob").normalise) == (("strip",), NORMALISE_STEPS)
    assert [r.name for r in read.researchers] == ["rosa"]
    age, smokes, sex = read.attributes
    assert age.attribute.categories == ("[0, 17.5)", "[17.5, 65]")
    assert (age.column, smokes.column, sex.owner) == ("age", "Smokes?", "alice")
    assert [smokes.coding.code(raw) for raw in ("y", "no", "-", "?")] == [0, 1, 2, UNKNOWN]
    assert sex.coding.code("?") == DROP


def test_defaults() -> None:
    lines = TEXT.replace("minimum_population = 50\nmaximum_cells = 4096\n", "")
    read = study(lines.replace('[release]\nsampling = "indices"\npad = "otp"\n', ""))
    assert (read.minimum_population, read.maximum_cells) == (100, 100_000)
    assert (read.sampling, read.pad) == ("seed", "chacha20")


def test_the_domain_is_in_study_order() -> None:
    read = study()
    assert read.domain(["sex", "age"]).names == ("age", "sex")
    assert read.domain(["sex", "smokes", "age"]).shape == (2, 3, 2)
    assert [rule.name for rule in read.attributes_of("alice")] == ["age", "sex"]
    assert read.owner_of("smokes") == "bob"


@pytest.mark.parametrize(
    ("names", "problem"), [(["x"], "no attribute 'x'"), (["sex", "sex"], "twice"), ([], "at least one")]
)
def test_a_domain_of_other_names_is_refused(names: list[str], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        study().domain(names)


def test_an_unknown_curator_is_refused_with_those_known() -> None:
    for ask in (study().curator, study().attributes_of):
        with pytest.raises(InvalidInputError, match="Curators: alice, bob"):
            ask("carol")


def test_a_curator_may_own_nothing_and_missing_categories_may_be_generated() -> None:
    read = study(TEXT.replace('owner = "bob"', 'owner = "alice"').replace("65]", '65]\nmissing = "none"'))
    assert read.attributes_of("bob") == ()
    assert read.attributes[0].attribute.categories == ("[0, 17.5)", "[17.5, 65]", "none")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('id = "s1"', 'id = "S1"', "id = 'S1' is not a name"),
        ('id = "s1"', 'id = "-s"', "is not a name"),
        ('id = "s1"', f'id = "{"a" * 41}"', "is not a name"),
        ('id = "s1"', 'id = "a\\n"', "is not a name"),
        ('id = "s1"', "id = 1", r"s.toml \[study\]: id is of another kind"),
        ('id = "s1"', "", r"s.toml \[study\]: id is not there"),
        ('title = "A study"', 'title = " "', "title"),
        ('title = "A study"', 'title = "a\\u001b[2J"', "title"),
        ("minimum_population = 50", "minimum_population = 0", "minimum_population"),
        ("minimum_population = 50", "minimum_population = true", "another kind"),
        ("minimum_population = 50", "minimum_populaton = 50", "Did you mean 'minimum_population'"),
        ("maximum_cells = 4096", "maximum_cells = 4194305", "maximum_cells"),
        ("maximum_cells = 4096", "maximum_cells = 1", "maximum_cells"),
        ("epsilon = 0.1", "epsilon = 0", "above 0"),
        ("epsilon = 0.1", "epsilon = -1.0", "above 0"),
        ("epsilon = 0.1", "epsilon = 1000.01", "at most 1000"),
        ("epsilon = 0.1", "epsilon = nan", r"\[budget\]: epsilon is not a finite"),
        ("epsilon = 0.1", "epsilon = inf", "not a finite"),
        ("epsilon = 0.1", "epsilon = 1e-400000000", "ordinary size"),
        ("epsilon = 0.1", "epsilon = 1e99999999999999999999999", "not a TOML file|ordinary size"),
        ("epsilon = 0.1", 'epsilon = "1"', "another kind"),
        ("epsilon = 0.1", "epsilon = true", "another kind"),
        ("epsilon = 0.1", "epsilon = 0.1\ndelta = 1.0", "delta is not between 0 and 1"),
        ("epsilon = 0.1", "epsilon = 0.1\ndelta = 0", "delta is not between 0 and 1"),
        ("epsilon = 0.1", "epsilon = 0.1\ndelat = 0.1", "unknown key 'delat'"),
        ('sampling = "indices"', 'sampling = "index"', "Use one of: seed, indices"),
        ('pad = "otp"', 'pad = "aes"', "Use one of: chacha20, otp"),
        ("[release]", "[[release]]", "another kind"),
        ("[server]", "[sever]", "server is not there"),
        ("[release]", "[extra]\n[release]", "unknown key 'extra'"),
        ("cloud.example.org:7400", "cloud.example.org", "not host:port"),
        ("cloud.example.org:7400", ":7400", "not host:port"),
        ("cloud.example.org:7400", "cloud:0", "not host:port"),
        ("cloud.example.org:7400", "cloud:65536", "not host:port"),
        ("cloud.example.org:7400", "cloud:٧٤", "not host:port"),
        ("cloud.example.org:7400", "http://cloud:7400", "not host:port"),
        ("cloud.example.org:7400", "clo ud:7400", "not host:port"),
        ("[::1]:7402", "::1:7402", "not host:port"),
        ("[::1]:7402", "[::g]:7402", "not host:port"),
        ("[::1]:7402", "[fe80::1%lo]:7402", "not host:port"),
        ("[::1]:7402", "127.0.0.1:7401", "listen at '127.0.0.1:7401' twice"),
        ('name = "bob"', 'name = "alice"', "named 'alice' twice"),
        ('name = "rosa"', 'name = "bob"', "named 'bob' twice"),
        ('name = "rosa"', 'name = "rosa"\nrole = "x"', r"\[\[researcher\]\] rosa: unknown key 'role'"),
        ('name = "rosa"', "", r"\[\[researcher\]\] number 1: name is not there"),
        ('normalise = ["strip"]', 'normalise = ["trim"]', r"\[\[curator\]\] alice: normalise = 'trim'"),
        ('normalise = ["strip"]', 'normalise = ["nfc", "nfc"]', "twice"),
        ('["id", "birth"]', "[]", "names no column"),
        ('["id", "birth"]', '["id", "id"]', "twice"),
        ('["id", "birth"]', '["id", " birth"]', "names no column"),
        ('["id", "birth"]', '["id", 1]', "another kind"),
        ('["id", "birth"]', '"id"', "another kind"),
        ('name = "sex"', 'name = "age"', "named 'age' twice"),
        ('name = "sex"', 'name = "Sex"', r"\[\[attribute\]\] Sex: name = 'Sex' is not an attribute name"),
        (
            'name = "sex"\nowner = "alice"',
            'name = "sex"\nowner = "carol"',
            "sex has the owner 'carol', who is no curator",
        ),
        ('["f", "m"]', '["f"]', "at least two categories"),
        ('["f", "m"]', '["f", "f"]', r"\[\[attribute\]\] sex: category 'f' is listed twice"),
        ('["f", "m"]', '["f", "drop"]', '"drop" is the rule'),
        ('["f", "m"]', '["f", "m"]\nbins = [1, 2]', "2 categories for 1 bins"),
        ('["f", "m"]', '["f", "m"]\ncolumn = " sex"', "names no column"),
        ("[0, 17.5, 65]", "[0, 17.5, 17.5]", r"\[\[attribute\]\] age: bin edges do not increase"),
        ("[0, 17.5, 65]", "[0, nan]", "not a finite"),
        ("[0, 17.5, 65]", "[0, true]", "another kind"),
        ("[0, 17.5, 65]", "[]", "categories is not there"),
        ("[0, 17.5, 65]", "[1]", "do not increase"),
        ('n = "no"', 'n = "noo"', r"\[\[attribute\]\] smokes: recode sends 'n' to 'noo'"),
        ('n = "no"', "n = 1", "another kind"),
        ('missing = "unknown"', 'missing = "unknwn"', "not a category"),
        ('missing = "unknown"', 'mising = "unknown"', "Did you mean 'missing'"),
        ("[study]", "[study", "not a TOML file"),
        ("[study]", "x = " + "9" * 5000 + "\n[study]", "not a TOML file"),
        ("[study]", "x = " + "[" * 5000 + "\n[study]", "not a TOML file"),
    ],
)
def test_a_corrupted_study_is_refused_with_its_place(old: str, new: str, problem: str) -> None:
    assert old in TEXT
    with pytest.raises(InvalidInputError, match=problem) as caught:
        study(TEXT.replace(old, new, 1))
    assert str(caught.value).startswith("s.toml")
    assert caught.value.remedy


def test_too_few_parties_and_attributes_are_refused() -> None:
    start, end = TEXT.index('[[curator]]\nname = "bob"'), TEXT.index("[[researcher]]")
    with pytest.raises(InvalidInputError, match="fewer than two curators"):
        study((TEXT[:start] + TEXT[end:]).replace('"bob"', '"alice"'))
    with pytest.raises(InvalidInputError, match="no attribute"):
        study(TEXT[: TEXT.index("[[attribute]]")])
    with pytest.raises(InvalidInputError, match="no attribute"):
        study("attribute = []\n" + TEXT[: TEXT.index("[[attribute]]")])
    with pytest.raises(InvalidInputError, match="no researcher"):
        study("researcher = []\n" + TEXT.replace('[[researcher]]\nname = "rosa"\nendpoint = "localhost:7410"\n', ""))


def test_bytes_that_are_no_study_are_refused() -> None:
    for data in (b"\xff\xfe[", b"", b"\xef\xbb\xbf" + TEXT.encode(), b"#" * (1 << 20) + b"\n" + TEXT.encode()):
        with pytest.raises(InvalidInputError, match=r"^s\.toml: "):
            study_from_bytes(data, "s.toml")


def test_the_digest_changes_with_any_byte_and_the_meaning_does_not_depend_on_line_ends() -> None:
    unix, dos = study(), study(TEXT.replace("\n", "\r\n"))
    assert unix.digest != dos.digest
    assert unix.attributes == dos.attributes


def test_a_study_is_loaded_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(TEXT, "utf-8", newline="")
    assert load_study(path) == study()
    assert tomllib.loads(TEXT)["study"]["id"] == load_study(path).id
    for absent in (tmp_path, tmp_path / "none.toml"):
        with pytest.raises(InvalidInputError, match="cannot be read"):
            load_study(absent)
