"""Base transfers: who has which seeds, what is refused, and what must not show."""

import hashlib
from collections import Counter
from itertools import chain

import numpy as np
import pytest

from tests.common.oblivious.plain import SESSION, stream, uniform
from tests.conftest import refuses
from veiltab.common.errors import IntegrityError
from veiltab.common.oblivious import base_transfers, ristretto
from veiltab.common.oblivious.base_transfers import ANSWER_BYTES, CHOICES_BYTES, Choices, answer
from veiltab.common.oblivious.code import COLUMNS
from veiltab.common.oblivious.extension import pass_seeds

HUB = Choices(session=SESSION, source=stream(1))
MESSAGE = HUB.message()
ANSWER, SEEDS = answer(MESSAGE, SESSION, stream(2))
CHOSEN = np.unpackbits(HUB.bits, bitorder="little")
NOT_CANONICAL = b"\xf3" + b"\xff" * 30 + b"\x7f"


def digest(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()[:32]


def mapped(i: int, bit: int, element: bytes) -> bytes:
    head = b"veiltab join base" + SESSION + i.to_bytes(2, "big") + bytes([bit])
    return ristretto.hashed(hashlib.sha512(head + element).digest())


def test_known_answers() -> None:
    assert [digest(each) for each in (HUB.bits.tobytes(), MESSAGE, ANSWER, SEEDS.tobytes())] == [
        "17f30354ddfd5a646697833f79620a7c",
        "abf31c5c7ca36985de58481dfa4cd43b",
        "2dfab8fd0d8ec09446860f6936e372de",
        "7afd876511542d9489ea761dfaa3d9b0",
    ]
    assert (len(MESSAGE), len(ANSWER)) == (CHOICES_BYTES, ANSWER_BYTES) == (32_768, 32)


def test_the_hub_has_the_seed_that_it_chose_of_each_pair_and_not_the_other() -> None:
    seeds = HUB.seeds(ANSWER)
    assert np.array_equal(seeds, SEEDS[np.arange(COLUMNS), CHOSEN])
    assert len(np.unique(SEEDS.reshape(-1, 16), axis=0)) == 2 * COLUMNS


def test_who_begins_again_with_the_same_coins_goes_on() -> None:
    again = Choices(session=SESSION, source=stream(1))
    assert again.message() == MESSAGE
    assert np.array_equal(again.seeds(ANSWER), HUB.seeds(ANSWER))
    assert np.array_equal(answer(MESSAGE, SESSION, stream(2))[1], SEEDS)


def test_seeds_are_bound_to_the_session_the_coins_and_each_element() -> None:
    assert not (answer(MESSAGE, bytes(32), stream(2))[1] == SEEDS).all(axis=2).any()
    assert not (answer(MESSAGE, SESSION, stream(3))[1] == SEEDS).all(axis=2).any()
    exchanged = MESSAGE[32:64] + MESSAGE[:32] + MESSAGE[64:]
    same = (answer(exchanged, SESSION, stream(2))[1] == SEEDS).all(axis=2)
    assert same.tolist() == [[False, False]] + [[True, True]] * (COLUMNS - 1)
    assert not (Choices(session=bytes(32), source=stream(1)).seeds(ANSWER) == HUB.seeds(ANSWER)).all(axis=1).any()


@pytest.mark.parametrize(
    "message",
    [MESSAGE[:-1], MESSAGE + bytes(32), MESSAGE[:-32] + NOT_CANONICAL, NOT_CANONICAL + MESSAGE[32:], b""],
    ids=["a byte less", "an element more", "the last one not canonical", "the first one", "empty"],
)
def test_a_spoke_refuses_what_is_not_1024_elements(message: bytes) -> None:
    with pytest.raises(IntegrityError, match="not 1024 elements of the group"):
        answer(message, SESSION, stream(2))


@pytest.mark.parametrize(
    "sent",
    [bytes(32), NOT_CANONICAL, ANSWER[:-1], ANSWER + ANSWER, b""],
    ids=["the identity", "not canonical", "a byte less", "two", "empty"],
)
def test_a_hub_refuses_an_answer_that_is_not_one_element_or_the_identity(sent: bytes) -> None:
    with refuses(IntegrityError, where="answer to the base transfers"):
        HUB.seeds(sent)


def test_a_hub_that_makes_a_product_the_identity_is_answered_like_any_other() -> None:
    one = MESSAGE[32:64]
    made = ristretto.subtracted(ristretto.IDENTITY, mapped(0, 1, one))
    _, seeds = answer(made + one + MESSAGE[64:], SESSION, stream(2))
    identity = b"veiltab join key" + SESSION + ANSWER + bytes(3) + bytes(32)
    assert seeds[0, 0].tobytes() == hashlib.sha256(identity).digest()[:16]
    assert np.array_equal(seeds[1:], SEEDS[1:])


def test_seeds_are_those_of_the_definition() -> None:
    uniform_y = np.empty(64, np.uint8)
    stream(2).fill(uniform_y.data, label=3, chunk=0)
    y = ristretto.scalar(uniform_y.tobytes())
    assert ristretto.multiple(y) == ANSWER
    for i, bit in ((0, 0), (0, 1), (300, 1), (511, 0)):
        pair = [MESSAGE[64 * i + 32 * one :][:32] for one in (bit, 1 - bit)]
        point = ristretto.multiple(y, ristretto.added(pair[0], mapped(i, 1 - bit, pair[1])))
        block = b"veiltab join key" + SESSION + ANSWER + i.to_bytes(2, "big") + bytes([bit]) + point
        assert SEEDS[i, bit].tobytes() == hashlib.sha256(block).digest()[:16]


def sums(message: bytes) -> Counter[bytes]:
    """Return what a spoke can compute of a hub's message: r_b + H(r_(1-b)) for both b of each transfer."""
    each = [message[start : start + 32] for start in range(0, len(message), 32)]
    pairs = ((i, bit, each[2 * i + bit], each[2 * i + 1 - bit]) for i in range(COLUMNS) for bit in range(2))
    return Counter(ristretto.added(element, mapped(i, 1 - bit, other)) for i, bit, element, other in pairs)


def test_a_hub_draws_a_scalar_for_each_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one scalar for all, the sums at the chosen bits are equal: the spoke reads s."""
    assert set(sums(MESSAGE).values()) == {1}
    drawn = base_transfers._scalars
    monkeypatch.setattr(base_transfers, "_scalars", lambda *of: drawn(*of)[:1] * COLUMNS)
    assert max(sums(HUB.message()).values()) == COLUMNS


def test_a_pass_has_seeds_of_its_own() -> None:
    passes = [pass_seeds(SEEDS, number) for number in (0, 1)]
    assert np.array_equal(passes[1][np.arange(COLUMNS), CHOSEN], pass_seeds(HUB.seeds(ANSWER), 1))
    every = {seed.tobytes() for seed in chain(*(some.reshape(-1, 16) for some in (SEEDS, *passes)))}
    assert len(every) == 6 * COLUMNS
    by_hand = hashlib.sha256(b"veiltab join pass" + bytes(8) + SEEDS[3, 1].tobytes()).digest()[:16]
    assert passes[0][3, 1].tobytes() == by_hand
    assert not np.array_equal(pass_seeds(uniform(1, 16), 1), pass_seeds(uniform(1, 16, seed=1), 1))
