import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.rooms import rooms
from veiltab.common.errors import InvalidInputError
from veiltab.common.extras import EXTRAS, importing

CONSOLE = ("veiltab.common.web.", "veiltab.curator.console.")
"""Modules of pages, which only the console imports."""

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]


def test_every_extra_is_one_of_the_project() -> None:
    """The extra demo brings a room, whose command says what to install."""
    assert {*EXTRAS, "demo"} == set(PROJECT["optional-dependencies"])


def test_the_base_brings_nothing_that_an_extra_brings() -> None:
    base = {re.split(r"[>=<\[]", text)[0].replace("-", "_") for text in PROJECT["dependencies"]}
    assert {"numpy", "grpcio", "cryptography"} <= base
    assert not base & frozenset().union(*EXTRAS.values())


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, extra: str) -> None:
    for package in EXTRAS[extra]:
        monkeypatch.setitem(sys.modules, package, None)
        with (
            pytest.raises(InvalidInputError, match=rf"^--plot: a picture needs the package {package}") as caught,
            importing(extra, "a picture", where="--plot"),
        ):
            __import__(package)
        assert caught.value.remedy == f"pip install 'veiltab[{extra}]'."


def test_what_no_extra_brings_is_not_hidden() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package"), importing("researcher", "a picture"):
        __import__("no_such_package")


def test_every_module_but_those_of_an_extra_is_imported_without_extras() -> None:
    code = f"""
import importlib, pkgutil, sys
sys.modules |= dict.fromkeys({sorted(frozenset().union(*EXTRAS.values()))})
import veiltab
for room in {rooms()}:
    package = importlib.import_module(f"veiltab.{{room}}")
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError:
            print(module.name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name for name in done.stdout.split() if not name.startswith(CONSOLE)} == {
        "veiltab.common.observe.metrics",
        "veiltab.common.observe.tracing",
        "veiltab.curator.formats.files.sheet_size",
        "veiltab.deploy.relay.relay_metrics",
        "veiltab.researcher.api.application",
        "veiltab.researcher.api.openapi",
        "veiltab.researcher.api.report_link",
        "veiltab.researcher.api.resource",
        "veiltab.researcher.api.handlers",
        "veiltab.researcher.api.serving_api",
        "veiltab.server.https.application",
        "veiltab.server.records.postgres",
    }
