"""Entries for the registry of deployments: the fields that it documents, and nothing that nobody says."""

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from cryptography.hazmat.primitives.serialization import Encoding

from tests.common.rpc.test_linked_certificate import certificate as linked_certificate
from tests.common.rpc.test_linked_certificate import listed, workload
from tests.common.rpc.test_release_certificate import OTHER_AUTHORITY
from tests.common.study.test_identity_table import LINKED as LINKED_STUDY
from tests.conftest import spec_with
from tests.curator.audit.exported_evidence import certificate
from tests.deploy.registry.conftest import Given
from tests.deploy.registry.registry_fields import SCHEMA
from tests.worlds.parties import ALICE
from veiltab.common.errors import ConflictError, InvalidInputError
from veiltab.common.release.modes import Sampling
from veiltab.common.release.spec import release_of
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.certificates.release_certificate import ReleaseCertificate
from veiltab.common.rpc.certificates.statement import LedgerHead
from veiltab.common.study.file import study_from_bytes
from veiltab.deploy.registry.certified_release import NOT_STATED, CertifiedRelease, _below
from veiltab.deploy.registry.registry_entry import PRODUCTS, Facts, _slug, _yaml, registry_entry

AUTHOR = ("--author", "Ana Díaz")
WHOLE = (
    *(*AUTHOR, "--region", "Danmark: hele landet", "--use", "#1, 'wages' by \"sex\"", "--sector", "Government"),
    *("--published", "2030-01-02"),
)


def test_a_broken_entry_would_be_noticed(given: Given) -> None:
    given.run("wages.yaml", *AUTHOR)
    for key, value in (("status", "Final"), ("tier", 4), ("more", "x")):
        assert problems(read(given.path("wages.yaml")) | {key: value}), key


def problems(entry: object) -> list[str]:
    return [one.message for one in jsonschema_rs.Draft7Validator(SCHEMA, validate_formats=True).iter_errors(entry)]


def read(path: Path) -> Any:  # noqa: ANN401 - YAML
    return yaml.safe_load(path.read_text("utf-8"))


def test_the_whole_text_of_an_entry(given: Given) -> None:
    said = given.run("wages.yaml", *WHOLE)
    assert said["to_complete"] == []
    check_entry(given.path("wages.yaml").read_text("utf-8"), "one_table.yaml")


FACTS = Facts(
    authors=("Ana Díaz", "Ben Ode"),
    name="Wages",
    curators=("Office A", "Fund B"),
    use=NOT_STATED,
    region=NOT_STATED,
    product=PRODUCTS[0],
    sector=None,
    published="2030-01-02",
)
LINKED = study_from_bytes(LINKED_STUDY.encode(), "study.toml")
LONGER = LedgerHead(length=5, digest="cd" * 32)
"""Of Alice when she signed the list of tables, after she had signed the tables."""


def by_server() -> TableSpec:
    replaced = {"server_replacement": 2**63, "curator_replacement": 2**62}
    return spec_with(sampling=Sampling.SERVER, sample=800, epsilon=Decimal(2), **replaced)


@pytest.mark.parametrize(
    ("release", "golden"),
    [
        (lambda: linked_certificate({ALICE: listed(ALICE, ledger=LONGER)}), "several_tables.yaml"),
        (lambda: replace(certificate(LINKED), spec=release_of(by_server())), "without_tests.yaml"),
    ],
)
def test_the_whole_text_of_other_releases(release: Callable[[], ReleaseCertificate], golden: str) -> None:
    """Of several tables of people who were linked, and of one that the curators' noise protects too."""
    check_entry(registry_entry(CertifiedRelease(release(), LINKED), FACTS), golden)


def check_entry(text: str, golden: str) -> None:
    """Compare an entry with the file that a person has read."""
    assert problems(yaml.safe_load(text)) == []
    assert text == Path(__file__).with_name(golden).read_text("utf-8")


def test_a_delta_stands_in_digits_that_yaml_reads_as_a_number(given_linked: Given) -> None:
    given_linked.run("linked.yaml", *AUTHOR)
    parameters = read(given_linked.path("linked.yaml"))["deployment"]["privacy_loss"]["privacy_parameters"]
    assert parameters == {"epsilon": 20, "delta": 1e-6}


def test_only_curators_who_signed_receipts_are_said_to_have_tested() -> None:
    both = certificate(LINKED)
    of_alice = replace(both, statements=tuple(one for one in both.statements if "curator/bob" not in one.text))
    assert CertifiedRelease(of_alice, LINKED).tests().startswith("Curator alice tested")


def test_tables_without_canaries_are_counted() -> None:
    whole = workload()
    plans = (replace(whole.tables[0], canaries=0), *whole.tables[1:])
    release = CertifiedRelease(replace(linked_certificate(), spec=replace(whole, tables=plans)), LINKED)
    assert "Where the test is weakest, the server is not tested" in release.tests()


def test_what_nobody_says_is_not_invented(given: Given) -> None:
    said = given.run("wages.yaml", *AUTHOR)
    basic = read(given.path("wages.yaml"))["deployment"]["basic"]
    assert said["to_complete"] == ["use", "region", "sector"]
    assert (basic["intended_use"], basic["data_product_region"]) == (NOT_STATED, NOT_STATED)
    assert "data_product_sector" not in basic


def test_counts_of_the_tests_are_not_published(given: Given) -> None:
    """622 of 2,400 canaries changed in alice's columns; the certificate says so, and no entry may."""
    assert '\\"changed\\":622' in given.path("wages.certificate").read_text()
    given.run("wages.yaml", *AUTHOR)
    assert not re.search(r"\b(622|2400|2,400)\b", given.path("wages.yaml").read_text())


def test_a_file_name_that_the_registry_does_not_take_is_refused(given: Given) -> None:
    for name in ("Wages.yaml", "wages-2030.yaml", "wages.yml"):
        assert "takes no file of this name" in str(given.refused(name, *AUTHOR))


@pytest.mark.parametrize("text", ["two\nlines", " ", "x" * 1001, "a\x1b[2Jb", "right\u202eleft"])
def test_an_option_that_is_not_one_printable_line_is_refused(given: Given, text: str) -> None:
    assert isinstance(given.refused("wages.yaml", *AUTHOR, "--use", text), InvalidInputError)


def test_the_address_of_an_entry_is_computed_as_the_registry_computes_it() -> None:
    facts = replace(FACTS, name="A survey, part 2", curators=("Office A", "B-Fund"))
    assert _slug(facts) == "a-survey-part-2-office-a-b-fund-2030"


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (Fraction(2, 3), "0.666666"),
        (Fraction(1), "1.000000"),
        (Fraction(2**64 - 1, 2**64), "0.999999"),
        (Fraction(0), "0.000000"),
    ],
)
def test_a_share_of_rows_is_never_said_to_be_more_than_it_is(share: Fraction, shown: str) -> None:
    assert _below(share) == shown


def test_a_certificate_that_was_altered_is_refused(given: Given) -> None:
    text = given.path("wages.certificate").read_text()
    given.path("wages.certificate").write_text(text.replace('"population":1000', '"population":1001'))
    error = given.refused("wages.yaml", *AUTHOR)
    assert isinstance(error, InvalidInputError)
    assert "does not hold" in str(error)


def test_a_certificate_of_another_study_file_or_authority_is_refused(given: Given) -> None:
    given.path("ca.pem").write_bytes(OTHER_AUTHORITY.certificate.public_bytes(Encoding.PEM))
    assert "of another authority" in str(given.refused("wages.yaml", *AUTHOR))
    study = given.path("study.toml").read_bytes()
    given.path("study.toml").write_bytes(study.replace(b"A survey", b"A Survey"))
    assert "of another study file" in str(given.refused("wages.yaml", *AUTHOR))


def test_nothing_is_written_over_what_is_there(given: Given) -> None:
    out = given.path("wages.yaml")
    for make in (lambda: out.write_text("kept"), lambda: out.symlink_to("nowhere")):
        make()
        refusal = given.refused("wages.yaml", *AUTHOR)
        assert isinstance(refusal, ConflictError)
        assert refusal.where == str(out)
        out.unlink()


WORDS = "yes No null 1 1e3 x'y ~ {a} æøå [1] a\\b = &a *a !a %a @a `a` a: n"


@pytest.mark.parametrize("text", [*WORDS.split(), "a: b", "a #b", "- a", 'say "a"'])
def test_every_text_comes_back_from_yaml_as_it_was(text: str) -> None:
    lines = "\n".join(_yaml({"one": text, "many": (text,), "both": f"{text}\n{text}\n", "in": {"one": text}})) + "\n"
    for loader in (yaml.SafeLoader, yaml.FullLoader):
        assert yaml.load(lines, loader) == {  # noqa: S506 - a text of this test
            "one": text,
            "many": [text],
            "both": f"{text}\n{text}\n",
            "in": {"one": text},
        }
