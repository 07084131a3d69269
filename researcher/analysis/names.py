"""Reads attributes and categories in a text, whatever characters they have: the longest name that fits is meant."""

import re
from collections.abc import Iterable

from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.core.texts.nearest import known_names
from veiltab.common.errors import InvalidInputError

_NEXT_SIGN = re.compile(r"[|&~,]|\s(?:[+*]|by|given|against|until|and)\s")
"""Where a name that is refused most probably ends; + and * alone stand in many names."""


class Reader:
    """Reads a text from left to right.

    Args:
        domain: the attributes that it may name.
        where: the option or argument that the text is of.
    """

    def __init__(self, text: str, domain: Domain, *, where: str) -> None:
        self._text, self._domain, self._where = text, domain, where
        self._at = 0
        self._skip()

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return self._at == len(self._text)

    @property
    def rest(self) -> str:
        """What was not read yet."""
        return self._text[self._at :]

    def takes(self, sign: str) -> bool:
        """Read a sign if it comes next, and return whether it does."""
        if not self._text.startswith(sign, self._at):
            return False
        self._at += len(sign)
        self._skip()
        return True

    def word(self, *words: str) -> bool:
        """Read one of some words if it comes next and ends there, and return whether it does."""
        for word in words:
            end = self._at + len(word)
            if self._text.startswith(word, self._at) and not self._text[end : end + 1].strip():
                return self.takes(word)
        return False

    def names(self) -> tuple[str, ...]:
        """Read names of attributes with commas between them; InvalidInputError as `attribute`."""
        parts = [self.attribute().name]
        while self.takes(","):
            parts.append(self.attribute().name)
        return tuple(parts)

    def number(self) -> float:
        """Read a number that is not negative; InvalidInputError: none comes next."""
        match = re.compile(r"\d*\.?\d+").match(self._text, self._at)
        if match is None:
            raise self.refusal("a number")
        self.takes(match[0])
        return float(match[0])

    def all(self) -> str:
        """Read all that is left."""
        rest, self._at = self.rest, len(self._text)
        return rest

    def attribute(self) -> Attribute:
        """Read the name of an attribute.

        Raises:
            InvalidInputError: none comes next.
        """
        name = self._longest(self._domain.names)
        if name is None:
            raise self.refusal("an attribute", known_names("Attributes here", self._domain.names, self.next_name))
        return self._domain.attributes[self._domain.names.index(name)]

    def categories(self, attribute: Attribute) -> tuple[str, ...]:
        """Read categories of an attribute, with | between them.

        Raises:
            InvalidInputError: what comes next is none, or one comes twice.
        """
        parts: list[str] = []
        while True:
            category = self._longest(attribute.categories)
            if category is None:
                near = known_names("Categories", attribute.categories, self.next_name)
                raise self.refusal(f"a category of {attribute.name}", near)
            if category in parts:
                raise InvalidInputError(f"{attribute.name}={category} is named twice", where=self._where)
            parts.append(category)
            if not self.takes("|"):
                return tuple(parts)

    def refusal(self, choices: str, remedy: str = "") -> InvalidInputError:
        """Return the refusal of a text in which something else comes next."""
        rest = self.next_name or self.rest[:40]
        return InvalidInputError(
            f"expected {choices}, but {f'{rest!r} comes next' if rest else 'the text ends'}",
            where=self._where,
            remedy=remedy,
        )

    @property
    def next_name(self) -> str:
        """What seems to be the name that comes next."""
        return _NEXT_SIGN.split(self.rest[:40], maxsplit=1)[0].rstrip()

    def _longest(self, names: Iterable[str]) -> str | None:
        fitting = [name for name in names if name and self._text.startswith(name, self._at)]
        if not fitting:
            return None
        name = max(fitting, key=len)
        self._at += len(name)
        self._skip()
        return name

    def _skip(self) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
