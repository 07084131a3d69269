"""Every key of a study file and of a draft: its kind, what holds without it, and what it means.

`veiltab study check`, `veiltab study init` and docs/study-file.md say what stands here. Tests compare it with the keys
that reading a study file asks for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType

from veiltab.common.study.fields import Fields


class Kind(Enum):
    """What a key's value is."""

    TEXT = "text"
    WHOLE_NUMBER = "whole number"
    NUMBER = "number"
    TEXTS = "list of texts"
    NUMBERS = "list of numbers"
    TEXT_TO_TEXT = "table from text to text"
    TEXT_TO_NUMBER = "table from text to number"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of a table.

    Args:
        kind: what its value is.
        meaning: for people, without a full stop.
        default: what holds without it, in TOML or in words; None if the key must be there.
    """

    kind: Kind
    meaning: str
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKeys:
    """One table of a file, or a list of tables.

    Args:
        meaning: for people, without a full stop.
        keys: by name, in the order of the reference.
        is_list: whether the file may have several, each under [[name]].
        is_needed: whether a file without it is refused, whatever else it holds.
    """

    meaning: str
    keys: Mapping[str, Key]
    is_list: bool = False
    is_needed: bool = False


KIND_READERS: Mapping[Kind, Callable[[Fields, str], object]] = MappingProxyType(
    {
        Kind.TEXT: Fields.text,
        Kind.WHOLE_NUMBER: Fields.integer,
        Kind.NUMBER: Fields.number,
        Kind.TEXTS: Fields.texts,
        Kind.NUMBERS: Fields.numbers,
        Kind.TEXT_TO_TEXT: Fields.pairs,
        Kind.TEXT_TO_NUMBER: Fields.number_pairs,
    }
)
"""How a key of each kind is read; a value of another kind is refused."""


def _text(meaning: str, default: str | None = None) -> Key:
    return Key(kind=Kind.TEXT, meaning=meaning, default=default)


_NAME = _text("a-z, 0-9 and inner hyphens; unique among all parties")
_ENDPOINT = _text("host:port at which the others reach its service")
_PARTY = {"name": _NAME, "endpoint": _ENDPOINT}
_IDENTIFICATION = {
    "id_columns": Key(kind=Kind.TEXTS, meaning="columns of its table that together name a respondent"),
    "normalise": Key(
        kind=Kind.TEXTS,
        meaning="steps that make spellings of one id agree: white space around it, letter case, Unicode form C; also"
        ' "digits" (keep digits alone), "integer" (0012 and 12.0 are 12; what is not whole is refused) and "zfill:7"'
        " (zeros before what is shorter)",
        default='["strip", "casefold", "nfc"]',
    ),
}
_CODING = {
    "categories": Key(
        kind=Kind.TEXTS,
        meaning="its categories, in the order of every result; with bins, their names",
        default="names of the bins, dates or integers",
    ),
    "recode": Key(kind=Kind.TEXT_TO_TEXT, meaning="other raw values of the column, and their categories", default="{}"),
    "bins": Key(
        kind=Kind.NUMBERS,
        meaning="increasing edges for a column of numbers: [low, high), the last bin with both its edges",
        default="none",
    ),
    "dates": Key(
        kind=Kind.TEXTS,
        meaning="increasing edges for a column of dates: years, months or days, such as 1990, 2000-07 or 2000-07-15;"
        " a bin begins with the first day of its edge and ends before the next one",
        default="none",
    ),
    "date_format": _text(
        "how the column writes its dates: %Y or %y, %m, %d, such as %d.%m.%Y; perhaps with a time (%H, %M, %S, %f)",
        "ISO 8601, such as 2000-07-15, with a time or without",
    ),
    "integers": Key(
        kind=Kind.NUMBERS, meaning="first and last, for a column of whole numbers, each a category", default="none"
    ),
    "missing": _text(
        'what becomes of a missing value: "drop" leaves the respondent out of every release, "category" adds a'
        " category, and the name of a category counts it there",
        '"drop"',
    ),
    "missing_category": _text('name of the category that missing = "category" adds', '"missing"'),
    "missing_values": Key(
        kind=Kind.TEXTS, meaning="raw values that stand for a missing one", default='["", "NA", "?"]'
    ),
}
_ATTRIBUTE = {
    "name": _text("a-z, 0-9, inner hyphens and underscores"),
    "column": _text("its column of the table", "the name"),
    **_CODING,
}

STUDY_TABLES: Mapping[str, TableKeys] = MappingProxyType(
    {
        "study": TableKeys(
            meaning="the study as a whole",
            is_needed=True,
            keys={
                "id": _text("a-z, 0-9 and inner hyphens; it stands in certificates"),
                "title": _text("one line for people"),
                "minimum_population": Key(
                    kind=Kind.WHOLE_NUMBER, meaning="fewest common respondents of a release", default="100"
                ),
                "maximum_cells": Key(
                    kind=Kind.WHOLE_NUMBER, meaning="most cells of a table of a release", default="100000"
                ),
                "maximum_tables": Key(kind=Kind.WHOLE_NUMBER, meaning="most tables of a release", default="1000"),
                "maximum_respondents": Key(
                    kind=Kind.WHOLE_NUMBER,
                    meaning="most rows of a curator's table; more respondents are not taken from any other curator",
                    default="1000000000",
                ),
                "alignment": _text(
                    'how curators find their common respondents: "tokens", or "psi", private set intersection',
                    '"tokens"',
                ),
                "left_out": _text(
                    'whether results say how many rows of each curator miss a value and were left out: "stated", or'
                    ' "local" if only the curator sees that',
                    '"local"',
                ),
                "noise_split": Key(
                    kind=Kind.NUMBER,
                    meaning="the curators' part of the noise if a request does not say, from 0 to below 1",
                    default="that of the version",
                ),
                "canaries": Key(
                    kind=Kind.WHOLE_NUMBER,
                    meaning="rows that test the server if a request does not say",
                    default="as many as the test needs",
                ),
            },
        ),
        "budget": TableKeys(
            meaning="what one curator may spend, over all releases and researchers; needed with curators",
            keys={
                "epsilon": Key(kind=Kind.NUMBER, meaning="nats, above 0 and at most 1000"),
                "delta": Key(
                    kind=Kind.NUMBER,
                    meaning="with it, releases have prices whose squares add up; 1e-6 is usual",
                    default="none: pure epsilons are added up",
                ),
            },
        ),
        "release": TableKeys(
            meaning="how releases are made if a request does not say",
            keys={
                "sampling": _text('how curators share a sample: "seed" or "indices"', '"seed"'),
                "pad": _text('how columns are encrypted: "chacha20" or "otp"', '"chacha20"'),
            },
        ),
        "server": TableKeys(meaning="the cloud server", is_needed=True, keys=_PARTY),
        "curator": TableKeys(
            meaning="a curator; two or more",
            is_list=True,
            keys={
                **_PARTY,
                **_IDENTIFICATION,
                "id_shapes": Key(
                    kind=Kind.TEXTS,
                    meaning="how its normalised ids are written, such as 9999, as its draft said; `curator check`"
                    " compares them",
                    default="nothing is compared",
                ),
                "most_ids": Key(
                    kind=Kind.WHOLE_NUMBER,
                    meaning="most ids that others take from it in a private alignment; each may be a guess",
                    default="twice as many as the curator that receives them has",
                ),
            },
        ),
        "researcher": TableKeys(meaning="a researcher; one or more", is_list=True, is_needed=True, keys=_PARTY),
        "analyst": TableKeys(
            meaning="somebody who reads the releases of a researcher",
            is_list=True,
            keys={"name": _NAME, "researcher": _text("the researcher whose releases it reads")},
        ),
        "attribute": TableKeys(
            meaning="an attribute; needed with curators",
            is_list=True,
            keys={"name": _ATTRIBUTE["name"], "owner": _text("the curator whose column it is"), **_ATTRIBUTE},
        ),
        "nodes": TableKeys(
            meaning="the nodes of a collection, together",
            keys={
                "name": _NAME,
                "budget_epsilon": Key(kind=Kind.NUMBER, meaning="nats, for one node, over all rounds"),
                "strata": Key(kind=Kind.TEXTS, meaning="names of public groups of nodes", default="one group"),
                "shares": Key(
                    kind=Kind.TEXT_TO_NUMBER,
                    meaning="what the rounds of each researcher may cost one node",
                    default="equal shares",
                ),
            },
        ),
        "question": TableKeys(
            meaning="a question to the nodes; needed with nodes",
            is_list=True,
            keys={"name": _ATTRIBUTE["name"], **_CODING},
        ),
    }
)
"""The tables of a study file."""

DRAFT_TABLES: Mapping[str, TableKeys] = MappingProxyType(
    {
        "draft": TableKeys(
            meaning="whose draft it is, and what its ids are",
            is_needed=True,
            keys={
                "curator": _NAME,
                **_IDENTIFICATION,
                "id_shapes": Key(
                    kind=Kind.TEXTS,
                    meaning="how the ids of each id column are written, such as 9999; merging compares them",
                ),
            },
        ),
        "attribute": replace(STUDY_TABLES["attribute"], meaning="an attribute of this curator", is_needed=True),
    }
)
"""The tables of a curator's draft, as `veiltab study draft` writes it."""
