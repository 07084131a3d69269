"""The check that a spoke encoded its words: sums of its columns, of which it learns the coefficients afterwards.

The hub tosses a challenge c after all columns are durable, once a session. A sum is GHASH of a column, which is linear:
an honest spoke has sum(Q_i) = sum(T_i) xor s_i (bit i of C, of the sums of the columns of W). A spoke whose rows are no
code words outside of a set M of columns passes with probability 2^-|M|, or in all at most 2^-40: see `holds`.
"""

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from veiltab.common.errors import IntegrityError
from veiltab.common.oblivious.bits import transposed
from veiltab.common.oblivious.code import COLUMNS, WORD_BYTES, Bits, encode

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
    """

    def __init__(self, challenge: bytes, columns: int) -> None:
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

    A spoke that put V in place of C(W) passes if it names a set M of columns and their bits of s, and outside of M each
    row of V is a code word, but with probability 2^-40: |M| > 40 passes with 2^-41; else let one challenge meet two s
    that are independent. Where both pass, the sums of V are a code word's on the columns in which the two differ,
    which are a random half of those outside of M: by chance with eps = (rows / 128) 2^-128. A row that is no code word
    outside of M is none on the half with 3/8. So an answer passes with (8 eps / 3)^(1/2), 2^-56 at a million rows.

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
    # A sum is a column of 128 bits: so the code acts on these as on rows of W.
    combined = transposed(encode(transposed(parts[COLUMNS:])))
    chosen = np.unpackbits(choices, bitorder="little")[:, None]
    return bool(np.array_equal(sums, parts[:COLUMNS] ^ combined * chosen))
