"""The check: sums by plain integers, what an honest spoke passes and another one does not, and what it shows."""

from collections.abc import Sequence
from functools import cache
from itertools import product
from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.common.oblivious.plain import Leg, ghash, people, uniform
from veiltab.common.errors import IntegrityError
from veiltab.common.oblivious.bits import transposed
from veiltab.common.oblivious.code import COLUMNS, Bits, encode
from veiltab.common.oblivious.extension import EXTRA_ROWS, KeyStreams, columns, hub_columns, own_columns
from veiltab.common.oblivious.linear_check import CHECK_BYTES, Sums, holds

CHALLENGE = bytes(range(16))
ROWS = 384


def sums(of: Bits, challenge: bytes = CHALLENGE) -> Bits:
    made = Sums(challenge, len(of))
    made.feed(of)
    return made.finish()


class Spoke:
    """A spoke of 384 rows, and what a hub has of it for every s."""

    def __init__(self) -> None:
        self.seeds, self.words = uniform(COLUMNS, 2, 16, seed=1), uniform(ROWS, 9, seed=2)
        self.sent = self.columns(self.words)
        self.own = own_columns(KeyStreams(self.seeds[:, 0]), ROWS)
        self.answer = np.concatenate([sums(self.own), sums(transposed(self.words))])

    def columns(self, words: Bits) -> Bits:
        return columns(KeyStreams(self.seeds[:, 0]), KeyStreams(self.seeds[:, 1]), words)

    def passes(self, trials: int, *, sent: Bits | None = None, answer: Bits | None = None) -> int:
        """Return how often the check holds for hubs with independent s."""
        received = self.sent if sent is None else sent
        said = (self.answer if answer is None else answer).tobytes()
        every = [
            sums(hub_columns(KeyStreams(self.seeds[:, bit]), np.full(64, 255 * bit, np.uint8), received))
            for bit in range(2)
        ]
        passed = 0
        for seed in range(trials):
            choices = uniform(64, seed=1000 + seed)
            chosen = np.unpackbits(choices, bitorder="little")[:, None]
            passed += holds(np.where(chosen, every[1], every[0]), said, choices)
        return passed


@pytest.fixture(scope="module")
def spoke() -> Spoke:
    return Spoke()


@pytest.mark.parametrize("length", [16, 32, 4096])
def test_a_sum_is_ghash_by_plain_integers(length: int) -> None:
    of = uniform(3, length)
    assert [row.tobytes() for row in sums(of)] == [ghash(CHALLENGE, column.tobytes()) for column in of]
    assert not (sums(of) == sums(of, bytes(16))).all(axis=1).any()


def test_known_sums(spoke: Spoke) -> None:
    assert [row.tobytes().hex() for row in spoke.answer[[0, 511, 512]]] == [
        "2ed34384ebd5e96ae2f5d1d3eb692938",
        "b330ce68f664dadf4683bed9628fe0c9",
        "e90a0d6f35addff29b59ba60db65a74e",
    ]


def test_batches_have_the_sum_of_the_whole() -> None:
    whole, made = uniform(5, 640), Sums(CHALLENGE, 5)
    for part in (whole[:, :16], whole[:, 16:48], whole[:, 48:]):
        made.feed(part)
    assert np.array_equal(made.finish(), sums(whole))


def test_an_honest_spoke_passes_whatever_the_hub_chose(spoke: Spoke) -> None:
    assert spoke.passes(1000) == 1000


def test_a_whole_leg_passes() -> None:
    leg = Leg(ids=people(0, 5))
    answer = np.concatenate([sums(own_columns(leg.streams[0], EXTRA_ROWS + leg.m)), sums(transposed(leg.words))])
    hub = sums(hub_columns(KeyStreams(leg.hub_seeds), leg.choices, leg.sent()))
    assert holds(hub, answer.tobytes(), leg.choices)
    assert not holds(hub ^ np.uint8(1), answer.tobytes(), leg.choices)
    assert not holds(hub, answer.tobytes(), leg.choices ^ np.uint8(1))


def bounds(trials: int, chance: float, alpha: float = 1e-9) -> tuple[int, int]:
    """Return the counts between which a binomial one is, but for alpha on each side."""
    laws = np.cumsum([comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(trials + 1)])
    return int(np.searchsorted(laws, alpha)), int(np.searchsorted(laws, 1 - alpha))


@pytest.mark.parametrize("changed", [1, 2, 3, 6])
def test_a_spoke_that_changes_columns_passes_with_a_half_for_each(spoke: Spoke, changed: int) -> None:
    sent = spoke.sent.copy()
    sent[511 - 85 * np.arange(changed), 20] ^= 1
    low, high = bounds(400, 2**-changed)
    assert low <= spoke.passes(400, sent=sent) <= high
    assert high < 400


def test_a_row_halfway_between_two_code_words_never_passes(spoke: Spoke) -> None:
    one, other = encode(spoke.words[200:201])[0], encode(uniform(1, 9))[0]
    differ = np.flatnonzero(np.unpackbits(one ^ other, bitorder="little"))
    sent = spoke.sent.copy()
    sent[differ[::2], 200 // 8] ^= 1 << 200 % 8
    assert spoke.passes(200, sent=sent) == 0


@pytest.mark.parametrize("lie", ["a column of another", "a shifted batch", "other words", "all sums zero", "a byte"])
def test_what_is_not_the_spokes_own_is_refused(spoke: Spoke, lie: str) -> None:
    sent, answer = spoke.sent.copy(), spoke.answer.copy()
    match lie:
        case "a column of another":
            sent[:100] = sent[1:101]
        case "a shifted batch":
            sent[:, 16:32] = spoke.columns(spoke.words[np.r_[:256, 128:256]])[:, 32:]
        case "other words":
            answer[COLUMNS:] = sums(transposed(uniform(ROWS, 9, seed=9)))
        case "all sums zero":
            answer[:] = 0
        case _:
            answer[COLUMNS + 5, 3] ^= 1
    assert spoke.passes(50, sent=sent, answer=answer) == 0


@pytest.mark.parametrize("length", [0, 15, 32])
def test_a_challenge_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(IntegrityError, match="not 16"):
        Sums(bytes(length), 1)


@pytest.mark.parametrize("length", [0, CHECK_BYTES - 1, CHECK_BYTES + 16])
def test_an_answer_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(IntegrityError, match="not 9344"):
        holds(uniform(COLUMNS, 16), bytes(length), uniform(64))


def rank(rows: Bits) -> int:
    """Return the rank of a matrix of bits over GF(2)."""
    basis = dict[int, int]()
    for row in rows:
        rest = int.from_bytes(row.tobytes(), "little")
        while rest and rest.bit_length() in basis:
            rest ^= basis[rest.bit_length()]
        if rest:
            basis[rest.bit_length()] = rest
    return len(basis)


def test_the_extra_rows_mask_all_that_a_sum_shows() -> None:
    """Sums of the 128 columns that have one bit, in an extra row, are independent: so any sum is uniform."""
    one_bit = np.packbits(np.eye(128, dtype=np.uint8), axis=1, bitorder="little")
    assert rank(sums(np.pad(one_bit, ((0, 0), (0, 32))))) == 128
    assert rank(sums(np.pad(one_bit[:100], ((0, 0), (0, 32))))) == 100


PAIRS = tuple(product(range(2), repeat=2))


@cache
def coins() -> Bits:
    """Return all 2^19 throws of 19 coins: a row a coin."""
    return np.stack([np.arange(2**19, dtype=np.uint32) >> coin & 1 for coin in range(19)]).astype(np.uint8)


def toy_law(
    table: Sequence[int], s: Sequence[int], challenges: Sequence[Sequence[int]], extra: int
) -> NDArray[np.uint32]:
    """Return the law of what the hub sees: the views under all 2^19 coins, in order.

    A toy has one extra row and two slots of one bit each, a code that repeats it in three columns, and ideal streams.
    Coins are the bit of the extra row and both streams of each column, of which the hub has the one that it chose.
    """
    words = np.concatenate([coins()[:1], np.repeat(np.array(table, np.uint8), 2**19).reshape(2, -1)])
    streams = coins()[1:].reshape(3, 2, 3, -1)
    view = [streams[:, 0] ^ streams[:, 1] ^ words, streams[range(3), s]]
    for challenge in challenges:
        weighted = np.concatenate([words[None], streams[:, 0]]) * np.array([extra, *challenge], np.uint8)[:, None]
        view.append(np.bitwise_xor.reduce(weighted, axis=1))
    seen = np.zeros(2**19, np.uint32)
    for bits in np.concatenate([part.reshape(-1, 2**19) for part in view]):
        seen = seen << 1 | bits
    return np.sort(seen)


def are_equal(s: Sequence[int], challenges: Sequence[Sequence[int]], extra: int = 1) -> bool:
    """Whether a hub sees the same whatever words the table of the spoke makes; the extra row counts `extra` times."""
    first, *others = (toy_law(table, s, challenges, extra) for table in PAIRS)
    return all(np.array_equal(first, other) for other in others)


@pytest.mark.parametrize("s", [(0, 0, 1), (1, 1, 1)])
def test_a_hub_sees_the_same_whatever_the_spokes_table_is(s: Sequence[int]) -> None:
    assert are_equal(s, [(1, 1)])


@pytest.mark.long
@pytest.mark.parametrize("s", list(product(range(2), repeat=3)))
def test_a_hub_sees_the_same_for_every_choice_and_challenge(s: Sequence[int]) -> None:
    assert all(are_equal(s, [challenge]) for challenge in PAIRS)


def test_without_extra_rows_or_with_two_challenges_a_hub_sees_the_table() -> None:
    assert not are_equal((0, 0, 1), [(1, 1)], extra=0)
    assert not are_equal((0, 0, 1), [(1, 1), (1, 0)])
