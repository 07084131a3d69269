"""How each column of a curator's table may enter a study, proposed from its profile, each with its reasons.

A study file is public among the parties. So bins have round edges, whole numbers are listed without gaps, and what a
proposal would say of a few people is a warning.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import count

from veiltab.common.core.domain import ABSENT
from veiltab.common.core.texts.spelling import quoted, shown
from veiltab.common.dataclass import dataclass, replace
from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.dominance import dominating
from veiltab.common.study.coding.coding import NUMBER
from veiltab.common.study.coding.rules import AttributeRule, attribute_rule
from veiltab.common.study.toml_fields import Fields
from veiltab.curator.check.date_columns import date_coding, first_of, joined_format, reason_of_dates
from veiltab.curator.check.profile import ColumnProfile, far_numbers
from veiltab.curator.check.round_bins import quantile_edges, round_edges
from veiltab.curator.formats.columns.refusals import rows_have
from veiltab.curator.table.column_coding import ColumnReading

MOST_CATEGORIES = 64
"""Most categories that are proposed for a column of texts."""

FEW_ROWS = 5
"""A category with fewer rows comes with a warning."""

_ID_NAME = re.compile(
    r"(.*[\W_])?(id|ids|pid|uid|uuid|key|nr|no|num|number|person|respondent|patient|case|rownames?|index)",
    re.IGNORECASE,
)
_MOST_INTEGERS, _MOST_TIMES = 12, 60
_MISSING_SHARE = 0.01
_MOSTLY = 0.9
_USUAL_MARKERS = ("", "NA", "?")
_TAKEN = frozenset({"drop", "category", ABSENT})
_CODING = frozenset({"integers", "recode", "bins", "dates", "kind", "grid", "outside"})
_SHOWN = 5
_LARGEST = Decimal(10) ** 15

_NONE: Mapping[str, int] = {}

_Table = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeProposal:
    """A column as an attribute.

    Args:
        table: its [[attribute]] table, as plain data.
        reasons: why it is proposed so.
        warnings: what it would tell the other parties of few people, or of the data.
        numbers: smallest and largest number of the column, if it holds numbers.
    """

    table: Mapping[str, object]
    rule: AttributeRule
    reasons: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    numbers: tuple[Decimal, Decimal] | None = None

    @property
    def name(self) -> str:
        """Name of the attribute."""
        return self.rule.name

    @property
    def edges_example(self) -> str:
        """Edges as a person may type them; empty where the column has none."""
        if "dates" in self.table:
            return "1990 2000-07 2010"
        return "" if self.numbers is None else "0 18 65"

    def as_dict(self) -> dict[str, object]:
        """Return the proposal as plain data for JSON."""
        return {**self.table, "reasons": list(self.reasons), "warnings": list(self.warnings)}

    def as_text(self) -> str:
        """Return the proposal for people."""
        lines = [
            f"{self.name} (column {self.rule.column})",
            f"  categories: {', '.join(map(shown, self.rule.coding.categories))}",
        ]
        recode = self.rule.coding.recode
        lines += [f"  recode: {quoted(raw)} is {category}" for raw, category in recode[:_SHOWN]]
        if len(recode) > _SHOWN:
            lines.append(f"  recode: and {len(recode) - _SHOWN} more")
        lines += [f"  why: {reason}" for reason in self.reasons]
        lines += [f"  warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)

    def with_grid(self, words: Sequence[str]) -> "AttributeProposal":
        """Return the proposal as numbers on a grid whose points a person chose; numbers outside become its ends.

        Raises:
            InvalidInputError: the column has no numbers, or the points do not increase.
        """
        if self.numbers is None:
            raise InvalidInputError("this is not an answer", remedy="A column without numbers has no grid.")
        points = _edges(words)
        whole = self._with_coding({"kind": "number", "grid": points})
        if points[0] <= self.numbers[0] <= self.numbers[1] <= points[-1]:
            return replace(whole, reasons=("points as typed",))
        warning = "numbers outside become an end of the grid, which no interval of a mean knows; `curator check` counts"
        clipped = self._with_coding({"kind": "number", "grid": points, "outside": "clip"})
        return replace(clipped, reasons=("points as typed",), warnings=(f"{warning} them",))

    def with_edges(self, words: Sequence[str]) -> "AttributeProposal":
        """Return the proposal with the edges that a person chose.

        Raises:
            InvalidInputError: the column has no numbers and no dates, the edges do not increase, or numbers of the
                column lie outside them.
        """
        if "dates" in self.table:
            return self._with_coding({"dates": list(words)})
        if self.numbers is None:
            raise InvalidInputError("this is not an answer", remedy="Type y or n; a column of texts has no edges.")
        edges = _edges(words)
        changed = self._with_coding({"bins": edges})
        if not edges[0] <= self.numbers[0] <= self.numbers[1] <= edges[-1]:
            raise InvalidInputError("numbers of the column lie outside these edges", remedy="Move the outer ones.")
        return changed

    def _with_coding(self, coding: Mapping[str, object]) -> "AttributeProposal":
        rest = {key: value for key, value in self.table.items() if key not in _CODING}
        table = {**rest, **coding}
        return replace(self, table=table, rule=_rule(table), reasons=("edges as typed",), warnings=())

    def with_counts(self, reading: ColumnReading) -> "AttributeProposal":
        """Return the proposal with a warning for each category that few rows have, if listing it says that it occurs.

        A bin, or a whole number, between others is listed whether it occurs or not.
        """
        counts = dict(zip(self.rule.coding.categories, reading.counts, strict=True))
        own = [category for category in counts if category != self.rule.coding.missing]
        telling = own if "categories" in self.table else [own[0], own[-1]]
        # Points of a grid are round numbers, or a person's.
        few = [category for category in telling if counts[category] < FEW_ROWS and "grid" not in self.table]
        edge = "; type edges that are usual in your field" if self.numbers else ""
        warnings = [
            f"{rows_have(counts[category])} {quoted(category)}; the study file tells every party that such a value"
            f" occurs{edge}"
            for category in few[:_SHOWN]
        ]
        if len(few) > _SHOWN:
            more = len(few) - _SHOWN
            warnings.append(f"{more} more {'category has' if more == 1 else 'categories have'} as few rows")
        return replace(self, warnings=(*self.warnings, *warnings))


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """A column that is proposed to stay out of the study, and why."""

    column: str
    reason: str


def strays(profile: ColumnProfile) -> Mapping[str, int]:
    """Return the few values of a column of numbers, or of dates, that are none, each with its first row."""
    if len(profile.values) <= MOST_CATEGORIES:
        return {}
    for rows, others in ((profile.numbers, profile.no_numbers), (profile.dates, profile.no_dates)):
        if _MOSTLY * profile.present <= rows < profile.present and len(others) <= _SHOWN:
            return others
    return {}


def looks_like_id(column: str) -> bool:
    """Return whether a column's name is one that ids often have."""
    return _ID_NAME.fullmatch(column) is not None


def propose(  # noqa: PLR0913 - one argument a choice
    profile: ColumnProfile,
    *,
    name: str,
    owner: str,
    use_quantiles: bool = False,
    as_numbers: bool = False,
    strays: Mapping[str, int] = _NONE,
) -> AttributeProposal | Omission:
    """Propose how a column becomes an attribute, or why it does not.

    Args:
        use_quantiles: whether bins and grids may have edges at quantiles of the data.
        as_numbers: whether numbers are rounded to a grid, for means, instead of being put into bins.
        strays: values that are taken for missing ones as they fit no others -> the first row of each.
    """
    are_numbers, are_dates = profile.numbers == profile.present, profile.dates == profile.present
    spellings = {} if are_numbers or are_dates else _spellings(profile)
    reason = _reason_to_omit(profile, len(spellings), are_numbers=are_numbers)
    if reason:
        return Omission(column=profile.column, reason=reason)
    if are_dates:
        coding, reasons = date_coding(profile)
    elif are_numbers:
        coding, reasons = _number_coding(profile, use_quantiles=use_quantiles, as_numbers=as_numbers)
    else:
        coding, reasons = _text_coding(profile, spellings)
    missing, more = _missing_rule(profile, coding)
    column = {"column": profile.column} if name != profile.column else {}
    table = {"name": name, "owner": owner, **column, **coding, **missing}
    try:
        rule = _rule(table)
    except InvalidInputError as error:
        return Omission(column=profile.column, reason=error.problem)
    public = ("the edges are quantiles of this table, and every party reads them",)
    kind = "date until today" if are_dates else "number"
    odd = [
        f"{quoted(one)} (row {row}) is not a {kind}, and counts as missing: every party reads it in missing_values"
        for one, row in strays.items()
    ]
    return AttributeProposal(
        table=table,
        rule=rule,
        reasons=(*reasons, *more),
        warnings=(
            *(public if {"bins", "grid"} & coding.keys() and use_quantiles else ()),
            *odd,
            *(_code_warnings(profile, are_dates=are_dates) if are_dates or are_numbers else ()),
        ),
        numbers=_range(profile) if are_numbers and not are_dates else None,
    )


def _code_warnings(profile: ColumnProfile, *, are_dates: bool) -> Iterator[str]:
    """Yield what may stand for a missing value: dates that far more rows have, numbers far from all others."""
    how = "far more than have others" if are_dates else "far from all other numbers"
    for value, rows in dominating(profile.values) if are_dates else far_numbers(profile.sample):
        yield (
            f"{rows_have(rows)} {quoted(value)}, {how}: if it stands for a missing value, say so with"
            f" --missing {quoted(f'{profile.column}={value}')}"
        )


def _rule(table: Mapping[str, object]) -> AttributeRule:
    return attribute_rule(Fields(table, f"[[attribute]] {table['name']}"))


def _range(profile: ColumnProfile) -> tuple[Decimal, Decimal]:
    """Return the smallest and the largest number of a column that holds some."""
    if profile.low is None or profile.high is None:
        raise ValueError(profile.column)
    return profile.low, profile.high


def _spellings(profile: ColumnProfile) -> dict[str, list[str]]:
    """Return the spellings of each text, the most frequent one first; letter case and white space do not count."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for value in sorted(profile.values, key=lambda value: (-profile.values[value], value)):
        groups[_clean(value).casefold()].append(value)
    return dict(groups)


def _clean(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _reason_to_omit(profile: ColumnProfile, texts: int, *, are_numbers: bool) -> str:
    """Return why a column is not an attribute; "" if it may be one."""
    if not profile.present:
        return "no row has a value"
    if texts == 1 or (are_numbers and profile.low == profile.high):
        return "all rows have the same value"
    if profile.unclear_numbers:
        return profile.unclear_numbers
    if profile.dates + profile.after_today == profile.present:
        return reason_of_dates(profile)
    return _reason_of_numbers(profile) if are_numbers else _reason_of_texts(profile, texts)


def _reason_of_numbers(profile: ColumnProfile) -> str:
    low, high = _range(profile)
    if date_format := joined_format(profile):
        return f"its numbers read as dates written {date_format}: write `dates` and `date_format`"
    if max(-low, high) > _LARGEST:
        return "its numbers are too large for bins"
    if profile.is_unique and looks_like_id(profile.column):
        return "every row has a different value, as ids have"
    if profile.is_unique and profile.are_whole and high - low + 1 == profile.rows > _MOST_INTEGERS:
        return "it numbers the rows"
    return ""


def _reason_of_texts(profile: ColumnProfile, texts: int) -> str:
    if texts > MOST_CATEGORIES and profile.numbers >= _MOSTLY * profile.present:
        return _reason_of_strays("numbers", profile.numbers, profile.present, profile.no_numbers)
    if texts > MOST_CATEGORIES and profile.dates >= _MOSTLY * profile.present:
        return _reason_of_strays("dates", profile.dates, profile.present, profile.no_dates)
    if texts >= _MOSTLY * profile.counted and profile.missing_rows > profile.present:
        return f"{profile.missing_rows:,} of {profile.rows:,} rows miss it, as below a merged cell: fill each row"
    if texts >= _MOSTLY * profile.counted:
        return "almost every row has a text of its own, which would name people"
    if texts > MOST_CATEGORIES:
        return f"{texts:,} different texts, and {MOST_CATEGORIES} at most are proposed: put them into groups first"
    return ""


def _reason_of_strays(what: str, rows: int, present: int, others: Mapping[str, int]) -> str:
    return (
        f"{rows:,} of {present:,} values are {what}; the first that is none is {first_of(others)}."
        " Correct them, or name those that stand for a missing value with --missing"
    )


def _edges(words: Sequence[str]) -> list[Decimal]:
    """Return the edges that a person typed."""
    try:
        return [Decimal(word) for word in words]
    except InvalidOperation:
        raise InvalidInputError("this is not an answer", remedy="Type y or n, or edges such as 0 18 65.") from None


def _text_coding(profile: ColumnProfile, spellings: Mapping[str, Sequence[str]]) -> tuple[_Table, list[str]]:
    """Return categories, and recodes for other spellings of them."""
    labels = {text: _label(spellings[text][0]) for text in sorted(spellings, key=_natural_order)}
    recode = {
        spelling: labels[text] for text in labels for spelling in sorted(spellings[text]) if spelling != labels[text]
    }
    reasons = [f"{len(labels)} different texts"]
    if recode:
        reasons.append(f"letter case and white space do not count; spellings recoded: {len(recode)}")
    if profile.numbers or profile.dates:
        advice = f"name texts that mean a missing value, as --missing {quoted(profile.column + '=TEXT')}"
        reasons.append(f"not all are numbers, so there are no bins; {advice}")
    table: _Table = {"categories": list(labels.values())}
    return table | ({"recode": recode} if recode else {}), reasons


def _natural_order(text: str) -> list[tuple[int, int, str]]:
    """Return a key by which numbers inside texts are in their own order."""
    parts = re.split(r"([0-9]+)", text)
    return [(0, int(part), "") if place % 2 else (1, 0, part) for place, part in enumerate(parts) if part]


def _label(spelling: str) -> str:
    """Return a spelling as a category, by another name if a study means something else by it."""
    text = _clean(spelling)
    return f"{text} (value)" if text in _TAKEN else text


def _number_coding(profile: ColumnProfile, *, use_quantiles: bool, as_numbers: bool) -> tuple[_Table, list[str]]:
    """Return whole numbers where there are few, and bins or a grid otherwise."""
    low, high = _range(profile)
    if profile.are_whole and high - low < _MOST_INTEGERS and all(map(NUMBER.fullmatch, profile.values)):
        table: _Table = {"integers": [int(low), int(high)]}
        recode = {value: number for value in sorted(profile.values) if (number := str(int(Decimal(value)))) != value}
        reasons = [f"whole numbers from {int(low)} to {int(high)}, each a category"]
        return table | ({"recode": recode} if recode else {}), reasons
    edges = quantile_edges if use_quantiles else round_edges
    bins = edges(low, high, profile.sample, are_whole=profile.are_whole)
    kind = "quartiles of the table, to two digits" if use_quantiles else "round numbers, not values of the table"
    comma = ", with a decimal comma" if profile.decimal == "comma" else ""
    reason = f"numbers from {low} to {high}{comma}; the"
    hint = f"; integers = [{int(low)}, {int(high)}] instead keeps each number, as survival curves want their times"
    hint *= profile.are_whole and high - low < _MOST_TIMES
    if as_numbers:
        return {"kind": "number", "grid": list(bins)}, [f"{reason} points of the grid are {kind}; means stay{hint}"]
    return {"bins": list(bins)}, [f"{reason} edges are {kind}{hint}"]


def _missing_rule(profile: ColumnProfile, coding: Mapping[str, object]) -> tuple[_Table, list[str]]:
    """Return the rule for missing values: few are dropped, more become a category."""
    markers = [*_USUAL_MARKERS, *sorted(profile.missing.keys() - set(_USUAL_MARKERS))]
    table: _Table = {"missing_values": markers} if len(markers) > len(_USUAL_MARKERS) else {}
    rows = profile.missing_rows
    if not rows:
        return table, []
    miss, leave = ("misses", "leaves") if rows == 1 else ("miss", "leave")
    share = f"{rows:,} of {profile.rows:,} rows {miss} it"
    if rows < FEW_ROWS or rows <= _MISSING_SHARE * profile.rows:
        return table, [f"{share}, and {leave} every release"]
    categories = coding.get("categories")
    names = categories if isinstance(categories, list) else []
    name = next(name for number in count(1) if (name := f"missing-{number}" if number > 1 else "missing") not in names)
    table |= {"missing": "category"} | ({"missing_category": name} if name != "missing" else {})
    models = '; linear models and correlations of it need missing = "drop"' if "grid" in coding else ""
    return table, [f"{share}, and stay as {name!r}{models}"]
