"""Made names with the frequencies of real ones: few are frequent, most are rare (a Zipf law).

Their collision entropies, in bits, beside those of the names of a census: family name 10.7 (10.7), its Soundex 9.8
(9.2), its first three letters 8.4 (8.7); given name within a sex 7.2 (7.2), its Soundex 7.0 (6.9), its first letters
6.6 (6.4). So they meet about as often as real ones do, and no real name stands in a demonstration.
"""

import re
from functools import cache
from hashlib import shake_256

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass

_ONSETS = (
    re.findall(
        r"\w+", "b bl br c ch d dr f g gr h j k l m n p r s sh st t tr v w z a e o b c d f g h k l m n p r s t w"
    ),
    re.findall(r"\w+", "b br c ch d f g gr h j k l m n p r s sh st t tr v w"),
)
_VOWELS = (re.findall(r"\w+", "a e i o u y ai ea ie"), re.findall(r"\w+", "a e i o u ai ea ee"))
_ENDS = ("", "", "", *re.findall(r"\w+", "n r l s t ck nd rt m d ll ss rg ns lt"))
_SYLLABLES = ((2, 2, 3), (1, 2, 2))
_LONGEST = 12


class Draws:
    """Public draws: uniform numbers from the SHAKE-256 of a seed and a label, the same every time.

    Args:
        seed: any text. Nothing that is drawn protects anybody.
    """

    def __init__(self, seed: str) -> None:
        self._seed = seed

    def words(self, label: str, count: int) -> NDArray[np.uint64]:
        """Return uniform 64-bit numbers; each label has its own."""
        return np.frombuffer(shake_256(f"{self._seed}\x00{label}".encode()).digest(8 * count), "<u8")

    def uniform(self, label: str, count: int) -> NDArray[np.float64]:
        """Return uniform numbers from 0 to below 1."""
        return (self.words(label, count) >> np.uint64(11)).astype(np.float64) / 2.0**53

    def below(self, label: str, count: int, limit: int) -> NDArray[np.int64]:
        """Return whole numbers from 0 to below the limit."""
        return (self.words(label, count) % np.uint64(limit)).astype(np.int64)

    def order(self, label: str, count: int) -> NDArray[np.int64]:
        """Return a random order of 0..count-1."""
        return np.argsort(self.words(label, count), kind="stable")


@dataclass(frozen=True, slots=True)
class NameLaw:
    """Names and how frequent they are.

    Args:
        names: lower-case, the most frequent first.
        up_to: cumulated frequencies, 1 at the end.
    """

    names: NDArray[np.str_]
    up_to: NDArray[np.float64]

    def draw(self, draws: Draws, label: str, count: int) -> NDArray[np.int64]:
        """Return the places of drawn names."""
        places: NDArray[np.int64] = np.searchsorted(self.up_to, draws.uniform(label, count), side="right")
        return np.minimum(places, len(self.names) - 1)


@cache
def family_names() -> NameLaw:
    """Return 20,000 family names: the k-th has a frequency in proportion to (k + 12)^-0.85."""
    return _law("family", 20_000, 0.85, 12)


@cache
def given_names(sex: str) -> NameLaw:
    """Return 1,000 given names of a sex, "f" or "m": the k-th has a frequency in proportion to 1 / (k + 5)."""
    return _law(f"given {sex}", 1000, 1.0, 5)


def _law(label: str, count: int, power: float, shift: int) -> NameLaw:
    weights = (np.arange(1, count + 1) + shift) ** -power
    names = _make_names(label, count)
    return NameLaw(np.array(names), np.cumsum(weights) / weights.sum())


def _make_names(label: str, count: int) -> list[str]:
    """Return different names of one to three syllables."""
    kind = 0 if label == "family" else 1
    onsets, vowels, syllables = _ONSETS[kind], _VOWELS[kind], _SYLLABLES[kind]
    numbers = iter(Draws("names").words(label, 40 * count).tolist())
    names: dict[str, None] = {}
    while len(names) < count:
        length = syllables[next(numbers) % len(syllables)]
        name = "".join(
            onsets[next(numbers) % len(onsets)]
            + vowels[next(numbers) % len(vowels)]
            + _ENDS[next(numbers) % len(_ENDS)]
            for _ in range(length)
        )
        if 3 <= len(name) <= _LONGEST:
            names[name] = None
    return list(names)
