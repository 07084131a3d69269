"""Who a party is: its name in the study, and the certificate and key that prove it."""

import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import NamedTuple, Protocol

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError, NotFoundError
from veiltab.common.rpc.proxy import RelayState
from veiltab.common.storage.files import check_writers
from veiltab.common.study.naming import check_name

DNS_SUFFIX = "veiltab"
"""Last label of a party's DNS name; it stands in certificates only and is never resolved."""

Clock = Callable[[], datetime]
"""A source of the present, with its time zone; tests put their own in its place."""

_URI = re.compile(r"veiltab://([^/]*)/([^/]*)/([^/]*)", re.ASCII)


def utc_now() -> datetime:
    """Return the present."""
    return datetime.now(UTC)


class Role(Enum):
    """What a party does in a study."""

    CURATOR = "curator"
    SERVER = "server"
    RESEARCHER = "researcher"
    ANALYST = "analyst"
    NODE = "node"
    RELAY = "relay"

    @property
    def with_article(self) -> str:
        """The role in a sentence, as in "an analyst"."""
        return f"{'an' if self.value[0] in 'aeiou' else 'a'} {self.value}"

    @property
    def is_many(self) -> bool:
        """Whether many devices share one name."""
        return self is Role.NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """One party of one study.

    Args:
        study: id of the study, [a-z0-9]([a-z0-9-]*[a-z0-9])?, at most 40 characters.
        name: name of the party within its role, spelled as `study` is.

    Raises:
        InvalidInputError: a part is spelled otherwise.
    """

    study: str
    role: Role
    name: str

    def __post_init__(self) -> None:
        check_name("study", self.study)
        check_name("party", self.name)

    def __str__(self) -> str:
        """Return role and name, as a person says them."""
        return f"{self.role.value} {self.name}"

    @property
    def uri(self) -> str:
        """The URI SAN of its certificate, veiltab://<study>/<role>/<name>."""
        return f"veiltab://{self.study}/{self.role.value}/{self.name}"

    @property
    def dns_name(self) -> str:
        """The DNS SAN of its certificate, <name>.<role>.<study>.veiltab, by which a client recognises its server."""
        return f"{self.name}.{self.role.value}.{self.study}.{DNS_SUFFIX}"

    @classmethod
    def from_uri(cls, uri: str) -> "Party":
        """Return the party of a URI, or raise InvalidInputError: nothing but what `uri` returns is accepted."""
        match = _URI.fullmatch(uri)
        if not match or match[2] not in {role.value for role in Role}:
            raise InvalidInputError("a URI does not read veiltab://<study>/<role>/<name>", where="certificate")
        return cls(study=match[1], role=Role(match[2]), name=match[3])


class PartyCertificate(NamedTuple):
    """What a certificate says: whose it is, from when to when (both ends included), and its serial number."""

    party: Party
    not_before: datetime
    not_after: datetime
    serial: int

    def check_lifetime(self, now: datetime, *, where: str = "certificate") -> None:
        """Raise InvalidInputError unless `now` is within the lifetime; there is no allowance for skewed clocks."""
        if now < self.not_before:
            raise InvalidInputError(
                f"the certificate of {self.party} is valid only from {self.not_before:%Y-%m-%d %H:%M:%S} UTC",
                where=where,
                remedy="Set this machine's clock, or wait.",
            )
        if now > self.not_after:
            raise InvalidInputError(
                f"the certificate of {self.party} expired on {self.not_after:%Y-%m-%d %H:%M:%S} UTC",
                where=where,
                remedy="Renew it with `veiltab pki issue`, and restart with the new one.",
            )


def party_of_certificate(pem: bytes) -> PartyCertificate:
    """Read a party's certificate; it proves nothing unless TLS has verified its issuer.

    Args:
        pem: one X.509 certificate, PEM.

    Returns:
        The party, the first and the last instant of the certificate's lifetime, its serial number.

    Raises:
        InvalidInputError: this is not a certificate, or it names no party, or more than one URI.
    """
    certificate = load_certificate(pem)
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, x509.DuplicateExtension, x509.UnsupportedGeneralNameType, ValueError):
        raise InvalidInputError("a certificate has no readable alternative names", where="certificate") from None
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    if len(uris) != 1:
        raise InvalidInputError(f"a certificate carries {len(uris)} URIs, not exactly one", where="certificate")
    return PartyCertificate(
        Party.from_uri(uris[0]),
        certificate.not_valid_before_utc,
        certificate.not_valid_after_utc,
        certificate.serial_number,
    )


class Way(Protocol):
    """Passes a party's connections on, unread: inside each runs the mutual TLS of the two parties."""

    def target(self, peer: Party, endpoint: str) -> str:
        """Return what gRPC is to connect to for a peer with this endpoint in the study file."""

    def own_socket(self) -> str:
        """Return where this party's server is to listen, as gRPC writes the address."""

    def park(self, address: str) -> None:
        """Wait at the relay for callers from now on, and pass them on to this address."""

    def try_relay(self) -> None:
        """Park a connection and take it back, or raise UnavailableError."""

    def renew(self, identity: "Identity") -> None:
        """Open connections with the party's renewed certificate from now on."""

    def relay_state(self) -> RelayState | None:
        """Return how this party stands with its relay; None if it does not wait there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A party's own certificate and key, and the authority of its study; all PEM.

    An identity that exists is whole: the key is the certificate's, and the authority issued the certificate, which
    names the party and its DNS name. Its lifetime passes, so `check_lifetime` asks anew.

    Args:
        certificate: own certificate.
        key: its private key, without a passphrase; never shown.
        authority: the certificate of the study's authority.
        folder: where it was read, and may be read again once it is renewed.
        way: how its connections leave and reach it, if not straight.

    Raises:
        InvalidInputError: the parts do not belong together.
    """

    certificate: bytes
    key: bytes = field(repr=False)
    authority: bytes
    folder: Path | None = None
    way: Way | None = field(default=None, repr=False, compare=False)
    certificate_facts: PartyCertificate = field(init=False)

    def __post_init__(self) -> None:
        certificate = load_certificate(self.certificate)
        object.__setattr__(self, "certificate_facts", party_of_certificate(self.certificate))
        check_key(certificate, self.key)
        check_issuer(certificate, self.authority)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        if self.party.dns_name not in names.get_values_for_type(x509.DNSName):
            raise InvalidInputError(
                "the certificate lacks its party's DNS name, so that no client would accept it",
                where="certificate",
                remedy="Make it with `veiltab pki issue`.",
            )

    @property
    def party(self) -> Party:
        """Whose identity this is."""
        return self.certificate_facts.party

    def check_lifetime(self, now: datetime) -> None:
        """Raise InvalidInputError unless the certificate is valid now: peers show a bad one as UNAVAILABLE only."""
        self.certificate_facts.check_lifetime(now, where="own certificate")


def load_identity(
    directory: Path, role: Role, name: str, *, study: str | None = None, clock: Clock = utc_now
) -> Identity:
    """Read DIR/ca.pem, DIR/<name>.pem and DIR/<name>.key, and check that they are this party's and valid now.

    Args:
        directory: a party's directory as `veiltab pki init` makes it.
        study: the study id expected; None accepts any.

    Returns:
        The identity.

    Raises:
        NotFoundError: a file is not there.
        InvalidInputError: the files are another party's, do not belong together, are not valid now, or others may
            write them or read the key.
    """
    _check_folder(directory, role, name)
    identity = Identity(
        certificate=read_identity_file(directory / f"{name}.pem"),
        key=read_identity_file(directory / f"{name}.key", private=True),
        authority=read_identity_file(directory / "ca.pem"),
        folder=directory,
    )
    for one in filter(Path.exists, directory.iterdir()):
        check_writers(one)
    expected = Party(study=identity.party.study if study is None else study, role=role, name=name)
    if identity.party != expected:
        raise InvalidInputError(
            f"this is the certificate of {identity.party.uri}, not of {expected.uri}",
            where=f"{directory / name}.pem",
            remedy="Name the directory that was made for this party.",
        )
    identity.check_lifetime(clock())
    return identity


def _check_folder(directory: Path, role: Role, name: str) -> None:
    """Refuse a folder that has not this party's certificate, and name the one beside or below it that has."""
    if (directory / f"{name}.pem").exists():
        return
    own = f"{role.value}-{name}"
    near = [folder for folder in (directory / own, directory.parent / own) if (folder / f"{name}.pem").exists()]
    if near:
        remedy = f"Give {near[0]}: every party has a folder of its own."
    else:
        remedy = f"Give the folder {own} that `veiltab pki init` makes."
    raise NotFoundError("a file of the identity is not there", where=str(directory / f"{name}.pem"), remedy=remedy)


def read_identity_file(path: Path, *, private: bool = False, made_by: str = "veiltab pki init") -> bytes:
    """Return the bytes of a file of an identity.

    Args:
        private: it may be open to its owner alone.
        made_by: the command that makes it.

    Raises:
        NotFoundError: it is not there.
        InvalidInputError: it cannot be read, or others may.
    """
    try:
        with path.open("rb") as file:
            if private and os.fstat(file.fileno()).st_mode & 0o077:
                raise InvalidInputError(
                    "others than the owner may use this private key", where=str(path), remedy=f"Run: chmod 600 {path}"
                )
            return file.read()
    except FileNotFoundError:
        raise NotFoundError(
            "a file of the identity is not there",
            where=str(path),
            remedy=f"Give a folder that `{made_by}` made, with all its files.",
        ) from None
    except OSError as error:
        raise InvalidInputError(f"a file of the identity cannot be read ({error.strerror})", where=str(path)) from None


def load_certificate(pem: bytes) -> x509.Certificate:
    """Parse one certificate, or raise InvalidInputError."""
    try:
        return x509.load_pem_x509_certificate(pem)
    except (ValueError, x509.InvalidVersion):
        raise InvalidInputError("this is not a PEM certificate", where="certificate") from None


def check_key(certificate: x509.Certificate, key: bytes) -> None:
    """Refuse a private key, PEM, that is not the certificate's, with InvalidInputError."""
    try:
        public = load_pem_private_key(key, password=None).public_key()
    except (ValueError, TypeError):
        raise InvalidInputError("this is not a PEM private key, or it has a passphrase", where="private key") from None
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if public.public_bytes(*form) != certificate.public_key().public_bytes(*form):
        raise InvalidInputError("the private key is not the certificate's", where="private key")


def check_issuer(certificate: x509.Certificate, authority: bytes) -> None:
    """Refuse a certificate that none of the authorities issued.

    Args:
        authority: certificates of authorities, PEM.

    Raises:
        InvalidInputError: none of them issued it, or they cannot be read.
    """
    try:
        issuers = x509.load_pem_x509_certificates(authority)
    except (ValueError, x509.InvalidVersion):
        raise InvalidInputError("this is not a PEM certificate", where="ca.pem") from None
    for issuer in issuers:
        try:
            return certificate.verify_directly_issued_by(issuer)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            continue
    raise InvalidInputError(
        "the certificate was not issued by the authority beside it",
        where="ca.pem",
        remedy="Copy ca.pem and the certificate from one `veiltab pki init`.",
    )
