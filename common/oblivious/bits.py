"""Turns matrices of bits, from columns of rows to rows of columns and back."""

import numpy as np
from numpy.typing import NDArray

from veiltab.common.oblivious.code import Bits

# Of two rows of 64 bits, a swap exchanges the upper half of each 2 s bits of one and the lower half of the other.
_SWAPS = tuple((np.uint64(s), np.uint64((2**64 - 1) // (2**s + 1))) for s in (32, 16, 8, 4, 2, 1))


def transposed(matrix: Bits) -> Bits:
    """Return the transpose of a matrix of bits; bits are numbered from the least of each byte.

    Args:
        matrix: shape (8 a, b), which are 8 a rows of 8 b bits.

    Returns:
        Shape (8 b, a).

    Source: Warren, Hacker's Delight, section 7-3, on blocks of 64 by 64 bits.
    """
    rows, width = matrix.shape
    tall, wide = -(-rows // 64), -(-width // 8)
    padded = np.zeros((64 * tall, 8 * wide), np.uint8)
    padded[:rows, :width] = matrix
    blocks = padded.view("<u8").reshape(tall, 64, wide)
    # Swaps run along the last axis, which therefore is the longer one.
    if tall > wide:
        turned = _swapped(np.ascontiguousarray(blocks.transpose(2, 1, 0)))
    else:
        turned = np.ascontiguousarray(_swapped(blocks).transpose(2, 1, 0))
    return turned.reshape(64 * wide, tall).view(np.uint8)[: 8 * width, : rows // 8]


def _swapped(blocks: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Transpose blocks of 64 by 64 bits, whose rows are along the middle axis, in place."""
    for block in blocks:
        for shift, mask in _SWAPS:
            pairs = block.reshape(-1, 2, int(shift), block.shape[-1])
            low, high = pairs[:, 0], pairs[:, 1]
            change = low >> shift
            change ^= high
            change &= mask
            high ^= change
            change <<= shift
            low ^= change
    return blocks
