"""All that is wrong with a study file, each problem with its line and the key that may be meant."""

import pytest

from tests.common.study.other import FULL
from veiltab.common.study.problems import MOST_PROBLEMS, study_problems

TEXT = FULL.decode()


def problems(text: str) -> list[str]:
    return [str(problem) for problem in study_problems(text.encode())]


def line_of(text: str, start: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if line.startswith(start))


@pytest.mark.parametrize(
    ("old", "new", "key", "expected"),
    [
        ('owner = "alice"', 'onwer = "alice"', "onwer", "[[attribute]] sex: unknown key 'onwer'. Did you mean 'owner'"),
        ("categories =", "category =", "category", "unknown key 'category'. Did you mean 'categories' ("),
        ("[budget]", "[budjet]", "[budjet]", "unknown table 'budjet'. Did you mean 'budget' ("),
        ("[server]", "[serber]", "[serber]", "unknown table 'serber'. Did you mean 'server' ("),
        ("[[analyst]]", "[[analysts]]", "[[analysts]]", "unknown table 'analysts'. Did you mean 'analyst' ("),
        ("title =", "epsilon = 2\ntitle =", "epsilon = 2", "[study]: unknown key 'epsilon'. It belongs to [budget]."),
        ("title =", "zzz = 2\ntitle =", "zzz", "unknown key 'zzz'. Known keys: id, title, minimum_population"),
        ('title = "A survey"\n', "", "[study]", "[study]: title is not there. Add it: one line for people."),
        ('"A survey"', "5", "title", "[study]: title is of another kind. It must be a text in quotes."),
        ("[server]", "[[server]]", "[[server]]", "server is of another kind. It must be a table [server]."),
        ("epsilon = 1", "epsilon = nan", "epsilon", "[budget]: epsilon is not a finite number"),
        ('"localhost:7401"', '"localhost"', 'endpoint = "localhost"', "[[curator]] alice: endpoint = 'localhost'"),
        ('["f", "m"]', '["f", "f"]', "[[attribute]]", "[[attribute]] sex: category 'f' is listed twice"),
        ('missing_values = ["NA"]', 'missing = "x"', 'missing = "x"', "missing = 'x' is not a category"),
        ("[1, 12]", "[12, 1]", "integers = ", "[[attribute]] hours: integers is not [first, last]"),
        ('hub = "alice"', 'hub = "alise"', "hub", ": hub = 'alise' is not a curator. Name the curator"),
        ('hub = "alice"', 'hub = "bob"', "hub", ": hub = 'bob' is complete. Leave"),
        ('hub = "alice"\n', "", "[study]", ": hub is not there. Name the curator"),
        ('"A survey"', '"A survey', "title", "not a TOML file in UTF-8"),
    ],
)
def test_one_mistake_is_named_with_its_line(old: str, new: str, key: str, expected: str) -> None:
    assert old in TEXT
    text = TEXT.replace(old, new, 1)
    (found,) = problems(text)
    # The file is read from its first line, which is empty.
    assert found.startswith(f"line {line_of(text, key)}")
    assert expected in found


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('[server]\nname = "cloud"\nendpoint = "localhost:7400"\n', "", "there is no [server]. Add it: the cloud"),
        ('name = "rita"', 'name = "rosa"', "parties are named 'rosa' twice."),
        ('owner = "alice"', 'owner = "zoe"', "attribute sex has the owner 'zoe', who is not a curator."),
        ("[study]\n", "name = 3\n[study]\n", "unknown table 'name'. Known tables: study, budget"),
        ("[study]\n", "title = 3\n[study]\n", "unknown table 'title'. As a key, it belongs to [study]."),
    ],
)
def test_what_is_wrong_with_the_file_as_a_whole(old: str, new: str, expected: str) -> None:
    assert old in TEXT
    (found,) = problems(TEXT.replace(old, new, 1))
    assert expected in found


def test_many_mistakes_are_named_in_the_order_of_their_lines() -> None:
    text = TEXT
    for old, new in (
        ("title =", "tittle ="),
        ("id_columns =", "id_column ="),
        ('owner = "alice"', 'owner = "alice"\ncolour = "red"'),
        ("integers = [1, 12]", "integers = [1, 12]\nbins = [0, 1]"),
    ):
        text = text.replace(old, new, 1)
    found = problems(text)
    assert [problem.split(":")[0] for problem in found] == [
        f"line {line_of(text, 'tittle')}, [study]",
        f"line {line_of(text, 'id_column =')}, [[curator]] alice",
        f"line {line_of(text, 'colour')}, [[attribute]] sex",
        f"line {line_of(text, 'integers')}, [[attribute]] hours",
    ]


def test_two_tables_of_a_kind_have_lines_of_their_own() -> None:
    text = TEXT.replace('endpoint = "localhost:7402"', 'endpiont = "localhost:7402"')
    (found,) = problems(text)
    assert found.startswith(f"line {line_of(text, 'endpiont')}, [[curator]] bob: unknown key 'endpiont'")


def test_a_byte_order_mark_moves_no_line() -> None:
    text = f"[studio]\n{TEXT}"
    assert [str(one) for one in study_problems(text.encode("utf-8-sig"))] == problems(text) != []


def test_bytes_that_are_no_text_are_named() -> None:
    (found,) = study_problems(b"\xff\xfe")
    assert found.line is None
    assert "not a TOML file in UTF-8" in str(found)


def test_a_person_gets_the_first_fifty_problems_each_on_its_line() -> None:
    many = b"".join(b"[unknown%d]\n" % number for number in range(40_000))
    problems = study_problems(many)
    assert len(problems) == MOST_PROBLEMS
    (first, *_) = study_problems(b'[[attribute]]\nname = "a"\n"b\\nline 1: c" = 1\n')
    assert "\n" not in str(first)
