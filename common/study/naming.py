"""Shape of names, titles and endpoints in a study, so that they are safe in DNS names, URIs, paths and reports."""

import re
import unicodedata
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address

from veiltab.common.errors import InvalidInputError

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", re.ASCII)
_ATTRIBUTE = re.compile(r"[a-z0-9]([a-z0-9_-]{0,38}[a-z0-9])?", re.ASCII)
_HOST = re.compile(
    r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*", re.ASCII
)


def check_name(key: str, value: str) -> None:
    """Refuse a name that could not stand in a DNS name or a URI as it is."""
    if not _NAME.fullmatch(value):
        raise InvalidInputError(
            f"{key} = {value[:60]!r} is not a name", remedy="Use a-z, 0-9 and inner hyphens, at most 40 characters."
        )


def is_attribute_name(value: str) -> bool:
    """Return whether a name can stand in a path or a column header as it is."""
    return _ATTRIBUTE.fullmatch(value) is not None


def check_attribute_name(value: str) -> None:
    """Refuse an attribute name that could not stand in a path or a column header as it is."""
    if not is_attribute_name(value):
        raise InvalidInputError(
            f"name = {value[:60]!r} is not an attribute name",
            remedy="Use a-z, 0-9, inner hyphens and underscores, at most 40 characters.",
        )


def attribute_name(column: str) -> str:
    """Return a column's name as a valid attribute name; letters lose their accents."""
    from veiltab.common.core.texts.spelling import PLAIN_LETTERS  # noqa: PLC0415 - not for names that are checked

    plain = unicodedata.normalize("NFKD", column).lower().translate(PLAIN_LETTERS)
    letters = (c for c in plain if not unicodedata.combining(c))
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in letters).strip("-")
    return name[:40].strip("-") or "attribute"


def check_title(value: str) -> None:
    """Refuse a title that does not fit one printed line."""
    if not value.strip() or not value.isprintable() or len(value) > 200:
        raise InvalidInputError("title is not one printable line", remedy="Use 1 to 200 printable characters.")


def check_one_of(key: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a word that is not one of those known."""
    if value not in choices:
        raise InvalidInputError(f"{key} = {value[:60]!r} is not known", remedy=f"Use one of: {', '.join(choices)}.")


def check_endpoint(value: str) -> None:
    """Refuse an endpoint that is not host:port with a DNS name, an IPv4 address or an IPv6 address in brackets."""
    host, _, port = value.rpartition(":")
    if not _is_port(port) or not _is_host(host):
        raise InvalidInputError(f"endpoint = {value[:60]!r} is not host:port", remedy=_endpoint_remedy(value))


def _endpoint_remedy(value: str) -> str:
    """Say which sign of an endpoint is wrong, and what to write."""
    if "://" in value:
        return f"Leave {value.partition('://')[0][:20]}:// out: an endpoint is a host and a port."
    if any(one.isalpha() and not one.isascii() for one in value):
        return "Only the letters a to z may stand in it: write the host's name as DNS has it, which begins with xn--."
    if "_" in value:
        return "An underscore may not stand in a host name: give the host another one, or write its address."
    wrong = next((ascii(one) for one in value if not re.match(r"[A-Za-z0-9.:\[\]-]", one)), "")
    host, _, port = value.rpartition(":")
    if ":" in host and _is_port(port) and not wrong:
        return 'Write an IPv6 address in brackets, such as "[2001:db8::1]:7401".'
    reason = f"{host!r} is neither a host's name nor an address" if _is_port(port) else "A port is a number up to 65535"
    if wrong:
        reason = f"{wrong} may not stand in it"
    return f'{reason}. Write it like "alice.example.org:7401".'


def _is_port(port: str) -> bool:
    return port.isascii() and port.isdecimal() and len(port) <= 5 and 1 <= int(port) <= 65_535


def _is_host(host: str) -> bool:
    """Return whether a text is a DNS name, an IPv4 address or a bracketed IPv6 address."""
    try:
        if host.startswith("[") and host.endswith("]"):
            return "%" not in host and bool(IPv6Address(host[1:-1]))
        if host.rpartition(".")[2].isdecimal():
            return bool(IPv4Address(host))
    except ValueError:
        return False
    return len(host) <= 253 and _HOST.fullmatch(host) is not None
