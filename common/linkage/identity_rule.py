"""What names a person where there is no common number: the fields, the hub, and the ladder of keys."""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction

from veiltab.common.core.texts.canonical import canonical_json
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.ladder import FieldKind, Pass, check_ladder

__all__ = ["NORMALISATION", "FieldKind", "IdentityRule"]

NORMALISATION = 2
"""Version of the steps by which values are normalised (`normalisation.py`); other steps make other keys."""

DEFAULT_DATES = ("0001-01-01", "1753-01-01", "1800-01-01", "1899-12-30", "1899-12-31", "1900-01-01", "9999-12-31")
"""Dates that programs write for none, unless a study says otherwise."""

MISSING_VALUES = (
    *("UNKNOWN", "UNK", "NOT KNOWN", "UNNAMED", "NO NAME", "NULL", "NONE", "NA", "NAN", "MISSING", "NN", "XX", "XXX"),
    *("BABY", "BABY BOY", "BABY GIRL", "NEWBORN", "NEONATE", "INFANT", "UNBEKANNT", "INCONNU", "DESCONOCIDO"),
    *("NEUGEBORENES", "NOUVEAU-NE", "RECIEN NACIDO", "NEONATO", "OHNE NAME", "SANS NOM", "SIN NOMBRE"),
    *("SCONOSCIUTO", "ONBEKEND", "-", "?", "."),
)
"""Texts that people and programs write for none, unless a study says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityRule:
    """How the rows of a study's curators are linked.

    Args:
        fields: (name, kind) of each field.
        hub: the curator to whose rows all others link. Presence in its table is not protected.
        ladder: the keys in their order.
        default_dates: dates that stand for "unknown" in the tables, as YYYY-MM-DD, or MM-DD for a day of any year; a
            row with one of them has no date.
        missing_values: texts that stand for a missing value in all fields but dates, however their letters are written.
        cap: foreseen share of wrong links that the ladder must stay below.
        alone_in_spoke: foreseen share of rows of another curator that have no partner in the hub, below 1.
        alone_in_hub: foreseen share of rows of the hub that have no partner there.
        placebo: whether a spoke also asks privately for rows with moved dates, to count what chance links.

    Raises:
        InvalidInputError: the parts contradict one another.
    """

    fields: tuple[tuple[str, FieldKind], ...]
    hub: str
    ladder: tuple[Pass, ...]
    default_dates: tuple[str, ...] = DEFAULT_DATES
    missing_values: tuple[str, ...] = MISSING_VALUES
    cap: Decimal = Decimal("0.002")
    alone_in_spoke: Decimal = Decimal("0.5")
    alone_in_hub: Decimal = Decimal("0.5")
    placebo: bool = False

    def __post_init__(self) -> None:
        if len(self.kinds) < len(self.fields):
            raise InvalidInputError("fields names a field twice", remedy="List each field once.")
        dated = [name for name, kind in self.fields if kind is FieldKind.BIRTH]
        if len(dated) > 1:
            raise InvalidInputError("fields has two dates of birth", remedy="Keep one.")
        check_ladder(self.ladder, self.kinds)
        for one in self.default_dates:
            _check_date(one)
        if not 0 < self.cap < 1:
            raise InvalidInputError("cap is not between 0 and 1", remedy="0.002 is usual.")
        if not 0 < self.alone_in_spoke < 1 or not 0 < self.alone_in_hub <= 1:
            raise InvalidInputError("a share of rows without partner is not between 0 and 1", remedy="0.5 is usual.")

    @property
    def kinds(self) -> Mapping[str, FieldKind]:
        """The kind of each field, in their order."""
        return dict(self.fields)

    @property
    def names(self) -> Sequence[str]:
        """The fields in their order, which is that of columns."""
        return [name for name, _ in self.fields]

    @property
    def number_beside(self) -> str:
        """A field of the kind number that no key takes, so that it can tell wrong links; "" if there is none."""
        in_keys = frozenset[str]().union(*(step.fields for step in self.ladder))
        return next((name for name, kind in self.fields if kind is FieldKind.NUMBER and name not in in_keys), "")

    @property
    def wrong_a_match(self) -> Fraction:
        """What a self-match share is multiplied by to foresee wrong links a link: u (1 - c) / (1 - u).

        u is the share of rows of a spoke without partner, 1 - c that of the hub; 1 - u stands for links a spoke row.
        """
        alone = Fraction(self.alone_in_spoke)
        return alone * Fraction(self.alone_in_hub) / (1 - alone)

    def description(self) -> str:
        """Return the canonical text of what decides who is linked with whom, and what is asked beside."""
        return canonical_json(
            {
                "alone": [str(self.alone_in_spoke), str(self.alone_in_hub)],
                "cap": str(self.cap),
                "default_dates": list(self.default_dates),
                "fields": [[name, kind.value] for name, kind in self.fields],
                "hub": self.hub,
                "ladder": [step.name for step in self.ladder],
                "missing_values": list(self.missing_values),
                "normalisation": NORMALISATION,
            }
            | ({"placebo": True} if self.placebo else {})
        )


def _check_date(text: str) -> None:
    whole = f"2000-{text}" if len(text) == len("01-01") else text
    try:
        if date.fromisoformat(whole).isoformat() == whole:
            return
    except ValueError:
        pass
    raise InvalidInputError(
        f"default_dates has {text[:40]!r}, which is not a day",
        remedy='Write "1900-01-01", or "01-01" for 1 January of any year.',
    )
