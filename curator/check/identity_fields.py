"""Which columns of a table name a person where there is no common number: known by their names and by their values."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.ladder import FieldKind
from veiltab.common.linkage.normalisation import DATE_ORDERS, normal_date, normal_name, normal_number, normal_sex, plain
from veiltab.curator.check.profile import ColumnProfile

_NAMES: Mapping[FieldKind, str] = {
    FieldKind.GIVEN: "given|first|fore|vor|ruf|voor|roep|prenoms?|(primer)?nombres?|fname|christian",
    FieldKind.FAMILY: "family|last|sur|nach|achter|familien?|geslachts|nom(d?usage|famille|defamille)?|patronyme"
    "|(primer)?apellidos?|apellido1|lname|sname",
    FieldKind.BIRTH: "birth|born|dob|geb|geboren|geburt|naissance|naiss|ddn|nacimiento|nac|fnac|geboorte",
    FieldKind.SEX: "sex|gender|geschl|geschlecht|sexe|genre|sexo|genero|geslacht|gesl",
    FieldKind.POSTCODE: "post|postal|postleitzahl|zip|zipcode|plz|cp|codpostal|codigopostal|pc[46]",
}
_BESIDE = (
    "(name|names|namen|naam|code|date|day|fecha|fec|sdatum|datum|of|de|the|patient|person|persoon|cust|client|kode"
    "|am|op|dat|stag|tag|wohn|wohnort|patienten|kunden|nr|nummer)*"
)
_MOSTLY = 0.9
_NONE: Mapping[str, tuple[str, ...]] = {}
_MOST_SEXES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityColumns:
    """The columns of a table that name a person.

    Args:
        fields: field -> the columns that make it up, in the order of `FieldKind`.
        date_order: how dates of birth are written.
        notes: usual fields that no column is, and dates that can hardly be read in that order.
    """

    fields: Mapping[str, tuple[str, ...]]
    date_order: str
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(column for columns in self.fields.values() for column in columns)


def identity_of(
    where: str,
    profiles: Sequence[ColumnProfile],
    date_order: str = "",
    named: Mapping[str, tuple[str, ...]] = _NONE,
    first_year: int | None = None,
) -> IdentityColumns:
    """Return the columns that name a person.

    Args:
        date_order: "ymd", "dmy" or "mdy" if a person says so; "" lets the values decide.
        named: field -> the columns that make it up, where a person says so, whatever their names and values.
        first_year: the earliest year that two digits mean, if a person says so.

    Raises:
        InvalidInputError: no given name, family name or date of birth is among them, two columns could be one field,
            dates may be read in two orders, or their years have two digits and nobody names the century.
    """
    tests: Mapping[FieldKind, Callable[[str], object]] = {
        FieldKind.GIVEN: _is_name,
        FieldKind.FAMILY: _is_name,
        FieldKind.BIRTH: lambda value: any(_day(value, order) for order in DATE_ORDERS),
        FieldKind.SEX: normal_sex,
        FieldKind.POSTCODE: normal_number,
    }
    own = dict(named)
    own_columns = {column for columns in named.values() for column in columns}
    order = date_order or "ymd"
    notes = list[str]()
    for kind, test in tests.items():
        if kind.value in named:
            fitting = [one for one in profiles if (one.column,) == named[kind.value]]
        else:
            candidates = (one for one in profiles if one.column not in own_columns)
            fitting = [one for one in candidates if _is_called(one.column, kind) and _mostly(one, test)]
        if kind is FieldKind.SEX and kind.value not in named:
            fitting = [one for one in fitting if len(one.values) <= _MOST_SEXES]
        if len(fitting) > 1:
            raise InvalidInputError(
                f"several columns could be {kind.value}: {', '.join(one.column for one in fitting)}",
                where=where,
                remedy=f"Name it with --field {kind.value}=COLUMN, or leave the others out with --without.",
            )
        if fitting:
            own[kind.value] = (fitting[0].column,)
            if kind is FieldKind.BIRTH:
                order = date_order or _date_order(where, fitting[0])
                notes += _order_notes(where, fitting[0], order, first_year)
    if missing := [kind for kind in ("given", "family", "birth") if kind not in own]:
        raise InvalidInputError(
            f"no column is {' or '.join(missing)}, by its name and its values",
            where=where,
            remedy=f"Name {'it' if len(missing) == 1 else 'them'} with "
            + " ".join(f"--field {kind}=COLUMN" for kind in missing)
            + ", or write the draft by hand (docs/linkage-keys.md).",
        )
    notes += [
        f"no {kind.value} seen; if the table has one, name its column with --field {kind.value}=COLUMN"
        for kind in tests
        if kind.value not in own
    ]
    ordered: dict[str, tuple[str, ...]] = {kind.value: own[kind.value] for kind in FieldKind if kind.value in own}
    return IdentityColumns(fields=ordered | own, date_order=order, notes=tuple(notes))


def _is_called(column: str, kind: FieldKind) -> bool:
    """Return whether a column's name is one that a field of the kind often has."""
    words = re.sub(r"[\W_]+", "", plain(column))
    return re.fullmatch(f"{_BESIDE}({_NAMES[kind]}){_BESIDE}", words) is not None


def _mostly(profile: ColumnProfile, test: Callable[[str], object]) -> bool:
    """Return whether most values pass a test, by rows."""
    rows = sum(profile.values.values())
    return rows > 0 and sum(times for value, times in profile.values.items() if test(value)) >= _MOSTLY * rows


def _is_name(value: str) -> bool:
    return bool(normal_name(value, is_family=True)) and not any(one.isdigit() for one in value)


def _day(value: str, order: str, first_year: int = 1) -> str:
    return normal_date(value, order=f"{order}:{first_year}", missing=frozenset())


def _order_notes(where: str, profile: ColumnProfile, order: str, first_year: int | None) -> Iterator[str]:
    """Yield that many dates cannot be read, if so; refuse years of two digits without a century."""
    rows = sum(profile.values.values())
    days = {value: _day(value, order, first_year or 1) for value in profile.values}
    readable = sum(times for value, times in profile.values.items() if days[value])
    if first_year is None and any(day and day < "0101" for day in days.values()):
        raise InvalidInputError(
            f"years of {profile.column} have two digits, which name no century",
            where=where,
            remedy="Say the earliest year that they may mean with --first-year, such as --first-year 1926.",
        )
    if readable < _MOSTLY * rows:
        yield (
            f"{readable / rows:.1%} of the dates of {profile.column} can be read in the order {order}: compare"
            " --date-order with the table"
        )


def _date_order(where: str, profile: ColumnProfile) -> str:
    """Return the order in which most dates can be read."""
    rows = {order: sum(times for value, times in profile.values.items() if _day(value, order)) for order in DATE_ORDERS}
    best = max(DATE_ORDERS, key=lambda order: rows[order])
    if best != "ymd" and rows["dmy"] == rows["mdy"]:
        raise InvalidInputError(
            f"the dates of {profile.column} may be read in two orders",
            where=where,
            remedy="Say which with --date-order dmy or --date-order mdy.",
        )
    return best
