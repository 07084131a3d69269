"""The mutator changes what computes and nothing else."""

import pytest

from tests.mutation.__main__ import CORE, ROOT, modules, nearest_tests
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


@pytest.mark.long
def test_every_module_of_the_core_has_tests() -> None:
    assert all(nearest_tests(ROOT, name) for name in modules(ROOT, CORE))
