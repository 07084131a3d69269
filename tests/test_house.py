"""The shape of the house: files and classes have limits, nothing stands in a circle, and the amount may only fall.

What a person has to know who works at releases is what the five `serve` processes of `veiltab demo table` load.
"""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import click
import pytest

from tests.deploy.test_cli import COMMANDS
from tests.rooms import DEMO, rooms

ROOT = Path(__file__).parents[1]
MOST_LINES, MOST_TEST_LINES, MOST_METHODS, MOST_IMPORTS = 400, 500, 30, 20
MOST_LOADED, MOST_CODE, MOST_TEST_CODE, MOST_NOQA = 36_991, 45_692, 60_427, 312
"""Lines that a release loads, code lines of product and tests, exceptions to rules of style: they may fall."""

MOST_COMMANDS, MOST_OPTIONS = 55, 376
"""Of `veiltab`, those of every group together: they may only fall."""

WIDE_FILES = {"play/demos/linked.py"}
"""Files with more imports than the limit; one that is mended leaves the list."""

DATACLASS = "veiltab.common.dataclass"
"""Stands where a module of Python's stood."""

Graph = Mapping[str, frozenset[str]]


def name_of(path: Path) -> str:
    parts = ("veiltab", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> Mapping[str, Path]:
    return {name_of(path): path for room in rooms() for path in sorted((ROOT / room).rglob("*.py"))}


@cache
def trees() -> Mapping[str, ast.Module]:
    return {name: ast.parse(path.read_text("utf-8")) for name, path in modules().items()}


def lines(name: str) -> int:
    return modules()[name].read_text("utf-8").count("\n")


@cache
def imports() -> Graph:
    """Module -> modules of the product that it imports, anywhere."""
    graph = {}
    for name, tree in trees().items():
        found = set[str]()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        graph[name] = frozenset(found & modules().keys() - {name})
    return graph


def relative(name: str) -> str:
    return str(modules()[name].relative_to(ROOT))


@pytest.fixture(scope="module")
def files() -> list[str]:
    return [name for name, path in modules().items() if path.name != "__init__.py"]


def test_no_file_imports_itself_by_way_of_others() -> None:
    TopologicalSorter(imports()).prepare()  # raises a CycleError that names them


def test_under_a_role_there_are_rooms(files: list[str]) -> None:
    loose = {relative(name) for name in files if len(modules()[name].relative_to(ROOT).parts) == 2}
    shared = {f"common/{name}.py" for name in ("dataclass", "errors", "extras")}
    assert loose <= {f"{room}/cli.py" for room in rooms()} | shared


def test_files_are_small(files: list[str]) -> None:
    assert [relative(name) for name in files if lines(name) > MOST_LINES] == []
    sizes = {path: len(path.read_text("utf-8").splitlines()) for path in (ROOT / "tests").rglob("*.py")}
    assert [str(path) for path, size in sizes.items() if size > MOST_TEST_LINES] == []


def test_files_have_few_imports() -> None:
    counts = {relative(name): len(used - {DATACLASS}) for name, used in imports().items()}
    assert {path for path, count in counts.items() if count > MOST_IMPORTS} == WIDE_FILES


def bases(module: str, node: ast.ClassDef) -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield a class and the classes of the product that it is made of."""
    yield module, node
    tree = trees()[module]
    places = {
        alias.asname or alias.name: (one.module or "", alias.name)
        for one in ast.walk(tree)
        if isinstance(one, ast.ImportFrom)
        for alias in one.names
    }
    for base in node.bases:
        expression = base.value if isinstance(base, ast.Subscript) else base
        name = expression.id if isinstance(expression, ast.Name) else ""
        place, original = places.get(name, (module, name))
        for one in trees()[place].body if place in trees() else ():
            if isinstance(one, ast.ClassDef) and one.name == original:
                yield from bases(place, one)


def test_classes_have_few_methods() -> None:
    counts = {
        node.name: len(
            {
                part.name
                for _, one in bases(module, node)
                for part in one.body
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
            }
        )
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    assert {name: count for name, count in counts.items() if count > MOST_METHODS} == {}


def test_an_import_in_a_function_names_who_does_not_need_it() -> None:
    nested = [
        f"{relative(name)}:{node.lineno}"
        for name, tree in trees().items()
        if not name.endswith("cli")
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
        and "PLC0415 - not " not in modules()[name].read_text("utf-8").splitlines()[node.lineno - 1]
    ]
    assert nested == []


def sources() -> dict[str, str]:
    """Return every Python file of the project."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {
        name: (ROOT / name).read_text("utf-8")
        for name in listed.split()
        if "_pb2" not in name and (ROOT / name).is_file()
    }


def test_the_formatter_forms_every_line_and_exceptions_have_reasons() -> None:
    exceptions = 0
    for name, text in sources().items():
        assert "fmt: " + "skip" not in text, name
        assert "fmt: " + "off" not in text, name
        found = re.findall(r"# " + r"noqa.*", text)
        assert [one for one in found if not re.match(r"# \w+: [A-Z0-9, ]+ - \w", one)] == [], name
        exceptions += len(found) if name.split("/")[0] in set(rooms()) - {DEMO} else 0
    assert exceptions <= MOST_NOQA


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements of a module or of a statement, and those inside them."""
    for part in ("body", "handlers", "orelse", "finalbody", "cases"):
        for one in getattr(node, part, ()):
            yield one
            yield from statements(one)


def code_lines(text: str) -> int:
    """Count the lines that are neither blank, comment, docstring nor import."""
    left_out = set[int]()
    for node in statements(ast.parse(text)):
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant(value=str())):
                left_out |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    numbered = enumerate(map(str.strip, text.split("\n")), 1)
    return sum(bool(line) and not line.startswith("#") and number not in left_out for number, line in numbered)


def test_product_and_tests_stay_within_their_budgets(capsys: pytest.CaptureFixture[str]) -> None:
    product = tests = 0
    for name, text in sources().items():
        room = name.split("/")[0]
        product += code_lines(text) if room in set(rooms()) - {DEMO} else 0
        tests += code_lines(text) if room == "tests" else 0
    with capsys.disabled():
        print(f"\ncode lines: product {product:,}, tests {tests:,}")  # noqa: T201 - it is what people ask for
    assert product <= MOST_CODE
    assert tests <= MOST_TEST_CODE


_WATCH = """
import atexit, json, os, sys
def write():
    seen = [module for name, module in list(sys.modules.items()) if name.split(".")[0] in {"veiltab", "pandas"}]
    files = {getattr(module, "__file__", None) for module in seen}
    with open(os.path.join(os.environ["LOADED"], f"{os.getpid()}.json"), "w") as out:
        json.dump(sorted(os.path.realpath(file) for file in files if file and "_pb2" not in file), out)
if "serve" in sys.argv:
    atexit.register(write)
"""


def test_a_release_loads_few_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(_WATCH, "utf-8")
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site"), "LOADED": str(tmp_path)}
    command = [sys.executable, "-m", "veiltab", "demo", "table", "--out", str(tmp_path / "out")]
    subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    processes = [json.loads(path.read_text("utf-8")) for path in tmp_path.glob("*.json")]
    assert len(processes) == 5
    files = set[str]().union(*processes)
    assert not [file for file in files if "/pandas/" in file]
    loaded = sum(Path(file).read_text("utf-8").count("\n") for file in files)
    with capsys.disabled():
        print(f"\na release loads {loaded:,} lines")  # noqa: T201 - it is what people ask for
    assert loaded <= MOST_LOADED


def test_there_are_few_commands_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    commands = [one for one in COMMANDS.values() if not isinstance(one, click.Group)]
    every = [one for command in COMMANDS.values() for one in command.params]
    options = sum(isinstance(one, click.Option) and not one.hidden for one in every)
    with capsys.disabled():
        print(f"\n{len(commands)} commands, {options} options")  # noqa: T201 - it is what people ask for
    assert len(commands) <= MOST_COMMANDS
    assert options <= MOST_OPTIONS
