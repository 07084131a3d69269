import pytest

from veiltab.common.errors import InvalidInputError
from veiltab.server.records.noise import noise_digest, noise_secret

SECRET, SPEC = bytes(range(32)), bytes(32)
COLUMNS = {"age": b"\x01" * 32, "sex": b"\x02" * 32}


def test_the_derivation_is_part_of_the_format() -> None:
    assert (
        noise_secret(SECRET, SPEC, COLUMNS).hex() == "18bf5c7c96b1a56b3d1b347d9925621bd22faba70984a48450066e3f17bf3e71"
    )
    assert noise_digest(SECRET).hex() == "d70188c739112d030e6e351b9e90a0ca8f1cf2a5e05f7fc903b672fa0e332561"


def test_whatever_differs_gives_another_noise() -> None:
    different = [
        (bytes(32), SPEC, COLUMNS),
        (SECRET, b"\x01" * 32, COLUMNS),
        (SECRET, SPEC, {"age": b"\x02" * 32, "sex": b"\x01" * 32}),
        (SECRET, SPEC, {"age": b"\x01" * 32}),
        (SECRET, SPEC, {"agf": b"\x01" * 32, "sex": b"\x02" * 32}),
    ]
    assert len({noise_secret(SECRET, SPEC, COLUMNS), *(noise_secret(*one) for one in different)}) == 6
    assert noise_secret(SECRET, SPEC, dict(reversed(COLUMNS.items()))) == noise_secret(SECRET, SPEC, COLUMNS)


def test_a_secret_has_32_bytes() -> None:
    with pytest.raises(InvalidInputError):
        noise_secret(bytes(31), SPEC, COLUMNS)
    with pytest.raises(InvalidInputError):
        noise_digest(bytes(31))
