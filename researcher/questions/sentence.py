"""What is asked of a release, as one sentence: "mean of hours by education", "linear wage ~ age + education".

    QUESTION  [COMPARED of] ASKED [by A, B] [against A=X] [until T]
    COMPARED  difference | ratio | odds ratio; groups with the first or the one that stands after "against"
    ASKED     A, B | share of A, B | total of A=X|Y & B=Z, C=X | mean of A | sum of A | variance of A | median of A
              | quantile .9 of A | correlation of A and B | linear A ~ B + C | logistic A=X ~ B + C
              | loglinear ~ A * B | survival T:A=X | survival T:A=X ~ B + C | independence of A and B, C

"given" is another word for "by". Attributes alone ask for their table, and nothing at all for the only table of a
release. A name is the longest that fits, so attributes and categories may have any characters.
"""

from collections.abc import Callable, Mapping
from typing import Any

from veiltab.common.core.domain import Domain
from veiltab.common.core.texts.nearest import nearest
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.contrasts import Contrast
from veiltab.researcher.analysis.formula import parse_formula
from veiltab.researcher.analysis.names import Reader
from veiltab.researcher.analysis.subgroups import read_subgroup
from veiltab.researcher.numbers.linear import parse_linear
from veiltab.researcher.numbers.points import twin_of
from veiltab.researcher.questions.question import Question
from veiltab.researcher.survival.follow_up import read_ending

Fields = dict[str, Any]
"""Fields of a Question, `attributes` among them."""

_COMPARED = {f"{kind.value.replace('-', ' ')} of": kind for kind in Contrast}
_OF_NUMBERS = frozenset({Contrast.DIFFERENCE, Contrast.RATIO})


def parse_question(text: str, domain: Domain) -> Question:
    """Read a question.

    Args:
        domain: the attributes that it may name.

    Raises:
        InvalidInputError: it says which word is not understood, what was expected there, and what is near.
    """
    reader = Reader(text, domain, where="question")
    if reader.is_done:
        return Question()
    compared = next((phrase for phrase in _COMPARED if _takes(reader, phrase, domain)), "")
    phrase = next((one for one in _ASKED if one and _takes(reader, one, domain)), "")
    if not phrase and not reader.rest.startswith(domain.names):
        first = " ".join(reader.rest.split()[:2])
        starts = [*_COMPARED, *filter(None, _ASKED)]
        near = nearest([*starts, *domain.names], first) or nearest([*starts, *domain.names], first.split(" ")[0])
        remedy = f"{near}Questions begin with: {', '.join(starts)}. Attributes: {', '.join(domain.names)}."
        raise reader.refusal("a question or an attribute", remedy)
    rule, contrasts, follows = _ASKED[phrase]
    fields = rule(reader, domain)
    if phrase == "survival" and fields["survival"].formula:
        contrasts, follows = frozenset({Contrast.RATIO}), ()
    if compared and _COMPARED[compared] not in contrasts:
        starts = [words for words, kind in _COMPARED.items() if kind in contrasts]
        remedy = f"It has: {', '.join(starts)}." if starts else "Leave that out."
        raise InvalidInputError(f"{phrase!r} has no {compared.removesuffix(' of')}", where="question", remedy=remedy)
    given = reader.names() if "by" in follows and reader.word("by", "given") else ()
    reference = _reference(reader) if compared and given and reader.word("against") else {}
    until = reader.number() if "until" in follows and reader.word("until") else None
    if not reader.is_done:
        more = [*follows, *(["against"] if compared and given and not reference else [])]
        raise reader.refusal(" or ".join([*more, "the end"]))
    attributes = tuple(dict.fromkeys((*given, *fields.pop("attributes"))))
    contrast = _COMPARED[compared] if compared else None
    return Question(attributes=attributes, given=given, contrast=contrast, reference=reference, until=until, **fields)


def _takes(reader: Reader, phrase: str, domain: Domain) -> bool:
    """Read a phrase, unless an attribute with a longer name comes next."""
    longer = tuple(name for name in domain.names if len(name) > len(phrase))
    return not reader.rest.startswith(longer) and reader.word(phrase)


def _reference(reader: Reader) -> dict[str, str]:
    """Read the category of each attribute in the group that others are compared with."""
    subgroup = read_subgroup(reader)
    several = [name for name, categories in subgroup.items() if len(categories) > 1]
    if several:
        raise InvalidInputError(f"the reference has several categories of {several[0]}", where="question")
    return {name: one for name, (one, *_) in subgroup.items()}


def _shares(reader: Reader, _domain: Domain) -> Fields:
    return {"attributes": reader.names()}


def _totals(reader: Reader, domain: Domain) -> Fields:
    subgroups = [read_subgroup(reader)]
    while reader.takes(","):
        subgroups.append(read_subgroup(reader))
    return {"attributes": _in_order({name for one in subgroups for name in one}, domain), "totals": tuple(subgroups)}


def _number(field: str) -> Callable[[Reader, Domain], Fields]:
    def read(reader: Reader, domain: Domain) -> Fields:
        attribute = reader.attribute()
        twins = (twin_of(attribute, domain).name,) if field == "variance" else ()
        return {"attributes": (attribute.name, *twins), field: attribute.name}

    return read


def _quantile(reader: Reader, domain: Domain) -> Fields:
    share = reader.number()
    if not 0 <= share <= 1:
        raise InvalidInputError(f"{share:g} is not between 0 and 1", where="question", remedy="The median is .5.")
    if not reader.word("of"):
        raise reader.refusal("of", 'Write for example "quantile .9 of wage".')
    return {**_number("of")(reader, domain), "quantile": share}


def _correlation(reader: Reader, _domain: Domain) -> Fields:
    first = reader.attribute()
    if not (reader.word("and") or reader.takes(",")):
        raise reader.refusal("and", 'Write for example "correlation of wage and hours".')
    both = (first.name, reader.attribute().name)
    return {"attributes": both, "correlation": both}


def _linear(reader: Reader, domain: Domain) -> Fields:
    text = reader.all()
    return {"attributes": tuple(one.name for one in parse_linear(text, domain)), "linear": text}


def _loglinear(reader: Reader, domain: Domain) -> Fields:
    text = f"~ {reader.all().removeprefix('~')}"
    return {"attributes": _in_order({*parse_formula(text, domain).attributes}, domain), "model": text}


def _logistic(reader: Reader, domain: Domain) -> Fields:
    text = reader.all()
    formula = parse_formula(text, domain)
    return {"attributes": _in_order({formula.response, *formula.attributes}, domain), "model": text}


def _survival(reader: Reader, domain: Domain) -> Fields:
    ending = read_ending(reader, domain)
    explaining = ending.formula.attributes if ending.formula else ()
    return {"attributes": (*explaining, ending.time, ending.event), "survival": ending}


def _independence(reader: Reader, _domain: Domain) -> Fields:
    left = reader.names()
    if not reader.word("and"):
        raise reader.refusal("and", 'Write for example "independence of wage and education, age".')
    right = reader.names()
    both = set(left) & set(right)
    if both:
        raise InvalidInputError(f"{min(both)} stands on both sides", where="question")
    return {"attributes": (*left, *right), "independence": left}


def _in_order(names: set[str], domain: Domain) -> tuple[str, ...]:
    return tuple(name for name in domain.names if name in names)


_ASKED: Mapping[str, tuple[Callable[[Reader, Domain], Fields], frozenset[Contrast], tuple[str, ...]]] = {
    "": (_shares, frozenset(Contrast), ("by",)),
    "share of": (_shares, frozenset(Contrast), ("by",)),
    "total of": (_totals, _OF_NUMBERS, ()),
    "mean of": (_number("mean"), _OF_NUMBERS, ("by",)),
    "sum of": (_number("sum"), frozenset(), ("by",)),
    "variance of": (_number("variance"), frozenset(), ("by",)),
    "median of": (lambda reader, domain: {**_number("of")(reader, domain), "quantile": 0.5}, frozenset(), ("by",)),
    "quantile": (_quantile, frozenset(), ("by",)),
    "correlation of": (_correlation, frozenset(), ()),
    "linear": (_linear, frozenset(), ()),
    "logistic": (_logistic, frozenset({Contrast.ODDS_RATIO}), ()),
    "loglinear": (_loglinear, frozenset(), ()),
    "survival": (_survival, frozenset(), ("by", "until")),
    "independence of": (_independence, frozenset(), ()),
}
"""Phrase -> what reads the rest, how its answers compare, and which words may follow."""
