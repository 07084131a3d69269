"""A release as a Five Safes RO-Crate: metadata in JSON-LD that archives and research environments read.

It follows the core of the Five Safes RO-Crate profile 1.0 (https://w3id.org/5s-crate/1.0, a working draft) on RO-Crate
1.3. Profile 0.4 describes runs of workflows, which a release is none of. The crate is the record of one release; its
dates are those of the signatures, so that the same certificate always makes the same bytes.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.storage.files import make_folder, written_whole
from veiltab.deploy.attest.certified import NOT_STATED, UNIT, Certified

PROFILE = "https://w3id.org/5s-crate/1.0"
_CRATE = "https://w3id.org/ro/crate/1.3"
_COMPLETED = "http://schema.org/CompletedActionStatus"
METADATA, CERTIFICATE, STUDY = "ro-crate-metadata.json", "release.certificate", "study.toml"
_FILES = {
    CERTIFICATE: (
        "Release certificate",
        "application/json",
        "Signed by every curator and the server; `veiltab verify` checks it. For those who audit, not beside results.",
    ),
    STUDY: ("Study file", "application/toml", "Who takes part, and how raw values become categories."),
}
"""File -> name, media type, what it is."""

Entity = dict[str, object]


def write_crate(one: Certified, folder: Path, *, with_certificate: bool) -> tuple[str, ...]:
    """Write a crate into a new folder, its metadata last; return the names of the files.

    Args:
        folder: not there yet.
        with_certificate: whether certificate and study file are in it, so that others can verify. Both are for those
        who audit: the certificate has counts of canaries, which may not be published beside results.
    """
    files = {STUDY: one.study.source, CERTIFICATE: one.certificate.to_text().encode()} if with_certificate else {}
    files[METADATA] = crate_metadata(one, with_certificate=with_certificate).encode()
    make_folder(folder)
    for name, content in files.items():
        with written_whole(folder / name) as file:
            file.write(content)
    return tuple(files)


def crate_metadata(one: Certified, *, with_certificate: bool) -> str:
    """Return the metadata of a crate, JSON-LD."""
    graph = {"@context": [f"{_CRATE}/context"], "@graph": list(_graph(one, with_certificate=with_certificate))}
    return json.dumps(graph, indent=2, ensure_ascii=False) + "\n"


def _graph(one: Certified, *, with_certificate: bool) -> Iterator[Entity]:
    yield {"@type": "CreativeWork", "@id": METADATA, "about": {"@id": "./"}, "conformsTo": {"@id": _CRATE}}
    parts = tuple(_parts(one, with_certificate=with_certificate))
    processes = tuple(_statement(one, party) for party in one.parties)
    signed = one.last_signed.isoformat()
    yield {
        "@id": "./",
        "@type": "Dataset",
        "conformsTo": [{"@id": PROFILE}],
        "identifier": {"@id": _id(one, "record, current")},
        "dct:isVersionOf": {"@id": _id(one, "record")},
        "name": f"Release {one.release.release_id} of {one.study.title}",
        "description": f"{one.product()} {one.sample()} {one.guarantee().capitalize()}.",
        "dateCreated": signed,
        "datePublished": signed,
        "license": {"@id": _id(one, "conditions")},
        "hasPart": [{"@id": each["@id"]} for each in parts if each["@type"] in ("File", "Dataset")],
        "mentions": [{"@id": each["@id"]} for each in processes],
    }
    yield {"@id": PROFILE, "@type": ["CreativeWork", "Profile"], "name": "Five Safes RO-Crate", "version": "1.0"}
    yield from parts
    yield from processes
    yield from _plan(one)
    yield from (_organisation(one, party) for party in (*one.parties, _desk(one)))
    yield {
        "@id": _id(one, "conditions"),
        "@type": "CreativeWork",
        "name": "Conditions of access to the tables",
        "description": f"{NOT_STATED.capitalize()}; ask the curators.",
    }


def _parts(one: Certified, *, with_certificate: bool) -> Iterator[Entity]:
    """Yield the assets: what was released, the columns that it comes from, the certificate, the study file."""
    privacy = tuple(_privacy(one))
    yield {
        "@id": _id(one, "tables"),
        "@type": "Dataset",
        "name": "Noisy tables of the release",
        "description": f"{one.product()} Attributes: {one.attributes()}. {one.mechanism()} They are not in this crate;"
        f" they are with researcher {one.release.researcher}.",
        "maintainer": {"@id": _party(one, _desk(one))},
        "prov:wasDerivedFrom": [{"@id": _columns(one, name)} for name in _owners(one)],
        "variableMeasured": [{"@id": each["@id"]} for each in privacy],
    }
    yield from privacy
    for name in _owners(one):
        own = ", ".join(each.attribute for each in one.release.columns if each.owner == name)
        yield {
            "@id": _columns(one, name),
            "@type": "Dataset",
            "name": f"Columns of curator {name}",
            "description": f"{own}: held by curator {name} alone, and not in this crate. How they were collected:"
            f" {NOT_STATED}.",
        }
    yield from _file(one, CERTIFICATE, one.certificate.to_text().encode(), packaged=with_certificate)
    yield from _file(one, STUDY, one.study.source, packaged=with_certificate)


def _file(one: Certified, path: str, content: bytes, *, packaged: bool) -> Iterator[Entity]:
    """Yield an exact file by its digest, and its copy in the crate if there is one."""
    digest = hashlib.sha256(content).hexdigest()
    name, encoding, about = _FILES[path]
    exact: Entity = {"@id": _id(one, digest), "@type": "CreativeWork", "name": name, "identifier": f"SHA-256 {digest}"}
    yield exact
    if packaged:
        yield {
            "@id": path,
            "@type": "File",
            "name": name,
            "description": about,
            "encodingFormat": encoding,
            "contentSize": str(len(content)),
            "sha256": digest,
            "encodesCreativeWork": {"@id": exact["@id"]},
        }


def _privacy(one: Certified) -> Iterator[Entity]:
    """Yield what limits what the tables tell about a person; every number is an upper bound."""
    values: dict[str, tuple[str, str]] = {
        "epsilon": (f"{one.release.epsilon:f}", f"{one.guarantee().capitalize()}, in nats."),
        "delta": (delta_text(one.release.delta), "0 of a pure epsilon."),
        "unit of privacy": (UNIT, one.neighbours),
        "variant": (f"{one.variant} differential privacy", one.composition()),
        "without noise": (one.unprotected(), "What is public of the release."),
    }
    for name, (value, description) in values.items():
        yield _property(one, name, value, description)
    for who, faces in one.coalitions():
        yield _property(one, f"{who} faces", faces, "An upper bound, computed from the description of the release.")


def _property(one: Certified, name: str, value: str, description: str) -> Entity:
    return {
        "@id": _id(one, f"privacy: {name}"),
        "@type": "PropertyValue",
        "name": name,
        "value": value,
        "description": description,
    }


def _statement(one: Certified, party: Party) -> Entity:
    """Return the process by which a party came to its signed statement; a curator with columns tests the server."""
    by_curator = party.role is Role.CURATOR
    did = f"{party} states what the server published"
    if one.tested(party):
        did += ", tests the server's noise, and passes it"
    if by_curator:
        did += "; its ledger is charged"
    return {
        "@id": _id(one, f"statement of {party}"),
        "@type": ["AssessAction", "prov:Activity"],
        "name": did,
        "agent": {"@id": _party(one, party)},
        "object": {"@id": _id(one, "tables")},
        "prov:used": {"@id": _id(one, "plan")},
        "endTime": one.signed_at(party).isoformat(),
        "actionStatus": {"@id": _COMPLETED},
        "description": one.tests() if one.tested(party) else "Signed, and checked with the certificate.",
    }


def _plan(one: Certified) -> Iterator[Entity]:
    yield {
        "@id": _id(one, "plan"),
        "@type": ["CreativeWork", "prov:Plan"],
        "name": "Description of the release, the same at every party",
        "identifier": f"SHA-256 {one.release.digest().hex()}",
        "description": f"{one.guarantee().capitalize()}. Purpose, and who decided why: {NOT_STATED}; the evidence of"
        " each curator has that.",
    }


def _organisation(one: Certified, party: Party) -> Entity:
    does = {
        Role.CURATOR: "holds columns of the study, decides about requests, and encrypts",
        Role.SERVER: "adds noise to ciphertext that it cannot read",
        Role.RESEARCHER: "runs the service that decrypts and counts",
    }
    return {
        "@id": _party(one, party),
        "@type": "Organization",
        "name": str(party),
        "description": f"The organisation that runs {party} of study {one.study.id}: it {does[party.role]}. Its"
        f" certificate names {party.uri}.",
    }


def _desk(one: Certified) -> Party:
    return Party(study=one.study.id, role=Role.RESEARCHER, name=one.release.researcher)


def _owners(one: Certified) -> Iterable[str]:
    return dict.fromkeys(each.owner for each in one.release.columns)


def _columns(one: Certified, owner: str) -> str:
    return _id(one, f"columns of {owner}")


def _party(one: Certified, party: Party) -> str:
    """Return the name of an organisation; the same in every crate of the study."""
    return _urn(one.study.digest, party.uri)


def _id(one: Certified, what: str) -> str:
    """Return the name of a thing of this release; the same in every crate of it."""
    return _urn(one.release.release_id, what)


def _urn(within: str, what: str) -> str:
    """Return a UUID of version 8, which a digest fills (RFC 9562): the same name for the same thing."""
    digest = hashlib.sha256(f"{within} {what}".encode()).hexdigest()
    return f"urn:uuid:{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
