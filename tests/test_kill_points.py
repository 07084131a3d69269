"""Every place in the product that a test names as text, to kill, pace or replace there, exists."""

import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PLACE = re.compile(r"(veiltab(?:\.\w+)+):([A-Za-z_]\w*(?:\.\w+)*)")
MADE_UP = {"test_recipes.py", "test_registry.py"}
FILES = [path for path in sorted(TESTS.rglob("*.py")) if path.name not in MADE_UP]
PLACES = sorted({place for path in FILES for place in PLACE.findall(path.read_text("utf-8"))})


def test_places_are_named() -> None:
    assert len(PLACES) > 50


@pytest.mark.parametrize(("module", "name"), PLACES)
def test_a_place_that_a_test_names_exists(module: str, name: str) -> None:
    assert reduce(getattr, name.split("."), importlib.import_module(module)) is not None
