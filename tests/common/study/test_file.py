"""What a study file may say, by the study in which every field is used, and what is refused with its place."""

import hashlib
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from tests.common.study.other import FULL
from tests.conftest import refuses
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.coding.coding import DROP, UNKNOWN
from veiltab.common.study.file import NORMALISE_STEPS, AnalystMember, Study, load_study, study_from_bytes

TEXT = FULL.decode()
CURATORS, NODES = TEXT[: TEXT.index("[nodes]")], TEXT[TEXT.index("[nodes]") :]
POLL = f"""
[study]
id = "poll"
title = "A poll"
hub = "alice"
[server]
name = "cloud"
endpoint = "localhost:7400"
[[researcher]]
name = "rosa"
endpoint = "localhost:7410"
{NODES}"""
"""A study of nodes alone."""


def study(text: str = TEXT) -> Study:
    return study_from_bytes(text.encode(), "s.toml")


def test_every_key_is_read() -> None:
    read = study()
    assert (read.id, read.title, read.minimum_population, read.maximum_cells) == ("survey", "A survey", 2, 1000)
    assert (read.maximum_tables, read.maximum_respondents) == (9, 8000)
    assert (read.sampling, read.pad, read.server.endpoint) == ("seed", "chacha20", "localhost:7400")
    assert (read.budget_epsilon, read.noise_split, read.canaries) == (Decimal(1), Decimal("0.25"), 50)
    assert read.digest == hashlib.sha256(FULL).hexdigest()
    assert [c.name for c in read.curators] == ["alice", "bob"]
    assert (read.curator("alice").normalise, read.curator("bob").normalise) == (("strip",), NORMALISE_STEPS)
    assert [r.name for r in read.researchers] == ["rosa", "rita"]
    assert read.analysts_of("rosa")[0] == AnalystMember(name="ana", researcher="rosa")
    assert read.analysts_of("alice") == ()
    sex, age, hours, salary = read.attributes
    assert age.attribute.categories == ("[0, 30)", "[30, 60)", "[60, 120]", "unknown")
    assert (age.column, salary.column, sex.owner) == ("age", "pay", "alice")
    assert [sex.coding.code(raw) for raw in ("1", "m", "?", "x")] == [0, 1, DROP, UNKNOWN]
    assert [salary.coding.code(raw) for raw in ("high", "NA", "?")] == [1, DROP, UNKNOWN]
    assert hours.attribute.categories == tuple(map(str, range(1, 13)))
    assert read.nodes is not None
    assert (read.nodes.name, read.nodes.budget_epsilon, read.nodes.strata) == ("fleet", Decimal(4), ("north", "south"))


def test_defaults() -> None:
    keys = CURATORS[CURATORS.index("minimum_population") : CURATORS.index("[budget]")]
    release = CURATORS[CURATORS.index("[release]") : CURATORS.index("[server]")]
    read = study(CURATORS.replace(keys, "").replace(release, ""))
    assert (read.minimum_population, read.maximum_cells, read.maximum_tables) == (100, 100_000, 1000)
    assert read.maximum_respondents == 10**9
    assert (read.sampling, read.pad, read.alignment) == ("seed", "chacha20", "oblivious")
    assert (read.noise_split, read.canaries, read.nodes, read.questions) == (None, None, None, ())


def test_the_domain_is_in_study_order() -> None:
    read = study()
    assert read.domain(["salary", "sex"]).names == ("sex", "salary")
    assert read.domain(["hours", "sex", "age"]).shape == (2, 4, 12)
    assert [rule.name for rule in read.attributes_of("alice")] == ["sex", "age"]
    assert read.owner_of("salary") == "bob"


@pytest.mark.parametrize(
    ("names", "problem"),
    [(["x"], "no attribute 'x'"), (["sex", "sex"], "twice"), ([], "no attribute was given for the table")],
)
def test_a_domain_of_other_names_is_refused(names: list[str], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        study().domain(names)


def test_an_unknown_curator_is_refused_with_those_known() -> None:
    for ask in (study().curator, study().attributes_of):
        with pytest.raises(InvalidInputError, match="Curators: alice, bob"):
            ask("carol")


def test_a_curator_may_own_nothing() -> None:
    assert study(TEXT.replace('owner = "bob"', 'owner = "alice"')).attributes_of("bob") == ()


def test_missing_values_may_add_a_category_of_their_own() -> None:
    rule = 'missing = "category"'
    sex, age, hours, _ = study(
        TEXT.replace('missing = "unknown"', rule)
        .replace('["f", "m"]', f'["f", "m"]\n{rule}\nmissing_category = "not asked"')
        .replace("[1, 12]", f"[1, 2]\n{rule}")
    ).attributes
    assert age.attribute.categories == ("[0, 30)", "[30, 60)", "[60, 120]", "missing")
    assert sex.attribute.categories == ("f", "m", "not asked")
    assert [sex.coding.code(raw) for raw in ("2", "not asked", "?", None, "x")] == [1, 2, 2, 2, UNKNOWN]
    assert [age.coding.code(raw) for raw in ("20", "", "180")] == [0, 3, UNKNOWN]
    assert (hours.attribute.categories, hours.coding.code("NA")) == (("1", "2", "missing"), 2)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('id = "survey"', 'id = "S1"', "id = 'S1' is not a name"),
        ('id = "survey"', "id = 1", r"s.toml \[study\]: id is of another kind"),
        ('id = "survey"', "", r"s.toml \[study\]: id is not there"),
        ("A survey", " ", "title"),
        ("A survey", "a\\u001b[2J", "title"),
        ("minimum_population = 2", "minimum_population = 0", "minimum_population"),
        ("minimum_population = 2", "minimum_population = true", "another kind"),
        ("minimum_population = 2", "minimum_populaton = 50", "Did you mean 'minimum_population'"),
        ("maximum_cells = 1000", "maximum_cells = 4194305", "maximum_cells"),
        ("maximum_cells = 1000", "maximum_cells = 1", "maximum_cells"),
        ("maximum_tables = 9", "maximum_tables = 0", "maximum_tables"),
        ("maximum_tables = 9", "maximum_tables = 2001", "maximum_tables"),
        ("maximum_respondents = 8000", "maximum_respondents = 0", "maximum_respondents"),
        ("maximum_respondents = 8000", "maximum_respondents = 1000000001", "maximum_respondents"),
        ("epsilon = 1", "epsilon = 0", "above 0"),
        ("epsilon = 1", "epsilon = 1000.01", "at most 1000"),
        ("epsilon = 1", "epsilon = nan", r"\[budget\]: epsilon is not a finite"),
        ("epsilon = 1", "epsilon = 1e-400000000", "ordinary size"),
        ("epsilon = 1", "epsilon = 1e99999999999999999999999", "not a TOML file|ordinary size"),
        ("delta = 1e-6", "delta = 1.0", "delta is not between 0 and 1"),
        ("delta = 1e-6", "delta = 0", "delta is not between 0 and 1"),
        ('sampling = "seed"', 'sampling = "index"', "Use one of: seed, indices"),
        ('pad = "chacha20"', 'pad = "aes"', "Use one of: chacha20, otp"),
        ("delta = 1e-6", "month_share = 0", "month_share is not above 0"),
        ("delta = 1e-6", "month_share = 1.1", "month_share is not above 0"),
        ("noise_split = 0.25", "noise_split = 1", "noise_split is not from 0 to below 1"),
        ("noise_split = 0.25", "noise_split = -0.1", "noise_split is not from 0 to below 1"),
        ("canaries = 50", "canaries = -1", "canaries is below 0"),
        ('left_out = "stated"', 'left_out = "all"', "left_out = 'all' is not known"),
        ("[server]", "[sever]", "server is not there"),
        ("[release]", "[extra]\n[release]", "unknown key 'extra'"),
        ("localhost:7400", "localhost", "not host:port"),
        ("localhost:7400", ":7400", "not host:port"),
        ("localhost:7400", "localhost:0", "not host:port"),
        ("localhost:7400", "my_cloud.local:7400", "An underscore may not stand in a host name"),
        ("localhost:7400", "bücher.example:7400", "which begins with xn--"),
        ("localhost:7400", "https://cloud.example.org:7400", "Leave https:// out"),
        ("localhost:7400", "cloud.example.org:7400/api", "'/' may not stand in it"),
        ("localhost:7400", "cl\u200boud.org:7400", "u200b' may not stand in it"),
        ("localhost:7400", "cloud:65536", "A port is a number up to 65535"),
        ("localhost:7400", "127.0.0.256:7400", "'127.0.0.256' is neither a host's name nor an address"),
        ("localhost:7400", "cloud:٧٤", "not host:port"),
        ("localhost:7400", "::1:7402", "Write an IPv6 address in brackets"),
        ("localhost:7400", "[::g]:7402", "not host:port"),
        ("localhost:7400", "[fe80::1%lo]:7402", "not host:port"),
        ("localhost:7402", "localhost:7401", "listen at 'localhost:7401' twice"),
        ('name = "bob"', 'name = "alice"', "named 'alice' twice"),
        ('name = "rosa"', 'name = "bob"', "named 'bob' twice"),
        ('name = "rosa"', 'name = "rosa"\nrole = "x"', r"\[\[researcher\]\] rosa: unknown key 'role'"),
        ('name = "rosa"', "", r"\[\[researcher\]\] number 1: name is not there"),
        ('researcher = "rosa"', 'researcher = "alice"', "ana has the researcher 'alice', who is not a researcher"),
        ('researcher = "rosa"', "", r"\[\[analyst\]\] ana: researcher is not there"),
        ('researcher = "rosa"', 'researcher = "rosa"\nendpoint = "h:1"', r"ana: unknown key 'endpoint'"),
        ('"ari"', '"ana"', "named 'ana' twice"),
        ('normalise = ["strip"]', 'normalise = ["trim"]', r"\[\[curator\]\] alice: normalise = 'trim'"),
        ('normalise = ["strip"]', 'normalise = ["nfc", "nfc"]', "twice"),
        ('["id"]', "[]", "names no column"),
        ('["id"]', '["id", "id"]', "twice"),
        ('["id"]', '["id", " birth"]', "names no column"),
        ('name = "sex"', 'name = "age"', "named 'age' twice"),
        ('name = "sex"', 'name = "Sex"', r"\[\[attribute\]\] Sex: name = 'Sex' is not an attribute name"),
        ('["low", "high"]', '["low"]', "fewer than two categories"),
        ('["low", "high"]', '["low", "drop"]', '"drop" is a rule'),
        ('["low", "high"]', '["low", "category"]\nmissing = "category"', '"category" is a rule'),
        ('["low", "high"]', '["low", "missing"]\nmissing = "category"', "'missing' is a category, and the one that"),
        ("missing_values", 'missing = "category"\nmissing_category = "low"\nmissing_values', "by missing_category"),
        ("missing_values", 'missing = "category"\nmissing_category = ""\nmissing_values', "cannot be shown"),
        ("missing_values", 'missing_category = "none"\nmissing_values', "stands without missing"),
        ("missing_values", "bins = [1, 2]\nmissing_values", "2 categories for 1 bins"),
        ('"pay"', '" pay"', "names no column"),
        ("[0, 30, 60, 120]", "[0, 30, 30]", r"\[\[attribute\]\] age: bin edges do not increase"),
        ("[0, 30, 60, 120]", "[0, nan]", "not a finite"),
        ("[0, 30, 60, 120]", "[]", "categories is not there"),
        ('"2" = "m"', '"2" = "mm"', r"\[\[attribute\]\] sex: recode sends '2' to 'mm'"),
        ("[study]", "x = " + "9" * 5000 + "\n[study]", "more than 200 characters"),
        ("[study]", "x = " + "[" * 5000 + "\n[study]", "more than 20 deep"),
        ('name = "fleet"', "", r"s.toml \[nodes\]: name is not there"),
        ('name = "fleet"', 'name = "Fleet"', r"\[nodes\]: name = 'Fleet' is not a name"),
        ('name = "fleet"', 'name = "rosa"', "named 'rosa' twice"),
        ("budget_epsilon = 4", "", "budget_epsilon is not there"),
        ("budget_epsilon = 4", "budget_epsilon = 0", "above 0 and at most 1000"),
        ("budget_epsilon = 4", "budget_epsilon = 1000.1", "above 0 and at most 1000"),
        ("budget_epsilon = 4", "budget_epsilon = 4\nshares = { rosa = 4.1 }", "more than budget_epsilon together"),
        ("budget_epsilon = 4", "budget_epsilon = 4\nshares = { rosa = -1 }", "share of the budget is below 0"),
        ("budget_epsilon = 4", "budget_epsilon = 4\nshares = { nobody = 1 }", "'nobody', who is not a researcher"),
        ('["north", "south"]', '["north", "north"]', "strata names 'north' twice"),
        ('["north", "south"]', '["North"]', r"\[nodes\]: stratum = 'North' is not a name"),
        ('["north", "south"]', str([f"s{n}" for n in range(1001)]).replace("'", '"'), "more than 1000 strata"),
        ('name = "commute"', 'name = "Pet"', r"\[\[question\]\] Pet: name = 'Pet' is not an attribute name"),
        ('name = "commute"', "", r"\[\[question\]\] number 1: name is not there"),
        ('name = "commute"', 'name = "pet"\nowner = "alice"', r"\[\[question\]\] pet: unknown key 'owner'"),
        ("[1, 12]", "[]", r"\[\[attribute\]\] hours: integers is not \[first, last\]"),
        ("[1, 12]", "[1, 2, 3]", r"integers is not \[first, last\]"),
        ("[1, 12]", "[3, 1]", r"integers is not \[first, last\]"),
        ("[1, 12]", "[1, 1]", r"integers is not \[first, last\]"),
        ("[1, 12]", "[1, 2.5]", r"integers is not \[first, last\]"),
        ("[1, 12]", "[1, 65537]", "spans more than 65536 categories"),
        ("[1, 12]", "[1, 1e30]", "spans more than 65536 categories"),
        ("[1, 12]", "[1, 3]\nbins = [1, 2, 3, 4]", "integers stands beside bins or categories"),
        ("[1, 12]", '[1, 3]\ncategories = ["1", "2", "3"]', "integers stands beside bins or categories"),
        ("[1, 12]", '[1, 3]\nmissing = "3"', "'3' is listed twice"),
    ],
)
def test_a_corrupted_study_is_refused_with_its_place(old: str, new: str, problem: str) -> None:
    assert old in TEXT
    with pytest.raises(InvalidInputError, match=problem) as caught:
        study(TEXT.replace(old, new, 1))
    assert str(caught.value).startswith("s.toml")
    assert caught.value.remedy


BOB = TEXT[TEXT.index('[[curator]]\nname = "bob"') : TEXT.index("[[researcher]]")]
RESEARCHER = '[[researcher]]\nname = "rosa"\nendpoint = "localhost:7410"\n'
ATTRIBUTES = TEXT[TEXT.index("[[attribute]]") : TEXT.index("[nodes]")]
QUESTION = NODES[NODES.index("[[question]]") :]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (TEXT.replace(BOB, "").replace('"bob"', '"alice"'), "fewer than two curators"),
        (CURATORS.replace(ATTRIBUTES, ""), "no attribute"),
        ("attribute = []\n" + CURATORS.replace(ATTRIBUTES, ""), "no attribute"),
        ("researcher = []\n" + POLL.replace(RESEARCHER, ""), "no researcher"),
        (TEXT.replace(QUESTION, ""), "go together"),
        ("question = []\n" + POLL.replace(QUESTION, ""), "go together"),
        (CURATORS + QUESTION, "go together"),
        (POLL + '[[attribute]]\nname = "age"\nowner = "alice"\ncategories = ["a", "b"]\n', "who is not a curator"),
        (TEXT + QUESTION, "questions are named 'commute' twice"),
    ],
)
def test_parties_and_attributes_that_do_not_go_together_are_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        study(text)


def test_bytes_that_are_no_study_are_refused() -> None:
    for data in (b"\xff\xfe[", b"", b"\xef\xbb\xbf" * 2 + FULL, b"#" * (1 << 20) + b"\n" + FULL):
        with refuses(InvalidInputError, where="s.toml"):
            study_from_bytes(data, "s.toml")


def test_the_digest_changes_with_any_byte_and_the_meaning_does_not_depend_on_line_ends() -> None:
    unix, dos = study(), study(TEXT.replace("\n", "\r\n"))
    assert unix.digest != dos.digest
    assert unix.attributes == dos.attributes


def test_a_byte_order_mark_does_not_count() -> None:
    assert study_from_bytes(TEXT.encode("utf-8-sig"), "s.toml") == study()
    with pytest.raises(InvalidInputError, match="It is UTF-16: save it as UTF-8"):
        study_from_bytes(TEXT.encode("utf-16"), "s.toml")


def test_a_study_is_loaded_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(FULL)
    assert load_study(path) == study()
    for absent in (tmp_path, tmp_path / "none.toml"):
        with pytest.raises(InvalidInputError, match="cannot be read"):
            load_study(absent)


def test_a_study_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(FULL)
    path.chmod(0o666)
    with pytest.raises(InvalidInputError, match="others than its owner may write this"):
        load_study(path)


def test_a_study_of_nodes_needs_no_curators_and_no_strata() -> None:
    read = study(POLL.replace('strata = ["north", "south"]\n', ""))
    assert (read.curators, read.attributes, read.budget_epsilon) == ((), (), Decimal(0))
    assert [question.name for question in read.questions] == ["commute"]
    assert read.nodes is not None
    assert read.nodes.strata == ()


def test_researchers_share_the_nodes_budget_equally_unless_the_study_says_otherwise() -> None:
    assert [study().share_of(name) for name in ("rosa", "rita")] == [Fraction(2)] * 2
    named = study(TEXT.replace("budget_epsilon = 4", "budget_epsilon = 4\nshares = { rita = 0.3 }"))
    assert [named.share_of(name) for name in ("rosa", "rita")] == [0, Fraction(3, 10)]
    assert study(POLL).share_of("rosa") == 4


def test_questions_are_coded_as_attributes_are() -> None:
    more = '[[question]]\nname = "value"\nintegers = [-1, 3]\n[[question]]\nname = "height"\nbins = [0, 1.5, 3]\n'
    read = study(f'{TEXT}{more}missing = "none"\n')
    commute, value, height = (read.question(name) for name in ("commute", "value", "height"))
    assert value.attribute.categories == ("-1", "0", "1", "2", "3")
    assert [value.coding.code(raw) for raw in ("-1", " 3 ", "4", "1.0", "")] == [0, 4, UNKNOWN, UNKNOWN, DROP]
    assert [commute.coding.code(raw) for raw in ("b", "car", "NA", "bird")] == [0, 1, DROP, UNKNOWN]
    assert height.attribute.categories == ("[0, 1.5)", "[1.5, 3]", "none")
    assert [height.coding.code(raw) for raw in ("1.7", "?", "9")] == [1, 2, UNKNOWN]
    with pytest.raises(InvalidInputError, match=r"no question 'age'. Questions: commute, value, height\."):
        read.question("age")


def test_integers_span_as_many_categories_as_there_may_be() -> None:
    widest = study(TEXT.replace("[1, 12]", "[1, 65536]")).attributes[2].attribute
    assert (widest.size, widest.categories[0], widest.categories[-1]) == (65_536, "1", "65536")
    kept = study(TEXT.replace("[1, 12]", '[1, 2]\nmissing = "unknown"')).attributes[2].attribute
    assert kept.categories == ("1", "2", "unknown")


def test_a_key_that_is_not_there_may_be_there_misspelt() -> None:
    with pytest.raises(InvalidInputError, match=r"unknown key 'onwer'\. Did you mean 'owner'"):
        study(TEXT.replace('owner = "bob"', 'onwer = "bob"'))
