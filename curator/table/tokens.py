"""Tokens of ids: a keyed pseudorandom function that curators evaluate on whole columns, to align their tables."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from veiltab.common.core.randomness import check_key
from veiltab.common.errors import InvalidInputError
from veiltab.curator.formats.columns.arrow_buffers import string_buffers

TOKEN_LENGTH = 16
"""Bytes of a token."""

_BLOCK = 16
_BATCH = 2**16
_MORE = 17
"""Length class of a block that others follow; 0..16 are the lengths of a last block."""


def _halves(blocks: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the first and the second words of blocks of 16 bytes each, shape (2, number of blocks)."""
    return np.ascontiguousarray(blocks.astype(np.uint8).view("<u8").T)


_CLASSES, _PLACES = np.ogrid[: _MORE + 1, :_BLOCK]
_MASKS = _halves(np.where(_PLACES < _CLASSES, 0xFF, 0))
"""Which bytes of a block count, by its length class."""

_PADDING = _halves(np.where(_PLACES == _CLASSES, 0x80, 0))
"""What is put behind them."""


def tokens(ids: Any, key: bytes) -> NDArray[np.uint8]:  # noqa: ANN401 - pyarrow ships no types
    """Turn ids into tokens: token = AES-256-CMAC_key(UTF-8 bytes of the id), 128 bits.

    Equal ids have equal tokens, and without the key a token reveals nothing else about its id. CMAC is a pseudorandom
    function like a keyed hash, but its AES runs over a whole column at once: tens of nanoseconds an id, not hundreds.
    Two of n distinct ids share a token with probability about n^2 / 2^129.

    Args:
        ids: pyarrow Array or ChunkedArray of string or large_string, without nulls.
        key: the curators' 32-byte alignment key.

    Returns:
        Tokens in the order of the ids, uint8 of shape (n, 16).

    Raises:
        InvalidInputError: nulls, another type, or a key of another length.

    Source: NIST SP 800-38B (CMAC); RFC 4493, whose subkeys are the same for any block cipher of 128-bit blocks.
    """
    if str(ids.type) not in {"string", "large_string"}:
        raise InvalidInputError(f"the ids have type {ids.type}, not string or large_string")
    if ids.null_count:
        raise InvalidInputError(f"{ids.null_count} ids are missing", remedy="Drop those rows or fill in their ids.")
    cmac = _Cmac(key)
    states = np.zeros((len(ids) + 1, 2), "<u8")
    done = 0
    for text, starts, lengths in _batches(ids):
        cmac.compute(text, starts, lengths, states[done : done + len(starts) + 1])
        done += len(starts)
    return states[:-1].view(np.uint8)


def _batches(ids: Any) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]]:  # noqa: ANN401 - pyarrow ships no types
    """Yield (UTF-8 bytes of a batch of ids and a block of slack, where each id starts, how long it is)."""
    for array in getattr(ids, "chunks", [ids]):
        for start in range(0, len(array), _BATCH):
            edges, data = string_buffers(array.slice(start, _BATCH))
            text = np.empty(len(data) + _BLOCK, np.uint8)
            text[:-_BLOCK] = data
            yield text, edges[:-1], np.diff(edges)


class _Cmac:
    """AES-CMAC of many messages at once: step j encrypts block j of every message that has one."""

    def __init__(self, key: bytes) -> None:
        # CMAC chains the bare block cipher itself; nothing is encrypted in ECB mode.
        self._encrypt = Cipher(algorithms.AES(check_key(key)), modes.ECB()).encryptor()  # noqa: S305 - single blocks: a permutation
        whole = _double(self._encrypt.update(bytes(_BLOCK)))
        # To a block that is padded K2 is added, to a last one that is whole K1, to others nothing.
        subkeys = b"".join((*[_double(whole)] * _BLOCK, whole, bytes(_BLOCK)))
        self._tails = _PADDING ^ np.frombuffer(subkeys, "<u8").reshape(-1, 2).T

    def compute(
        self, text: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64], states: NDArray[np.uint64]
    ) -> None:
        """Replace zeros by the CMAC of text[start : start + length] of each message.

        The cipher wants room for another block behind what it writes, which it leaves alone: so `states` has one more.
        """
        if lengths[0] == lengths.min() == lengths.max():
            self._alike(text, int(lengths[0]), states)
            return
        blocks = np.maximum(-(-lengths // _BLOCK), 1)
        if blocks.min() == blocks.max():
            self._chain(text, starts, lengths, blocks, states)
            return
        # Longest first, so that the messages that still have a block are the leading ones.
        order = np.argsort(-blocks, kind="stable")
        ordered = np.zeros_like(states)
        self._chain(text, starts[order], lengths[order], blocks[order], ordered)
        states[order] = ordered[:-1]

    def _alike(self, text: NDArray[np.uint8], length: int, states: NDArray[np.uint64]) -> None:
        """Chain the blocks of messages of one length, which lie one after the other."""
        blocks, count = max(-(-length // _BLOCK), 1), len(states) - 1
        last = length - (blocks - 1) * _BLOCK
        # Whole blocks of each message, into the next one if it ends within a block.
        words = np.ndarray((count,), f"V{blocks * _BLOCK}", text.data, 0, (length,)).copy().view("<u8")
        words = words.reshape(count, 2 * blocks)
        for half in range(2):
            word = words[:, half - 2]
            word &= _MASKS[half][last]
            word ^= self._tails[half][last]
        for block in range(blocks):
            mixed = np.ascontiguousarray(words[:, 2 * block : 2 * block + 2])
            if block:
                mixed ^= states[:-1]
            self._encrypt.update_into(mixed.data.cast("B"), states.data.cast("B"))

    def _chain(
        self,
        text: NDArray[np.uint8],
        starts: NDArray[np.int64],
        lengths: NDArray[np.int64],
        blocks: NDArray[np.int64],
        states: NDArray[np.uint64],
    ) -> None:
        """Chain the blocks of messages that come longest first."""
        block = np.empty((len(starts), 2), "<u8")
        # Every 8 bytes of the text as a word, whatever their alignment.
        words = np.ndarray((text.size - 7,), "<u8", text.data, 0, (1,))
        active = np.searchsorted(-blocks, -np.arange(blocks[0]))
        for j, count in enumerate(active.tolist()):
            rest = np.minimum(lengths[:count] - j * _BLOCK, _MORE)
            for half in range(2):
                word = words[starts[:count] + (j * _BLOCK + 8 * half)]
                word &= _MASKS[half].take(rest)
                word ^= self._tails[half].take(rest)
                np.bitwise_xor(states[:count, half], word, out=block[:count, half])
            self._encrypt.update_into(block[:count].data.cast("B"), states[: count + 1].data.cast("B"))


def _double(block: bytes) -> bytes:
    """Multiply by x in the field of 2^128 elements (the subkey step of CMAC)."""
    value = int.from_bytes(block, "big") << 1
    return ((value ^ 0x87) & (2**128 - 1) if value >> 128 else value).to_bytes(_BLOCK, "big")
