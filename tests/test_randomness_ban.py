"""Whatever protects anyone comes from the operating system or a cipher stream, never from a statistical generator."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rooms import rooms

ROOT = Path(__file__).parents[1]
PACKAGES = rooms()
ALLOWED = {ROOT / "researcher/collection/simulation/simulation.py", ROOT / "common/privacy/pricing/median_gain.py"}
BANNED = ("random", "numpy.random", "scipy.stats.rv", "uuid", "pandas.util.testing")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if path not in ALLOWED)


def uses(tree: ast.AST) -> Iterator[str]:
    """Yield what a module imports or reaches by attribute from a banned generator."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Attribute):
            names = [dotted(node)]
        elif isinstance(node, ast.Call) and dotted(node.func).split(".")[-1] in {"import_module", "__import__"}:
            names = [str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)]
        elif isinstance(node, ast.keyword) and node.arg == "random_state":
            names = ["random"]
        else:
            continue
        for name in names:
            plain = "numpy." + name.removeprefix("np.") if name.startswith("np.") else name
            yield from (banned for banned in BANNED if plain == banned or plain.startswith(banned + "."))
            if plain.endswith((".rvs", ".sample", ".default_rng")):
                yield plain


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def test_no_module_uses_a_statistical_generator() -> None:
    found = {
        str(path.relative_to(ROOT)): [name for name in uses(ast.parse(path.read_text("utf-8"))) if not innocent(name)]
        for path in SOURCES
    }
    assert {path: names for path, names in found.items() if names} == {}


def innocent(name: str) -> bool:
    """Return whether `.sample` is the sample size of a release, of a plan, a design or a request."""
    return name.endswith(".sample")


@pytest.mark.parametrize(
    "source",
    [
        "import random",
        "import random as r",
        "from random import choice",
        "import numpy.random",
        "from numpy import random",
        "from numpy.random import default_rng",
        "import numpy as np\nnp.random.rand(3)",
        "import numpy\nnumpy.random.default_rng(1)",
        "from scipy import stats\nstats.norm.rvs(3)",
        "import importlib\nimportlib.import_module('random')",
        "__import__('random')",
        "def f():\n    import random",
        "f(random_state=1)",
        "import uuid",
    ],
)
def test_the_ban_sees_every_way(source: str) -> None:
    assert [name for name in uses(ast.parse(source)) if not innocent(name)]


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos.urandom(3)",
        "import secrets",
        "from secrets import SystemRandom",
        "import veiltab.common.core.randomness",
        "x.sample",
    ],
)
def test_the_ban_leaves_the_rest_alone(source: str) -> None:
    assert not [name for name in uses(ast.parse(source)) if not innocent(name)]


def test_there_is_something_to_look_at() -> None:
    assert len(SOURCES) > 60
    assert {path.relative_to(ROOT).parts[0] for path in SOURCES} == set(PACKAGES)
