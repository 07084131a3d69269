"""Rows of both sides from the seeds of the base transfers: q_j = t_j xor (C(W_j) and s) for each row j.

Seed k gives a column by AES-128 in counter mode, from zero: the spoke sends column i of C(W) under both of its seeds,
the hub takes its own off where s_i = 1. Whatever s the hub chose, it lacks one seed of each column, so all columns that
it sees are uniform; under one set of seeds only one W may ever be sent.

Any batch can be computed by itself. It starts at a multiple of 128 rows, which are one block of the cipher, and has a
multiple of 128 rows; another one raises InvalidInputError.
"""

import hashlib

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.oblivious.base_transfers import SEED_BYTES
from veiltab.common.oblivious.bits import transposed
from veiltab.common.oblivious.code import COLUMNS, Bits, encode

EXTRA_ROWS = 128
"""Random rows before those of the slots; they mask what the check shows of all others."""

BATCH_ROWS = 65_536
"""Rows of a message of columns, but for the last one."""

BLOCK_ROWS = 128
"""The number of rows of a batch, and where it starts, are multiples of this."""


def columns(seeds: Bits, words: Bits, start: int) -> Bits:
    """Return the columns U_i that a spoke sends: column i of C(W), under k_(i,0) and k_(i,1).

    Args:
        seeds: the spoke's, shape (512, 2, 16).
        words: rows of W, shape (rows, 9).
        start: the number of the first one.

    Returns:
        Shape (512, rows // 8).
    """
    encoded = transposed(encode(words))
    return _under(seeds[:, 1], _under(seeds[:, 0], encoded, start), start)


def received_columns(message: bytes, rows: int) -> Bits:
    """Return the columns of a message, shape (512, rows // 8).

    Raises:
        IntegrityError: the message has another length than those of so many rows.
    """
    if len(message) != COLUMNS * rows // 8:
        raise IntegrityError(f"the message has {len(message)} bytes, not {COLUMNS * rows // 8}", where="columns")
    return np.frombuffer(message, np.uint8).reshape(COLUMNS, rows // 8)


def hub_columns(seeds: Bits, choices: Bits, received: Bits, start: int) -> Bits:
    """Return the columns Q_i of the hub, whose rows are q_j: k_(i, s_i) xor s_i U_i.

    Args:
        seeds: the hub's, shape (512, 16).
        choices: s, shape (64,).
        received: the columns U_i, shape (512, rows // 8).
        start: the number of the first row.

    Returns:
        Shape (512, rows // 8).
    """
    bits = np.unpackbits(choices, bitorder="little")[:, None]
    return _under(seeds, received * bits, start)


def own_columns(seeds: Bits, start: int, rows: int) -> Bits:
    """Return the columns T_i of the spoke, whose rows are t_j: k_(i,0) alone.

    Args:
        seeds: the spoke's, shape (512, 2, 16).
        start: the number of the first row.
        rows: how many.

    Returns:
        Shape (512, rows // 8).
    """
    return _under(seeds[:, 0], np.zeros((COLUMNS, rows // 8), np.uint8), start)


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


def _under(seeds: Bits, plain: Bits, start: int) -> Bits:
    """Return columns xor the key stream of the seed of each, from a row on."""
    block, rest = divmod(start, BLOCK_ROWS)
    if rest or plain.shape[1] % (BLOCK_ROWS // 8):
        # Other rows would get the same key stream.
        raise InvalidInputError(f"a batch from row {start} does not consist of blocks of {BLOCK_ROWS} rows")
    padded, counter = np.empty_like(plain), modes.CTR(block.to_bytes(16, "big"))
    for seed, before, after in zip(seeds, plain, padded, strict=True):
        Cipher(algorithms.AES(seed.tobytes()), counter).encryptor().update_into(before, after)
    return padded
