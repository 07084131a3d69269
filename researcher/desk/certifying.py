"""Collects the signed statements of a release's parties into its certificate."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

from veiltab.common.errors import IntegrityError
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.rpc.certificates.release_certificate import ReleaseCertificate
from veiltab.common.rpc.certificates.release_verification import signers, statement_of, verified
from veiltab.common.rpc.certificates.statement import LedgerHead
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.rpc.parties.signing import SignedText
from veiltab.common.study.file import Study

_AT_ONCE = 8
"""Statements that are asked for at once."""


async def certify(
    release: ReleaseSpec,
    numbers: Iterable[int],
    study: Study,
    authority: bytes,
    ask: Callable[[Party, str], Awaitable[SignedText]],
) -> ReleaseCertificate:
    """Return the certificate of a published release, once every line of it holds.

    Args:
        numbers: of the tables of a release of several that have a result; none of one table.
        study: the study file under which it was asked for.
        authority: certificate of the study's authority, PEM.
        ask: asks a party for its statement about a release.

    Raises:
        IntegrityError: a statement is not what it should be; names the party.
        VeiltabError: a party did not give its statement.
    """
    parties = signers(study)
    is_free = asyncio.Semaphore(_AT_ONCE)

    async def statement(party: Party, release_id: str) -> tuple[str, SignedText]:
        async with is_free:
            return party.uri, await ask(party, release_id)

    async def about(release_id: str, parties: Iterable[Party]) -> dict[str, SignedText]:
        return dict(await asyncio.gather(*(statement(party, release_id) for party in parties)))

    if not release.several:
        whole, tables = await about(release.release_id, parties), {}
    else:
        listing = [party for party in parties if party.role is Role.CURATOR]
        numbers = tuple(numbers)
        whole, *each = await asyncio.gather(
            about(release.release_id, listing), *(about(release.table_id(number), parties) for number in numbers)
        )
        tables = dict(zip(numbers, each, strict=True))
    # Its epsilon card takes up to seconds.
    return await asyncio.to_thread(_checked, release, study, authority, whole, tables)


def ledger_heads(certificate: ReleaseCertificate, study: Study) -> Iterator[tuple[str, LedgerHead, int]]:
    """Yield each curator's name, a ledger that it stated, and when (Unix seconds)."""
    names = {party.uri: party.name for party in signers(study)}
    for statement in map(statement_of, certificate.signed_texts()):
        if statement.ledger is not None:
            yield names[statement.party], statement.ledger, statement.signed_at


def _checked(
    release: ReleaseSpec,
    study: Study,
    authority: bytes,
    statements: Mapping[str, SignedText],
    tables: Mapping[int, Mapping[str, SignedText]],
) -> ReleaseCertificate:
    certificate = ReleaseCertificate.of(release, authority, statements, tables)
    wrong = [finding for finding in verified(certificate, study, authority) if finding.holds is False]
    if wrong:
        raise IntegrityError(f"the release cannot be certified: {wrong[0].detail}", where=wrong[0].what)
    return certificate
