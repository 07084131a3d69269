import pytest

from tests.common.study.other import FULL
from veiltab.common.command.parties import desk_of, parties_of, serving_parties
from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.study.file import study_from_bytes

STUDY = study_from_bytes(FULL, "study.toml")


def test_every_party_of_the_file_is_listed_and_those_that_serve_have_endpoints() -> None:
    listed = {str(party): endpoint for party, endpoint in parties_of(STUDY).items()}
    serving = {
        "server cloud": "localhost:7400",
        "curator alice": "localhost:7401",
        "curator bob": "localhost:7402",
        "researcher rosa": "localhost:7410",
        "researcher rita": "localhost:7411",
    }
    assert listed == serving | dict.fromkeys(("analyst ana", "analyst ari", "node fleet"))
    assert {str(party): endpoint for party, endpoint in serving_parties(STUDY).items()} == serving


@pytest.mark.parametrize("role", Role)
def test_researchers_and_their_analysts_have_a_desk_and_nobody_else(role: Role) -> None:
    for party in (party for party in parties_of(STUDY) if party.role is role):
        if role is Role.RESEARCHER:
            assert desk_of(STUDY, party) == party
        elif role is Role.ANALYST:
            assert desk_of(STUDY, party) == Party(study="survey", role=Role.RESEARCHER, name="rosa")
        else:
            with pytest.raises(InvalidInputError, match=f"{party} asks no researcher's service"):
                desk_of(STUDY, party)


def test_an_analyst_that_the_study_does_not_name_has_no_desk() -> None:
    with pytest.raises(InvalidInputError, match=r"no analyst 'rosa'.*Analysts: ana, ari"):
        desk_of(STUDY, Party(study="survey", role=Role.ANALYST, name="rosa"))
