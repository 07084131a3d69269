"""The check that a spoke encoded its words: sums of its columns, of which it learns the coefficients afterwards.

The hub tosses a challenge c after all columns are durable, once a session. A sum is GHASH of a column, which is linear:
an honest spoke has sum(Q_i) = sum(T_i) xor s_i (bit i of C, of the sums of the columns of W). A spoke whose rows are no
code words outside of a set M of columns passes with probability 2^-|M|, or in all at most 2^-40: see `holds`.
"""

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from veiltab.common.errors import IntegrityError
from veiltab.common.oblivious.code import COLUMNS, WORD_BYTES, Bits, encoded_columns

CHALLENGE_BYTES = 16
"""Length of a challenge."""

SUM_BYTES = 16
"""Length of a sum."""

WORD_COLUMNS = 8 * WORD_BYTES
"""Columns of W."""

CHECK_BYTES = (COLUMNS + WORD_COLUMNS) * SUM_BYTES
"""Length of a spoke's answer to the challenge: the sums of its 512 columns T, and of the 72 of W."""


class Sums:
    """The sums of some columns, batch by batch: GHASH under h = AES_c(0) of each.

    AES-GCM computes it: the tag of a column as associated data, xor that of zeros of the same length.

    Args:
        challenge: c, 16 bytes.
        columns: how many.

    Raises:
        IntegrityError: c, which a peer may have sent, has another length.
    """

    def __init__(self, challenge: bytes, columns: int) -> None:
        if len(challenge) != CHALLENGE_BYTES:
            raise IntegrityError(f"it has {len(challenge)} bytes, not {CHALLENGE_BYTES}", where="challenge")
        cipher = Cipher(algorithms.AES128(challenge), modes.GCM(bytes(12)))
        self._tags = [cipher.encryptor() for _ in range(columns)]
        self._zeros = cipher.encryptor()

    def feed(self, columns: Bits) -> None:
        """Take the next rows of all columns, shape (columns, rows // 8); rows are a multiple of 128."""
        for tag, column in zip(self._tags, columns, strict=True):
            tag.authenticate_additional_data(column.data)
        self._zeros.authenticate_additional_data(bytes(columns.shape[1]))

    def finish(self) -> Bits:
        """Return the sums, shape (columns, 16); nothing can be fed any more."""
        for tag in (*self._tags, self._zeros):
            tag.finalize()
        tags = np.frombuffer(b"".join(tag.tag for tag in self._tags), np.uint8).reshape(-1, SUM_BYTES)
        return tags ^ np.frombuffer(self._zeros.tag, np.uint8)


def holds(sums: Bits, answer: bytes, choices: Bits) -> bool:
    """Whether a spoke's answer fits the hub's columns; if it does not, s is lost and the session has to end.

    A spoke that put V in place of C(W) passes if its answer names a set M of columns and their bits of s rightly. With
    probability 1 - 2^-40, a spoke that passes has code words in all rows of V outside of M, and |M| is 40 at most:
    |M| > 40 passes with 2^-41. Else let one challenge c meet two independent s. If both pass, the sums of V are a code
    word's on the columns where the two differ, which c does not determine: if V is none there, this has probability
    eps = (rows / 128) 2^-128. These columns are a random half of those outside of M, and a row that is not a code word
    outside of M is none on the half with 3/8 at least. So such a row passes with (8 eps / 3)^(1/2) at most, which is
    2^-56 at a million rows.

    Args:
        sums: of the hub's columns Q, shape (512, 16).
        answer: the sums of the spoke's columns T and of those of W.
        choices: s, shape (64,).

    Raises:
        IntegrityError: the answer has another length.
    """
    if len(answer) != CHECK_BYTES:
        raise IntegrityError(f"the answer has {len(answer)} bytes, not {CHECK_BYTES}", where="answer to the challenge")
    parts = np.frombuffer(answer, np.uint8).reshape(-1, SUM_BYTES)
    combined = encoded_columns(parts[COLUMNS:])  # a sum is a column of 128 bits
    bits = np.unpackbits(choices, bitorder="little")[:, None]
    return bool(np.array_equal(sums, parts[:COLUMNS] ^ combined * bits))
