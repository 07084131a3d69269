"""Where a party answers over HTTPS, and which certificate its clients see."""

from dataclasses import dataclass
from pathlib import Path

from veiltab.common.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """Where a party answers over HTTPS.

    Args:
        address: HOST:PORT, or PORT of the loopback interface.
        certificate: PEM file with the chain that clients see; None for the party's own.
        key: its key; None for the party's own.

    Raises:
        InvalidInputError: one of certificate and key alone.
    """

    address: str
    certificate: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise InvalidInputError(
                "a certificate and its key come together",
                where="certificate, key",
                remedy="Give both, or none for the party's own.",
            )

    def files(self, identity_folder: Path, name: str) -> tuple[Path, Path]:
        """Return the files of the certificate and its key.

        Args:
            identity_folder: of the party.
            name: of the party.
        """
        if self.certificate is not None and self.key is not None:
            return self.certificate, self.key
        return identity_folder / f"{name}.pem", identity_folder / f"{name}.key"


def http_options(address: str | None, certificate: Path | None, key: Path | None) -> HttpOptions | None:
    """Return what the options of `serve`, or the keys of a party's file, say; None if nothing is answered over HTTPS.

    Raises:
        InvalidInputError: a certificate or a key without an address, or one of them alone.
    """
    if address is not None:
        return HttpOptions(address=address, certificate=certificate, key=key)
    if certificate is not None or key is not None:
        raise InvalidInputError(
            "--http-certificate and --http-key need --http", where="--http", remedy="Say where to listen."
        )
    return None
