"""The rules of attributes and questions, read: which raw values are which categories."""

from dataclasses import dataclass

from veiltab.common.core.domain import MAX_CATEGORIES, Attribute
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.coding.coding import Coding, bin_labels
from veiltab.common.study.coding.dates import DateBins
from veiltab.common.study.fields import Fields
from veiltab.common.study.naming import check_attribute_name


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeRule:
    """One attribute of the study: its alphabet, who owns it, and how the owner's column is coded."""

    attribute: Attribute
    owner: str
    column: str
    coding: Coding

    def __post_init__(self) -> None:
        check_attribute_name(self.attribute.name)
        if not self.column or self.column != self.column.strip():
            raise InvalidInputError("column names no column", remedy="Name the column as in the table's header.")
        if self.attribute.size < 2:
            raise InvalidInputError("an attribute needs at least two categories", remedy="Add the others.")

    @property
    def name(self) -> str:
        """Name of the attribute."""
        return self.attribute.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question to the nodes: an alphabet, and how a node's raw value becomes one of its symbols."""

    attribute: Attribute
    coding: Coding

    def __post_init__(self) -> None:
        check_attribute_name(self.attribute.name)
        if self.attribute.size < 2:
            raise InvalidInputError("a question needs at least two categories", remedy="Add the others.")

    @property
    def name(self) -> str:
        """Name of the question."""
        return self.attribute.name


def attribute_rule(fields: Fields) -> AttributeRule:
    """Read an [[attribute]] table."""
    name = fields.text("name")
    coding = fields.checked(lambda: _coding(fields))
    rule = fields.checked(
        lambda: AttributeRule(
            attribute=Attribute(name=name, categories=coding.categories),
            owner=fields.text("owner"),
            column=fields.text("column", name),
            coding=coding,
        )
    )
    fields.finish()
    return rule


def question_rule(fields: Fields) -> Question:
    """Read a [[question]] table."""
    name = fields.text("name")
    coding = fields.checked(lambda: _coding(fields))
    question = fields.checked(
        lambda: Question(attribute=Attribute(name=name, categories=coding.categories), coding=coding)
    )
    fields.finish()
    return question


def _coding(fields: Fields) -> Coding:
    """Read how raw values become categories; binned categories without names are named after their edges."""
    bins, integers, dates = fields.numbers("bins"), _integers(fields), _dates(fields)
    missing, is_listed = _missing_category(fields)
    if integers and (bins or dates or fields.holds("categories", object)):
        raise InvalidInputError(
            f"integers stands beside {'dates' if dates else 'bins or categories'}", remedy="Keep one of them."
        )
    added = () if missing is None else (missing,)
    implied = integers or (dates.labels if dates else bin_labels(bins))
    named = fields.texts("categories", (*implied, *(added if is_listed else ())) if bins or integers or dates else None)
    _check_no_rule(named, is_listed=is_listed)
    if not is_listed and missing in named:
        raise InvalidInputError(
            f"{missing!r} is a category, and the one that missing values would add",
            remedy="Give the added one another name by missing_category.",
        )
    return Coding(
        categories=named if is_listed else (*named, *added),
        recode=fields.pairs("recode"),
        bins=bins,
        dates=dates,
        missing_values=fields.texts("missing_values", ("", "NA", "?")),
        missing=missing,
    )


def _missing_category(fields: Fields) -> tuple[str | None, bool]:
    """Return the category of missing values (None to drop them), and whether it is among those that are listed."""
    rule = fields.text("missing", "drop")
    if rule == "category":
        return fields.text("missing_category", "missing"), False
    if fields.holds("missing_category", object):
        raise InvalidInputError('missing_category stands without missing = "category"', remedy="Keep both, or neither.")
    return (None if rule == "drop" else rule), True


def _check_no_rule(named: tuple[str, ...], *, is_listed: bool) -> None:
    """Refuse a category with the name of a rule: `missing` could mean either."""
    for rule in ("drop",) if is_listed else ("drop", "category"):
        if rule in named:
            raise InvalidInputError(
                f'a category is named "{rule}"', remedy=f'"{rule}" is a rule for missing values: name it otherwise.'
            )


def _integers(fields: Fields) -> tuple[str, ...]:
    """Return the categories that `integers = [first, last]` stands for; none without it."""
    if not fields.holds("integers", object):
        return ()
    ends = fields.numbers("integers")
    if len(ends) != 2 or any(end != end.to_integral_value() for end in ends) or not ends[0] < ends[1]:
        raise InvalidInputError("integers is not [first, last]", remedy="Write it like [1, 100].")
    if ends[1] - ends[0] >= MAX_CATEGORIES:
        raise InvalidInputError(f"integers spans more than {MAX_CATEGORIES} categories", remedy="Use bins.")
    return tuple(str(number) for number in range(int(ends[0]), int(ends[1]) + 1))


def _dates(fields: Fields) -> DateBins | None:
    """Return the bins of dates; None without them."""
    edges, date_format = fields.texts("dates", ()), fields.text("date_format", "")
    if edges:
        return DateBins(edges=edges, format=date_format)
    if date_format:
        raise InvalidInputError("date_format stands without dates", remedy="Keep both, or neither.")
    return None
