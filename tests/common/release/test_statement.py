"""What no statement about a release can say."""

import pytest

from tests.conftest import refuses
from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.certificates.statement import LedgerHead, PublishedColumn

DIGEST = "ab" * 32


@pytest.mark.parametrize("digest", ["", DIGEST[:-1], DIGEST + "0", DIGEST.upper(), DIGEST[:-1] + "x", DIGEST + "\n"])
def test_a_digest_is_64_digits_in_lower_case(digest: str) -> None:
    with refuses(InvalidInputError, where="published column"):
        PublishedColumn(attribute="sex", digest=digest)
    with refuses(InvalidInputError, where="ledger head"):
        LedgerHead(length=1, digest=digest)
    assert (PublishedColumn(attribute="sex", digest=DIGEST).digest, LedgerHead(length=0, digest=DIGEST).length) == (
        DIGEST,
        0,
    )


def test_no_ledger_has_less_than_no_entry() -> None:
    with refuses(InvalidInputError, where="ledger head"):
        LedgerHead(length=-1, digest=DIGEST)
