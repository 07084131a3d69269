"""Collects the signed statements of a release's parties into its certificate."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from veiltab.common.errors import IntegrityError
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.rpc.identity import Party
from veiltab.common.rpc.release_certificate import ReleaseCertificate, signers, verified
from veiltab.common.rpc.signing import SignedText
from veiltab.common.study.file import Study


async def certify(
    spec: ReleaseSpec, study: Study, authority: bytes, ask: Callable[[Party, str], Awaitable[SignedText]]
) -> ReleaseCertificate:
    """Return the certificate of a published release, once every line of it holds.

    Args:
        spec: of the release.
        study: the study file under which it was asked for.
        authority: certificate of the study's authority, PEM.
        ask: asks a party for its statement about a release.

    Raises:
        IntegrityError: a statement is not what it should be; names the party.
        VeiltabError: a party did not give its statement.
    """
    parties = signers(study)
    answers = await asyncio.gather(*(ask(party, spec.release_id) for party in parties))
    statements = dict(zip((party.uri for party in parties), answers, strict=True))
    # Its epsilon card takes up to seconds, and that of each of many tables may be asked for.
    return await asyncio.to_thread(_checked, spec, study, authority, statements)


def _checked(
    spec: ReleaseSpec, study: Study, authority: bytes, statements: Mapping[str, SignedText]
) -> ReleaseCertificate:
    certificate = ReleaseCertificate.of(spec, authority, statements)
    wrong = [found for found in verified(certificate, study, authority) if not found.holds]
    if wrong:
        raise IntegrityError(f"the release cannot be certified: {wrong[0].detail}", where=wrong[0].what)
    return certificate
