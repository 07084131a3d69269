"""The work of the researcher's service: ask every curator, wait, fetch, decrypt, count. Every step may be repeated."""

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import assert_never

import numpy as np

from veiltab.common.core.canaries import Places
from veiltab.common.core.message_fields import words_from_proto
from veiltab.common.core.randomness import KEY_BYTES
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
from veiltab.common.release.modes import Pad
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import Column, ReleaseSpec
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.wire import pad_from_proto, request_to_proto, spec_from_proto, state_from_proto
from veiltab.common.rpc.channel import connect
from veiltab.common.rpc.identity import Identity, Party, Role
from veiltab.common.rpc.peer import Peer, pause_after
from veiltab.common.rpc.status import failures_logged
from veiltab.common.storage.files import file_digest, written_whole
from veiltab.common.study.differences import study_differences
from veiltab.common.study.file import Study, load_study
from veiltab.researcher.agreement import agreed_spec
from veiltab.researcher.decryption import EncryptedColumn, PublishedRows, count_rows
from veiltab.researcher.store import ResearcherRelease, ResearcherStore
from veiltab.v1 import curator_pb2, curator_pb2_grpc, server_release_pb2, server_release_pb2_grpc

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
        parties = PartyLinks(self._identity, self.study)
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

    def _unfinished(self) -> tuple[str, ...]:
        with failures_logged(_log, "the releases under way cannot be read"):
            return tuple(one.request.release_id for one in self.store.releases() if not one.state.finished)
        return ()

    async def _drive_or_log(self, release_id: str, parties: "PartyLinks") -> None:
        """Drive a release; what goes wrong on the way, such as a full disk, is tried again at the next look."""
        with failures_logged(_log, "a release cannot go on", release=release_id):
            await self._drive(release_id, parties)
        self._driven.discard(release_id)

    async def _drive(self, release_id: str, parties: "PartyLinks") -> None:
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

    def _waiting(self, release_id: str) -> str:
        reasons = [reason for _, reason in self.statuses.get(release_id, {}).values() if reason]
        return "; ".join(reasons)

    async def _advance(self, stored: ResearcherRelease, parties: "PartyLinks") -> None:
        release_id = stored.request.release_id
        statuses = self.statuses.setdefault(release_id, {})
        self._check_study(stored, statuses)
        planned = await self._ask_curators(stored, parties, statuses)
        published = await self._ask_server(release_id, parties, statuses)
        spec = agreed_spec(stored.request, self.study, published, planned)
        self.store.set_spec(release_id, spec)
        began = time.monotonic()
        for column in spec.columns:
            size = column.byte_length(spec.published_rows)
            with step("fetch column", release_id=release_id, attribute=column.attribute, size=size):
                await parties.fetch_column(spec, column, self.store.noisy_column(release_id, column.attribute))
        sampled = await parties.fetch_places(spec) if spec.sampling.is_by_server else None
        rows = PublishedRows(uploaded=spec.uploaded_rows, canaries=np.zeros(0, np.int64), sampled=sampled)
        fetched = time.monotonic()
        columns, key_bytes = await self._fetch_keys(spec, parties)
        with step("count", release_id=release_id):
            counted = await asyncio.to_thread(count_rows, columns, rows)
        with written_whole(self.store.histogram(release_id)) as file:
            file.write(counted.histogram.astype("<i8").data)
        self.store.set_granted(release_id, tuple(one.column.attribute for one in columns))
        self.store.set_measure(
            release_id,
            {"fetch": fetched - began, "decrypt": time.monotonic() - fetched},
            {
                f"server {self.study.server.name} -> researcher {self.name}": sum(
                    c.byte_length(spec.published_rows) for c in spec.columns
                )
            }
            | key_bytes,
        )
        self.store.finish(release_id, ReleaseState.READY)

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
        self, stored: ResearcherRelease, parties: "PartyLinks", statuses: dict[str, tuple[ReleaseState, str]]
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
            if state.unsuccessful and stored.spec is None:
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
        self, release_id: str, parties: "PartyLinks", statuses: dict[str, tuple[ReleaseState, str]]
    ) -> ReleaseSpec:
        """Return the published spec; raise while there is none."""
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
        return spec_from_proto(answer.spec)

    async def _fetch_keys(
        self, spec: ReleaseSpec, parties: "PartyLinks"
    ) -> tuple[list[EncryptedColumn], dict[str, int]]:
        """Fetch every key that is given; return the columns that they decrypt, and the bytes of keys by link."""
        columns, key_bytes = [], dict[str, int]()
        denied: DeniedError | None = None
        for column in spec.columns:
            noisy = self.store.noisy_column(spec.release_id, column.attribute)
            pad_path = self.store.one_time_pad(spec.release_id, column.attribute)
            try:
                with step("fetch key", release_id=spec.release_id, attribute=column.attribute) as measured:
                    key = await parties.fetch_key(spec, column, noisy, pad_path)
                    length = measured.bytes = key.stat().st_size if isinstance(key, Path) else len(key)
            except DeniedError as error:
                denied = error
                continue
            link = f"curator {column.owner} -> researcher {self.name}"
            key_bytes[link] = key_bytes.get(link, 0) + length
            columns.append(EncryptedColumn(column=column, noisy=noisy, key=key))
        if not columns:
            raise denied or DeniedError("no curator gave a key", where=f"release {spec.release_id}")
        return columns, key_bytes


def _may_heal(error: VeiltabError) -> bool:
    """Whether a refusal is worth asking again after: so is one that nobody foresaw, for the release is paid for."""
    return isinstance(error, NotReadyError | UnavailableError) or error.reason == VeiltabError.reason


def _seconds_from_proto(told: Mapping[str, float], prefix: str) -> dict[str, float]:
    """Return the times that a peer says its steps took, as far as they are times."""
    steps = sorted(step for step, seconds in told.items() if 0 <= seconds < inf)
    return {prefix + words_from_proto(step, _STEP_LENGTH): told[step] for step in steps[:_STEPS]}


def _position(state: ReleaseState) -> int:
    return _ORDER.index(state) if state in _ORDER else len(_ORDER)


class PartyLinks:
    """The curators and the server, as the researcher reaches them."""

    def __init__(self, identity: Identity, study: Study) -> None:
        self._study = study
        server = Party(study=study.id, role=Role.SERVER, name=study.server.name)
        channel = connect(identity, server, study.server.endpoint)
        self._server = Peer(server, channel, server_release_pb2_grpc.ReleaseServiceStub)
        self.curators = {}
        for curator in study.curators:
            party = Party(study=study.id, role=Role.CURATOR, name=curator.name)
            channel = connect(identity, party, curator.endpoint)
            self.curators[curator.name] = Peer(party, channel, curator_pb2_grpc.CuratorServiceStub)

    async def close(self) -> None:
        """Close the channels."""
        await self._server.close()
        for curator in self.curators.values():
            await curator.close()

    async def ask_curator(self, name: str, stored: ResearcherRelease) -> curator_pb2.GetProposalResponse:
        """Return how a curator stands with a release, submitting the request if it does not know it."""
        curator = self.curators[name]
        question = curator_pb2.GetProposalRequest(release_id=stored.request.release_id)
        with suppress(NotFoundError):
            return await curator.ask(curator.stub.GetProposal, question, once=True)
        proposal = curator_pb2.ProposeReleaseRequest(
            study_digest=self._study.digest, request=request_to_proto(stored.request)
        )
        await curator.ask(curator.stub.ProposeRelease, proposal, once=True)
        return await curator.ask(curator.stub.GetProposal, question, once=True)

    async def ask_server(self, release_id: str) -> server_release_pb2.GetReleaseResponse:
        """Return how the server stands with a release."""
        question = server_release_pb2.GetReleaseRequest(release_id=release_id)
        return await self._server.ask(self._server.stub.GetRelease, question, once=True)

    async def fetch_column(self, spec: ReleaseSpec, column: Column, path: Path) -> None:
        """Fetch a perturbed column into a file, which is there whole or not at all."""
        if path.exists():
            return
        request = server_release_pb2.FetchColumnRequest(release_id=spec.release_id, attribute=column.attribute)
        total = column.byte_length(spec.published_rows)
        pieces = self._server.stream(self._server.stub.FetchColumn, request, total)
        with written_whole(path) as file:
            async for data in pieces:
                file.write(data)

    async def fetch_places(self, spec: ReleaseSpec) -> Places:
        """Fetch the places that the server sampled."""
        request = server_release_pb2.FetchPlacesRequest(release_id=spec.release_id)
        data = await self._server.fetch(self._server.stub.FetchPlaces, request, 8 * spec.published_rows)
        return np.frombuffer(data, "<i8").astype(np.int64)

    async def fetch_key(self, spec: ReleaseSpec, column: Column, noisy: Path, pad_path: Path) -> bytes | Path:
        """Fetch the key of a column that is in a file: 32 bytes, or a one-time pad into a file.

        Raises:
            DeniedError: the attribute is not granted, or the grant has expired.
        """
        request = curator_pb2.FetchKeyRequest(
            release_id=spec.release_id,
            attribute=column.attribute,
            published_digest=await asyncio.to_thread(file_digest, noisy),
            canary_digest=hashlib.sha256().digest(),  # a release without canaries
        )
        curator = self.curators[column.owner]

        def check_kind(response: curator_pb2.FetchKeyResponse) -> None:
            if pad_from_proto(response.pad) is not spec.pad:
                raise FailedReleaseError("a curator gave another kind of key than the release says", where="key")

        def pieces(total: int) -> AsyncIterator[bytes]:
            return curator.stream(curator.stub.FetchKey, request, total, check=check_kind)

        match spec.pad:
            case Pad.CHACHA20:
                return b"".join([data async for data in pieces(KEY_BYTES)])
            case Pad.OTP:
                with written_whole(pad_path) as file:
                    async for data in pieces(column.byte_length(spec.uploaded_rows)):
                        file.write(data)
                return pad_path
            case _:
                assert_never(spec.pad)
