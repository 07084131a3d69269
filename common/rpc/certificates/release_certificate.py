"""Release certificates: one file from which anybody can check, offline, what a release was and who vouches for it.

It holds the description of the release, from which its plan and every epsilon follow, and signed statements of its
parties. About each table every curator and the server state the published columns, the ledgers, and the receipts of the
server's noise; of a release of several tables every curator states which tables there are. `release_verification`
checks it.
"""

import hashlib
from collections.abc import Mapping

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from veiltab.common.core.texts.canonical import canonical_text, read_canonical
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import IntegrityError, InvalidInputError, VeiltabError
from veiltab.common.release.guarantees import release_card
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.parties.signing import SignedText

_FORMAT = "veiltab release certificate 2"

LONGEST = 2**26
"""Bytes of a file, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardRow:
    """One row of an epsilon card, in words.

    Args:
        coalition: who puts what it sees together.
    """

    coalition: str
    faces: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedTable:
    """One table of a release of several.

    Args:
        number: of the table in the description.
        statements: about it, signed, of every curator and the server, in order of their URIs.
    """

    number: int
    statements: tuple[SignedText, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseCertificate:
    """The certificate of one release.

    Args:
        card: who faces what of all tables together, as it follows from the description; for people who read the file.
        authority: certificate of the study's authority, PEM.
        statements: signed, in order of their parties' URIs: of every curator and the server about a release of one
            table, of every curator about the tables of one of several.
        spec: the description of the release.
        tables: those of a release of several, by number.
    """

    kind: str
    card: tuple[CardRow, ...]
    authority: str
    statements: tuple[SignedText, ...]
    spec: ReleaseSpec
    tables: tuple[CertifiedTable, ...] = ()

    def to_text(self) -> str:
        """Return the file."""
        return canonical_text(self) + "\n"

    @classmethod
    def of(
        cls,
        release: ReleaseSpec,
        authority: bytes,
        statements: Mapping[str, SignedText],
        tables: Mapping[int, Mapping[str, SignedText]] | None = None,
    ) -> "ReleaseCertificate":
        """Return the certificate of a release.

        Args:
            authority: certificate of the study's authority, PEM.
            statements: about the release, by URI of who states it.
            tables: statements about each table of a release of several, by its number and by URI.
        """
        return cls(
            kind=_FORMAT,
            card=card_rows(release),
            authority=plain_pem(authority),
            statements=_ordered(statements),
            spec=release,
            tables=tuple(
                CertifiedTable(number=number, statements=_ordered(about))
                for number, about in sorted((tables or {}).items())
            ),
        )

    @classmethod
    def from_text(cls, text: str, where: str = "certificate") -> "ReleaseCertificate":
        """Read a file, which `where` names in a refusal.

        Raises:
            IntegrityError: it is not a release certificate, or not as it was written.
        """
        try:
            certificate = read_canonical(cls, text)
            as_written = certificate.kind == _FORMAT and certificate.to_text() == text
            as_written = as_written and certificate.authority == plain_pem(certificate.authority.encode())
            as_written = as_written and (certificate.spec.several or not certificate.tables)
        except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError, VeiltabError):
            as_written = False
        if not as_written:
            raise IntegrityError("this is not a release certificate, or it was altered", where=where)
        return certificate

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the authority's certificate, hexadecimal."""
        return hashlib.sha256(self.authority.encode()).hexdigest()

    def specs(self) -> tuple[TableSpec, ...]:
        """Return the description of each table, by number.

        Raises:
            NotFoundError: the release has no such table.
        """
        numbers = [table.number for table in self.tables] if self.spec.several else [0]
        return tuple(map(self.spec.table, numbers))

    def signed_texts(self) -> tuple[SignedText, ...]:
        """Return every statement."""
        return (*self.statements, *(one for table in self.tables for one in table.statements))


def card_rows(release: ReleaseSpec) -> tuple[CardRow, ...]:
    """Return the card of a release with every digit."""
    return tuple(CardRow(coalition=who, faces=faces) for who, faces in release_card(release).rows_in_full)


def plain_pem(pem: bytes, where: str = "authority") -> str:
    """Return certificates in the plain spelling; `where` names the file in a refusal.

    Raises:
        InvalidInputError: these are none.
    """
    try:
        certificates = x509.load_pem_x509_certificates(pem)
    except (ValueError, x509.InvalidVersion):
        raise InvalidInputError("this is not a PEM certificate", where=where, remedy="Give the ca.pem file.") from None
    return "".join(one.public_bytes(Encoding.PEM).decode() for one in certificates)


def _ordered(statements: Mapping[str, SignedText]) -> tuple[SignedText, ...]:
    return tuple(statements[uri] for uri in sorted(statements))
