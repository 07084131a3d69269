"""The mutator changes what computes and nothing else."""

import ast

import pytest

from tests.mutation.__main__ import CORE, ROOT, modules, nearest_tests, sampled
from tests.mutation.mutants import mutants_of


def changes(source: str) -> set[tuple[str, str]]:
    return {(mutant.before, mutant.after) for mutant in mutants_of(source)}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", {("a < b", "a <= b"), ("a < b", "a >= b")}),
        ("a + b", {("a + b", "a - b")}),
        ("a * b", {("a * b", "a / b")}),
        ("a and b", {("a and b", "a or b"), ("a and b", "a"), ("a and b", "b")}),
        ("not a", {("not a", "a")}),
        ("a = 7", {("7", "8"), ("7", "6")}),
        ("a = True", {("True", "False")}),
        ("a = b'key'", {("b'key'", "b'keyx'")}),
        ("a = b if c else d", {("b if c else d", "b"), ("b if c else d", "d")}),
        ("a = min(b)", {("min", "max")}),
        ("a = math.ceil(b)", {("math.ceil", "math.floor")}),
        ("raise ValueError(f'{1 + 2} too many')", {("raise ValueError(f'{1 + 2} too many')", "pass")}),
        ("if a:\n    b = c", {("if a:", "pass")}),
        ("check(a)", {("check(a)", "pass")}),
        ("def f():\n    return a", {("return a", "return None")}),
    ],
)
def test_every_kind_of_change(source: str, expected: set[tuple[str, str]]) -> None:
    assert changes(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "import a",
        "a = 'text'",
        "'''Docstring.'''",
        "a: int | None",
        "def f(a: int | None) -> int | None: ...",
        "a = f'{1}'",
    ],
)
def test_texts_and_types_stay(source: str) -> None:
    assert mutants_of(source) == []


def test_a_change_is_made_where_it_stands_and_nowhere_else() -> None:
    source = "é = 'é'; a = (1 <\n  b)\nc = 1 < b\n"
    (whole,) = (mutant for mutant in mutants_of(source) if mutant.after == "1 <= b" and mutant.line == 1)
    assert whole.source == "é = 'é'; a = ((1 <= b))\nc = 1 < b\n"


@pytest.mark.parametrize(
    "name", ["common/core/numbers/rounding.py", "common/core/pads.py", "server/records/session.py"]
)
def test_every_mutant_is_another_program(name: str) -> None:
    source = (ROOT / name).read_text()
    programs = [ast.dump(ast.parse(mutant.source)) for mutant in mutants_of(source)]
    assert len(programs) > 10
    assert ast.dump(ast.parse(source)) not in programs


@pytest.mark.long
def test_every_module_of_the_core_has_tests() -> None:
    assert all(nearest_tests(ROOT, name) for name in modules(ROOT, CORE))


def test_the_mirror_comes_first() -> None:
    first, second = nearest_tests(ROOT, "common/core/coin.py")
    assert first[0] == "tests/common/core/test_coin.py"
    assert not set(first) & set(second)


def test_a_seed_draws_the_same_mutants_of_every_module() -> None:
    names = modules(ROOT, ("common/core/**/*.py",))
    drawn = sampled(ROOT, names, 2 * len(names), 3)
    assert drawn == sampled(ROOT, names, 2 * len(names), 3)
    assert drawn != sampled(ROOT, names, 2 * len(names), 4)
    places = [(name, mutant.line) for name, mutant in drawn]
    assert len(set(places)) == len(places)
    assert {name for name, _ in drawn} >= {"common/core/coin.py", "common/core/numbers/rounding.py"}
