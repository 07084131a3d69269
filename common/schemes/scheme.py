"""The interface of every sampling scheme; each is plain frozen data in a file of its own.

A scheme is one class, its registration (see veiltab.common.schemes.registry) and its number in release.proto: every
layer asks its methods. A class that lacks a fact cannot be defined, and one that lacks a method cannot be instantiated.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.numbers.elementary import Floats
from veiltab.common.core.sampling import Gathering, Grouping, Rows
from veiltab.common.dataclass import asdict, dataclass
from veiltab.common.errors import InvalidInputError

_STEP_DOWN = 1 - Fraction(1, 10**6)
_MOST_STEPS = 1000
_DIGITS = 10**40
_MOST = 2**62
"""Largest size: arrays of 64-bit numbers hold its sums."""


class Relation(Enum):
    """Which tables are neighbours."""

    SUBSTITUTION = "substitution"
    ADD_REMOVE = "add/remove"


class SizeLaw(Enum):
    """The law of a sample's size: fixed, or binomial around the expected size."""

    FIXED = "fixed"
    BINOMIAL = "binomial"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme(ABC):
    """A sampling scheme: m rows of a population of n (for Poisson, m = n p rows on average).

    The draw does not depend on the table, and replacing the j rows of one respondent turns a sample into one without
    that respondent. Amplification rests on both (Balle, Barthe, Gaboardi 2018).

    A common base of several schemes, which lacks facts, names ABC among its bases.

    Args:
        population: n, rows.
        sample: m, rows.
    """

    name: ClassVar[str]
    """The name in requests, files and commands."""
    title: ClassVar[str]
    """The name in reports."""
    relation: ClassVar[Relation]
    """Which tables are neighbours when it amplifies any mechanism."""
    size_law: ClassVar[SizeLaw]
    """The law of the number of rows."""
    is_simple_random: ClassVar[bool]
    """Whether, given its size, the sample has nobody twice and every set of that size is equally likely.

    The order certificate, indices that one curator draws, and sampling at the server hold for such schemes alone.
    """

    population: int
    sample: int

    def __init_subclass__(cls) -> None:
        """Refuse a scheme that lacks a fact."""
        facts = ("name", "title", "relation", "size_law", "is_simple_random")
        missing = [fact for fact in facts if not hasattr(cls, fact)]
        if missing and ABC not in cls.__bases__:
            raise TypeError(f"scheme {cls.__name__} lacks {', '.join(missing)}")

    def __post_init__(self) -> None:
        if not all(1 <= size <= _MOST for size in self.sizes().values()):
            raise InvalidInputError(f"its sizes must be at least 1, and at most {_MOST}", where=f"scheme {self.name}")
        self._check_sizes()

    @abstractmethod
    def _check_sizes(self) -> None:
        """Raise InvalidInputError if the scheme forbids its sizes."""

    def sizes(self) -> dict[str, int]:
        """Return population, sample and any other size of the scheme, by name."""
        return asdict(self)

    @property
    @abstractmethod
    def eta(self) -> float:
        """P(a respondent is drawn at least once)."""

    @property
    def pool(self) -> float:
        """P(a respondent is among the rows of which the last stage draws each row anew), or eta where none does so."""
        return self.eta

    @abstractmethod
    def multiplicities(self) -> Floats:
        """Return P(a respondent is drawn j times), j = 0, 1, ...; the omitted mass is below 1e-17."""

    @property
    @abstractmethod
    def variance_factor(self) -> Fraction:
        """Return v with Cov(sampled fractions) = v (diag(T) - T T')."""

    @abstractmethod
    def draw(self, tokens: NDArray[np.uint8], key: bytes) -> Rows:
        """Return the rows of a sample, in the order in which they are released.

        Everything comes from AES and ChaCha20 under keys derived from one, so every curator draws the same rows, on any
        machine.

        Args:
            tokens: (n, 16), one a respondent, the same order everywhere; n is the population.
            key: 32 secret bytes, for this release alone.

        Returns:
            (m,) row numbers; a respondent drawn several times is there several times. The order is exchangeable: every
            arrangement of the same rows is equally likely.
        """

    def draw_pieces(
        self, tokens: NDArray[np.uint8], key: bytes, grouping: Grouping, gathering: Gathering
    ) -> Iterator[Rows]:
        """Yield the rows of `draw` piece by piece; a scheme that overrides this needs no memory for all of them.

        Args:
            tokens: as for `draw`.
            key: as for `draw`.
            grouping: puts rows that may be drawn aside, where there is room for all of them.
            gathering: the same for rows that are drawn from.
        """
        del grouping, gathering
        yield self.draw(tokens, key)

    @abstractmethod
    def pure_epsilon(self, gamma: Fraction) -> Decimal:
        """Return the pure epsilon of a release under substitution, nats, rounded up.

        Args:
            gamma: worst-case ratio of the mechanism that perturbs each drawn row independently, at least 1.
        """

    @abstractmethod
    def gamma_for(self, epsilon: Decimal) -> Fraction:
        """Return the largest gamma that keeps a release inside a pure epsilon (nats), rounded down.

        Raises:
            InvalidInputError: the epsilon is too small for so many draws.
        """

    def is_within(self, epsilon: Decimal, gamma: Fraction) -> bool:
        """Return whether a release of this gamma keeps a pure epsilon (nats)."""
        return self.pure_epsilon(gamma) <= epsilon

    def _stepped_down(self, excess: Fraction, epsilon: Decimal) -> Fraction:
        """Return 1 + excess, smaller by steps until its bound, which is rounded up by 1e-12 a draw, is within.

        Raises:
            InvalidInputError: the rounding takes more than a thousandth of epsilon.
        """
        for _ in range(_MOST_STEPS):
            if self.pure_epsilon(1 + excess) <= epsilon:
                return 1 + excess
            # Forty digits, rounded down: an exact product would grow with every step.
            excess = Fraction(int(excess * _STEP_DOWN * _DIGITS), _DIGITS)
        raise InvalidInputError(
            "the epsilon is too small for so many draws",
            where=f"scheme {self.name}",
            remedy="Ask for a larger epsilon, a smaller sample, or a sample without replacement.",
        )
