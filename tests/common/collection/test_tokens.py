import hashlib

import pytest

from tests.common.collection.rounds import ID, OTHER_ID
from tests.conftest import refuses
from veiltab.common.collection.tokens import DIGEST_BYTES, TOKEN_BYTES, new_token, token_digest, token_of
from veiltab.common.errors import InvalidInputError

TOKEN = bytes(range(16))


def test_tokens_are_fresh_and_long_enough() -> None:
    tokens = {new_token() for _ in range(1000)}
    assert len(tokens) == 1000
    assert {len(token) for token in tokens} == {TOKEN_BYTES} == {16}


def test_a_token_is_read_back_from_its_text() -> None:
    assert token_of(TOKEN.hex()) == TOKEN


@pytest.mark.parametrize(
    "text",
    ["", "00", "0" * 31, "0" * 33, "G" * 32, "A" * 32, " " + "0" * 31, "0" * 32 + "\n", "0x" + "0" * 30, "\u0660" * 32],
)
def test_another_text_is_no_token_and_is_not_repeated(text: str) -> None:
    with refuses(InvalidInputError, where="line 7") as refusal:
        token_of(text, "line 7")
    assert not text.strip() or text not in str(refusal.value)


def test_the_server_knows_a_token_by_a_digest_of_one_round() -> None:
    assert token_digest(ID, TOKEN) == hashlib.sha256(bytes(15) + b"\x01" + TOKEN).digest()
    assert token_digest(ID, TOKEN).hex() == "3b0c3b293cce274a7a6c0d56ec925676cd0d6207eb3383cdd23d6c7e1bf3d2bd"
    assert len(token_digest(ID, TOKEN)) == DIGEST_BYTES
    assert token_digest(ID, TOKEN) != token_digest(OTHER_ID, TOKEN)


@pytest.mark.parametrize("length", [0, 15, 17, 32])
def test_a_token_of_another_length_has_no_digest(length: int) -> None:
    with pytest.raises(InvalidInputError, match=f"the token has {length} bytes, not 16"):
        token_digest(ID, bytes(length))
