import hashlib
import tomllib
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from veiltab.common.errors import InvalidInputError
from veiltab.common.study.coding.coding import DROP, UNKNOWN
from veiltab.common.study.file import NORMALISE_STEPS, AnalystMember, Study, load_study, study_from_bytes

TEXT = """
[study]
id = "s1"
title = "A study"
hub = "alice"
minimum_population = 50
maximum_cells = 4096
maximum_tables = 12
maximum_respondents = 5000
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
complete = true
id_columns = ["id"]
[[researcher]]
name = "rosa"
endpoint = "localhost:7410"
[[analyst]]
name = "ana"
researcher = "rosa"
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
    assert (read.maximum_tables, read.maximum_respondents) == (12, 5000)
    assert (read.sampling, read.pad, read.server.endpoint) == ("indices", "otp", "cloud.example.org:7400")
    assert read.budget_epsilon == Decimal("0.1")
    assert read.digest == hashlib.sha256(TEXT.encode()).hexdigest()
    assert [c.name for c in read.curators] == ["alice", "bob"]
    assert read.curator("alice").id_columns == ("id", "birth")
    assert (read.curator("alice").normalise, read.curator("bob").normalise) == (("strip",), NORMALISE_STEPS)
    assert [r.name for r in read.researchers] == ["rosa"]
    assert read.analysts == read.analysts_of("rosa") == (AnalystMember(name="ana", researcher="rosa"),)
    assert read.analysts_of("alice") == ()
    age, smokes, sex = read.attributes
    assert age.attribute.categories == ("[0, 17.5)", "[17.5, 65]")
    assert (age.column, smokes.column, sex.owner) == ("age", "Smokes?", "alice")
    assert [smokes.coding.code(raw) for raw in ("y", "no", "-", "?")] == [0, 1, 2, UNKNOWN]
    assert sex.coding.code("?") == DROP


def test_defaults() -> None:
    lines = TEXT.replace("minimum_population = 50\nmaximum_cells = 4096\nmaximum_tables = 12\n", "")
    lines = lines.replace("maximum_respondents = 5000\n", "")
    read = study(lines.replace('[release]\nsampling = "indices"\npad = "otp"\n', ""))
    assert (read.minimum_population, read.maximum_cells, read.maximum_tables) == (100, 100_000, 1000)
    assert read.maximum_respondents == 10**9
    assert (read.sampling, read.pad, read.alignment) == ("seed", "chacha20", "oblivious")
    assert (read.noise_split, read.canaries) == (None, None)


def test_defaults_of_requests() -> None:
    read = study(TEXT.replace("minimum_population = 50", "noise_split = 0.25\ncanaries = 0"))
    assert (read.noise_split, read.canaries) == (Decimal("0.25"), 0)


def test_the_domain_is_in_study_order() -> None:
    read = study()
    assert read.domain(["sex", "age"]).names == ("age", "sex")
    assert read.domain(["sex", "smokes", "age"]).shape == (2, 3, 2)
    assert [rule.name for rule in read.attributes_of("alice")] == ["age", "sex"]
    assert read.owner_of("smokes") == "bob"


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


def test_a_curator_may_own_nothing_and_missing_categories_may_be_generated() -> None:
    read = study(TEXT.replace('owner = "bob"', 'owner = "alice"').replace("65]", '65]\nmissing = "none"'))
    assert read.attributes_of("bob") == ()
    assert read.attributes[0].attribute.categories == ("[0, 17.5)", "[17.5, 65]", "none")


def test_missing_values_may_add_a_category_of_their_own() -> None:
    rule = 'missing = "category"'
    age, smokes, sex = study(
        TEXT.replace("65]", f"65]\n{rule}")
        .replace('missing = "unknown"', f'{rule}\nmissing_category = "not asked"')
        .replace('["f", "m"]', f'["f", "m"]\n{rule}')
    ).attributes
    assert age.attribute.categories == ("[0, 17.5)", "[17.5, 65]", "missing")
    assert smokes.attribute.categories == ("yes", "no", "unknown", "not asked")
    assert sex.attribute.categories == ("f", "m", "missing")
    assert [smokes.coding.code(raw) for raw in ("y", "unknown", "-", None, "?")] == [0, 2, 3, 3, UNKNOWN]
    assert [age.coding.code(raw) for raw in ("20", "", "80")] == [1, 2, UNKNOWN]
    value = study(NODES.replace("[-1, 3]", f"[1, 2]\n{rule}")).question("value")
    assert (value.attribute.categories, value.coding.code("NA")) == (("1", "2", "missing"), 2)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('id = "s1"', 'id = "S1"', "id = 'S1' is not a name"),
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
        ("maximum_tables = 12", "maximum_tables = 0", "maximum_tables"),
        ("maximum_respondents = 5000", "maximum_respondents = 0", "maximum_respondents"),
        ("maximum_respondents = 5000", "maximum_respondents = 1000000001", "maximum_respondents"),
        ("maximum_tables = 12", "maximum_tables = 2001", "maximum_tables"),
        ("epsilon = 0.1", "epsilon = 0", "above 0"),
        ("epsilon = 0.1", "epsilon = -1.0", "above 0"),
        ("epsilon = 0.1", "epsilon = 1000.01", "at most 1000"),
        ("epsilon = 0.1", "epsilon = nan", r"\[budget\]: epsilon is not a finite"),
        ("epsilon = 0.1", "epsilon = 1e-400000000", "ordinary size"),
        ("epsilon = 0.1", "epsilon = 1e99999999999999999999999", "not a TOML file|ordinary size"),
        ("epsilon = 0.1", 'epsilon = "1"', "another kind"),
        ("epsilon = 0.1", "epsilon = 0.1\ndelta = 1.0", "delta is not between 0 and 1"),
        ("epsilon = 0.1", "epsilon = 0.1\ndelta = 0", "delta is not between 0 and 1"),
        ('sampling = "indices"', 'sampling = "index"', "Use one of: seed, indices"),
        ('pad = "otp"', 'pad = "aes"', "Use one of: chacha20, otp"),
        ("epsilon = 0.1\n", "epsilon = 0.1\nmonth_share = 0\n", "month_share is no part of the budget"),
        ("epsilon = 0.1\n", "epsilon = 0.1\nmonth_share = 1.1\n", "month_share is no part of the budget"),
        ("minimum_population = 50", "noise_split = 1", "noise_split is not from 0 to below 1"),
        ("minimum_population = 50", "noise_split = -0.1", "noise_split is not from 0 to below 1"),
        ("minimum_population = 50", "canaries = -1", "canaries is below 0"),
        ("minimum_population = 50", "canaries = 1.5", "canaries is of another kind. It must be a whole number"),
        ("[release]", "[[release]]", "another kind"),
        ("[server]", "[sever]", "server is not there"),
        ("[release]", "[extra]\n[release]", "unknown key 'extra'"),
        ("cloud.example.org:7400", "cloud.example.org", "not host:port"),
        ("cloud.example.org:7400", ":7400", "not host:port"),
        ("cloud.example.org:7400", "cloud:0", "not host:port"),
        ("cloud.example.org:7400", "my_cloud.local:7400", "An underscore may not stand in a host name"),
        ("cloud.example.org:7400", "bücher.example:7400", "which begins with xn--"),
        ("cloud.example.org:7400", "https://cloud.example.org:7400", "Leave https:// out"),
        ("cloud.example.org:7400", "cloud.example.org:7400/api", "'/' may not stand in it"),
        ("cloud.example.org:7400", "cloud .org:7400", "' ' may not stand in it"),
        ("cloud.example.org:7400", "cl\u200boud.org:7400", "u200b' may not stand in it"),
        ("cloud.example.org:7400", "cloud:65536", "A port is a number up to 65535"),
        ("cloud.example.org:7400", "127.0.0.256:7400", "'127.0.0.256' is no name of a host and no address"),
        ("cloud.example.org:7400", "cloud:٧٤", "not host:port"),
        ("cloud.example.org:7400", "http://cloud:7400", "not host:port"),
        ("cloud.example.org:7400", "clo ud:7400", "not host:port"),
        ("[::1]:7402", "::1:7402", "Write an IPv6 address in brackets"),
        ("[::1]:7402", "[::g]:7402", "not host:port"),
        ("[::1]:7402", "[fe80::1%lo]:7402", "not host:port"),
        ("[::1]:7402", "127.0.0.1:7401", "listen at '127.0.0.1:7401' twice"),
        ('name = "bob"', 'name = "alice"', "named 'alice' twice"),
        ('name = "rosa"', 'name = "bob"', "named 'bob' twice"),
        ('name = "rosa"', 'name = "rosa"\nrole = "x"', r"\[\[researcher\]\] rosa: unknown key 'role'"),
        ('name = "rosa"', "", r"\[\[researcher\]\] number 1: name is not there"),
        ('researcher = "rosa"', 'researcher = "alice"', "analyst ana has the researcher 'alice', who is no researcher"),
        ('researcher = "rosa"', "", r"\[\[analyst\]\] ana: researcher is not there"),
        ('researcher = "rosa"', 'researcher = "Rosa"', "researcher = 'Rosa' is not a name"),
        ('researcher = "rosa"', 'researcher = "rosa"\nendpoint = "h:1"', r"ana: unknown key 'endpoint'"),
        ('"ana"', '"Ana"', "name = 'Ana' is not a name"),
        ('"ana"', '"rosa"', "named 'rosa' twice"),
        (
            'researcher = "rosa"',
            'researcher = "rosa"\n[[analyst]]\nname = "ana"\nresearcher = "rosa"',
            "named 'ana' twice",
        ),
        ('normalise = ["strip"]', 'normalise = ["trim"]', r"\[\[curator\]\] alice: normalise = 'trim'"),
        ('normalise = ["strip"]', 'normalise = ["nfc", "nfc"]', "twice"),
        ('["id", "birth"]', "[]", "names no column"),
        ('["id", "birth"]', '["id", "id"]', "twice"),
        ('["id", "birth"]', '["id", " birth"]', "names no column"),
        ('name = "sex"', 'name = "age"', "named 'age' twice"),
        ('name = "sex"', 'name = "Sex"', r"\[\[attribute\]\] Sex: name = 'Sex' is not an attribute name"),
        ('["f", "m"]', '["f"]', "fewer than two categories"),
        ('title = "A study"', 'title = "A study"\nleft_out = "all"', "left_out = 'all' is not known"),
        ('["f", "m"]', '["f", "drop"]', '"drop" is a rule'),
        ('["f", "m"]', '["f", "category"]\nmissing = "category"', '"category" is a rule'),
        ('["f", "m"]', '["f", "missing"]\nmissing = "category"', "'missing' is a category, and the one that"),
        ('["f", "m"]', '["f", "m"]\nmissing = "category"\nmissing_category = "m"', "by missing_category"),
        ('["f", "m"]', '["f", "m"]\nmissing = "category"\nmissing_category = ""', "cannot be shown"),
        ('["f", "m"]', '["f", "m"]\nmissing_category = "none"', "stands without missing"),
        ('["f", "m"]', '["f", "m"]\nbins = [1, 2]', "2 categories for 1 bins"),
        ('["f", "m"]', '["f", "m"]\ncolumn = " sex"', "names no column"),
        ("[0, 17.5, 65]", "[0, 17.5, 17.5]", r"\[\[attribute\]\] age: bin edges do not increase"),
        ("[0, 17.5, 65]", "[0, nan]", "not a finite"),
        ("[0, 17.5, 65]", "[]", "categories is not there"),
        ("[0, 17.5, 65]", "[1]", "do not increase"),
        ('n = "no"', 'n = "noo"', r"\[\[attribute\]\] smokes: recode sends 'n' to 'noo'"),
        ('missing = "unknown"', 'missing = "unknwn"', "not a category"),
        ("[study]", "x = " + "9" * 5000 + "\n[study]", "more than 200 characters"),
        ("[study]", "x = " + "[" * 5000 + "\n[study]", "more than 20 deep"),
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
    for data in (b"\xff\xfe[", b"", b"\xef\xbb\xbf" * 2 + TEXT.encode(), b"#" * (1 << 20) + b"\n" + TEXT.encode()):
        with pytest.raises(InvalidInputError, match=r"^s\.toml: "):
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
    path.write_text(TEXT, "utf-8", newline="")
    assert load_study(path) == study()
    assert tomllib.loads(TEXT)["study"]["id"] == load_study(path).id
    for absent in (tmp_path, tmp_path / "none.toml"):
        with pytest.raises(InvalidInputError, match="cannot be read"):
            load_study(absent)


def test_a_study_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(TEXT, "utf-8", newline="")
    path.chmod(0o666)
    with pytest.raises(InvalidInputError, match="others than its owner may write this"):
        load_study(path)
    path.chmod(0o644)
    assert load_study(path) == study()


NODES = """
[study]
id = "poll"
title = "A poll"
hub = "alice"
[server]
name = "cloud"
endpoint = "cloud.example.org:7400"
[[researcher]]
name = "rosa"
endpoint = "localhost:7410"
[nodes]
name = "fleet"
budget_epsilon = 4.5
strata = ["north", "south"]
[[question]]
name = "value"
integers = [-1, 3]
[[question]]
name = "pet"
categories = ["cat", "dog"]
recode = { tom = "cat" }
missing = "dog"
[[question]]
name = "height"
bins = [0, 1.5, 3]
missing = "none"
"""


def test_a_study_of_nodes_needs_no_curators() -> None:
    read = study(NODES)
    assert read.nodes is not None
    assert (read.nodes.name, read.nodes.budget_epsilon, read.nodes.strata) == (
        "fleet",
        Decimal("4.5"),
        ("north", "south"),
    )
    assert not read.curators
    assert not read.attributes
    assert read.budget_epsilon == 0
    assert [question.name for question in read.questions] == ["value", "pet", "height"]


def test_researchers_share_the_nodes_budget_equally_unless_the_study_says_otherwise() -> None:
    two = NODES.replace("[nodes]", '[[researcher]]\nname = "rita"\nendpoint = "localhost:7499"\n[nodes]')
    assert [study(two).share_of(name) for name in ("rosa", "rita")] == [Fraction(9, 4)] * 2
    named = two.replace("budget_epsilon = 4.5", "budget_epsilon = 4.5\nshares = { rita = 0.3 }")
    assert [study(named).share_of(name) for name in ("rosa", "rita")] == [0, Fraction(3, 10)]
    assert study(NODES).share_of("rosa") == Fraction(9, 2)


def test_questions_are_coded_as_attributes_are() -> None:
    read = study(NODES)
    value, pet, height = (read.question(name) for name in ("value", "pet", "height"))
    assert value.attribute.categories == ("-1", "0", "1", "2", "3")
    assert [value.coding.code(raw) for raw in ("-1", " 3 ", "4", "1.0", "")] == [0, 4, UNKNOWN, UNKNOWN, DROP]
    assert [pet.coding.code(raw) for raw in ("tom", "dog", "NA", "bird")] == [0, 1, 1, UNKNOWN]
    assert height.attribute.categories == ("[0, 1.5)", "[1.5, 3]", "none")
    assert [height.coding.code(raw) for raw in ("1.7", "?", "9")] == [1, 2, UNKNOWN]
    with pytest.raises(InvalidInputError, match=r"no question 'age'. Questions: value, pet, height\."):
        read.question("age")


def test_curators_and_nodes_may_share_a_study() -> None:
    nodes = NODES[NODES.index("[nodes]") :]
    read = study(TEXT + nodes)
    assert ([c.name for c in read.curators], [q.name for q in read.questions]) == (
        ["alice", "bob"],
        ["value", "pet", "height"],
    )
    start, end = TEXT.index('[[curator]]\nname = "bob"'), TEXT.index("[[researcher]]")
    with pytest.raises(InvalidInputError, match="fewer than two curators"):
        study((TEXT[:start] + TEXT[end:]).replace('"bob"', '"alice"') + nodes)


def test_strata_may_be_left_out() -> None:
    read = study(NODES.replace('strata = ["north", "south"]\n', ""))
    assert read.nodes is not None
    assert read.nodes.strata == ()
    assert study(TEXT).nodes is None
    assert study(TEXT).questions == ()


def test_integers_span_as_many_categories_as_there_may_be() -> None:
    widest = study(NODES.replace("[-1, 3]", "[1, 65536]")).question("value").attribute
    assert (widest.size, widest.categories[0], widest.categories[-1]) == (65_536, "1", "65536")
    kept = study(NODES.replace("[-1, 3]", '[1, 2]\nmissing = "unknown"')).question("value").attribute
    assert kept.categories == ("1", "2", "unknown")
    attribute = study(TEXT.replace("bins = [0, 17.5, 65]", "integers = [18, 20]")).attributes[0].attribute
    assert attribute.categories == ("18", "19", "20")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('name = "fleet"', "", r"s.toml \[nodes\]: name is not there"),
        ('name = "fleet"', 'name = "Fleet"', r"\[nodes\]: name = 'Fleet' is not a name"),
        ('name = "fleet"', 'name = "rosa"', "named 'rosa' twice"),
        ('name = "fleet"', 'name = "fleet"\nendpoint = "localhost:1"', "unknown key 'endpoint'"),
        ("budget_epsilon = 4.5", "", "budget_epsilon is not there"),
        ("budget_epsilon = 4.5", "budget_epsilon = 0", "above 0 and at most 1000"),
        ("budget_epsilon = 4.5", "budget_epsilon = 1000.1", "above 0 and at most 1000"),
        ("budget_epsilon = 4.5", "budget_epsilon = 4.5\nshares = { rosa = 4.6 }", "more than budget_epsilon together"),
        ("budget_epsilon = 4.5", "budget_epsilon = 4.5\nshares = { rosa = -1 }", "share of the budget is below 0"),
        ("budget_epsilon = 4.5", "budget_epsilon = 4.5\nshares = { nobody = 1 }", "'nobody', who is no researcher"),
        ("budget_epsilon = 4.5", "budget_epsilon = 4.5\nshares = 1", "another kind"),
        ("budget_epsilon = 4.5", "budget = 4.5", "budget_epsilon is not there"),
        ('["north", "south"]', '["north", "north"]', "strata names 'north' twice"),
        ('["north", "south"]', '["North"]', r"\[nodes\]: stratum = 'North' is not a name"),
        ('["north", "south"]', str([f"s{n}" for n in range(1001)]).replace("'", '"'), "more than 1000 strata"),
        ("[nodes]", "[node]", "fewer than two curators"),
        ('name = "pet"', 'name = "value"', "questions are named 'value' twice"),
        ('name = "pet"', 'name = "Pet"', r"\[\[question\]\] Pet: name = 'Pet' is not an attribute name"),
        ('name = "pet"', "", r"\[\[question\]\] number 2: name is not there"),
        ('name = "pet"', 'name = "pet"\nowner = "alice"', r"\[\[question\]\] pet: unknown key 'owner'"),
        ('["cat", "dog"]', '["cat"]', "at least two categories|not a category"),
        ("[-1, 3]", "[]", r"\[\[question\]\] value: integers is not \[first, last\]"),
        ("[-1, 3]", "[1, 2, 3]", r"integers is not \[first, last\]"),
        ("[-1, 3]", "[3, 1]", r"integers is not \[first, last\]"),
        ("[-1, 3]", "[1, 1]", r"integers is not \[first, last\]"),
        ("[-1, 3]", "[1, 2.5]", r"integers is not \[first, last\]"),
        ("[-1, 3]", "[1, 65537]", "spans more than 65536 categories"),
        ("[-1, 3]", "[1, 1e30]", "spans more than 65536 categories"),
        ("[-1, 3]", "[1, 1e31]", "ordinary size"),
        ("[-1, 3]", "[1, 3]\nbins = [1, 2, 3, 4]", "integers stands beside bins or categories"),
        ("[-1, 3]", '[1, 3]\ncategories = ["1", "2", "3"]', "integers stands beside bins or categories"),
        ("[-1, 3]", '[1, 3]\nmissing = "3"', "'3' is listed twice"),
    ],
)
def test_a_corrupted_study_of_nodes_is_refused_with_its_place(old: str, new: str, problem: str) -> None:
    assert old in NODES
    with pytest.raises(InvalidInputError, match=problem) as caught:
        study(NODES.replace(old, new, 1))
    assert str(caught.value).startswith("s.toml")
    assert caught.value.remedy


def test_nodes_and_questions_go_together() -> None:
    for text in (NODES[: NODES.index("[[question]]")], "question = []\n" + NODES[: NODES.index("[[question]]")]):
        with pytest.raises(InvalidInputError, match="go together"):
            study(text)
    with pytest.raises(InvalidInputError, match="go together"):
        study(TEXT + NODES[NODES.index("[[question]]") :])
    with pytest.raises(InvalidInputError, match="no researcher"):
        study("researcher = []\n" + NODES.replace('[[researcher]]\nname = "rosa"\nendpoint = "localhost:7410"\n', ""))
    with pytest.raises(InvalidInputError, match="who is no curator"):
        study(NODES + '[[attribute]]\nname = "age"\nowner = "alice"\ncategories = ["a", "b"]\n')


def test_a_key_that_is_not_there_may_be_there_misspelt() -> None:
    with pytest.raises(InvalidInputError, match=r"unknown key 'onwer'\. Did you mean 'owner'"):
        study(TEXT.replace('owner = "bob"', 'onwer = "bob"'))
