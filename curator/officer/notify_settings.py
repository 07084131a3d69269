"""Who is told what, and how: the table [notify] of a policy file.

    [notify]
    channels = "/etc/veiltab/channels.toml"     # private: name = "URL" a line
    events = ["held", "refused", "budget", "certificate"]   # optional: all of them
    budget = 0.8                                # optional: nearly spent from this part of it on
    certificate_days = 30                       # optional: days before a certificate ends
    ca = "/etc/ssl/own-ca.pem"                  # optional: who issued the certificates of these servers

The file of channels alone holds what is secret.
"""

from decimal import Decimal
from enum import Enum
from pathlib import Path

from veiltab.common.dataclass import dataclass
from veiltab.common.study.toml_fields import Fields

_MOST_DAYS = 3650
_BUDGET = Decimal("0.8")
_CERTIFICATE_DAYS = 30


class Kind(Enum):
    """What a notice is about."""

    HELD = "held"
    """A request waits for a person."""
    REFUSED = "refused"
    """A request was refused."""
    BUDGET = "budget"
    """The budget is nearly spent."""
    CERTIFICATE = "certificate"
    """A certificate ends soon."""
    TEST = "test"
    """Somebody tries whether notices arrive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifySettings:
    """Who is told what, and how.

    Args:
        channels: file that names the channels and their URLs.
        budget: part of the budget above which it is nearly spent.
        certificate_days: days before the end of a certificate.
        authority: file with the certificates that servers' are checked against; None for the usual ones.
    """

    channels: Path
    events: frozenset[Kind]
    budget: Decimal
    certificate_days: int
    authority: Path | None


def read_notify(fields: Fields, folder: Path) -> NotifySettings:
    """Read the table [notify] of a policy file in a folder, where the files that it names are looked for.

    Raises:
        InvalidInputError: a key is unknown, missing or malformed.
    """
    authority = fields.text("ca", "")
    settings = NotifySettings(
        channels=folder / fields.text("channels"),
        events=_events(fields),
        budget=fields.number("budget") if fields.holds("budget", object) else _BUDGET,
        certificate_days=fields.integer("certificate_days", _CERTIFICATE_DAYS),
        authority=folder / authority if authority else None,
    )
    fields.finish()
    if not 0 < settings.budget <= 1:
        raise fields.refuse("budget is a part of the budget, above 0 and at most 1", "0.8 is usual.")
    if not 1 <= settings.certificate_days <= _MOST_DAYS:
        raise fields.refuse(f"certificate_days must be a whole number from 1 to {_MOST_DAYS}", "30 is usual.")
    return settings


def _events(fields: Fields) -> frozenset[Kind]:
    kinds = {kind.value: kind for kind in Kind if kind is not Kind.TEST}
    names = fields.texts("events", tuple(kinds))
    if unknown := set(names) - set(kinds):
        raise fields.refuse(f"unknown events: {', '.join(sorted(unknown))}", f"Known: {', '.join(kinds)}.")
    return frozenset(kinds[name] for name in names)
