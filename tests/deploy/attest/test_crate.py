"""Crates: RO-Crate's own reader and validator, and the requirements of the core of the Five Safes profile."""

import hashlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import rocrate
from rocrate.rocrate import ROCrate

from tests.deploy.attest.conftest import Given
from veiltab.deploy.attest.certified import NOT_STATED

ABSOLUTE = re.compile(r"(https?|urn):\S+")
KINDS = {"AskAction", "CreateAction", "Action", "AssessAction", "AuthorizeAction", "RejectAction", "CancelAction"}
CONTEXT = Path(rocrate.__file__).parent / "data/ro-crate.jsonld"
"""The context of RO-Crate 1.3, as the package `rocrate` brings it."""


def crate(given: Given, *options: str) -> tuple[Path, dict[str, dict[str, Any]]]:
    given.run("crate", "crate", *options)
    graph = json.loads((given.path("crate") / "ro-crate-metadata.json").read_text())
    assert graph["@context"] == ["https://w3id.org/ro/crate/1.3/context"]
    entities = {one["@id"]: one for one in graph["@graph"]}
    assert len(entities) == len(graph["@graph"])
    return given.path("crate"), entities


def kinds(entity: dict[str, Any]) -> set[str]:
    one = entity["@type"]
    return {one} if isinstance(one, str) else set(one)


def references(value: object) -> list[str]:
    match value:
        case {"@id": str(name), **rest} if not rest:
            return [name]
        case dict():
            return [name for each in value.values() for name in references(each)]
        case list():
            return [name for each in value for name in references(each)]
        case _:
            return []


@pytest.mark.parametrize("options", [(), ("--with-certificate",)])
def test_the_core_of_the_five_safes_profile_is_met(given: Given, options: tuple[str, ...]) -> None:
    _, entities = crate(given, *options)
    assert entities["ro-crate-metadata.json"] == {
        "@type": "CreativeWork",
        "@id": "ro-crate-metadata.json",
        "about": {"@id": "./"},
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.3"},
    }
    root = entities["./"]
    (profile,) = references(root["conformsTo"])
    assert profile == "https://w3id.org/5s-crate/1.0"
    assert "Profile" in kinds(entities[profile])
    for key in ("identifier", "dct:isVersionOf"):
        (name,) = references(root[key])
        assert ABSOLUTE.fullmatch(name)
    assert root["identifier"] != root["dct:isVersionOf"]
    # A record that is not a snapshot has neither.
    assert not {"version", "pav:previousVersion"} & set(root)
    assert {"name", "description", "dateCreated", "datePublished", "license"} <= set(root)
    for name, entity in entities.items():
        local = name in {"./", "ro-crate-metadata.json"} or kinds(entity) == {"File"}
        assert local or ABSOLUTE.fullmatch(name), name
        assert "name" in entity or name == "ro-crate-metadata.json"
    parts = set(references(root["hasPart"]))
    assert parts == {name for name, one in entities.items() if kinds(one) & {"File", "Dataset"} and name != "./"}


def test_every_statement_is_a_process_of_an_organisation_about_the_tables(given: Given) -> None:
    _, entities = crate(given)
    mentioned = [entities[name] for name in references(entities["./"]["mentions"])]
    assert mentioned == [one for one in entities.values() if "prov:Activity" in kinds(one)]
    assert len(mentioned) == 3
    for one in mentioned:
        assert kinds(one) & KINDS
        (agent,) = references(one["agent"])
        assert kinds(entities[agent]) == {"Organization"}
        assert references(one["actionStatus"]) == ["http://schema.org/CompletedActionStatus"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", one["endTime"])
        (about,) = references(one["object"])
        assert entities[about]["name"] == "Noisy tables of the release"
    did = "states what the server published"
    tested = f"{did}, tests the server's noise, and passes it; its ledger is charged"
    assert [one["name"] for one in mentioned] == [
        f"curator alice {tested}",
        f"curator bob {tested}",
        f"server cloud {did}",
    ]


def test_every_reference_leads_to_an_entity_but_those_that_the_profile_wants_elsewhere(given: Given) -> None:
    _, entities = crate(given, "--with-certificate")
    named = {name for one in entities.values() for name in references({k: v for k, v in one.items() if k != "@id"})}
    elsewhere = {"https://w3id.org/ro/crate/1.3", "http://schema.org/CompletedActionStatus"}
    own = set(references([entities["./"]["identifier"], entities["./"]["dct:isVersionOf"]]))
    assert named - set(entities) == elsewhere | own
    assert set(entities) - named == {"ro-crate-metadata.json"}


def test_the_guarantee_stands_with_the_tables(given_linked: Given) -> None:
    _, entities = crate(given_linked)
    (tables,) = (one for one in entities.values() if one.get("name") == "Noisy tables of the release")
    values = {entities[name]["name"]: entities[name]["value"] for name in references(tables["variableMeasured"])}
    assert (values["epsilon"], values["delta"]) == ("20", "1e-6")
    assert values["desk, server and curator faces"].startswith("no protection")
    assert NOT_STATED in json.dumps(entities)


def test_the_certificate_is_in_the_crate_only_if_asked_for(given: Given) -> None:
    folder, entities = crate(given)
    assert [one.name for one in folder.iterdir()] == ["ro-crate-metadata.json"]
    assert "File" not in set.union(*map(kinds, entities.values()))


def test_the_files_of_a_crate_are_those_of_its_digests(given: Given) -> None:
    folder, entities = crate(given, "--with-certificate")
    assert {one.name for one in folder.iterdir()} == {"ro-crate-metadata.json", "release.certificate", "study.toml"}
    for name in ("release.certificate", "study.toml"):
        content = (folder / name).read_bytes()
        assert entities[name]["sha256"] == hashlib.sha256(content).hexdigest()
        assert entities[name]["contentSize"] == str(len(content))
        (exact,) = references(entities[name]["encodesCreativeWork"])
        assert entities[exact]["identifier"].endswith(entities[name]["sha256"])
    assert (folder / "release.certificate").read_bytes() == given.path("wages.certificate").read_bytes()


def test_the_same_certificate_makes_the_same_bytes(given: Given) -> None:
    given.run("crate", "one")
    given.run("crate", "two")
    assert len({(given.path(name) / "ro-crate-metadata.json").read_bytes() for name in ("one", "two")}) == 1


def test_the_reader_of_ro_crate_reads_it(given: Given) -> None:
    folder, entities = crate(given, "--with-certificate")
    read = ROCrate(str(folder))
    assert read.name == entities["./"]["name"]
    assert {"release.certificate", "study.toml"} <= {one.id for one in read.data_entities}
    assert len(list(read.get_entities())) == len(entities)


@pytest.mark.parametrize("options", [(), ("--with-certificate",)])
def test_the_validator_of_ro_crate_finds_nothing_that_is_required_missing(
    given: Given, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes with the dependency group `crate` of pyproject.toml, and asks the web for what `rocrate` has."""
    validator = pytest.importorskip("rocrate_validator.services")
    from rocrate_validator.models import Severity  # noqa: PLC0415 - only this test looks inside
    from rocrate_validator.utils.http import HttpRequester  # noqa: PLC0415 - only this test looks inside

    monkeypatch.setattr(HttpRequester, "get", lambda _self, url, **_: _answer(url), raising=False)
    folder, _ = crate(given, *options)

    def issues() -> list[str]:
        settings = validator.ValidationSettings(
            rocrate_uri=str(folder), profile_identifier="ro-crate-1.3", requirement_severity=Severity.REQUIRED
        )
        return [one.message for one in validator.validate(settings).get_issues()]

    assert issues() == []
    path = folder / "ro-crate-metadata.json"
    path.write_text(path.read_text().replace('"datePublished"', '"dateOfPublication"'))
    assert issues()


def _answer(url: str) -> Any:  # noqa: ANN401 - of requests, which the validator brings
    requests = pytest.importorskip("requests")
    answer = requests.Response()
    answer.status_code, answer.url = (200 if "ro/crate/1.3/context" in url else 404), url
    answer.raw = io.BytesIO(CONTEXT.read_bytes())
    answer.headers["Content-Type"] = "application/ld+json"
    return answer
