"""Rows of both sides from the seeds of the base transfers: q_j = t_j xor (C(W_j) and s) for each row j.

Seed k gives a column by AES-128 in counter mode, from zero: the spoke sends column i of C(W) under both of its seeds,
the hub takes its own off where s_i = 1. Whatever s the hub chose, it lacks one seed of each column, so all columns that
it sees are uniform; under one set of seeds only one W may ever be sent.

Batches of rows follow each other: a key stream goes on where the last batch ended, so it is under no two of them.
"""

import hashlib

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from veiltab.common.errors import IntegrityError
from veiltab.common.oblivious.base_transfers import SEED_BYTES
from veiltab.common.oblivious.bits import transposed
from veiltab.common.oblivious.code import COLUMNS, Bits, encoded_columns

EXTRA_ROWS = 128
"""Random rows before those of the slots; they mask what the check shows of all others."""

BATCH_ROWS = 65_536
"""Rows of a message of columns, but for the last one."""


class KeyStreams:
    """The key stream of each column, from its first row on.

    Args:
        seeds: one a column, shape (512, 16).
    """

    def __init__(self, seeds: Bits) -> None:
        counter = modes.CTR(bytes(16))
        self._streams = [Cipher(algorithms.AES(seed.tobytes()), counter).encryptor() for seed in seeds]

    def over(self, plain: Bits) -> Bits:
        """Return the next rows of all columns, shape (512, rows // 8), each xor its key stream."""
        result = np.empty_like(plain)
        for stream, before, after in zip(self._streams, plain, result, strict=True):
            stream.update_into(before, after)
        return result


def columns(first: KeyStreams, second: KeyStreams, words: Bits) -> Bits:
    """Return the columns U_i that a spoke sends: column i of C(W), under k_(i,0) and k_(i,1).

    Args:
        words: the next rows of W, shape (rows, 9).

    Returns:
        Shape (512, rows // 8).
    """
    return second.over(first.over(encoded_columns(transposed(words))))


def received_columns(message: bytes, rows: int) -> Bits:
    """Return the columns of a message, shape (512, rows // 8).

    Raises:
        IntegrityError: the message has another length than those of so many rows.
    """
    if len(message) != COLUMNS * rows // 8:
        raise IntegrityError(f"the message has {len(message)} bytes, not {COLUMNS * rows // 8}", where="columns")
    return np.frombuffer(message, np.uint8).reshape(COLUMNS, rows // 8)


def hub_columns(streams: KeyStreams, choices: Bits, received: Bits) -> Bits:
    """Return the columns Q_i of the hub, whose rows are q_j: k_(i, s_i) xor s_i U_i.

    Args:
        streams: under k_(i, s_i).
        choices: s, shape (64,).
        received: the next rows of the columns U_i, shape (512, rows // 8).

    Returns:
        Shape (512, rows // 8).
    """
    bits = np.unpackbits(choices, bitorder="little")[:, None]
    return streams.over(received * bits)


def own_columns(streams: KeyStreams, rows: int) -> Bits:
    """Return the next rows of the columns T_i of the spoke, whose rows are t_j: k_(i,0) alone.

    Args:
        streams: under k_(i,0).
        rows: how many.

    Returns:
        Shape (512, rows // 8).
    """
    return streams.over(np.zeros((COLUMNS, rows // 8), np.uint8))


def pass_seeds(seeds: Bits, number: int) -> Bits:
    """Return the seeds of one pass of a session: SHA-256("veiltab join pass", number, seed)[:16] of each.

    Args:
        seeds: of the hub or of the spoke, shape (.., 16).
        number: of the pass; every pass has its own, and its own store.
    """
    head = b"veiltab join pass" + number.to_bytes(8, "big")
    each = (hashlib.sha256(head + seed.tobytes()).digest()[:SEED_BYTES] for seed in seeds.reshape(-1, SEED_BYTES))
    return np.frombuffer(b"".join(each), np.uint8).reshape(seeds.shape)


def pass_name(session: bytes, number: int) -> bytes:
    """Return the name of one pass of a session, 32 bytes: SHA-256(session, number).

    Args:
        session: its name, 32 bytes.
        number: of the pass.
    """
    return hashlib.sha256(session + number.to_bytes(8, "big")).digest()
