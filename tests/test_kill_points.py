"""Every place in the product that a test names as text, to kill, pace or replace there, exists."""

import importlib
import re
from functools import reduce
from pathlib import Path

TESTS = Path(__file__).parent
PLACE = re.compile(r"(veiltab(?:\.\w+)+):([A-Za-z_]\w*(?:\.\w+)*)")
MADE_UP = {"test_recipes.py", "test_registry.py"}
FILES = [path for path in sorted(TESTS.rglob("*.py")) if path.name not in MADE_UP]
PLACES = sorted({place for path in FILES for place in PLACE.findall(path.read_text("utf-8"))})


def test_places_are_named() -> None:
    assert len(PLACES) > 50


def test_the_places_that_tests_name_exist() -> None:
    for module, name in PLACES:
        assert reduce(getattr, name.split("."), importlib.import_module(module)) is not None, (module, name)
