from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from veiltab.common.core import sampling
from veiltab.common.core.sampling import ascending_pieces, sample_by_priority, sample_indices
from veiltab.common.errors import InvalidInputError

KEY = bytes(range(32))


def priority(token: bytes, key: bytes) -> int:
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305 - single blocks: a permutation
    return int.from_bytes(encryptor.update(token) + encryptor.finalize(), "big")


def reference(tokens: list[bytes], m: int, key: bytes) -> list[int]:
    return sorted(range(len(tokens)), key=lambda row: priority(tokens[row], key))[:m]


def matrix(tokens: list[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(tokens), np.uint8).reshape(-1, 16)


def counted(n: int) -> list[bytes]:
    return [row.to_bytes(16, "big") for row in range(n)]


def test_fips_197_vector_orders_as_the_block_cipher_does() -> None:
    # FIPS 197, appendix C.3: the ciphertext of this block under KEY begins with 8ea2.
    block = bytes.fromhex("00112233445566778899aabbccddeeff")
    assert f"{priority(block, KEY):032x}" == "8ea2b7ca516745bfeafc49904b496089"
    others = counted(500)
    rank = sum(priority(token, KEY) < 0x8EA2B7CA516745BFEAFC49904B496089 for token in others)
    rows = sample_by_priority(matrix([block, *others]), 501, KEY)
    assert rows.tolist().index(0) == rank


@settings(deadline=None)
@given(st.sets(st.binary(min_size=16, max_size=16), min_size=1, max_size=60), st.binary(min_size=32, max_size=32))
def test_any_sample_is_the_head_of_the_sorted_priorities(tokens: set[bytes], key: bytes) -> None:
    listed = sorted(tokens)
    order = reference(listed, len(listed), key)
    for m in {1, (len(listed) + 1) // 2, len(listed)}:
        rows = sample_by_priority(matrix(listed), m, key)
        assert rows.tolist() == order[:m]
        assert rows.dtype == np.int64


@pytest.mark.parametrize("m", [1, 30, 3000, 9000, 10_000])
def test_thresholds_drop_no_row(m: int) -> None:
    assert sample_indices(10_000, m, KEY).tolist() == reference(counted(10_000), m, KEY)


@pytest.mark.parametrize("n", [600_000, 1_200_000])
def test_ties_of_the_leading_32_bits_are_settled_by_the_rest(n: int) -> None:
    blocks = np.zeros((n, 2), ">u8")
    blocks[:, 1] = np.arange(n)
    encrypted = Cipher(algorithms.AES(KEY), modes.ECB()).encryptor().update(blocks.tobytes())  # noqa: S305 - single blocks: a permutation
    words = np.frombuffer(encrypted, ">u8").reshape(n, 2).astype(np.uint64)
    leading = np.sort(words[:, 0] >> np.uint64(32))
    assert np.count_nonzero(leading[1:] == leading[:-1]) > 20
    assert np.array_equal(sample_indices(n, n, KEY), np.lexsort((words[:, 1], words[:, 0])))


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 4), st.data())
def test_equal_tokens_beyond_the_threshold_still_give_m_rows(copies: int, data: st.DataObject) -> None:
    # Copies of the token of greatest priority leave too few rows under the threshold.
    key = data.draw(st.binary(min_size=32, max_size=32))
    some = counted(300)
    last = max(some, key=lambda token: priority(token, key))
    tokens = [*some, *[last] * (300 * copies)]
    assert sample_by_priority(matrix(tokens), 400, key).tolist() == reference(tokens, 400, key)


def test_a_row_that_begins_with_all_ones_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "leading", lambda blocks, _=None: np.full(len(blocks), 2**64 - 1, np.uint64))
    assert sample_indices(100, 100, KEY).tolist() == reference(counted(100), 100, KEY)


@pytest.mark.parametrize("deviations", [0, 8])
@pytest.mark.parametrize(
    ("n", "m"), [(1, 1), (2, 1), (10_000, 1), (10_000, 30), (200_000, 100_000), (99_999, 99_998), (500, 500)]
)
def test_the_same_rows_come_in_ascending_order(
    monkeypatch: pytest.MonkeyPatch, n: int, m: int, deviations: int
) -> None:
    monkeypatch.setattr(sampling, "_DEVIATIONS", deviations)
    pieces = list(ascending_pieces(n, m, KEY))
    assert np.concatenate(pieces).tolist() == sorted(sample_indices(n, m, KEY).tolist())
    assert max(map(len, pieces)) <= 2**16


def test_priorities_that_begin_alike_are_compared_wholly() -> None:
    pairs = [(1, 9), (7, 2), (7, 3), (7, 4), (8, 0)]
    blocks = np.array(pairs, ">u8").view(np.uint8)
    assert sampling._up_to(blocks, (7, 3)).tolist() == [True, True, True, False, False]


@pytest.mark.parametrize(("n", "m"), [(5, 0), (5, 6), (0, 1)])
def test_rows_in_ascending_order_are_no_more_than_there_are(n: int, m: int) -> None:
    with pytest.raises(InvalidInputError, match=f"cannot draw {m} of {n} rows"):
        list(ascending_pieces(n, m, KEY))


def test_known_answers() -> None:
    assert sample_indices(1000, 8, KEY).tolist() == [599, 186, 200, 219, 708, 732, 29, 104]
    tokens = matrix([row.to_bytes(8, "big") + bytes(8) for row in range(1000)])
    assert sample_by_priority(tokens, 8, KEY).tolist() == [783, 581, 56, 997, 550, 117, 130, 354]


def test_indices_are_their_own_tokens_and_files_serve_as_well(tmp_path: Path) -> None:
    n, m = 70_000, 500
    tokens = matrix(counted(n))
    tokens.tofile(tmp_path / "tokens")
    mapped = np.memmap(tmp_path / "tokens", np.uint8, "r").reshape(n, 16)
    rows = sample_indices(n, m, KEY)
    assert np.array_equal(rows, sample_by_priority(tokens, m, KEY))
    assert np.array_equal(rows, sample_by_priority(mapped, m, KEY))


@pytest.mark.parametrize(("n", "m"), [(5, 0), (5, 6), (0, 1), (5, -1), (2**32 + 1, 1)])
def test_sample_of_another_size_is_refused_with_its_numbers(n: int, m: int) -> None:
    with pytest.raises(InvalidInputError, match=f"cannot draw {m} of {n} rows"):
        sample_indices(n, m, KEY)


def test_tokens_and_keys_of_another_form_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="16 bytes"):
        sample_by_priority(np.zeros((3, 15), np.uint8), 1, KEY)
    with pytest.raises(InvalidInputError, match="the key has"):
        sample_indices(5, 1, KEY[:16])
