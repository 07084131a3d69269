"""Collects the signed statements of a release's parties into its certificate."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from veiltab.common.errors import IntegrityError
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.statement import LedgerHead
from veiltab.common.rpc.identity import Party
from veiltab.common.rpc.release_certificate import ReleaseCertificate, signers, statement_of, verified
from veiltab.common.rpc.signing import SignedText
from veiltab.common.study.file import Study


async def certify(
    spec: ReleaseSpec,
    study: Study,
    authority: bytes,
    ask: Callable[[Party, str], Awaitable[SignedText]],
    witness: Callable[[str, LedgerHead, int], None],
) -> ReleaseCertificate:
    """Return the certificate of a published release, once every line of it holds.

    Args:
        spec: of the release.
        study: the study file under which it was asked for.
        authority: certificate of the study's authority, PEM.
        ask: asks a party for its statement about a release.
        witness: remembers the ledger that a curator states at a time, and refuses one that was longer before.

    Raises:
        IntegrityError: a statement is not what it should be; names the party.
        VeiltabError: a party did not give its statement.
    """
    parties = signers(study)
    answers = await asyncio.gather(*(ask(party, spec.release_id) for party in parties))
    statements = dict(zip((party.uri for party in parties), answers, strict=True))
    # Its epsilon card takes up to seconds, and that of each of many tables may be asked for.
    certificate = await asyncio.to_thread(_checked, spec, study, authority, statements)
    for party in parties:
        stated = statement_of(statements[party.uri])
        if stated.ledger is not None:
            witness(party.name, stated.ledger, stated.signed_at)
    return certificate


def _checked(
    spec: ReleaseSpec, study: Study, authority: bytes, statements: Mapping[str, SignedText]
) -> ReleaseCertificate:
    certificate = ReleaseCertificate.of(spec, authority, statements)
    wrong = [found for found in verified(certificate, study, authority) if not found.holds]
    if wrong:
        raise IntegrityError(f"the release cannot be certified: {wrong[0].detail}", where=wrong[0].what)
    return certificate
