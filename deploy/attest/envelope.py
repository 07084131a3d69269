"""A release certificate as an in-toto Statement in a DSSE envelope, which other tools verify and store.

The signatures of the parties are over texts of their own (docs/evidence.md), and stay in the certificate as they are.
The envelope has one signature of its own, of a party that checked the certificate: it says that every line held there.
"""

import base64
import hashlib
import json
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from veiltab.common.core.texts.canonical import canonical_json
from veiltab.common.rpc.parties.identity import Identity
from veiltab.common.rpc.parties.signing import signature_of
from veiltab.deploy.attest.certified import Certified

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "veiltab:release-certificate/2"


def envelope(one: Certified, signer: Identity, now: datetime, *, with_certificate: bool) -> str:
    """Return the envelope, JSON, signed by one party: ECDSA or RSA-PSS with SHA-256, or Ed25519, as its key is.

    Its subjects are the certificate, the study file, the description of the release, and every published column, by
    their SHA-256.

    Args:
        signer: a party of the study.
        with_certificate: whether the whole certificate stands in it, for those who audit.

    Raises:
        InvalidInputError: the party's certificate is not valid now, or its key signs in no such way.
    """
    payload = canonical_json(_statement(one, signer, now, with_certificate=with_certificate)).encode()
    certificate = x509.load_pem_x509_certificate(signer.certificate)
    key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    plain = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [
            {
                "keyid": hashlib.sha256(key).hexdigest(),
                "sig": base64.b64encode(signature_of(signer, encoded(PAYLOAD_TYPE, payload), now)).decode(),
            }
        ],
    }
    return json.dumps(plain, indent=2) + "\n"


def encoded(kind: str, body: bytes) -> bytes:
    """Return what is signed of a payload: DSSEv1's pre-authentication encoding, "DSSEv1 LEN TYPE LEN BODY"."""
    name = kind.encode()
    return b"DSSEv1 %d %s %d %s" % (len(name), name, len(body), body)


def _statement(one: Certified, signer: Identity, now: datetime, *, with_certificate: bool) -> dict[str, object]:
    text = one.certificate.to_text()
    certificate = hashlib.sha256(text.encode()).hexdigest()
    digests = {"release certificate": certificate, "study file": one.study.digest}
    digests |= {"description of the release": one.release.digest().hex()} | one.published()
    predicate: dict[str, object] = {
        "study": one.study.id,
        "release": one.release.release_id,
        "guarantee": one.guarantee(),
        "card": [{"coalition": who, "faces": faces} for who, faces in one.coalitions()],
        "signed": {party.uri: one.signed_at(party).isoformat() for party in one.parties},
        "verified": {
            "by": signer.party.uri,
            "at": now.isoformat(timespec="seconds"),
            "authority": one.certificate.fingerprint,
            "signing_certificate": signer.certificate.decode(),
        },
    }
    if with_certificate:
        predicate["certificate"] = json.loads(text)
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in digests.items()],
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate,
    }
