"""The parties of a study, as its file lists them."""

from dataclasses import replace
from pathlib import Path

import click

from veiltab.common.core.texts.nearest import known_names
from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.parties.identity import Identity, Party, Role, load_identity
from veiltab.common.rpc.proxy import PROXY, AnyProxy, ProxyOption
from veiltab.common.study.file import Member, Study, load_study


def parties_of(study: Study) -> dict[Party, str | None]:
    """Return the parties of a study with their endpoints; analysts and nodes listen nowhere and have None.

    So has the relay, which serves no RPC.
    """
    roles: dict[Role, tuple[Member, ...]] = {
        Role.SERVER: (study.server,),
        Role.CURATOR: study.curators,
        Role.RESEARCHER: study.researchers,
    }
    parties: dict[Party, str | None] = {
        Party(study=study.id, role=role, name=member.name): member.endpoint
        for role, members in roles.items()
        for member in members
    }
    parties |= {Party(study=study.id, role=Role.ANALYST, name=analyst.name): None for analyst in study.analysts}
    if study.nodes is not None:
        parties[Party(study=study.id, role=Role.NODE, name=study.nodes.name)] = None
    if study.relay is not None:
        parties[Party(study=study.id, role=Role.RELAY, name=study.relay.name)] = None
    return parties


def serving_parties(study: Study) -> dict[Party, str]:
    """Return the parties of a study that listen, with their endpoints."""
    return {party: endpoint for party, endpoint in parties_of(study).items() if endpoint is not None}


def parties_in(study: Study, *roles: Role) -> list[Party]:
    """Return the parties of a study in some roles."""
    return [party for party in parties_of(study) if party.role in roles]


def named_party(study: Study, text: str, where: str) -> Party:
    """Read role/name.

    Args:
        where: the option that was given.
    """
    role, _, name = text.partition("/")
    if role not in {one.value for one in Role}:
        raise InvalidInputError(
            "the party was not written as role/name", where=where, remedy="Write it like curator/alice or server/cloud."
        )
    return Party(study=study.id, role=Role(role), name=name)


def desk_of(study: Study, party: Party) -> Party:
    """Return the researcher whose service a researcher or an analyst asks.

    Raises:
        InvalidInputError: the party asks none, or the study does not know it.
    """
    match party.role:
        case Role.RESEARCHER:
            return party
        case Role.ANALYST:
            return Party(study=study.id, role=Role.RESEARCHER, name=study.analyst(party.name).researcher)
        case Role.CURATOR | Role.SERVER | Role.NODE | Role.RELAY:
            raise InvalidInputError(f"{party} asks no researcher's service", where=f"study {study.id}")


def load_party(
    study_path: Path, identity_folder: Path, *roles: Role, name: str | None, proxy: AnyProxy = None
) -> tuple[Study, Identity]:
    """Load a study and the identity of one of its parties, in one of some roles.

    Args:
        name: of the party; None takes the one whose certificate is in the folder.

    Raises:
        InvalidInputError: the study has no such party in these roles, or the files are not its own.
    """
    study = load_study(study_path)
    parties = parties_of(study)
    candidates = [party for party in parties if party.role in roles]
    possible = [party for party in candidates if name in {None, party.name}]
    if name is None and len(possible) > 1:
        possible = [party for party in possible if (identity_folder / f"{party.name}.pem").exists()]
    if len(possible) != 1:
        kinds = " or ".join(role.value for role in roles)
        other = next((party for party in parties if party.name == name), None)
        raise InvalidInputError(
            _no_party(kinds, name) if other is None else f"{other} is no {kinds}",
            where=str(identity_folder) if name is None else "--name",
            remedy=known_names("Known", [party.name for party in candidates], name or ""),
        )
    (party,) = possible
    return study, with_way(study, load_identity(identity_folder, party.role, party.name, study=study.id), proxy)


def _no_party(kinds: str, name: str | None) -> str:
    return f"this folder has no certificate of a {kinds}" if name is None else f"no {kinds} {name!r} in the study"


def with_way(study: Study, identity: Identity, proxy: AnyProxy = None) -> Identity:
    """Return an identity whose connections go through the study's relay or a proxy, where there is one.

    Args:
        proxy: if not that of the command's options.

    Raises:
        InvalidInputError: the proxy is none.
    """
    context = click.get_current_context(silent=True)
    if proxy is None and context is not None:
        proxy = context.meta.get(PROXY)
    if isinstance(proxy, str):
        proxy = ProxyOption(url=proxy)
    if study.relay is None and proxy is None:
        return identity
    from veiltab.common.relay.forwarder import Forwarder  # noqa: PLC0415 - not for parties that are called straight

    return replace(identity, way=Forwarder(identity, study.relay, proxy))
