"""The compose.yaml of any study, made of that of the Adult study: a service for each of its parties.

compose.yaml is written for people to read. Its services are the patterns: alice's of every curator, rosa's of every
researcher; with the parties of the Adult study the result is compose.yaml itself.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import Study

TEMPLATE = Path(__file__).resolve().parents[2] / "deploy" / "compose" / "compose.yaml"

SERVER_PORT, FIRST_CURATOR_PORT = 7400, 7401
"""Where the parties listen inside their networks; every researcher's service listens at the same port of its own."""

_VOLUMES = ("fleet", "tokens")
"""Volumes that are no party's."""


def endpoints_of(study: Study, port: int) -> dict[str, str]:
    """Return where the parties of a study are called: by their names, and researchers' services from this machine.

    Args:
        port: of the first researcher's service on this machine's loopback interface; the others follow.

    Raises:
        InvalidInputError: a party has the name of a volume.
    """
    serving = (study.server, *study.curators, *study.researchers)
    for party in serving:
        if party.name in _VOLUMES:
            raise InvalidInputError(
                f"a party is named {party.name!r}, as a volume is",
                where=f"study {study.id}",
                remedy="Rehearse it by `veiltab rehearse`, without containers.",
            )
    curators = {one.name: f"{one.name}:{FIRST_CURATOR_PORT + place}" for place, one in enumerate(study.curators)}
    researchers = {one.name: f"localhost:{port + place}" for place, one in enumerate(study.researchers)}
    return {study.server.name: f"{study.server.name}:{SERVER_PORT}", **curators, **researchers}


def compose_text(study: Study, tables: Mapping[str, str]) -> str:
    """Return the compose.yaml of a study whose endpoints are those of `endpoints_of`.

    Args:
        tables: curator -> name of its table in the folder.
    """
    _, _, template = TEMPLATE.read_text("utf-8").partition("\nname: ")
    _, _, template = template.partition("\n")
    head, _, rest = template.partition("\nservices:\n")
    services, _, networks = rest.partition("\n\nnetworks:\n")
    networks, _, _ = networks.partition("\n\nvolumes: ")
    alice, _, cloud, rosa, fleet = services.split("\n\n")
    parts = [_curator(alice, one.name, one.endpoint, tables[one.name]) for one in study.curators]
    parts.append(_named(cloud, "cloud", study.server.name))
    parts += [_researcher(rosa, one.name, one.endpoint, place) for place, one in enumerate(study.researchers)]
    if study.nodes is not None:
        size = study.questions[0].attribute.size
        parts.append(fleet.replace("pki/node-fleet", f"pki/node-{study.nodes.name}").replace(":10:", f":{size}:"))
    parties = (*study.curators, study.server, *study.researchers)
    volumes = ", ".join(f"{name}: {{}}" for name in (*(party.name for party in parties), *_VOLUMES))
    about = f"# {study.title}: made of deploy/compose/compose.yaml, which says why it is so.\nname: {study.id}"
    together = "\n\n".join(parts)
    return f"{about}\n{head}\nservices:\n{together}\n\nnetworks:\n{networks}\n\nvolumes: {{{volumes}}}\n"


def _curator(alice: str, name: str, endpoint: str, table: str) -> str:
    _, _, port = endpoint.rpartition(":")
    mounted = alice.replace("./alice.csv", f"./{table}").replace(f":{FIRST_CURATOR_PORT}\n", f":{port}\n")
    return _named(mounted, "alice", name)


def _researcher(rosa: str, name: str, endpoint: str, place: int) -> str:
    """Return the service of a researcher; the first one's port is a setting of .env."""
    _, _, port = endpoint.rpartition(":")
    published = rosa if place == 0 else re.sub(r"\$\{VEILTAB_PORT:-\d+\}", port, rosa)
    return _named(published, "rosa", name)


def _named(service: str, pattern: str, name: str) -> str:
    return re.sub(rf"\b{pattern}\b", name, service)
