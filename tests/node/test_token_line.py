import pytest

from tests.common.collection.rounds import ID, OTHER_ID
from tests.conftest import refuses
from veiltab.common.errors import InvalidInputError
from veiltab.node.answers.token_line import TokenLine, token_line

TOKEN = "0" * 32


@pytest.mark.parametrize(
    ("text", "stratum"),
    [
        (TOKEN, None),
        (f" {TOKEN} \r\n", None),
        (f"north,{TOKEN}", "north"),
        (f"everyone,{TOKEN}", None),
        (f"{ID},north,{TOKEN}\n", "north"),
        (f"{ID},everyone,{TOKEN}", None),
        (f'{ID},"north, by the sea",{TOKEN}', "north, by the sea"),
    ],
)
def test_a_token_is_the_last_field_of_its_line(text: str, stratum: str | None) -> None:
    assert token_line(text, ID) == TokenLine(token=TOKEN, stratum=stratum)


@pytest.mark.parametrize(
    "text",
    ["", "\n", "round,stratum,token", f"{TOKEN}\n{TOKEN}", f"stratum,token\nnorth,{TOKEN}", f"1,{ID},north,{TOKEN}"],
)
def test_anything_but_one_line_is_refused(text: str) -> None:
    with refuses(InvalidInputError, where="token") as refusal:
        token_line(text, ID)
    assert TOKEN not in str(refusal.value)


def test_a_token_of_another_round_is_refused() -> None:
    with refuses(InvalidInputError, where="round 00000000000000000000000000000001") as refusal:
        token_line(f"{OTHER_ID},north,{TOKEN}", ID)
    assert TOKEN not in str(refusal.value)
