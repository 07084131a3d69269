"""The certificates of a desk's releases: each is made once, however many ask for it meanwhile."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from veiltab.common.errors import InvalidInputError, NotReadyError
from veiltab.common.observe.steps import step
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.state import ReleaseState, not_ready
from veiltab.common.rpc.parties.identity import Identity, Party, Role
from veiltab.common.rpc.parties.signing import SignedText
from veiltab.common.storage.files import write_whole
from veiltab.common.study.file import Study
from veiltab.researcher.parties.parties import PartyLinks
from veiltab.researcher.parties.polling import CuratorAnswers, Publication, statement_of
from veiltab.researcher.records.releases import ResearcherRelease
from veiltab.researcher.records.store import ResearcherStore


class Certificates:
    """The certificates of a desk's releases."""

    def __init__(self, identity: Identity, store: ResearcherStore) -> None:
        self._identity = identity
        self._store = store
        self._making = dict[str, asyncio.Task[None]]()
        # Release that will be certified -> URI -> what a party stated with its last answer about it.
        self._stated = dict[str, dict[str, SignedText]]()

    def keep_statements(self, study: Study, release_id: str, published: Publication, answers: CuratorAnswers) -> None:
        """Keep what parties stated with what they answered: they are not asked for it again."""
        self._stated[release_id] = dict(_statements(study, published, answers))

    def forget(self, release_id: str) -> None:
        """Forget what parties stated about a release that is over."""
        self._stated.pop(release_id, None)

    async def of(
        self, release: ResearcherRelease, study: Callable[[ResearcherRelease], Study], parties: PartyLinks | None
    ) -> Path:
        """Return the file of a release's certificate; its parties are asked for their signatures the first time.

        Args:
            study: returns the study file under which it was asked for.
            parties: to ask; None before the service has begun.

        Raises:
            InvalidInputError: it is one of several tables.
            NotReadyError, DeniedError, FailedReleaseError: the release is not ready.
            IntegrityError: what a party states does not fit the release.
            VeiltabError: a party did not sign.
        """
        release_id = release.request.release_id
        path = self._store.files.certificate(release_id)
        if path.exists():
            return path
        if release.part_of:
            raise InvalidInputError(
                "this is one table of several, and the certificate is that of all of them",
                where=f"release {release_id}",
                remedy=f"Ask for the certificate of {release.part_of}.",
            )
        if release.state is not ReleaseState.READY or release.planned is None:
            raise not_ready(release.state, release.failure, where=f"release {release_id}")
        if parties is None:
            own = f"researcher {self._identity.party.name}"
            raise NotReadyError("the service has just begun", where=own, remedy="Ask again.")
        making = self._making.get(release_id)
        if making is None:
            coroutine = self._certify(release.planned, study(release), parties, path)
            making = self._making[release_id] = asyncio.create_task(coroutine)
            making.add_done_callback(partial(self._end, release_id))
        # It is made once for all who ask meanwhile, and to its end though they leave.
        await asyncio.shield(making)
        return path

    async def _certify(self, release: ReleaseSpec, study: Study, parties: PartyLinks, path: Path) -> None:
        from veiltab.researcher.desk.certifying import certify, ledger_heads  # noqa: PLC0415 - not for releases without a certificate

        statements = self._stated.pop(release.release_id, {})
        numbers = [one.number for one in self._store.tables(release.release_id) if one.state is ReleaseState.READY]

        async def ask(party: Party, release_id: str) -> SignedText:
            return statements.get(party.uri) or await parties.ask_statement(party, release_id)

        with step("certify", release_id=release.release_id):
            whole = await certify(release, numbers, study, self._identity.authority, ask)
            self._store.witness(ledger_heads(whole, study))
            write_whole(path, whole.to_text().encode())

    def _end(self, release_id: str, making: "asyncio.Task[None]") -> None:
        del self._making[release_id]
        if not making.cancelled():
            making.exception()  # perhaps nobody waits for it any more


def _statements(study: Study, published: Publication, answers: CuratorAnswers) -> Iterator[tuple[str, SignedText]]:
    """Yield the URIs of parties, and what they stated with what they answered."""
    if published.statement is not None:
        yield Party(study=study.id, role=Role.SERVER, name=study.server.name).uri, published.statement
    for name, answer in answers.items():
        if (statement := statement_of(answer)) is not None:
            yield Party(study=study.id, role=Role.CURATOR, name=name).uri, statement
