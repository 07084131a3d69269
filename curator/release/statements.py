"""What a curator states about a release that is ready, signed."""

from dataclasses import replace

from veiltab.common.errors import NotReadyError
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.certificates.statement import LedgerHead, Statement, published_columns
from veiltab.common.rpc.parties.identity import Identity, utc_now
from veiltab.common.rpc.parties.signing import SignedText, signed
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.progress.release_record import CuratorRelease
from veiltab.curator.records.store import CuratorStore


def signed_statement(identity: Identity, release: CuratorRelease, store: CuratorStore, ledger: Ledger) -> SignedText:
    """Return a curator's statement about a release, signed now.

    Args:
        release: the release, of one table or several.

    Raises:
        NotReadyError: the release is not ready here.
        InvalidInputError: the curator's certificate has expired.
    """
    name = identity.party.name
    if release.state is not ReleaseState.READY:
        raise NotReadyError(f"the release is {release.state.value}", where=f"curator {name}")
    now = utc_now()
    length, head = ledger.chain.head
    statement = Statement(
        party=identity.party.uri,
        spec_digest=release.digest.hex(),
        published=(),
        signed_at=int(now.timestamp()),
        ledger=LedgerHead(length=length, digest=head.hex()),
    )
    if release.several is not None:
        tables = store.tables.tables(release.request.release_id)
        ready = sorted(number for number, table in tables.items() if table.state is ReleaseState.READY)
        statement = replace(statement, tables=tuple(ready))
    elif release.planned_spec.columns_of(name):
        spec = release.planned_spec
        statement = replace(
            statement,
            published=published_columns(spec, store.tests.publication(spec.release_id).columns),
            receipts=store.tests.receipts(spec.release_id),
        )
    return signed(identity, statement.to_json(), now)
