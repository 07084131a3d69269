"""What a curator says that its tests of the server showed, as the desk decodes it."""

from collections.abc import Mapping

from veiltab.common.core.randomness import KEY_BYTES
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError
from veiltab.common.release.table_spec import TableSpec
from veiltab.v1 import curator_pb2

_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorsTest:
    """What a curator says that its tests of the server showed.

    Args:
        receipts: canonical texts of the receipts of its own columns, then of all together.
        changes: owner -> its list of changed canaries, of every owner, as this curator has it.
        canary_key: from which places and symbols of the canaries derive.
        digests: attribute -> SHA-256 of its published column, of every column of the release.
        places_digest: SHA-256 of the places that the server sampled; empty unless it samples.
    """

    receipts: tuple[str, ...]
    changes: Mapping[str, bytes] = field(repr=False)
    canary_key: bytes = field(repr=False)
    digests: Mapping[str, bytes]
    places_digest: bytes


def curators_test_from_proto(message: curator_pb2.GetReceiptResponse, spec: TableSpec, curator: str) -> CuratorsTest:
    """Decode what a curator says of its tests.

    Raises:
        InvalidInputError: no tests of the release can have shown it.
    """
    findings = CuratorsTest(
        receipts=tuple(receipt.text for receipt in message.receipts),
        changes=dict(message.changes),
        canary_key=message.canary_key,
        digests=dict(message.digests),
        places_digest=message.places_digest,
    )
    fits = set(findings.changes) == spec.owners
    fits = fits and set(findings.digests) == {column.attribute for column in spec.columns}
    fits = fits and {len(digest) for digest in findings.digests.values()} == {_DIGEST_BYTES}
    fits = fits and len(findings.places_digest) == (_DIGEST_BYTES if spec.sampling.is_by_server else 0)
    if not (fits and len(findings.canary_key) == KEY_BYTES):
        raise InvalidInputError("its result of the tests does not fit this release", where=f"curator {curator}")
    return findings
