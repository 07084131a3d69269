"""All that is wrong with a study file, each problem with its line and the key that may be meant."""

import pytest

from tests.common.study.test_keys import EVERY_TABLE
from veiltab.common.study.problems import MOST_PROBLEMS, study_problems


def problems(text: str) -> list[str]:
    return [str(problem) for problem in study_problems(text.encode())]


def line_of(text: str, start: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if line.startswith(start))


@pytest.mark.parametrize(
    ("old", "new", "key", "expected"),
    [
        (
            'owner = "alice"',
            'onwer = "alice"',
            "onwer",
            "[[attribute]] sex: unknown key 'onwer'. Did you mean 'owner' (",
        ),
        ("categories =", "category =", "category", "unknown key 'category'. Did you mean 'categories' ("),
        ("[budget]", "[budjet]", "[budjet]", "unknown table 'budjet'. Did you mean 'budget' ("),
        ("[server]", "[serber]", "[serber]", "unknown table 'serber'. Did you mean 'server' ("),
        ("[[analyst]]", "[[analysts]]", "[[analysts]]", "unknown table 'analysts'. Did you mean 'analyst' ("),
        (
            'title = "S"',
            'title = "S"\nepsilon = 2',
            "epsilon = 2",
            "[study]: unknown key 'epsilon'. It belongs to [budget].",
        ),
        ('title = "S"', 'title = "S"\nzzz = 2', "zzz", "unknown key 'zzz'. Known keys: id, title, minimum_population"),
        ('title = "S"\n', "", "[study]", "[study]: title is not there. Add it: one line for people."),
        ('title = "S"', "title = 5", "title", "[study]: title is of another kind. It must be a text in quotes."),
        ("[server]", "[[server]]", "[[server]]", "server is of another kind. It must be a table [server]."),
        ("epsilon = 1", "epsilon = nan", "epsilon", "[budget]: epsilon is not a finite number"),
        ('"localhost:2"', '"localhost"', 'endpoint = "localhost"', "[[curator]] alice: endpoint = 'localhost' is not"),
        ('["f", "m"]', '["f", "f"]', "[[attribute]]", "[[attribute]] sex: category 'f' is listed twice"),
        ('missing = "category"\n[nodes]', 'missing = "x"\n[nodes]', "missing = ", "missing = 'x' is not a category"),
        ("[1, 3]", "[3, 1]", "integers = ", "[[question]] age: integers is not [first, last]"),
        ('title = "S"', 'title = "S', "title", "not a TOML file in UTF-8"),
    ],
)
def test_one_mistake_is_named_with_its_line(old: str, new: str, key: str, expected: str) -> None:
    assert old in EVERY_TABLE
    text = EVERY_TABLE.replace(old, new, 1)
    (found,) = problems(text)
    # The file is read from its first line, which is empty.
    assert found.startswith(f"line {line_of(text, key)}")
    assert expected in found


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('[server]\nname = "cloud"\nendpoint = "localhost:1"\n', "", "there is no [server]. Add it: the cloud server."),
        ('name = "bob"', 'name = "alice"', "parties are named 'alice' twice."),
        (
            'owner = "alice"',
            'owner = "zoe"',
            "attribute sex has the owner 'zoe', who is no curator. Curators: alice, bob.",
        ),
        ("[study]\n", "name = 3\n[study]\n", "unknown table 'name'. Known tables: study, budget"),
        ("[study]\n", "title = 3\n[study]\n", "unknown table 'title'. As a key, it belongs to [study]."),
    ],
)
def test_what_is_wrong_with_the_file_as_a_whole(old: str, new: str, expected: str) -> None:
    assert old in EVERY_TABLE
    (found,) = problems(EVERY_TABLE.replace(old, new, 1))
    assert expected in found


def test_many_mistakes_are_named_in_the_order_of_their_lines() -> None:
    text = EVERY_TABLE
    for old, new in (
        ("title =", "tittle ="),
        ("id_columns =", "id_column ="),
        ('owner = "alice"', 'owner = "alice"\ncolour = "red"'),
        ("integers = [1, 3]", "integers = [1, 3]\nbins = [0, 1]"),
    ):
        text = text.replace(old, new, 1)
    found = problems(text)
    assert [problem.split(":")[0] for problem in found] == [
        f"line {line_of(text, 'tittle')}, [study]",
        f"line {line_of(text, 'id_column =')}, [[curator]] alice",
        f"line {line_of(text, 'colour')}, [[attribute]] sex",
        f"line {line_of(text, 'integers')}, [[question]] age",
    ]


def test_two_tables_of_a_kind_have_lines_of_their_own() -> None:
    text = EVERY_TABLE.replace('endpoint = "localhost:3"', 'endpiont = "localhost:3"')
    (found,) = problems(text)
    assert found.startswith(f"line {line_of(text, 'endpiont')}, [[curator]] bob: unknown key 'endpiont'")


def test_a_byte_order_mark_moves_no_line() -> None:
    text = f"[studio]\n{EVERY_TABLE}"
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
