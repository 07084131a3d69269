"""The table of promises: it is whole, names tests that exist, and the page says what the table says."""

import ast
from functools import cache
from pathlib import Path

from tests.reliability.__main__ import summed
from tests.reliability.rows import ROWS
from tests.reliability.table import PATH, figures_of, table

TESTS = Path(__file__).parents[1]


def test_every_row_is_there() -> None:
    assert [row.number for row in ROWS] == list(range(1, len(ROWS) + 1))
    assert all(row.tests or row.limits for row in ROWS)


@cache
def functions(path: str) -> set[str]:
    """Return the names of a file's functions."""
    tree = ast.parse((TESTS / path).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_a_row_names_tests_that_exist() -> None:
    for row in ROWS:
        for test in row.tests:
            path, _, name = test.partition("::")
            assert name in functions(path), test


def test_the_page_is_the_table_with_its_figures() -> None:
    text = PATH.read_text("utf-8")
    assert table(figures_of(text)) == text


def test_counts_of_like_figures_are_added_up() -> None:
    assert summed(["100 seeds: 7 results", "100 seeds: 8 results", "at least 0.98", "at least 0.97"]) == [
        "200 seeds: 15 results",
        "at least 0.98",
        "at least 0.97",
    ]
