"""The ladder of keys: on which fields two rows must agree, in which order.

A key is written as its components with blanks between them. A row that lacks one of them sits out the pass.

    given family birth sex              four fields as they are normalised
    given:3 family:1 birth              the first three letters, the first letter
    given:sound family:sound birth      American Soundex
    birth:year birth:month birth:day    parts of the date
    given+family birth                  two components in either order: swapped names agree
    given~ family birth sex             a deletion pass: given agrees if one character was left out, put in or changed
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from veiltab.common.core.texts.nearest import known_names
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError

MOST_PASSES = 64
"""Most keys of a ladder."""

_FIELD = r"[a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?"
_PART = re.compile(rf"({_FIELD})(?::(sound|year|month|day|[1-9]))?")


class FieldKind(Enum):
    """What an identity field holds; it decides how values are normalised and which parts a key may take of them."""

    GIVEN = "given"
    FAMILY = "family"
    BIRTH = "birth"
    SEX = "sex"
    POSTCODE = "postcode"
    NUMBER = "number"
    TEXT = "text"


_CUTS: Mapping[FieldKind, str] = {
    FieldKind.GIVEN: "letters sound ~",
    FieldKind.FAMILY: "letters sound ~",
    FieldKind.BIRTH: "year month day ~",
    FieldKind.SEX: "",
    FieldKind.POSTCODE: "letters ~",
    FieldKind.NUMBER: "letters ~",
    FieldKind.TEXT: "letters sound ~",
}
"""What a key may take of a field."""


class Part(NamedTuple):
    """A field, or what a key takes of it.

    Args:
        cut: "" for all of it, "1" to "9" for its first letters, "sound" for its Soundex, "year", "month" or "day".
    """

    field: str
    cut: str = ""

    def __str__(self) -> str:
        """Return it as the study file has it."""
        return f"{self.field}:{self.cut}" if self.cut else self.field


@dataclass(frozen=True, slots=True)
class Pass:
    """One key of a ladder, by its number from 1 and its text as in the study file.

    Attributes:
        parts: its components; of two parts in one component the order does not count.
        deletion: the field that may differ by one character; "" if all agree exactly.

    Raises:
        InvalidInputError: the text is not a key.
    """

    number: int
    name: str
    parts: tuple[tuple[Part, ...], ...] = field(init=False, repr=False, compare=False)
    deletion: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        components = self.name.split(" ")
        deletions = [one[:-1] for one in components if one.endswith("~")]
        if len(deletions) > 1:
            raise _refusal(self.name, "lets two fields differ", 'Keep one "~" a key: two make most wrong links.')
        parts = tuple(tuple(sorted(_parsed(one, self.name) for one in c.rstrip("~").split("+"))) for c in components)
        named = [part for component in parts for part in component]
        if len(set(named)) < len(named) or any(len(component) > 2 for component in parts):
            raise _refusal(self.name, "names a part twice, or joins three", "Name each part once; + joins two.")
        if deletions and not re.fullmatch(_FIELD, deletions[0]):
            raise _refusal(self.name, 'has "~" behind a part of a field', 'Write "~" behind the name of a whole field.')
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "deletion", deletions[0] if deletions else "")

    @property
    def fields(self) -> frozenset[str]:
        """The fields of which it takes something."""
        return frozenset(part.field for component in self.parts for part in component)


def ladder_of(names: Sequence[str]) -> tuple[Pass, ...]:
    """Return the passes of some keys, numbered from 1 in their order.

    Raises:
        InvalidInputError: there is none, there are too many, one is not a key, or one stands twice.
    """
    if not 1 <= len(names) <= MOST_PASSES:
        raise InvalidInputError(
            f"the ladder has {len(names)} keys", remedy=f"List 1 to {MOST_PASSES}; 12 find what more would find."
        )
    passes = tuple(Pass(number, " ".join(name.split())) for number, name in enumerate(names, 1))
    for one in passes:
        if any(one.parts == other.parts and one.deletion == other.deletion for other in passes[: one.number - 1]):
            raise InvalidInputError(f"the ladder has {one.name!r} twice", remedy="List each key once.")
    return passes


def check_ladder(passes: Iterable[Pass], kinds: Mapping[str, FieldKind]) -> None:
    """Refuse keys of fields that are not there, or of parts that a field of its kind does not have."""
    for step in passes:
        for part in (part for component in step.parts for part in component):
            if part.field not in kinds:
                raise InvalidInputError(
                    f"the ladder has {part.field[:60]!r} in a key, which is not a field",
                    remedy=known_names("Fields", list(kinds), part.field),
                )
            cut = "letters" if part.cut.isdigit() else part.cut
            for one in (cut, "~" if part.field == step.deletion else ""):
                if one and one not in _CUTS[kinds[part.field]].split():
                    raise _refusal(
                        step.name,
                        f"takes {one} of {part.field}, a field of the kind {kinds[part.field].value}",
                        "Names and texts have letters and sound, dates have year, month and day.",
                    )


_NAMES = "given+family birth:year birth:month+birth:day"
_LADDERS: Mapping[tuple[bool, bool], tuple[Sequence[str], Sequence[str]]] = {
    (True, True): (
        (
            "given family birth sex",
            "given:3 family:3 birth postcode",
            "given:3 family:3 birth sex",
            "given:sound family:sound birth sex",
            _NAMES,
            "given:1 family birth sex",
            "given:3 family:3 birth:year birth:month postcode sex",
            "given:sound birth postcode sex",
            "family:sound birth postcode sex",
            "given family birth:year birth:month postcode",
            "given family birth:year birth:day postcode",
            "given family birth:month birth:day postcode",
        ),
        (
            "given~ family birth sex",
            "family~ given birth sex",
            "birth~ given family postcode",
            "given~ birth postcode sex",
            "family~ birth postcode sex",
        ),
    ),
    (False, True): (
        (
            "given family birth",
            "given:3 family:3 birth postcode",
            "given:sound family:sound birth",
            _NAMES,
            "given:1 family birth postcode",
            "given family:1 birth postcode",
            "given:3 family:3 birth:year birth:month postcode",
            "given:sound birth postcode",
            "family:sound birth postcode",
            "given family birth:year birth:month postcode",
            "given family birth:year birth:day postcode",
            "given family birth:month birth:day postcode",
        ),
        (
            "given~ family birth",
            "family~ given birth",
            "birth~ given family postcode",
            "given~ birth postcode",
            "family~ birth postcode",
        ),
    ),
    (True, False): (
        (
            "given family birth sex",
            "given:3 family:3 birth sex",
            "given:sound family:sound birth sex",
            _NAMES,
            "given:1 family birth sex",
        ),
        ("given~ family birth sex", "family~ given birth sex"),
    ),
    (False, False): (
        ("given family birth", "given:3 family:3 birth", "given:sound family:sound birth", _NAMES),
        ("given~ family birth", "family~ given birth"),
    ),
}
"""By (has sex, has postcode): the keys, and the deletion passes that may follow them.

No key is here that the 10^6 likeliest guesses would find for more than .015 of a register's people (docs/linkage.md).
"""


def default_ladder(kinds: Mapping[str, FieldKind], deletions: int = 0) -> tuple[str, ...]:
    """Return the keys that fit the kinds of fields; a number comes first where there is one.

    Args:
        kinds: field -> its kind. Fields with names of their own are in no default key.
        deletions: how many deletion passes follow.

    Raises:
        InvalidInputError: there is no default for these kinds, or there are fewer deletion passes.
    """
    named = {name for name, kind in kinds.items() if name == kind.value}
    number = ["number"] if "number" in named else []
    if not {"given", "family", "birth"} <= named:
        if not number:
            raise InvalidInputError(
                "there is no default ladder without given, family and birth", remedy="Write the keys as `ladder`."
            )
        keys, more = (), ()  # type: tuple[str, ...], tuple[str, ...]
    else:
        keys, more = (tuple(one) for one in _LADDERS["sex" in named, "postcode" in named])
    if not 0 <= deletions <= len(more):
        raise InvalidInputError(
            f"deletions = {deletions} is not from 0 to {len(more)}", remedy="Each makes an alignment dearer."
        )
    return (*number, *keys, *more[:deletions])


def _parsed(text: str, name: str) -> Part:
    match = _PART.fullmatch(text)
    if match is None:
        remedy = 'Write it like "given:3", with 1 to 9 letters, or with sound, year, month or day.'
        raise _refusal(name, f"has {text[:40]!r}, which is not a part of a field", remedy)
    return Part(match[1], match[2] or "")


def _refusal(name: str, problem: str, remedy: str) -> InvalidInputError:
    return InvalidInputError(f"the key {name[:80]!r} {problem}", remedy=remedy)
