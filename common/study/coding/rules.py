"""The rules of attributes and questions, read: which raw values are which categories."""

from collections.abc import Collection, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from veiltab.common.core.domain import ABSENT, MAX_CATEGORIES, Attribute
from veiltab.common.core.texts.nearest import known_names
from veiltab.common.dataclass import dataclass, field, replace
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.coding.coding import Coding, bin_labels
from veiltab.common.study.coding.dates import DateBins
from veiltab.common.study.keys import key, optional_key, read_table
from veiltab.common.study.naming import check_attribute_name, check_one_of
from veiltab.common.study.toml_fields import Fields

if TYPE_CHECKING:
    from veiltab.common.study.coding.grids import Grid

_MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeRule:
    """One attribute of the study: its alphabet, who owns it, and how the owner's column is coded.

    Args:
        owner: the curator that holds it, or the first of its holders.
        others: the other holders; each has the same column, coded alike.
    """

    attribute: Attribute
    owner: str
    column: str
    coding: Coding
    others: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_alphabet(self.attribute)
        if not self.column or self.column != self.column.strip():
            raise InvalidInputError("column names no column", remedy="Name the column as in the table's header.")

    @property
    def name(self) -> str:
        """Name of the attribute."""
        return self.attribute.name

    @property
    def holders(self) -> tuple[str, ...]:
        """The curators that hold it: its owner, then the others."""
        return (self.owner, *self.others)

    @property
    def held_by(self) -> str:
        """The names of its holders, for people."""
        return ", ".join(self.holders)

    def with_absent(self, *, absent: bool) -> "AttributeRule":
        """Return the rule with or without a last category for people of the hub who are not in the owner's table."""
        categories = (*self.coding.categories, ABSENT) if absent else self.coding.categories
        return replace(self, attribute=replace(self.attribute, categories=categories))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeQuestion:
    """A question to the nodes: an alphabet, and how a node's raw value becomes one of its symbols."""

    attribute: Attribute
    coding: Coding

    def __post_init__(self) -> None:
        _check_alphabet(self.attribute)

    @property
    def name(self) -> str:
        """Name of the question."""
        return self.attribute.name


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRule:
    """An [[attribute]] table as it is written; a [[question]] is one without owner and column."""

    name: str = field(metadata=key("a-z, 0-9, inner hyphens and underscores"))
    owner: str = optional_key("", "the curator whose column it is", "its `holders`")
    holders: tuple[str, ...] = optional_key(
        (),
        "in place of `owner`, two or more curators that each have such a column of people of their own; none of them is"
        " the hub, or `complete`",
        "none",
    )
    several: str = optional_key(
        "",
        'with `holders`, what becomes of a person whom several of them have: "apart" states that there is none (such a'
        ' person gets a wrong category, and nobody notices), "sum" adds their numbers (`integers` from 1; a sum above'
        " the last one is wrong)",
        "required with `holders`",
    )
    column: str | None = optional_key(None, "its column of the table", "the name")
    categories: tuple[str, ...] | None = optional_key(
        None,
        "its categories, in the order of every result; with bins, their names",
        "names of the bins, dates or integers",
    )
    kind: str = optional_key(
        "category",
        '"category", or "number": each value is rounded at random to a point of the `grid`, so that means stay',
    )
    grid: tuple[Decimal, ...] = optional_key(
        (), 'with kind = "number", its increasing points; with `step` or `decade_points` the ends alone', "none"
    )
    step: Decimal | None = optional_key(None, "equal steps between the two ends of the grid", "none")
    decade_points: int | None = optional_key(
        None,
        "points a decade, of two digits, between the two positive ends of the grid; a first point 0 may stand"
        " before them",
        "none",
    )
    outside: str = optional_key(
        "refuse", 'what becomes of numbers outside the grid: "refuse", or "clip" to its nearest end'
    )
    recode: tuple[tuple[str, str], ...] = optional_key((), "other raw values of the column, and their categories", "{}")
    bins: tuple[Decimal, ...] = optional_key(
        (), "increasing edges for a column of numbers: [low, high), the last bin with both its edges", "none"
    )
    dates: tuple[str, ...] = optional_key(
        (),
        "increasing edges for a column of dates: years, months or days, such as 1990, 2000-07 or 2000-07-15;"
        " a bin begins with the first day of its edge and ends before the next one",
        "none",
    )
    date_format: str = optional_key(
        "",
        "how the column writes its dates: %Y or %y, %m or %b (its name), %d, such as %d.%m.%Y; perhaps with a time (%H,"
        " %M, %S, %f)",
        "ISO 8601, such as 2000-07-15, with a time or without",
    )
    first_year: int | None = optional_key(
        None, "with %y, the earliest year that two digits mean: with 1926, 25 is 2025 and 26 is 1926", "none"
    )
    future_dates: bool = optional_key(default=False, meaning="whether dates after today are taken")
    integers: tuple[Decimal, ...] | None = optional_key(
        None, "first and last, for a column of whole numbers, each a category", "none"
    )
    missing: str = optional_key(
        "drop",
        'what becomes of a missing value: "drop" leaves the respondent out of every release, "category" adds a'
        " category, and the name of a category counts it there",
    )
    missing_category: str | None = optional_key(
        None, 'name of the category that missing = "category" adds', f'"{_MISSING}"'
    )
    missing_values: tuple[str, ...] = optional_key(("", "NA", "?"), "raw values that stand for a missing one")

    def coding(self) -> Coding:
        """Return how raw values become categories; binned categories without names are named after their edges."""
        integers, dates, grid = self._integers(), self._dates(), self._grid()
        missing, is_listed = self._missing_category()
        if integers and (self.bins or dates or self.categories is not None):
            raise InvalidInputError(
                f"integers stands beside {'dates' if dates else 'bins or categories'}", remedy="Keep one of them."
            )
        if grid and (self.bins or dates or integers or self.categories is not None):
            raise InvalidInputError("grid stands beside bins, dates, integers or categories", remedy="Keep the grid.")
        added = () if missing is None else (missing,)
        if grid and not is_listed and missing is not None and _is_number(missing):
            raise InvalidInputError(
                f"missing numbers would be counted as {missing!r}, which reads as a number",
                remedy='Give missing_category a name such as "missing".',
            )
        implied = integers or (dates.labels if dates else grid.labels if grid else bin_labels(self.bins))
        named = (*implied, *(added if is_listed else ())) if self.categories is None else self.categories
        if self.categories is None and not (implied or self.bins):
            raise InvalidInputError("categories is not there", remedy="Add categories: a list of texts.")
        _check_no_rule(named, is_listed=is_listed)
        if not is_listed and missing in named:
            raise InvalidInputError(
                f"{missing!r} is a category, and the one that missing values would add",
                remedy="Give the added one another name by missing_category.",
            )
        return Coding(
            categories=named if is_listed else (*named, *added),
            recode=self.recode,
            bins=self.bins,
            dates=dates,
            grid=grid,
            missing_values=self.missing_values,
            missing=missing,
        )

    def _missing_category(self) -> tuple[str | None, bool]:
        """Return the category of missing values (None to drop them), and whether it is among those that are listed."""
        if self.missing == "category":
            return _MISSING if self.missing_category is None else self.missing_category, False
        if self.missing_category is not None:
            raise InvalidInputError(
                'missing_category stands without missing = "category"', remedy="Keep both, or neither."
            )
        return (None if self.missing == "drop" else self.missing), True

    def _integers(self) -> tuple[str, ...]:
        """Return the categories that `integers = [first, last]` stands for; none without it."""
        ends = self.integers
        if ends is None:
            return ()
        if len(ends) != 2 or any(end != end.to_integral_value() for end in ends) or not ends[0] < ends[1]:
            raise InvalidInputError("integers is not [first, last]", remedy="Write it like [1, 100].")
        if ends[1] - ends[0] >= MAX_CATEGORIES:
            raise InvalidInputError(f"integers spans more than {MAX_CATEGORIES} categories", remedy="Use bins.")
        return tuple(str(number) for number in range(int(ends[0]), int(ends[1]) + 1))

    def _grid(self) -> "Grid | None":
        """Return the grid of numbers; None of categories."""
        check_one_of("kind", self.kind, ("category", "number"))
        check_one_of("outside", self.outside, ("refuse", "clip"))
        parts = (self.grid, self.step is not None, self.decade_points is not None, self.outside != "refuse")
        if self.kind == "category":
            if any(parts):
                raise InvalidInputError(
                    'grid, step, decade_points or outside stands without kind = "number"',
                    remedy="Keep both, or neither.",
                )
            return None
        if not self.grid:
            raise InvalidInputError('kind = "number" stands without grid', remedy="Write its points, or its ends.")
        if self.step is not None and self.decade_points is not None:
            raise InvalidInputError("step stands beside decade_points", remedy="Keep one of them.")
        from veiltab.common.study.coding.grids import Grid, decade_steps, equal_steps  # noqa: PLC0415 - not for tables without numbers

        points = self.grid
        if self.step is not None:
            if len(points) != 2:
                raise InvalidInputError("step takes the two ends of a grid", remedy="Write grid = [0, 100].")
            points = equal_steps(*points, self.step)
        if self.decade_points is not None:
            points = decade_steps(points, self.decade_points)
        return Grid(points=points, clips=self.outside == "clip")

    def _dates(self) -> DateBins | None:
        """Return the bins of dates; None without them."""
        if self.dates:
            return DateBins(
                edges=self.dates, format=self.date_format, first_year=self.first_year, future_dates=self.future_dates
            )
        if self.date_format or self.first_year is not None or self.future_dates:
            raise InvalidInputError(
                "date_format, first_year or future_dates stands without dates", remedy="Keep both, or neither."
            )
        return None


def check_holders(rule: AttributeRule, curators: Sequence[str], complete: Collection[str]) -> None:
    """Refuse an attribute that somebody holds who is not a curator, or whom several hold of whom one lacks nobody.

    Args:
        curators: names of all curators.
        complete: of those who lack nobody of the hub.
    """
    for holder in rule.holders:
        if holder not in curators:
            raise InvalidInputError(
                f"attribute {rule.name} has the owner {holder[:60]!r}, who is not a curator",
                remedy=known_names("Curators", curators, holder),
            )
        if rule.others and holder in complete:
            raise InvalidInputError(
                f"attribute {rule.name} has the holder {holder}, who lacks nobody of the hub",
                remedy="Give it an owner, or leave `complete` out of its [[curator]] table.",
            )


def attribute_rule(fields: Fields) -> AttributeRule:
    """Read an [[attribute]] table."""
    return fields.checked(lambda: _attribute_rule(read_table(WrittenRule, fields)))


def question_rule(fields: Fields) -> NodeQuestion:
    """Read a [[question]] table."""
    return fields.checked(
        lambda: _question(read_table(WrittenRule, fields, owner="", holders=(), several="", column=None))
    )


def _attribute_rule(rule: WrittenRule) -> AttributeRule:
    coding, column = rule.coding(), rule.name if rule.column is None else rule.column
    if ABSENT in coding.categories:
        raise InvalidInputError(
            f'a category is named "{ABSENT}"',
            remedy="People who are not in a table have it: name it otherwise, with a recode.",
        )
    owner, *others = _holders(rule)
    number = f"{owner}/{column}" if coding.grid else ""
    attribute = Attribute(name=rule.name, categories=coding.categories, number=number)
    if rule.several == "sum" and (coding.grid or attribute.integers is None or attribute.integers[0] != 1):
        raise InvalidInputError(
            'several = "sum" stands without whole numbers from 1', remedy="Write integers = [1, the largest sum]."
        )
    return AttributeRule(attribute=attribute, owner=owner, column=column, coding=coding, others=tuple(others))


def _holders(rule: WrittenRule) -> tuple[str, ...]:
    if bool(rule.owner) == bool(rule.holders):
        raise InvalidInputError("there is not one of owner and holders", remedy="Name its owner, or all its holders.")
    if rule.owner:
        if rule.several:
            raise InvalidInputError("several stands without holders", remedy="Keep both, or neither.")
        return (rule.owner,)
    if len(set(rule.holders)) != len(rule.holders) or len(rule.holders) < 2:
        raise InvalidInputError("holders are not two or more different curators", remedy="Name one by owner.")
    if rule.several == "first":
        raise InvalidInputError(
            'several = "first" is not possible: a holder would learn which of its people an earlier one has',
            remedy='Write "apart" if no person is at two of them, or "sum".',
        )
    check_one_of("several", rule.several, ("apart", "sum"))
    return rule.holders


def _question(rule: WrittenRule) -> NodeQuestion:
    coding = rule.coding()
    number = rule.name if coding.grid else ""
    return NodeQuestion(attribute=Attribute(name=rule.name, categories=coding.categories, number=number), coding=coding)


def _is_number(text: str) -> bool:
    """Return whether a text would be read as a number, also as NaN or an infinite one."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_no_rule(categories: tuple[str, ...], *, is_listed: bool) -> None:
    """Refuse a category with the name of a rule: `missing` could mean either."""
    for rule in ("drop",) if is_listed else ("drop", "category"):
        if rule in categories:
            raise InvalidInputError(
                f'a category is named "{rule}"', remedy=f'"{rule}" is a rule for missing values: name it otherwise.'
            )


def _check_alphabet(attribute: Attribute) -> None:
    check_attribute_name(attribute.name)
    if attribute.size < 2:
        raise InvalidInputError("there are fewer than two categories", remedy="Add the others.")
