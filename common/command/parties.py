"""The parties of a study, as its file lists them."""

from typing import assert_never

from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.study.file import Member, Study


def parties_of(study: Study) -> dict[Party, str | None]:
    """Return the parties of a study with their endpoints; analysts and nodes listen nowhere and have None."""
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
    return parties


def serving_parties(study: Study) -> dict[Party, str]:
    """Return the parties of a study that listen, with their endpoints."""
    return {party: endpoint for party, endpoint in parties_of(study).items() if endpoint is not None}


def parties_in(study: Study, *roles: Role) -> list[Party]:
    """Return the parties of a study in some roles."""
    return [party for party in parties_of(study) if party.role in roles]


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
        case Role.CURATOR | Role.SERVER | Role.NODE:
            raise InvalidInputError(f"{party} asks no researcher's service", where=f"study {study.id}")
        case _:
            assert_never(party.role)
