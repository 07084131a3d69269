"""512 base transfers: the spoke gets two seeds for each column, the hub one of the two, and nobody else any.

The spoke does not learn which ones the hub has, whatever it does: both elements of a transfer are uniform. The hub gets
one of two at most, whatever it does, as long as Diffie-Hellman is hard in ristretto255 (random oracle model).

Source: Masny, Rindal, Endemic Oblivious Transfer, 2019.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.randomness import ByteSource
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import IntegrityError
from veiltab.common.oblivious import ristretto
from veiltab.common.oblivious.code import COLUMNS, ROW_BYTES, Bits

SEED_BYTES = 16
"""Length of a seed."""

CHOICES_BYTES = 2 * COLUMNS * ristretto.ELEMENT_BYTES
"""Length of the hub's message."""

ANSWER_BYTES = ristretto.ELEMENT_BYTES
"""Length of the spoke's answer."""

CHOICES, SCALARS, OTHERS, ANSWER, WORDS = range(5)
"""Labels of what the two draw: s, the scalars x, the elements of bits not chosen; y, the words of free slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The hub's side. All of it follows from its arguments, so that a hub can go on after a crash.

    Args:
        session: its name, 32 bytes, to which all is bound.
        source: secret, uniform, fresh for each session, and the same again for the same label.
    """

    session: bytes
    source: ByteSource = field(repr=False)

    @property
    def bits(self) -> Bits:
        """s: the bit chosen in each transfer, shape (64,). A secret of the hub."""
        return _draw(self.source, CHOICES, ROW_BYTES)

    def message(self) -> bytes:
        """Return r_0 and r_1 of all transfers, 32,768 bytes.

        With b = s_i, r_(1-b) is uniform and r_b = x_i G - H(i, 1-b, r_(1-b)). Each transfer has its own x_i: with one
        for all, the spoke would see the same sum at each chosen bit.
        """
        pairs = list[bytes]()
        others = _scalars(self.source, OTHERS, COLUMNS)
        for i, (bit, x, z) in enumerate(zip(self._each_bit(), self._scalars(), others, strict=True)):
            other = ristretto.multiple(z)
            element = ristretto.subtracted(ristretto.multiple(x), _mapped(self.session, i, 1 - bit, other))
            pairs += (other, element) if bit else (element, other)
        return b"".join(pairs)

    def seeds(self, answer: bytes) -> Bits:
        """Return the seed k_(i, s_i) of each transfer, shape (512, 16).

        Args:
            answer: what the spoke sent.

        Raises:
            IntegrityError: the answer is not an element of the group, or is the identity.
        """
        ristretto.elements(answer, 1, where="answer to the base transfers")
        if answer == ristretto.IDENTITY:
            raise IntegrityError("the answer is the identity", where="answer to the base transfers")
        seeds = [
            _seed(self.session, answer, i, bit, ristretto.multiple(x, answer))
            for i, (bit, x) in enumerate(zip(self._each_bit(), self._scalars(), strict=True))
        ]
        return np.frombuffer(b"".join(seeds), np.uint8).reshape(COLUMNS, SEED_BYTES)

    def _each_bit(self) -> list[int]:
        return np.unpackbits(self.bits, bitorder="little").tolist()

    def _scalars(self) -> list[bytes]:
        return _scalars(self.source, SCALARS, COLUMNS)


def answer(message: bytes, session: bytes, source: ByteSource) -> tuple[bytes, Bits]:
    """Return the spoke's answer A = y G, and its seeds k_(i, b), shape (512, 2, 16).

    Args:
        message: what the hub sent.
        session: its name, 32 bytes.
        source: of y; secret, uniform, fresh for each session.

    Raises:
        IntegrityError: the message is not 1,024 elements of the group.
    """
    points = check_choices(message)
    (y,) = _scalars(source, ANSWER, 1)
    own = ristretto.multiple(y)
    seeds = list[bytes]()
    for i in range(COLUMNS):
        for bit in range(2):
            element, other = points[2 * i + bit], points[2 * i + 1 - bit]
            total = ristretto.added(element, _mapped(session, i, 1 - bit, other))
            # An identity is a hub's own doing, and an error would be a message: it is hashed like any other.
            seeds.append(_seed(session, own, i, bit, ristretto.multiple(y, total)))
    return own, np.frombuffer(b"".join(seeds), np.uint8).reshape(COLUMNS, 2, SEED_BYTES)


def check_choices(message: bytes) -> list[bytes]:
    """Return the 1,024 elements of a hub's message.

    Raises:
        IntegrityError: it has others, or something else.
    """
    return ristretto.elements(message, 2 * COLUMNS, where="base transfers")


def _draw(source: ByteSource, label: int, size: int) -> NDArray[np.uint8]:
    data = np.empty(size, np.uint8)
    source.fill(data.data, label=label, chunk=0)
    return data


def _scalars(source: ByteSource, label: int, count: int) -> list[bytes]:
    uniform = _draw(source, label, count * ristretto.UNIFORM_BYTES).reshape(count, -1)
    return [ristretto.scalar(each.tobytes()) for each in uniform]


def _mapped(session: bytes, i: int, bit: int, element: bytes) -> bytes:
    """Return H(i, bit, element): the element of SHA-512("veiltab join base", session, i, bit, element)."""
    return ristretto.hashed(hashlib.sha512(b"veiltab join base" + session + _place(i, bit) + element).digest())


def _seed(session: bytes, own: bytes, i: int, bit: int, product: bytes) -> bytes:
    """Return SHA-256("veiltab join key", session, A, i, bit, product)[:16]."""
    return hashlib.sha256(b"veiltab join key" + session + own + _place(i, bit) + product).digest()[:SEED_BYTES]


def _place(i: int, bit: int) -> bytes:
    return i.to_bytes(2, "big") + bytes([bit])
