"""What two study files say differently, in words: for the person who gave one party another file than the rest."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

from veiltab.common.study.coding.coding import Coding
from veiltab.common.study.coding.rules import AttributeRule, NodeQuestion
from veiltab.common.study.file import Study
from veiltab.common.study.members import AnalystMember, Member

_NAMED = ("digest", "curators", "researchers", "analysts", "attributes", "questions")
"""Fields of a study that are compared in their own way, or that say nothing of their own."""

_Part = Study | Member | AnalystMember | AttributeRule | NodeQuestion | Coding

_SHOWN = 6
"""Categories, and differences, that are listed; of more it is said how many there are."""


def study_differences(mine: Study, theirs: Study) -> str:
    """Return in which points a study file is not like another, in words; "" if both have the same bytes.

    Args:
        mine: the study file that the answer is about.

    Returns:
        What the first one does, such as "lists the categories low, mid, high of wage in another order".
    """
    if mine.digest == theirs.digest:
        return ""
    differences = [
        *_of_alphabets("attribute", mine.attributes, theirs.attributes),
        *_of_alphabets("question", mine.questions, theirs.questions),
        *_of_members("curator", mine.curators, theirs.curators),
        *_of_members("researcher", mine.researchers, theirs.researchers),
        *_of_members("analyst", mine.analysts, theirs.analysts),
        *(f"gives another {_and([name])}" for name in _unequal(mine, theirs, _NAMED)),
    ]
    return _listed(differences) if differences else "differs in comments, spacing or spelling alone"


def _of_alphabets(
    kind: str,
    mine: Sequence[AttributeRule] | Sequence[NodeQuestion],
    theirs: Sequence[AttributeRule] | Sequence[NodeQuestion],
) -> Iterable[str]:
    """Yield what differs between attributes or questions, each by its name."""
    own, other = {rule.name: rule for rule in mine}, {rule.name: rule for rule in theirs}
    yield from _absent_or_new(kind, own, other)
    for name in (name for name in own if name in other and own[name] != other[name]):
        categories, others = own[name].attribute.categories, other[name].attribute.categories
        if categories == others:
            unequal = [*_unequal(own[name], other[name], ("coding",)), *_unequal(own[name].coding, other[name].coding)]
            yield f"gives {kind} {name} another {_and(unequal)}"
        elif set(categories) == set(others):
            yield f"lists the categories {_listed(categories)} of {name} in another order"
        else:
            yield f"lists other categories of {name}, {_change(categories, others)}"
    if list(own) != list(other) and set(own) == set(other):
        yield f"lists the {kind}s {_listed(list(own))} in another order"


def _change(mine: Sequence[str], theirs: Sequence[str]) -> str:
    new = [category for category in mine if category not in set(theirs)]
    absent = [category for category in theirs if category not in set(mine)]
    parts = [f"with {_listed(new)}" if new else "", f"without {_listed(absent)}" if absent else ""]
    return " and ".join(part for part in parts if part)


def _of_members(
    kind: str, mine: Sequence[Member | AnalystMember], theirs: Sequence[Member | AnalystMember]
) -> Iterable[str]:
    """Yield what differs between parties of one kind, each by its name."""
    own, other = ({member.name: member for member in members} for members in (mine, theirs))
    yield from _absent_or_new(kind, own, other)
    for name in (name for name in own if name in other and own[name] != other[name]):
        yield f"gives {kind} {name} another {_and(_unequal(own[name], other[name]))}"
    if list(own) != list(other) and set(own) == set(other):
        yield f"lists the {kind}s {_listed(list(own))} in another order"


def _absent_or_new(kind: str, own: Mapping[str, object], other: Mapping[str, object]) -> Iterable[str]:
    yield from (f"has {kind} {name} more" for name in own if name not in other)
    yield from (f"lacks {kind} {name}" for name in other if name not in own)


def _unequal(mine: _Part, theirs: _Part, without: Sequence[str] = ()) -> list[str]:
    """Return the names of the fields in which two parts of a study differ."""
    names = [field.name for field in fields(mine) if field.compare and field.name not in without]
    return [name for name in names if getattr(mine, name) != getattr(theirs, name)]


def _and(names: Sequence[str]) -> str:
    return " and ".join(name.replace("_", " ") for name in names)


def _listed(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more
