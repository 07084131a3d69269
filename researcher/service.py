"""The researcher's own RPCs, for its command line and notebooks."""

from collections.abc import AsyncIterator
from pathlib import Path

from veiltab.common.core.message_fields import text_from_proto
from veiltab.common.errors import NotReadyError
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.wire import request_from_proto, spec_to_proto, state_to_proto
from veiltab.common.rpc.authorisation import Context
from veiltab.common.rpc.chunks import file_chunks, streamed
from veiltab.researcher.driver import ResearcherDriver
from veiltab.researcher.store import ResearcherRelease
from veiltab.v1 import researcher_pb2, researcher_pb2_grpc
from veiltab.v1.release_pb2 import Chunk


class ResearcherServicer(researcher_pb2_grpc.ResearcherServiceServicer):
    """Answers the researcher it belongs to."""

    def __init__(self, driver: ResearcherDriver) -> None:
        self._driver = driver

    async def StartRelease(
        self, request: researcher_pb2.StartReleaseRequest, context: Context
    ) -> researcher_pb2.StartReleaseResponse:
        del context
        asked = request_from_proto(request.request, self._driver.name)
        stored, continued = self._driver.start(asked, text_from_proto(request.label, "label"), request.study_digest)
        return researcher_pb2.StartReleaseResponse(release_id=stored.request.release_id, continued=continued)

    async def ListReleases(
        self, request: researcher_pb2.ListReleasesRequest, context: Context
    ) -> researcher_pb2.ListReleasesResponse:
        del request, context
        return researcher_pb2.ListReleasesResponse(releases=[_summary(s) for s in self._driver.store.releases()])

    async def GetResult(
        self, request: researcher_pb2.GetResultRequest, context: Context
    ) -> researcher_pb2.GetResultResponse:
        del context
        stored = self._driver.store.release(request.release)
        statuses = self._driver.statuses.get(stored.request.release_id, {})
        return researcher_pb2.GetResultResponse(
            summary=_summary(stored),
            parties=[
                researcher_pb2.PartyStatus(party=party, state=state_to_proto(state), waiting_for=waiting)
                for party, (state, waiting) in statuses.items()
            ],
            failure=stored.failure,
            spec=None if stored.spec is None else spec_to_proto(stored.spec),
            granted=stored.granted,
            seconds=stored.seconds,
            bytes=stored.bytes,
        )

    async def FetchHistogram(
        self, request: researcher_pb2.FetchHistogramRequest, context: Context
    ) -> AsyncIterator[researcher_pb2.FetchHistogramResponse]:
        del context
        self._check_ready(request.release_id)
        async for total, chunk in _streamed(self._driver.store.histogram(request.release_id), request.offset):
            yield researcher_pb2.FetchHistogramResponse(total=total, chunk=chunk)

    async def FetchStudy(
        self, request: researcher_pb2.FetchStudyRequest, context: Context
    ) -> AsyncIterator[researcher_pb2.FetchStudyResponse]:
        del context
        path = self._driver.store.study_file(request.study_digest)
        async for total, chunk in _streamed(path, request.offset):
            yield researcher_pb2.FetchStudyResponse(total=total, chunk=chunk)

    def _check_ready(self, release_id: str) -> None:
        state = self._driver.store.release(release_id).state
        if state is not ReleaseState.READY:
            raise NotReadyError(f"the release is {state.value}", where=f"release {release_id}")


def _streamed(path: Path, offset: int) -> AsyncIterator[tuple[int, Chunk | None]]:
    return streamed(file_chunks(path, offset), path.stat().st_size, offset)


def _summary(stored: ResearcherRelease) -> researcher_pb2.ReleaseSummary:
    return researcher_pb2.ReleaseSummary(
        release_id=stored.request.release_id,
        label=stored.label or None,
        state=state_to_proto(stored.state),
        attributes=stored.request.attributes,
        epsilon=str(stored.request.epsilon),
        created=stored.created,
        study_digest=stored.study_digest,
    )
