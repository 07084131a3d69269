"""Single fields of messages that come from others: read with limits, whatever the sender made of them."""

from collections.abc import Mapping
from enum import Enum
from typing import Generic, TypeVar

from veiltab.common.errors import InvalidInputError

LONGEST_TEXT = 256
"""Most characters of a text that is a name, a number or a digest."""

LONGEST_WORDS = 1024
"""Most bytes of words that are shown to people."""

Member = TypeVar("Member", bound=Enum | str)
Number = TypeVar("Number", bound=int)

_LARGEST = 2**63 - 1
"""Largest whole number that a database keeps."""


def text_from_proto(text: str, where: str) -> str:
    """Return a text that names or encodes something.

    Args:
        text: the field as it came.
        where: the field, for the refusal.

    Raises:
        InvalidInputError: it is too long, or has characters that move a terminal's cursor.
    """
    if len(text) > LONGEST_TEXT or not text.isprintable():
        raise InvalidInputError(
            f"the text is longer than {LONGEST_TEXT} characters, or has some that are not printable", where=where
        )
    return text


def words_from_proto(words: str, longest: int = LONGEST_WORDS) -> str:
    """Return words that are shown to people: on one line, without control characters, cut to a number of bytes.

    Nothing is refused: what a peer says of its state must not hide the state.
    """
    clean = words[:longest]
    if not clean.isprintable():
        clean = "".join(character if character.isprintable() else " " for character in clean)
    return clean.encode(errors="replace")[:longest].decode(errors="ignore")


def whole_from_proto(number: int, where: str) -> int:
    """Return a whole number from 0 that every party can keep.

    Raises:
        InvalidInputError: it is negative, or too large for a database.
    """
    if not 0 <= number <= _LARGEST:
        raise InvalidInputError(f"the number is not between 0 and {_LARGEST}", where=where)
    return number


class MessageNumbers(Generic[Member, Number]):
    """The numbers by which members of an enum, or names, travel.

    Args:
        what: what they are, for the refusal of a number.
    """

    def __init__(self, what: str, numbers: Mapping[Member, Number]) -> None:
        self._what = what
        self._numbers = dict(numbers)
        self._members: dict[int, Member] = {number: member for member, number in numbers.items()}

    def encode(self, member: Member) -> Number:
        """Return the number of a member."""
        return self._numbers[member]

    def decode(self, number: int) -> Member:
        """Return the member of a number.

        Raises:
            InvalidInputError: there is none.
        """
        if number not in self._members:
            problem = f"{self._what} {number} is not known here"
            raise InvalidInputError(problem, remedy="Run the same version at every party.")
        return self._members[number]
