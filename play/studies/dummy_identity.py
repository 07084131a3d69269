"""Identity fields of dummy people: each has names, a date and the like that nobody else has together."""

from datetime import date, timedelta

from veiltab.common.linkage.identity_rule import FieldKind, IdentityRule
from veiltab.common.study.members import CuratorMember
from veiltab.play.registers.name_law import family_names, given_names

_FIRST_DAY, _DAYS = date(1935, 1, 1), 31_025


def identity_row(identity: IdentityRule, curator: CuratorMember, number: int) -> list[str]:
    """Return a person's values in the identity columns of a curator, in their order.

    Args:
        identity: has the kinds of the fields.
        curator: whose table it is; dates are written in its order.
        number: of the person; the same number is the same person everywhere.
    """
    row: list[str] = []
    for name, columns in curator.identity:
        value = _value(identity.kinds[name], number, curator.date_order)
        parts = value.split("-") if identity.kinds[name] is FieldKind.BIRTH and len(columns) == 3 else [value]
        row += [*parts, *[""] * (len(columns) - len(parts))]
    return row


def _value(kind: FieldKind, number: int, date_order: str) -> str:
    born = _FIRST_DAY + timedelta(days=number * 12_347 % _DAYS)
    parts = {"y": f"{born.year:04}", "m": f"{born.month:02}", "d": f"{born.day:02}"}
    sex = "fm"[number % 2]
    return {
        FieldKind.GIVEN: str(given_names(sex).names[number * 31 % 1000]),
        FieldKind.FAMILY: str(family_names().names[number * 7919 % 20_000]),
        FieldKind.BIRTH: "-".join(parts[one] for one in date_order),
        FieldKind.SEX: sex,
        FieldKind.POSTCODE: f"{10_000 + number * 37 % 3000}",
        FieldKind.NUMBER: f"{1_000_000 + number * 7_368_787 % 9_000_000}",
        FieldKind.TEXT: f"place {number % 97}",
    }[kind]
