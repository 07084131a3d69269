"""The RPCs of a researcher's service, for the command lines and notebooks of the researcher and its analysts."""

import logging
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TypeVar

from veiltab.common.core.texts.message_fields import text_from_proto, whole_from_proto
from veiltab.common.errors import InvalidInputError
from veiltab.common.release.messages.release_messages import (
    receipt_to_proto,
    release_to_proto,
    request_from_proto,
    state_to_proto,
)
from veiltab.common.release.state import ReleaseState, not_ready
from veiltab.common.rpc.authorisation import Context, caller
from veiltab.common.rpc.chunks import CHUNK, file_chunks, streamed
from veiltab.common.rpc.parties.identity import Role
from veiltab.common.rpc.waiting.changes import offered_seconds
from veiltab.researcher.desk.driver import ResearcherDriver
from veiltab.researcher.records.releases import ResearcherRelease, StoredTable
from veiltab.researcher.status.access_log import AccessLog, Subject, access_to_proto
from veiltab.v1 import researcher_pb2, researcher_pb2_grpc
from veiltab.v1.release_pb2 import Chunk

_log = logging.getLogger(__name__)
_PAGE = 1000
"""Accesses in one answer: some 100 KB."""

Number = TypeVar("Number", int, float)


class ResearcherServicer(researcher_pb2_grpc.ResearcherServiceServicer):
    """Answers the researcher it belongs to, and this researcher's analysts; what analysts ask is recorded first."""

    def __init__(self, driver: ResearcherDriver) -> None:
        self._driver = driver
        self._accesses = AccessLog(driver.store.connection)

    async def StartRelease(
        self, request: researcher_pb2.StartReleaseRequest, context: Context
    ) -> researcher_pb2.StartReleaseResponse:
        del context
        wish = request_from_proto(request.request, self._driver.name)
        release, continued = self._driver.start(wish, text_from_proto(request.label, "label"), request.study_digest)
        return researcher_pb2.StartReleaseResponse(release_id=release.request.release_id, continued=continued)

    async def ListReleases(
        self, request: researcher_pb2.ListReleasesRequest, context: Context
    ) -> researcher_pb2.ListReleasesResponse:
        del request
        self._record(context, Subject.RELEASES)
        return researcher_pb2.ListReleasesResponse(releases=[_summary(s) for s in self._driver.store.releases()])

    async def GetResult(
        self, request: researcher_pb2.GetResultRequest, context: Context
    ) -> researcher_pb2.GetResultResponse:
        store = self._driver.store
        release = store.release(request.release)
        self._record(context, Subject.STATUS, release)
        release_id = release.request.release_id
        if request.wait_milliseconds and not release.state.finished:
            await self._driver.changes.until(
                lambda: store.release(release_id).state.finished,
                [release_id],
                caller(context),
                offered_seconds(request.wait_milliseconds),
            )
            release = store.release(release_id)
        is_own = caller(context).role is Role.RESEARCHER
        counts = b""
        if request.with_counts and release.state is ReleaseState.READY and not release.request.tables:
            counts = self._short_counts(release, context)
        tables = store.tables(release_id) if release.request.tables else ()
        planned = release.planned if release.spec is not None or release.state is ReleaseState.READY else None
        return researcher_pb2.GetResultResponse(
            summary=_summary(release),
            parties=[
                researcher_pb2.PartyStatus(party=party, state=state_to_proto(state), waiting_for=waiting)
                for party, (state, waiting) in self._driver.statuses_of(release_id).items()
            ],
            failure=release.failure,
            spec=None if planned is None else release_to_proto(planned),
            granted=release.granted,
            seconds=_together(release.seconds, *(one.seconds for one in tables)),
            bytes=_together(release.bytes, *(one.bytes for one in tables)),
            receipts=[receipt_to_proto(one, with_counts=is_own) for one in release.receipts],
            tables=map(_table_to_proto, tables),
            left_out=release.left_out,
            counts=counts,
        )

    def _short_counts(self, release: ResearcherRelease, context: Context) -> bytes:
        """Return the counts of a release of one table that is ready; nothing if they exceed a chunk."""
        path = self._driver.store.files.histogram(release.request.release_id)
        if path.stat().st_size > CHUNK:
            return b""
        self._record(context, Subject.COUNTS, release)
        return path.read_bytes()

    async def FetchHistogram(
        self, request: researcher_pb2.FetchHistogramRequest, context: Context
    ) -> AsyncIterator[researcher_pb2.FetchHistogramResponse]:
        release = self._driver.store.release(request.release_id)
        if release.state is not ReleaseState.READY:
            raise not_ready(release.state, release.failure, where=f"release {request.release_id}")
        _check_is_one_table(release)
        self._record(context, Subject.COUNTS, release)
        path = self._driver.store.files.histogram(release.request.release_id)
        async for total, chunk in _streamed(path, request.offset):
            yield researcher_pb2.FetchHistogramResponse(total=total, chunk=chunk)

    async def FetchCertificate(
        self, request: researcher_pb2.FetchCertificateRequest, context: Context
    ) -> AsyncIterator[researcher_pb2.FetchCertificateResponse]:
        del context
        path = await self._driver.certificate(self._driver.store.release(request.release_id))
        async for total, chunk in _streamed(path, request.offset):
            yield researcher_pb2.FetchCertificateResponse(total=total, chunk=chunk)

    async def FetchStudy(
        self, request: researcher_pb2.FetchStudyRequest, context: Context
    ) -> AsyncIterator[researcher_pb2.FetchStudyResponse]:
        path = self._driver.store.files.study_file(request.study_digest)
        self._record(context, Subject.STUDY_FILE)
        async for total, chunk in _streamed(path, request.offset):
            yield researcher_pb2.FetchStudyResponse(total=total, chunk=chunk)

    async def ListAccesses(
        self, request: researcher_pb2.ListAccessesRequest, context: Context
    ) -> researcher_pb2.ListAccessesResponse:
        del context
        accesses = self._accesses.after(whole_from_proto(request.after, "after"), _PAGE)
        return researcher_pb2.ListAccessesResponse(accesses=map(access_to_proto, accesses))

    def _record(self, context: Context, subject: Subject, release: ResearcherRelease | None = None) -> None:
        """Record what an analyst asks for; what the researcher reads of its own is not recorded."""
        asker = caller(context)
        if asker.role is Role.ANALYST:
            # A release of many tables has one entry, as one of one table.
            release_id = "" if release is None else release.part_of or release.request.release_id
            self._accesses.record(asker.name, subject, release_id)
            _log.info("%s asked for: %s", asker, subject.value, extra={"release": release_id or None})


def _streamed(path: Path, offset: int) -> AsyncIterator[tuple[int, Chunk | None]]:
    return streamed(file_chunks(path, offset), path.stat().st_size, offset)


def _check_is_one_table(release: ResearcherRelease) -> None:
    """Refuse what is asked of a release of several tables and exists of each of them alone."""
    if release.request.tables:
        raise InvalidInputError(
            "this is a release of several tables", where=f"release {release.request.release_id}", remedy="Name a table."
        )


def _together(first: Mapping[str, Number], *others: Mapping[str, Number]) -> dict[str, Number]:
    """Return what a release and its tables took together."""
    total = dict(first)
    for figures in others:
        for name, figure in figures.items():
            total[name] = total[name] + figure if name in total else figure
    return total


def _table_to_proto(table: StoredTable) -> researcher_pb2.TableStatus:
    return researcher_pb2.TableStatus(
        number=table.number,
        release_id=table.release_id,
        state=state_to_proto(table.state),
        attributes=table.attributes,
        phase=2 if table.is_repeat else 1,
    )


def _summary(release: ResearcherRelease) -> researcher_pb2.ReleaseSummary:
    return researcher_pb2.ReleaseSummary(
        release_id=release.request.release_id,
        label=release.label or None,
        state=state_to_proto(release.state),
        attributes=release.request.attributes,
        epsilon=str(release.request.epsilon),
        created=release.created,
        study_digest=release.study_digest,
        purpose=release.request.purpose or None,
        delta=None if release.request.delta is None else str(release.request.delta),
    )
