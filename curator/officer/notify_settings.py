"""Who is told what, and how: the table [notify] of a policy file.

    [notify]
    events = ["held", "refused", "budget", "certificate"]   # optional: all of them
    budget = 0.8                                # optional: nearly spent from this part of it on
    certificate_days = 30                       # optional: days before a certificate ends
    webhook = "https://hooks.example.org/curator"
    command = ["/usr/local/bin/tell-officer"]   # gets the notice as JSON on standard input; no shell
    email = ["officer@example.org"]
    smtp = "mail.example.org:587"
    smtp_from = "veiltab@example.org"
    smtp_security = "starttls"                  # optional: or "tls", or "none" to this machine
    smtp_user = "veiltab"                       # optional, with the next
    smtp_password_file = "/etc/veiltab/smtp"
    ca = "/etc/ssl/own-ca.pem"                  # optional: who issued the certificates of these servers

One of webhook, command and email must be there.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from urllib.parse import urlsplit

from veiltab.common.study.fields import Fields

_ADDRESS = re.compile(r"[^@\s<>,;\"]+@[^@\s<>,;\"]+")
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
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


class Security(Enum):
    """How a mail server is talked to."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class MailSettings:
    """How notices go by e-mail.

    Args:
        recipients: addresses.
        sender: address.
        host: of the mail server.
        port: of the mail server.
        security: of the connection.
        user: to log in as; empty for no login.
        password_file: holds the password.
    """

    recipients: tuple[str, ...]
    sender: str
    host: str
    port: int
    security: Security
    user: str = ""
    password_file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifySettings:
    """Who is told what, and how.

    Args:
        events: what notices are about.
        budget: part of the budget above which it is nearly spent.
        certificate_days: days before the end of a certificate.
        webhook: URL that is posted to; empty for none.
        command: program and arguments; none for no command.
        mail: None for no e-mail.
        authority: file with the certificates that servers' are checked against; None for the system's.
    """

    events: frozenset[Kind]
    budget: Decimal
    certificate_days: int
    webhook: str = ""
    command: tuple[str, ...] = ()
    mail: MailSettings | None = None
    authority: Path | None = None


def read_notify(fields: Fields) -> NotifySettings | None:
    """Read the table [notify] of a policy file; None if it is not there.

    Raises:
        InvalidInputError: a key is unknown, missing or malformed, or there is no channel.
    """
    has_budget = fields.holds("budget", object)
    settings = NotifySettings(
        events=_events(fields),
        budget=fields.number("budget") if has_budget else _BUDGET,
        certificate_days=fields.integer("certificate_days", _CERTIFICATE_DAYS),
        webhook=_webhook(fields),
        command=fields.texts("command", ()),
        mail=_mail(fields),
        authority=_path(fields, "ca"),
    )
    fields.finish()
    if not fields.keys():
        return None
    if not (settings.webhook or settings.command or settings.mail):
        raise fields.refuse("nobody is told", "Add webhook, command, or email with smtp.")
    if not 0 < settings.budget <= 1:
        raise fields.refuse("budget is a part of the budget, above 0 and at most 1", "0.8 is usual.")
    if not 1 <= settings.certificate_days <= _MOST_DAYS:
        raise fields.refuse(f"certificate_days must be a whole number from 1 to {_MOST_DAYS}", "30 is usual.")
    return settings


def _events(fields: Fields) -> frozenset[Kind]:
    known = {kind.value: kind for kind in Kind if kind is not Kind.TEST}
    names = fields.texts("events", tuple(known))
    if unknown := set(names) - set(known):
        raise fields.refuse(f"unknown events: {', '.join(sorted(unknown))}", f"Known: {', '.join(known)}.")
    return frozenset(known[name] for name in names)


def _webhook(fields: Fields) -> str:
    webhook = fields.text("webhook", "")
    if not webhook:
        return ""
    try:
        url = urlsplit(webhook)
        host, has_port = url.hostname or "", url.port is None or url.port > 0
    except ValueError:
        raise fields.refuse("webhook is no URL", "It begins with https://.") from None
    is_safe = url.scheme == "https" or (url.scheme == "http" and host in _LOOPBACK)
    if not is_safe or not host or not has_port or "@" in url.netloc or not webhook.isprintable() or " " in webhook:
        raise fields.refuse(
            "webhook must be an https:// URL without a user name", "Only this machine is told without TLS."
        )
    return webhook


def _mail(fields: Fields) -> MailSettings | None:
    recipients, server = fields.texts("email", ()), fields.text("smtp", "")
    sender, user = fields.text("smtp_from", ""), fields.text("smtp_user", "")
    security, password_file = fields.text("smtp_security", "starttls"), _path(fields, "smtp_password_file")
    if not recipients and not server:
        return None
    host, _, port = server.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise fields.refuse("smtp must be HOST:PORT, with email", 'For example smtp = "mail.example.org:587".')
    addresses = (*recipients, sender)
    if not recipients or not all(_ADDRESS.fullmatch(one) and one.isprintable() and one.isascii() for one in addresses):
        raise fields.refuse("email and smtp_from must be addresses", 'For example email = ["officer@example.org"].')
    if security not in {one.value for one in Security}:
        raise fields.refuse('smtp_security must be "starttls", "tls" or "none"', '"starttls" is usual.')
    host = host.removeprefix("[").removesuffix("]")
    if security == Security.NONE.value and host not in _LOOPBACK:
        raise fields.refuse("smtp_security is none to another machine", "Only a mail server on this one takes that.")
    if bool(user) != (password_file is not None):
        raise fields.refuse("smtp_user and smtp_password_file go together", "Add the other one.")
    return MailSettings(
        recipients=recipients,
        sender=sender,
        host=host,
        port=int(port),
        security=Security(security),
        user=user,
        password_file=password_file,
    )


def _path(fields: Fields, key: str) -> Path | None:
    text = fields.text(key, "")
    return Path(text) if text else None
