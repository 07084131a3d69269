"""Rows and values of both sides: by definition, by known answers, and with one person more or less."""

import hashlib
from itertools import pairwise

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tests.common.oblivious.plain import KEY, SESSION, Leg, as_list, code_word, people
from veiltab.common.errors import IntegrityError
from veiltab.common.oblivious.bits import transposed
from veiltab.common.oblivious.code import COLUMNS, Bits
from veiltab.common.oblivious.extension import (
    EXTRA_ROWS,
    KeyStreams,
    columns,
    hub_columns,
    own_columns,
    received_columns,
)
from veiltab.common.oblivious.function import digests, values
from veiltab.common.oblivious.store import slots

FIVE = Leg(ids=(b"Ann", b"Bea", "Zoë".encode(), b"17", b""))


def short(value: bytes | Bits) -> str:
    return hashlib.sha256(bytes(value)).hexdigest()[:16]


def test_known_answers() -> None:
    """Changed in any bit, no two versions would join."""
    whole = [FIVE.words, FIVE.sent(), FIVE.hub_rows(), FIVE.own_rows()]
    assert [short(each.tobytes()) for each in whole] == [
        "92b75382dfa2dc5c",
        "1cb3ebae8bb98893",
        "7915b133c1456c73",
        "69e1d3a8b0f994e6",
    ]
    assert [each.hex() for each in FIVE.own_values(FIVE.ids)] == [
        "b88fd1ee26b8a34abe04226c608108ba",
        "60a922758082b3017e58cfe2db78990c",
        "b4e7e8ef6e2bcb57ae294ac6894c21f6",
        "4e3e724839f9143c1b3a3cf3bc0003a9",
        "3b4650fa820b8d4b92be08b6959ae6b0",
    ]
    assert FIVE.hub_values(FIVE.ids) == FIVE.own_values(FIVE.ids)


def test_rows_are_those_of_the_definition() -> None:
    """t_j by single bits of the key streams, and q_j = t_j xor (C(W_j) and s)."""
    hub, own, words = FIVE.hub_rows(), FIVE.own_rows(), FIVE.words
    length = len(words) // 8
    streams = [
        Cipher(algorithms.AES(seed.tobytes()), modes.CTR(bytes(16))).encryptor().update(bytes(length))
        for seed in FIVE.seeds[:, 0]
    ]
    s = int.from_bytes(FIVE.choices.tobytes(), "little")
    for j in (0, 1, 127, 128, 5000, len(words) - 1):
        t = sum((streams[i][j // 8] >> j % 8 & 1) << i for i in range(COLUMNS))
        assert int.from_bytes(own[j].tobytes(), "little") == t
        code = int.from_bytes(code_word(words[j].tobytes()), "little")
        assert int.from_bytes(hub[j].tobytes(), "little") == t ^ (code & s)


def test_a_value_is_that_of_the_definition() -> None:
    own, of = FIVE.own_rows(), digests(FIVE.ids, KEY)
    for value, each, each_id, places in zip(FIVE.own_values(FIVE.ids), of, FIVE.ids, slots(of, FIVE.m), strict=True):
        assert each.tobytes() == hashlib.blake2b(each_id, key=KEY).digest()
        total = np.bitwise_xor.reduce(own[places + EXTRA_ROWS], axis=0)
        block = total.tobytes() + each.tobytes()
        assert value == hashlib.blake2b(block, digest_size=16, person=SESSION[:16]).digest()


def test_both_sides_have_the_same_value_of_every_common_id_and_of_no_other() -> None:
    leg = Leg(ids=people(0, 9000))
    asked = people(4000, 13_000)
    hub, own = leg.hub_values(asked), leg.own_values(leg.ids)
    assert hub[:5000] == own[4000:]
    assert not set(hub[5000:]) & {*own, *leg.own_values(asked[5000:])}
    other = values(leg.hub_rows(), digests(asked, KEY), bytes(32), leg.choices)
    assert not set(as_list(other)) & set(own)


def test_batches_are_parts_of_the_whole_and_no_two_are_under_the_same_key_stream() -> None:
    whole, (first, second), own, hub = FIVE.sent(), FIVE.streams, FIVE.streams[0], KeyStreams(FIVE.hub_seeds)
    for start, stop in pairwise([0, 128, 136, 4096, EXTRA_ROWS + FIVE.m]):
        part = slice(start // 8, stop // 8)
        sent = columns(first, second, FIVE.words[start:stop])
        assert np.array_equal(sent, whole[:, part])
        received = received_columns(sent.tobytes(), stop - start)
        assert np.array_equal(transposed(hub_columns(hub, FIVE.choices, received)), FIVE.hub_rows()[start:stop])
        assert np.array_equal(transposed(own_columns(own, stop - start)), FIVE.own_rows()[start:stop])


@pytest.mark.parametrize("length", [0, 64 * 128 - 1, 64 * 128 + 1, 64 * 256])
def test_columns_of_another_length_are_refused(length: int) -> None:
    assert received_columns(bytes(64 * 128), 128).shape == (COLUMNS, 16)
    with pytest.raises(IntegrityError, match="not 8192"):
        received_columns(bytes(length), 128)


def test_a_byte_that_changed_on_the_way_changes_rows_of_the_hub_where_it_chose() -> None:
    damaged = FIVE.sent()
    damaged[:8, 100] ^= 0xFF
    changed = np.flatnonzero((FIVE.hub_rows() != FIVE.hub_rows(damaged)).any(axis=1))
    assert changed.tolist() == list(range(800, 808))
    assert (FIVE.hub_rows() ^ FIVE.hub_rows(damaged))[800, 0] == FIVE.choices[0]


def test_one_person_more_or_less_changes_no_match_but_its_own() -> None:
    """The hub asks for everybody, three times over and in any order; the spoke's table differs in one person."""
    everybody = people(0, 9400)
    whole = Leg(ids=everybody[:9300])
    hub = set(whole.hub_values(everybody))
    matches = {each for each, value in zip(whole.ids, whole.own_values(whole.ids), strict=True) if value in hub}
    assert matches == set(whole.ids)
    for gone in (0, 17, 9299):
        less = Leg(ids=whole.ids[:gone] + whole.ids[gone + 1 :])
        there = less.hub_values(everybody)
        assert less.left_out == 0
        # A value follows from the id and the seeds: no other id of the spoke has a part in it.
        own = less.own_values(whole.ids)
        assert own == whole.own_values(whole.ids)
        assert [one == other for one, other in zip(own, there, strict=False)] == [
            place != gone for place in range(9300)
        ]
