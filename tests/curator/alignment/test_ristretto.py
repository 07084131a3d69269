"""The group: vectors of RFC 9496, and what is refused."""

from hashlib import blake2b

import pytest

from veiltab.common.errors import IntegrityError
from veiltab.common.oblivious.ristretto import load
from veiltab.curator.alignment.private.ristretto import (
    ELEMENT_BYTES,
    are_elements,
    fresh_scalar,
    fresh_seed,
    hashed,
    is_in_balance,
    masked,
    summed,
    weighted_sum,
)

GENERATOR = bytes.fromhex("e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76")
MULTIPLES = {  # RFC 9496, A.1
    2: "6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919",
    3: "94741f5d5d52755ece4f23f044ee27d5d1ea1e2bd196b462166b16152a9d0259",
}
BAD = {  # RFC 9496, A.2, and lengths
    "the identity": "00" * 32,
    "not canonical": "00ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "above the field": "f3ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "negative": "0100000000000000000000000000000000000000000000000000000000000000",
    "no square": "26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371",
    "too short": "e2f2ae0a",
}
FROM_HASH = (  # RFC 9496, A.3
    "5d1be09e3d0c82fc538112490e35701979d99e06ca3e2b5b54bffe8b4dc772c1",
    "4d98b696a1bbfb5ca32c436cc61c16563790306c79eaca7705668b47dffe5bb6",
    "3066f82a1a747d45120d1740f14358531a8f04bbffe6a819f86dfe50f44a0a46",
)


def scalar(number: int) -> bytes:
    return number.to_bytes(32, "little")


@pytest.mark.parametrize("number", MULTIPLES)
def test_multiples_of_the_generator(number: int) -> None:
    assert masked(GENERATOR * 2, scalar(number)).hex() == MULTIPLES[number] * 2


def test_the_map_from_hashes_is_that_of_the_rfc() -> None:
    assert load().crypto_core_ristretto255_from_hash(bytes.fromhex(FROM_HASH[0] + FROM_HASH[1])).hex() == FROM_HASH[2]


def test_known_answers_of_ids() -> None:
    """SHA-512 of the domain and the id, then the map; changed in any bit, no two versions would align."""
    assert hashed([b"Ann", "Zoë".encode()]).hex() == (
        "50a556c1e5464fa08e8ae2936aa4d6b3b65787b3eebd3481a141a0d66b94f104"
        "7a93f54411d7a9cce59ae3ae793aa6fd594059c46161fca3721925455b8a2539"
    )


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_element_is_refused_anywhere_in_a_column(name: str) -> None:
    column = GENERATOR + bytes.fromhex(BAD[name])
    assert are_elements(GENERATOR * 3)
    assert not are_elements(column)
    with pytest.raises(IntegrityError, match="not an element of the group, or is the identity"):
        masked(column, scalar(2))


ORDER = 2**252 + 27742317777372353535851937790883648493


def weight(key: bytes, seed: bytes) -> int:
    return int.from_bytes(blake2b(key, key=seed).digest(), "little") % ORDER


def test_a_weighted_sum_is_that_of_multiples_of_the_generator() -> None:
    """The weights by Python's integers: their sum times the factors is one multiple of the generator."""
    seed, factors = bytes(range(32)), (1, 2, 3, 2**200 + 7)
    keys = [bytes([number]) * 32 for number in range(len(factors))]
    elements = [masked(GENERATOR, scalar(factor)) for factor in factors]
    total = sum(weight(key, seed) * factor for key, factor in zip(keys, factors, strict=True)) % ORDER
    pairs = b"".join(key + element for key, element in zip(keys, elements, strict=True))
    assert weighted_sum(pairs, seed) == masked(GENERATOR, scalar(total))
    halves = weighted_sum(pairs[:128], seed) + weighted_sum(pairs[128:], seed)
    assert summed(halves) == weighted_sum(pairs, seed)
    assert weighted_sum(pairs, bytes(32)) != weighted_sum(pairs, seed)


def test_without_elements_a_sum_is_the_identity() -> None:
    assert weighted_sum(b"", bytes(32)) == summed(b"") == bytes(32)
    assert summed(bytes(32) + GENERATOR + bytes(32)) == GENERATOR


def test_elements_are_in_balance_under_one_scalar_alone() -> None:
    seed, elements = fresh_seed(), [hashed([bytes([number])]) for number in range(5)]
    check = weighted_sum(b"".join(2 * element for element in elements), seed)
    sent = [*elements, check]
    one = fresh_scalar()
    back = [masked(element, one) for element in sent]

    def balances(returned: list[bytes]) -> bool:
        total = weighted_sum(b"".join(key + each for key, each in zip(sent, returned, strict=True)), seed)
        return is_in_balance(total, check, returned[-1], seed)

    assert balances(back)
    assert balances(sent)
    for place in range(len(sent)):
        assert not balances([*back[:place], masked(back[place], scalar(2)), *back[place + 1 :]])
    assert not balances(back[::-1])


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_element_is_in_no_sum(name: str) -> None:
    bad = bytes.fromhex(BAD[name])
    with pytest.raises(IntegrityError, match="not an element of the group, or is the identity"):
        weighted_sum(2 * GENERATOR + GENERATOR + bad, bytes(32))


def test_the_order_of_masks_does_not_matter() -> None:
    one, other = fresh_scalar(), fresh_scalar()
    elements = hashed([b"Ann", b"Bea"])
    assert one != other
    assert masked(masked(elements, one), other) == masked(masked(elements, other), one)
    assert masked(elements, one) != masked(elements, other)
    assert len(elements) == 2 * ELEMENT_BYTES
