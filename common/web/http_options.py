"""Where a party answers over HTTPS, and which certificate its clients see."""

import re
from pathlib import Path

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError

_ORIGIN = re.compile(r"https://[a-z0-9.-]+(:\d{1,5})?|http://(localhost|127\.0\.0\.1)(:\d{1,5})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """Where a party answers over HTTPS.

    Args:
        address: HOST:PORT, or PORT of the loopback interface.
        certificate: PEM file with the chain that clients see; None for the party's own.
        key: its key; None for the party's own.
        origin: of the one site whose pages may ask here from a browser, such as https://poll.example.org; empty if none
            may.

    Raises:
        InvalidInputError: one of certificate and key alone, or no such origin.
    """

    address: str
    certificate: Path | None = None
    key: Path | None = None
    origin: str = ""

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise InvalidInputError(
                "a certificate and its key come together",
                where="certificate, key",
                remedy="Give both, or none for the party's own.",
            )
        if self.origin:
            check_origin(self.origin, "allow-origin")

    def files(self, identity_folder: Path, name: str) -> tuple[Path, Path]:
        """Return the files of the certificate and its key."""
        if self.certificate is not None and self.key is not None:
            return self.certificate, self.key
        return identity_folder / f"{name}.pem", identity_folder / f"{name}.key"


def check_origin(origin: str, option: str) -> None:
    """Refuse what is not the origin of a site over HTTPS.

    Raises:
        InvalidInputError: it is none.
    """
    if not _ORIGIN.fullmatch(origin):
        raise InvalidInputError(
            "this is not the origin of a site over HTTPS",
            where=option,
            remedy="Give https://HOST or https://HOST:PORT, in small letters and without a path; http://localhost:PORT"
            " serves for a trial.",
        )


def http_options(
    address: str | None, certificate: Path | None, key: Path | None, origin: str | None = None
) -> HttpOptions | None:
    """Return what the options of `serve`, or the keys of a party's file, say; None if nothing is answered over HTTPS.

    Raises:
        InvalidInputError: a certificate, a key or an origin without an address, or one of the first two alone.
    """
    if address is not None:
        return HttpOptions(address=address, certificate=certificate, key=key, origin=origin or "")
    if (certificate, key, origin) != (None, None, None):
        raise InvalidInputError(
            "allow-origin, http-certificate and http-key need --http", where="--http", remedy="Say where to listen."
        )
    return None
