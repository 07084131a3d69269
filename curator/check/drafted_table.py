"""A curator's part of a study, proposed from its own table: what names its respondents, and its attributes.

What is proposed quotes the table, and is for the curator's own terminal. Only what a person confirms leaves it.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from types import MappingProxyType

from veiltab.common.core.texts.record_fields import field_values
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.forms import DECIMALS, for_others
from veiltab.common.study.members import NORMALISE_STEPS, check_once
from veiltab.common.study.naming import attribute_name, check_name, is_attribute_name
from veiltab.curator.check.date_columns import joined_format
from veiltab.curator.check.id_forms import (
    FormPart,
    FormReader,
    column_forms,
    distinct_after,
    few_alike,
    forms_text,
    plain_forms,
)
from veiltab.curator.check.identity_fields import identity_of
from veiltab.curator.check.identity_forms import identity_forms, kinds_of
from veiltab.curator.check.profile import ColumnProfile, profile_columns
from veiltab.curator.check.proposal import AttributeProposal, Omission, looks_like_id, propose, strays
from veiltab.curator.check.table_ends import check_ends
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.columns.named_columns import read_header
from veiltab.curator.formats.columns.refusals import refusal
from veiltab.curator.formats.columns.source import Source
from veiltab.curator.formats.opening import open_table
from veiltab.curator.table.table_reading import one_row_each, read_respondents

_NONE: Mapping[str, Collection[str]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class IdProposal:
    """What names the respondents of a table.

    Args:
        normalise: steps that make spellings of one id agree.
        forms: how the ids of each column, or the identity fields, are written.
        distinct_after: steps of normalisation after which all ids still differ.
        reason: why these columns are proposed.
        identity: field -> the columns that make it up, in the place of ids; none if there are ids.
        date_order: how dates of birth are written.
        first_year: the earliest year that two digits mean there.
    """

    columns: tuple[str, ...]
    normalise: tuple[str, ...]
    forms: Mapping[str, tuple[FormPart, ...]]
    distinct_after: tuple[str, ...]
    reason: str
    identity: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    date_order: str = ""
    first_year: int | None = None
    notes: tuple[str, ...] = ()

    def as_text(self) -> str:
        """Return the proposal for people."""
        if self.identity:
            fields = ", ".join(f"{name} from {' + '.join(columns)}" for name, columns in self.identity.items())
            notes = "".join(f"\n  note: {note}" for note in self.notes)
            lines = "".join(f"\n  {name}: written as {forms_text(parts)}" for name, parts in self.forms.items())
            return f"identity: {fields}{lines}\n  dates in the order {self.date_order}\n  why: {self.reason}{notes}"
        forms = ", ".join(f"{column}, written as {forms_text(parts)}" for column, parts in self.forms.items())
        steps = f"\n  normalised by {', '.join(self.normalise)}" if self.normalise != NORMALISE_STEPS else ""
        few = "".join(f"\n  note: {note}" for name, parts in self.forms.items() for note in few_alike(name, parts))
        return f"ids: {forms}{steps}\n  why: {self.reason}{few}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProposal:
    """A curator's part of a study.

    Args:
        rows: rows of the table.
        respondents: rows that would stay in a release: none of the proposed attributes drops them.
        attributes: in the order of the columns.
    """

    curator: str
    description: str
    rows: int
    respondents: int
    ids: IdProposal
    attributes: tuple[AttributeProposal, ...]
    omissions: tuple[Omission, ...]

    def draft(self) -> dict[str, dict[str, object] | list[Mapping[str, object]]]:
        """Return the tables of the draft: all that leaves the curator."""
        ids: dict[str, object] = {
            "id_columns": list(self.ids.columns),
            "normalise": list(self.ids.normalise),
            "distinct_after": list(self.ids.distinct_after),
        }
        century = {} if self.ids.first_year is None else {"first_year": self.ids.first_year}
        identity = {"identity": dict(self.ids.identity), "date_order": self.ids.date_order, **century}
        forms = {name: dict(for_others(plain_forms(parts))) for name, parts in self.ids.forms.items()}
        head = {"curator": self.curator, **(identity if self.ids.identity else ids), "forms": forms}
        return {"draft": head, "attribute": [proposal.table for proposal in self.attributes]}

    def as_dict(self) -> dict[str, object]:
        """Return the proposal as plain data for JSON."""
        return field_values(self) | {"attributes": [proposal.as_dict() for proposal in self.attributes]}


def propose_table(  # noqa: PLR0913 - what a person may say of a table
    table: TableAddress | Path,
    curator: str,
    *,
    id_columns: Sequence[str] = (),
    without: Collection[str] = (),
    use_quantiles: bool = False,
    as_numbers: bool = False,
    missing: Mapping[str, Collection[str]] = _NONE,
    with_identity: bool = False,
    date_order: str = "",
    first_year: int | None = None,
    fields: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    is_as_it_is: bool = False,
) -> TableProposal:
    """Propose a curator's part of a study from its table.

    Args:
        id_columns: the columns that name a respondent, if a person says so.
        use_quantiles: whether bins and grids may have edges at quantiles of the data.
        as_numbers: whether numbers are rounded to a grid, for means, instead of being put into bins.
        missing: column -> texts that stand for a missing value there, beside the usual ones.
        with_identity: whether names, birth dates and the like name a person, in the place of an id.
        date_order: how dates of birth are written, if a person says so.
        first_year: the earliest year that two digits mean, if a person says so.
        fields: identity field -> the columns that make it up, where a person says so.
        is_as_it_is: whether the first row holds names and the others people, however they look.

    Raises:
        InvalidInputError: the table cannot be read, its first or last rows seem to be something else, no column names a
            respondent, or some ids are empty or repeated.
    """
    check_name("--name", curator)
    source = open_table(table)
    header = read_header(source)
    _check_columns(source.where, header, "--id and --without", [*id_columns, *without])
    field_columns = [column for columns in fields.values() for column in columns]
    _check_columns(source.where, header, "--field and --without", [*field_columns, *without])
    _check_columns(source.where, header, "--missing", list(missing))
    unreadable = {name: f"it has the type {kind}" for name, kind in header.items() if kind}
    reasons = unreadable | dict.fromkeys(without, "left out by --without")
    if "" in header:
        nameless = sum(not column.name for column in source.columns)
        reasons[""] = f"columns without a name: {nameless}; they stay out until the header names them"
    decimal = TableAddress.of(table).decimal
    present = [name for name in header if name not in reasons]
    profiles = profile_columns(source, present, decimal, missing, first_year)
    if not profiles or not profiles[0].rows:
        raise refusal(source.where, "the file has no rows", "Give a table with at least one row.")
    if not is_as_it_is:
        check_ends(source.where, [column.name for column in source.columns], profiles)
    identity = identity_of(source.where, profiles, date_order, fields, first_year) if with_identity else None
    if identity is not None:
        columns, reason = identity.columns, "names and values of these columns fit, or a person named them"
    else:
        columns, reason = (tuple(id_columns), "named by --id") if id_columns else _id_column(source.where, profiles)
    odd = {one.column: texts for one in profiles if one.column not in columns and (texts := strays(one))}
    if odd:  # as they are taken for missing ones, the rest is looked at once more
        more = {name: {*missing.get(name, ()), *texts} for name, texts in odd.items()}
        again = {one.column: one for one in profile_columns(source, list(odd), decimal, more, first_year)}
        profiles = tuple(again.get(one.column, one) for one in profiles)
    propose_one = partial(propose, owner=curator, use_quantiles=use_quantiles, as_numbers=as_numbers)
    proposals = _proposals(profiles, columns, odd, propose_one)
    proposals |= {name: Omission(column=name, reason=why) for name, why in reasons.items()}
    ordered = [proposals[name] for name in header if name in proposals]
    attributes = [proposal for proposal in ordered if isinstance(proposal, AttributeProposal)]
    steps = _steps(table, source, columns) if identity is None else ()
    groups = tuple(identity.fields.values()) if identity else ()
    rules = [proposal.rule for proposal in attributes]
    reading = read_respondents(table, columns, steps, rules, source=source, identity=groups)
    if reading.errors:
        raise reading.errors[0]
    ids = reading.respondents.all_ids
    if identity:
        forms, distinct = identity_forms(ids(), kinds_of(identity.fields)), tuple[str, ...]()
    else:
        forms = dict(zip(columns, column_forms(ids(), len(columns)), strict=True))
        distinct = distinct_after(ids, len(columns), forms)
    return TableProposal(
        curator=curator,
        description=reading.description,
        rows=reading.rows_read,
        respondents=len(reading.respondents),
        ids=IdProposal(
            columns=columns,
            normalise=steps,
            forms=forms,
            distinct_after=distinct,
            reason=reason,
            identity=identity.fields if identity else {},
            date_order=identity.date_order if identity else "",
            first_year=first_year,
            notes=identity.notes if identity else (),
        ),
        attributes=tuple(one.with_counts(column) for one, column in zip(attributes, reading.columns, strict=True)),
        omissions=tuple(proposal for proposal in ordered if isinstance(proposal, Omission)),
    )


def _steps(table: TableAddress | Path, source: Source, id_columns: Sequence[str]) -> tuple[str, ...]:
    """Return the steps that ids need: those written as 1234.0 become whole numbers."""
    readers = {name: FormReader() for name in id_columns}
    watch = {name: reader.take for name, reader in readers.items()}
    raw = read_respondents(table, id_columns, (*NORMALISE_STEPS, "integer"), (), watch=watch, source=source)
    forms = {part.form for reader in readers.values() for part in reader.parts()}
    return (*NORMALISE_STEPS, "integer") if DECIMALS in forms and not raw.errors else NORMALISE_STEPS


def _check_columns(where: str, header: Collection[str], options: str, named: Sequence[str]) -> None:
    """Refuse columns that the options name twice, or that are not there."""
    check_once(f"{options} name", named, "Name each column once.")
    for name in named:
        if name not in header:
            raise InvalidInputError(
                f"column {name!r} is not in the header", where=where, remedy=f"Columns: {', '.join(header)}."
            )


def _proposals(
    profiles: Sequence[ColumnProfile],
    id_columns: Collection[str],
    odd: Mapping[str, Mapping[str, int]],
    propose_one: Callable[..., AttributeProposal | Omission],
) -> dict[str, AttributeProposal | Omission]:
    """Return a proposal for each column that is not an id, by the column."""
    proposals: dict[str, AttributeProposal | Omission] = {}
    names: set[str] = set()
    for profile in profiles:
        column = profile.column
        if column not in id_columns:
            name = _free_name(column, names)
            names.add(name)
            proposals[column] = propose_one(profile, name=name, strays=odd.get(column, {}))
    return proposals


def _free_name(column: str, others: Collection[str]) -> str:
    """Return an attribute name for a column, with a number where another column has it."""
    lower = column.lower()
    name = lower if is_attribute_name(lower) else re.sub("-+", "-", attribute_name(column))
    names = (name if number == 1 else f"{name[:34]}-{number}" for number in count(1))
    return next(name for name in names if name not in others)


def _id_column(where: str, profiles: Sequence[ColumnProfile]) -> tuple[tuple[str], str]:
    """Return the column that names the respondents: a different value in every row, and best a name that says so."""
    unique = [profile for profile in profiles if profile.is_unique]
    ids = [profile for profile in unique if looks_like_id(profile.column)]
    candidates = ids or [profile for profile in unique if profile.are_whole]
    if ids or (len(candidates) == 1 and not _why_no_id(candidates[0])):
        return (candidates[0].column,), "every row has a different value"
    repeating = [one.column for one in profiles if looks_like_id(one.column)]
    many = f"{one_row_each(repeating[:1])} " if repeating else ""
    notes = (f"{column} repeats values, or misses some" for column in repeating)
    problem = "; ".join(["no column has a different value in every row", *notes])
    names = ", ".join(one.column for one in candidates)
    if len(candidates) > 1:
        problem = f"several columns have a different value in every row: {names}"
    elif candidates:
        problem = f"only {names} has a different value in every row, and its values {_why_no_id(candidates[0])}"
    raise InvalidInputError(
        problem,
        where=where,
        remedy=f"{many}If the ids have no name in the header, give them one; then name the id columns with --id, or"
        " link by names and birth dates with --identity.",
    )


def _why_no_id(profile: ColumnProfile) -> str:
    """Return what the values are that numbers of people are not; "" if they may be ids."""
    if profile.dates == profile.present or joined_format(profile):
        return "are dates"
    return "" if any(map(re.compile(r"\d").search, profile.values)) else "have no digit"
