"""The table [identity] of a study file: what names a person where the curators have no common number.

The core reads it only where a study has one.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from veiltab.common.core.texts.nearest import known_names
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.identity_rule import DEFAULT_DATES, MISSING_VALUES, IdentityRule
from veiltab.common.linkage.ladder import FieldKind, default_ladder, ladder_of
from veiltab.common.study.keys import key, optional_key, read_table
from veiltab.common.study.members import CuratorMember, check_once
from veiltab.common.study.naming import check_attribute_name, check_one_of
from veiltab.common.study.toml_fields import Fields

_AS_WRITTEN = ("default_dates", "missing_values", "cap", "alone_in_spoke", "alone_in_hub", "placebo")
_KINDS = tuple(kind.value for kind in FieldKind)
NAMED_FIELDS = tuple(kind for kind in _KINDS if kind != FieldKind.TEXT.value)
"""Fields whose name says their kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenIdentity:
    """The table as it is written."""

    fields: tuple[str, ...] = field(
        metadata=key(
            "of given, family, birth, sex, postcode and number those that the tables have; another field is written"
            ' with its kind, such as "parish:text"; a number with a name of its own, such as "card:number", tests links'
        )
    )
    ladder: tuple[str, ...] = optional_key(
        (), 'the keys, such as "given:3 family birth"; docs/linkage-keys.md says how', "one that fits the fields"
    )
    deletions: int = optional_key(
        0, "deletion passes behind that ladder, from 0 to 5: they find misspelt people, and cost three times the time"
    )
    default_dates: tuple[str, ...] = optional_key(
        DEFAULT_DATES, "dates that stand for an unknown one in the tables; 01-01 is 1 January of any year"
    )
    missing_values: tuple[str, ...] = optional_key(
        MISSING_VALUES,
        "texts that stand for a missing name, postcode, number or other text; letter case and signs do not count",
    )
    cap: Decimal = optional_key(Decimal("0.002"), "foreseen share of wrong links that the keys stay below")
    alone_in_spoke: Decimal = optional_key(
        Decimal("0.5"), "foreseen share of rows of another curator whose person the hub does not have"
    )
    alone_in_hub: Decimal = optional_key(
        Decimal("0.5"), "foreseen share of the hub's rows whose person another curator does not have"
    )
    placebo: bool = optional_key(
        default=False,
        meaning="privately, whether others run rows with moved dates too: that counts links by chance, and asks more",
    )


def identity_of(fields: Fields, hub: str) -> IdentityRule:
    """Return the identity that the table [identity] describes.

    Args:
        hub: the curator to whose rows all others link.

    Raises:
        InvalidInputError: a field or a key is not one, or they contradict one another.
    """
    table = read_table(WrittenIdentity, fields)
    return fields.checked(lambda: _identity(table, hub))


def check_identities(identity: IdentityRule | None, curators: Sequence[CuratorMember]) -> None:
    """Refuse curators that have ids though the study has an identity, or the other way round, or lack what links them.

    Raises:
        InvalidInputError: what contradicts.
    """
    names = [curator.name for curator in curators]
    if identity is None:
        with_one = next(curator.name for curator in curators if curator.identity)
        raise InvalidInputError(
            f"curator {with_one} has an identity, and the study has none",
            remedy="Add the table [identity], or give each curator id_columns.",
        )
    for curator in curators:
        _check_columns(identity, curator)
    present = {curator.name: {name for name, _ in curator.identity} for curator in curators}
    for name in names:
        common = present[name] & present[identity.hub]
        if not any(step.fields <= common for step in identity.ladder):
            raise InvalidInputError(
                f"curator {name} and the hub have no key of the ladder: each needs a field that one of them lacks",
                where="[identity]",
                remedy=f"Give both its fields, or write a ladder of: {', '.join(sorted(common)) or 'fields of both'}.",
            )


def absent_fields(
    identity: IdentityRule, curators: Iterable[CuratorMember]
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield (curator, field, keys): a field that it lacks and a key needs, with the keys that do not run with it."""
    for curator in curators:
        for name in identity.names:
            keys = tuple(step.name for step in identity.ladder if name in step.fields)
            if keys and name not in dict(curator.identity):
                yield curator.name, name, keys


def _check_columns(identity: IdentityRule, curator: CuratorMember) -> None:
    """Refuse a curator without an identity, with fields that the study does not have, or with a column twice."""
    if not curator.identity:
        raise InvalidInputError(
            f"curator {curator.name} has ids, and the study has an [identity]",
            remedy='Replace id_columns by its columns, such as identity = { given = "first_name" }.',
        )
    for name, _ in curator.identity:
        if name not in identity.kinds:
            raise InvalidInputError(
                f"the identity of curator {curator.name} has {name[:60]!r}, which is not a field",
                remedy=f"{known_names('Fields', identity.names, name)} Write another one with its kind among"
                ' the fields, and so in drafts, such as "card:number".',
            )


def _identity(table: WrittenIdentity, hub: str) -> IdentityRule:
    identity_fields = [field_of(one) for one in table.fields]
    check_once("fields names", [name for name, _ in identity_fields], "List each field once.")
    kinds = dict(identity_fields)
    if not kinds:
        raise InvalidInputError("fields names none", remedy='List them, such as ["given", "family", "birth"].')
    if table.ladder and table.deletions:
        raise InvalidInputError(
            "there are a ladder and deletions", remedy='Write deletion passes into the ladder, such as "given~ birth".'
        )
    return IdentityRule(
        fields=tuple(kinds.items()),
        hub=hub,
        ladder=ladder_of(table.ladder or default_ladder(kinds, table.deletions)),
        **same_fields(table, _AS_WRITTEN),
    )


def field_of(text: str) -> tuple[str, FieldKind]:
    """Return the name and the kind of a field: a known name is its own kind. Refuse another without a kind."""
    name, colon, kind = text.partition(":")
    if not colon:
        if name not in NAMED_FIELDS:
            raise InvalidInputError(
                f"fields has {name[:60]!r}, whose kind is not known",
                remedy=f'{known_names("Fields", NAMED_FIELDS, name)} Another is written like "parish:text".',
            )
        return name, FieldKind(name)
    check_attribute_name(name)
    check_one_of("fields", kind, _KINDS)
    return name, FieldKind(kind)
