"""Envelopes: verified and read by tools that others use, under the key of the party's certificate."""

import base64
import hashlib
import json
from typing import Any

import pytest
from cryptography import x509
from google.protobuf.json_format import ParseDict
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer._key import SSlibKey

from tests.deploy.attest.conftest import ALICE, Given
from veiltab.common.errors import InvalidInputError
from veiltab.deploy.attest.envelope import PAYLOAD_TYPE, PREDICATE_TYPE, encoded


def key_of(pem: bytes, keyid: str) -> SSlibKey:
    return SSlibKey.from_crypto(x509.load_pem_x509_certificate(pem).public_key(), keyid)


def made(given: Given, alice: str, *options: str) -> dict[str, Any]:
    said = given.run("dsse", "wages.dsse", "--identity", alice, *options)
    assert said["signer"] == ALICE.uri
    read: dict[str, Any] = json.loads(given.path("wages.dsse").read_text())
    return read


def test_another_tool_verifies_the_envelope_under_the_key_of_the_certificate(given: Given, alice: str) -> None:
    plain = made(given, alice)
    pem = (given.path("curator-alice") / "alice.pem").read_bytes()
    keyid = plain["signatures"][0]["keyid"]
    envelope = Envelope.from_dict(json.loads(json.dumps(plain)))
    assert set(envelope.verify([key_of(pem, keyid)], threshold=1)) == {keyid}
    for altered in (
        plain | {"payloadType": "application/json"},
        plain | {"payload": base64.b64encode(base64.b64decode(plain["payload"]) + b" ").decode()},
    ):
        with pytest.raises(VerificationError):
            Envelope.from_dict(json.loads(json.dumps(altered))).verify([key_of(pem, keyid)], threshold=1)


def test_another_tool_reads_the_statement(given: Given, alice: str) -> None:
    plain = made(given, alice)
    assert plain["payloadType"] == PAYLOAD_TYPE
    statement = json.loads(base64.b64decode(plain["payload"]))
    message = ParseDict(statement, StatementMessage())
    Statement.copy_from_pb(message).validate()
    assert statement["predicateType"] == PREDICATE_TYPE
    subjects = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
    for name, file in (("release certificate", "wages.certificate"), ("study file", "study.toml")):
        assert subjects[name] == hashlib.sha256(given.path(file).read_bytes()).hexdigest()
    assert subjects["table 0, column salary"] == (bytes([1]) * 32).hex()
    assert len(subjects) == 5
    predicate = statement["predicate"]
    assert predicate["guarantee"] == "epsilon 1 (pure), against those who see the counts, if the server is honest"
    assert sorted(predicate["signed"]) == [
        "veiltab://survey/curator/alice",
        "veiltab://survey/curator/bob",
        "veiltab://survey/server/cloud",
    ]
    assert "certificate" not in predicate
    assert "301" not in json.dumps(predicate["card"])


def test_the_whole_certificate_stands_in_it_if_asked_for(given: Given, alice: str) -> None:
    plain = made(given, alice, "--with-certificate")
    predicate = json.loads(base64.b64decode(plain["payload"]))["predicate"]
    assert predicate["certificate"] == json.loads(given.path("wages.certificate").read_text())


def test_what_is_signed_is_encoded_as_the_specification_shows() -> None:
    assert encoded("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_a_folder_without_an_identity_is_refused(given: Given) -> None:
    assert isinstance(given.refused("dsse", "x.dsse", "--identity", str(given.folder)), InvalidInputError)
    assert isinstance(given.refused("dsse", "x.dsse"), SystemExit)
