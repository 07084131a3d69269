"""The work of the researcher's service: ask every curator, wait, fetch, decrypt, count. Every step may be repeated."""

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path

from veiltab.common.core.message_fields import words_from_proto
from veiltab.common.errors import (
    DeniedError,
    FailedReleaseError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
    UnavailableError,
    VeiltabError,
)
from veiltab.common.observe.steps import release_ended, step
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.wire import spec_from_proto, state_from_proto
from veiltab.common.rpc.identity import Identity
from veiltab.common.rpc.peer import pause_after
from veiltab.common.rpc.status import failures_logged
from veiltab.common.storage.files import written_whole
from veiltab.common.study.differences import study_differences
from veiltab.common.study.file import Study, load_study
from veiltab.researcher.agreement import agreed_spec
from veiltab.researcher.certifying import certify
from veiltab.researcher.parties import PartyLinks
from veiltab.researcher.receiving import Receiver
from veiltab.researcher.store import ResearcherRelease, ResearcherStore
from veiltab.v1 import curator_pb2

_log = logging.getLogger(__name__)
_LOOK_AGAIN_SECONDS = 1.0
_LONGEST_LIFETIME = 365 * 86_400
_STEPS = 64
"""Most steps of a peer whose times are kept."""

_STEP_LENGTH = 64
"""Most bytes of the name of such a step."""

_ORDER = [s for s in ReleaseState if not s.unsuccessful]


class ResearcherDriver:
    """What a researcher's service does, behind its RPCs.

    Args:
        identity: the researcher's own.
        study: the study file.
        store: durable state.
    """

    def __init__(self, identity: Identity, study: Study, store: ResearcherStore) -> None:
        self.name = identity.party.name
        self.study = study
        self.store = store
        self.statuses: dict[str, dict[str, tuple[ReleaseState, str]]] = {}
        self._identity = identity
        self._receiver = Receiver(self.name, study.server.name, store)
        self._parties: PartyLinks | None = None
        self._started = asyncio.Event()
        self._driven: set[str] = set()

    def start(self, request: ReleaseRequest, label: str, study_digest: str) -> tuple[ResearcherRelease, bool]:
        """Record a request, its attributes in study order, or return the one to continue.

        Args:
            request: what is asked for.
            label: the researcher's own name for the release; may be empty.
            study_digest: of the study file that the asker read.

        Returns:
            The release, and whether it was there.

        Raises:
            InvalidInputError: another study file, unknown attributes, or a deadline that is over or too far away.
        """
        if study_digest != self.study.digest:
            raise InvalidInputError(
                "the service runs with another study file",
                where=f"researcher {self.name}",
                remedy="Give both the same bytes, and restart the service if its file is the wrong one.",
            )
        now = int(time.time())
        if not now < request.deadline <= now + _LONGEST_LIFETIME:
            raise InvalidInputError("a release lives at least a second and at most 365 days", where="lifetime")
        request = replace(request, attributes=self.study.domain(request.attributes).names)
        started = self.store.start(request, label, now)
        self._started.set()
        return started

    async def run(self) -> None:
        """Drive every unfinished release until cancelled; delete what is left of the others."""
        self.store.delete_leftovers()
        parties = self._parties = PartyLinks(self._identity, self.study)
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    self._started.clear()
                    for release_id in self._unfinished():
                        if release_id not in self._driven:
                            self._driven.add(release_id)
                            tasks.create_task(self._drive_or_log(release_id, parties))
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._started.wait(), _LOOK_AGAIN_SECONDS)
        finally:
            await parties.close()

    async def certificate(self, stored: ResearcherRelease) -> Path:
        """Return the file of a release's certificate; its parties are asked for their signatures the first time.

        Raises:
            NotReadyError: the release is not ready.
            IntegrityError: what a party states does not fit the release.
            VeiltabError: a party did not sign.
        """
        release_id = stored.request.release_id
        path = self.store.certificate(release_id)
        if path.exists():
            return path
        if stored.state is not ReleaseState.READY or stored.spec is None:
            raise NotReadyError(f"the release is {stored.state.value}", where=f"release {release_id}")
        if self._parties is None:
            raise NotReadyError("the service has just begun", where=f"researcher {self.name}", remedy="Ask again.")
        with step("certify", release_id=release_id):
            study = load_study(self.store.study_file(stored.study_digest))
            whole = await certify(stored.spec, study, self._identity.authority, self._parties.ask_statement)
            with written_whole(path) as file:
                file.write(whole.to_text().encode())
        return path

    def _unfinished(self) -> tuple[str, ...]:
        with failures_logged(_log, "the releases under way cannot be read"):
            return tuple(one.request.release_id for one in self.store.releases() if not one.state.finished)
        return ()

    async def _drive_or_log(self, release_id: str, parties: PartyLinks) -> None:
        """Drive a release; what goes wrong on the way, such as a full disk, is tried again at the next look."""
        with failures_logged(_log, "a release cannot go on", release=release_id):
            await self._drive(release_id, parties)
        self._driven.discard(release_id)

    async def _drive(self, release_id: str, parties: PartyLinks) -> None:
        attempt, began = 0, time.monotonic()
        while not (stored := self.store.release(release_id)).state.finished:
            try:
                await self._advance(stored, parties)
            except VeiltabError as error:
                if not _may_heal(error):
                    state = ReleaseState.DENIED if isinstance(error, DeniedError) else ReleaseState.FAILED
                    self.store.finish(release_id, state, str(error))
                elif time.time() > stored.request.deadline:
                    reason = "the deadline passed; " + self._waiting(release_id)
                    self.store.finish(release_id, ReleaseState.EXPIRED, reason)
                else:
                    await pause_after(attempt)
                    attempt += 1
        self.store.delete_columns(release_id)
        seconds = time.monotonic() - began
        release_ended(stored.state.value, release_id=release_id, seconds=seconds)
        self.store.set_measure(release_id, {"total": seconds}, {})
        if (ended := self.store.release(release_id)).state is ReleaseState.READY:
            # Whoever asks for it later has it even if a party is gone; a party that is away now is asked then.
            with failures_logged(_log, "a release is not certified yet", release=release_id):
                await self.certificate(ended)

    def _waiting(self, release_id: str) -> str:
        reasons = [reason for _, reason in self.statuses.get(release_id, {}).values() if reason]
        return "; ".join(reasons)

    async def _advance(self, stored: ResearcherRelease, parties: PartyLinks) -> None:
        release_id = stored.request.release_id
        statuses = self.statuses.setdefault(release_id, {})
        self._check_study(stored, statuses)
        planned = await self._ask_curators(stored, parties, statuses)
        published, salt = await self._ask_server(release_id, parties, statuses)
        spec = agreed_spec(stored.request, self.study, published, planned)
        self.store.set_spec(release_id, spec)
        await self._receiver.receive(spec, salt, parties)

    def _check_study(self, stored: ResearcherRelease, statuses: dict[str, tuple[ReleaseState, str]]) -> None:
        """Let a release wait that was asked for under another study file; going on would label its cells wrongly.

        Raises:
            NotReadyError: it was.
        """
        if stored.study_digest in {"", self.study.digest}:
            return
        kept = self.store.study_file(stored.study_digest)
        difference = study_differences(self.study, load_study(kept))
        problem = f"the release was asked for under another study file; the one here {difference}"
        remedy = f"Start the service with studies/{kept.name} of its state folder"
        statuses[f"researcher {self.name}"] = (stored.state, f"{problem}. {remedy}.")
        raise NotReadyError(problem, where=f"researcher {self.name}", remedy=f"{remedy}.")

    async def _ask_curators(
        self, stored: ResearcherRelease, parties: PartyLinks, statuses: dict[str, tuple[ReleaseState, str]]
    ) -> dict[str, ReleaseSpec]:
        """Make sure every curator has the request; record how far each is; raise if one ended it.

        Returns:
            What each curator planned, as far as they have.
        """
        states = []
        planned = {}
        unreachable: VeiltabError | None = None
        for name in parties.curators:
            statuses.setdefault(f"curator {name}", (ReleaseState.REQUESTED, "has not answered yet"))
            try:
                answer = await parties.ask_curator(name, stored)
            except (NotReadyError, UnavailableError) as error:
                statuses[f"curator {name}"] = (ReleaseState.REQUESTED, str(error))
                unreachable = error
                continue
            state = state_from_proto(answer.state)
            statuses[f"curator {name}"] = (state, words_from_proto(answer.waiting_for))
            self._record(stored, name, answer)
            if answer.HasField("spec"):
                planned[name] = spec_from_proto(answer.spec)
            if state is ReleaseState.DENIED:
                raise DeniedError(words_from_proto(answer.failure))
            # A curator whose test of the server failed ends a release that is published, too.
            if state is ReleaseState.FAILED or (state.unsuccessful and stored.spec is None):
                raise FailedReleaseError(words_from_proto(answer.failure))
            states.append(state)
        if unreachable:
            raise unreachable
        self.store.set_state(stored.request.release_id, min(*states, ReleaseState.UPLOADING, key=_position))
        return planned

    def _record(self, stored: ResearcherRelease, curator: str, answer: curator_pb2.GetProposalResponse) -> None:
        self.store.set_measure(
            stored.request.release_id,
            _seconds_from_proto(answer.seconds, f"curator {curator}: "),
            {f"curator {curator} -> server {self.study.server.name}": answer.bytes_uploaded},
        )

    async def _ask_server(
        self, release_id: str, parties: PartyLinks, statuses: dict[str, tuple[ReleaseState, str]]
    ) -> tuple[ReleaseSpec, bytes]:
        """Return the published spec and the salt of its columns' digests; raise while there is none."""
        who = f"server {self.study.server.name}"
        try:
            answer = await parties.ask_server(release_id)
        except NotFoundError:
            statuses[who] = (ReleaseState.REQUESTED, "")
            raise NotReadyError("nothing was uploaded yet", where=who) from None
        except VeiltabError as error:
            statuses[who] = (ReleaseState.REQUESTED, str(error))
            raise
        state = state_from_proto(answer.state)
        missing = words_from_proto(", ".join(answer.waiting_for))
        statuses[who] = (state, f"waits for the columns {missing}" if missing else "")
        if state.unsuccessful:
            raise FailedReleaseError(words_from_proto(answer.failure), where=who)
        if state is not ReleaseState.READY:
            raise NotReadyError("the release is not published yet", where=who)
        self.store.set_measure(
            release_id, _seconds_from_proto({"perturbing": answer.perturbation_seconds}, f"{who}: "), {}
        )
        return spec_from_proto(answer.spec), answer.salt


def _may_heal(error: VeiltabError) -> bool:
    """Whether a refusal is worth asking again after: so is one that nobody foresaw, for the release is paid for."""
    return isinstance(error, NotReadyError | UnavailableError) or error.reason == VeiltabError.reason


def _seconds_from_proto(told: Mapping[str, float], prefix: str) -> dict[str, float]:
    """Return the times that a peer says its steps took, as far as they are times."""
    steps = sorted(step for step, seconds in told.items() if 0 <= seconds < inf)
    return {prefix + words_from_proto(step, _STEP_LENGTH): told[step] for step in steps[:_STEPS]}


def _position(state: ReleaseState) -> int:
    return _ORDER.index(state) if state in _ORDER else len(_ORDER)
