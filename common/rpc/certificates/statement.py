"""What each party states about a release that it took part in; a release certificate is made of signed statements.

A party states only what it knows itself: every party the spec and the published columns, a curator also its ledger and
what its test of the server showed. Of a release of several tables all parties state that about each table, and every
curator which tables there are.
"""

import re
from collections.abc import Mapping

from veiltab.common.core.texts.canonical import canonical_text
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.table_spec import TableSpec

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedColumn:
    """A column as the server published it.

    Args:
        digest: SHA-256, hexadecimal.
    """

    attribute: str
    digest: str

    def __post_init__(self) -> None:
        if not _SHA256.fullmatch(self.digest):
            raise InvalidInputError("the digest is not hexadecimal, or of another length", where="published column")


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerHead:
    """Where a curator's ledger stood when it made its statement.

    Args:
        digest: of the last one, SHA-256, hexadecimal.
    """

    length: int
    digest: str

    def __post_init__(self) -> None:
        if self.length < 0 or not _SHA256.fullmatch(self.digest):
            raise InvalidInputError("the ledger has no length, or no digest of its last entry", where="ledger head")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One party's statement about a release.

    Args:
        party: URI of who states it, veiltab://<study>/<role>/<name>.
        spec_digest: SHA-256 of the description of the release, hexadecimal: of a table, or of several tables.
        published: the published columns in study order; none at a curator without columns in the release.
        signed_at: Unix seconds.
        ledger: of a curator; None for the server.
        receipts: of a curator with columns in the release, of its own columns and of all together; none of others.
        tables: of a curator about a release of several tables, the numbers of those that have a result, ascending.
    """

    party: str
    spec_digest: str
    published: tuple[PublishedColumn, ...]
    signed_at: int
    ledger: LedgerHead | None = None
    receipts: tuple[Receipt, ...] = ()
    tables: tuple[int, ...] = ()

    def to_json(self) -> str:
        """Return the canonical text, which is signed."""
        return canonical_text(self)


def published_columns(spec: TableSpec, digests: Mapping[str, bytes]) -> tuple[PublishedColumn, ...]:
    """Return the published columns of a release in study order.

    Args:
        digests: attribute -> SHA-256 of its published column, for each column of the release.
    """
    return tuple(PublishedColumn(attribute=c.attribute, digest=digests[c.attribute].hex()) for c in spec.columns)
