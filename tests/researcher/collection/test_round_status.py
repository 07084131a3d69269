"""What a server says of a round is taken for the round that was asked about, or refused."""

from dataclasses import replace
from typing import Any

import pytest

from tests.common.collection.rounds import ID, OTHER_ID, PLAIN, plain_round, study
from veiltab.common.collection.round import Round, RoundState
from veiltab.common.collection.round_messages import round_to_proto
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.researcher.collection.rounds_client import round_status_from_proto
from veiltab.v1 import collection_pb2

STUDY = study(PLAIN)


def answer(spec: Round, **changes: Any) -> collection_pb2.GetRoundStatusResponse:  # noqa: ANN401 - any field
    """Return what a server says."""
    fields: dict[str, Any] = {"state": collection_pb2.ROUND_STATE_OPEN, "enrolled": [5], "reports": [2]} | changes
    return collection_pb2.GetRoundStatusResponse(round=round_to_proto(spec), **fields)


def test_the_status_of_the_round_that_was_asked_about() -> None:
    status = round_status_from_proto(answer(plain_round()), ID, STUDY)
    assert (status.round, status.state, status.closed) == (plain_round(), RoundState.OPEN, 0)
    assert (status.enrolled, status.reports) == ((5,), (2,))


def test_another_round_is_refused() -> None:
    with pytest.raises(IntegrityError, match=f"round {ID}: the server described another round"):
        round_status_from_proto(answer(plain_round(round_id=OTHER_ID)), ID, STUDY)


def test_a_round_of_another_study_file_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="of another study file"):
        round_status_from_proto(answer(plain_round(study_digest="ab" * 32)), ID, STUDY)


@pytest.mark.parametrize("changes", [{"enrolled": []}, {"enrolled": [5, 5]}, {"reports": []}, {"reports": [1, 2, 3]}])
def test_a_round_that_the_study_cannot_have_is_refused(changes: dict[str, list[int]]) -> None:
    with pytest.raises(IntegrityError, match="that the study cannot have"):
        round_status_from_proto(answer(plain_round(), **changes), ID, STUDY)


def test_a_round_of_another_number_of_categories_is_refused() -> None:
    question = STUDY.question(plain_round().question)
    attribute = replace(question.attribute, categories=question.attribute.categories[:-1])
    fewer = replace(STUDY, questions=(replace(question, attribute=attribute),))
    with pytest.raises(IntegrityError, match="that the study cannot have"):
        round_status_from_proto(answer(plain_round()), ID, fewer)


@pytest.mark.parametrize("closed", [-1, -(2**63)])
def test_a_time_before_1970_is_refused(closed: int) -> None:
    with pytest.raises(InvalidInputError):
        round_status_from_proto(answer(plain_round(), closed=closed), ID, STUDY)
