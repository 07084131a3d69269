"""Entries for the registry of deployments: the fields that it documents, and nothing that nobody says."""

import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from tests.deploy.attest.conftest import Given
from tests.deploy.attest.registry_fields import SCHEMA
from veiltab.common.errors import InvalidInputError
from veiltab.deploy.attest.certified import NOT_STATED
from veiltab.deploy.attest.registry_entry import _slug, _yaml

AUTHOR = ("--author", "Ana Díaz")
WHOLE = (*AUTHOR, "--region", "Danmark: hele landet", "--use", "#1, 'wages' by \"sex\"", "--sector", "Government")


def test_a_broken_entry_would_be_noticed(given: Given) -> None:
    given.run("registry", "wages.yaml", *AUTHOR)
    for key, value in (("status", "Final"), ("tier", 4), ("more", "x")):
        assert problems(read(given.path("wages.yaml")) | {key: value}), key


def problems(entry: object) -> list[str]:
    return [one.message for one in jsonschema_rs.Draft7Validator(SCHEMA, validate_formats=True).iter_errors(entry)]


def read(path: Path) -> Any:  # noqa: ANN401 - YAML
    return yaml.safe_load(path.read_text("utf-8"))


def test_the_entry_has_the_fields_of_the_schema_and_the_guarantee(given: Given) -> None:
    said = given.run("registry", "wages.yaml", *WHOLE)
    entry = read(given.path("wages.yaml"))
    assert problems(entry) == []
    assert said["to_complete"] == []
    deployment = entry["deployment"]
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 1}
    assert deployment["dp_variant"]["variant_name"] == "Pure DP"
    assert deployment["basic"]["intended_use"] == "#1, 'wages' by \"sex\""
    assert deployment["basic"]["data_product_region"] == "Danmark: hele landet"
    assert deployment["administrative"]["registry_authors"] == ["Ana Díaz"]
    details = deployment["privacy_loss"]["privacy_parameters_details"]
    assert "desk with server: no protection" in details
    assert "epsilon = 0.955512 (pure)" in details
    assert "1000" in deployment["dp_variant"]["unprotected_quantities"]


def test_several_tables_have_a_delta_in_digits_that_yaml_reads_as_a_number(given_linked: Given) -> None:
    given_linked.run("registry", "linked.yaml", *AUTHOR)
    entry = read(given_linked.path("linked.yaml"))
    assert problems(entry) == []
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 20, "delta": 1e-6}
    assert entry["deployment"]["dp_variant"]["variant_name"] == "Approximate DP"
    assert "All 4 tables are one charge" in entry["deployment"]["accounting"]["composition"]


def test_what_nobody_says_is_not_invented(given: Given) -> None:
    said = given.run("registry", "wages.yaml", *AUTHOR)
    basic = read(given.path("wages.yaml"))["deployment"]["basic"]
    assert said["to_complete"] == ["--use", "--region", "--sector"]
    assert (basic["intended_use"], basic["data_product_region"]) == (NOT_STATED, NOT_STATED)
    assert "data_product_sector" not in basic


def test_counts_of_the_tests_are_in_no_published_form(given: Given) -> None:
    """301 of 1,200 canaries changed in alice's columns; the certificate says so, and nothing that is published may."""
    assert '\\"changed\\":301' in given.path("wages.certificate").read_text()
    given.run("registry", "wages.yaml", *AUTHOR)
    given.run("nist", "wages.md")
    given.run("crate", "crate")
    for name in ("wages.yaml", "wages.md", "crate/ro-crate-metadata.json"):
        text = given.path(name).read_text()
        assert not re.search(r"\b(301|1200|1,200)\b", text), name


def test_a_file_name_that_the_registry_does_not_take_is_refused(given: Given) -> None:
    for name in ("Wages.yaml", "wages-2030.yaml", "wages.yml"):
        assert "takes no file of this name" in str(given.refused("registry", name, *AUTHOR))


@pytest.mark.parametrize("text", ["two\nlines", " ", "x" * 1001, "a\x1b[2Jb", "right\u202eleft"])
def test_an_option_that_is_not_one_printable_line_is_refused(given: Given, text: str) -> None:
    assert isinstance(given.refused("registry", "wages.yaml", *AUTHOR, "--use", text), InvalidInputError)


def test_without_an_author_there_is_no_entry(given: Given) -> None:
    assert isinstance(given.refused("registry", "wages.yaml"), SystemExit)


def test_the_address_of_an_entry_is_computed_as_the_registry_computes_it() -> None:
    assert _slug("A survey, part 2", ["Office A", "B-Fund"], "2030-01-02") == "a-survey-part-2-office-a-b-fund-2030"


AWKWARD = [
    "yes",
    "No",
    "null",
    "a: b",
    "a #b",
    "- a",
    "1",
    "1e3",
    "x'y",
    'say "a"',
    "~",
    "{a}",
    "æøå",
    "[1]",
    "a\\b",
    "=",
    "&a",
    "*a",
    "!a",
    "%a",
    "@a",
    "`a`",
    "a:",
    "n",
]


@pytest.mark.parametrize("text", AWKWARD)
def test_every_text_comes_back_from_yaml_as_it_was(text: str) -> None:
    lines = "\n".join(_yaml({"one": text, "many": (text,), "both": f"{text}\n{text}\n", "in": {"one": text}})) + "\n"
    for loader in (yaml.SafeLoader, yaml.FullLoader):
        assert yaml.load(lines, loader) == {  # noqa: S506 - a text of this test
            "one": text,
            "many": [text],
            "both": f"{text}\n{text}\n",
            "in": {"one": text},
        }
