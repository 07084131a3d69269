"""The server's own code behind a node's stub, without TLS, and what may go wrong on the way there and back."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc

from tests.curator.audit.exported_evidence import identity
from veiltab.common.collection.round import Round
from veiltab.common.collection.tokens import token_digest
from veiltab.common.core.texts.canonical import canonical_text
from veiltab.common.errors import VeiltabError
from veiltab.common.rpc.parties.identity import Party, Role, load_identity, utc_now
from veiltab.common.rpc.parties.signing import signed
from veiltab.common.rpc.statuses import CODES, DETAILS_KEY, incident, to_status
from veiltab.common.study.file import Study
from veiltab.server.rounds.rounds import RoundKeeper
from veiltab.server.rounds.rounds_service import CollectionServicer
from veiltab.server.rounds.rounds_store import CollectionStore
from veiltab.v1 import collection_pb2

REQUEST_LOST, ANSWER_LOST = "request lost", "answer lost"
INCIDENT_BEFORE, INCIDENT_AFTER = "incident before counting", "incident after counting"


def refusal(error: VeiltabError) -> grpc.aio.AioRpcError:
    """Return what a client of gRPC sees of an error."""
    details = grpc.aio.Metadata((DETAILS_KEY, to_status(error).SerializeToString()))
    return grpc.aio.AioRpcError(CODES.get(type(error), grpc.StatusCode.INTERNAL), grpc.aio.Metadata(), details)


class Loopback:
    """A stub of the server.

    Args:
        rounds: the server's part.
        faults: what goes wrong with one attempt after the other; empty texts are attempts that go well.
    """

    def __init__(self, rounds: RoundKeeper, faults: Iterable[str] = ()) -> None:
        self.rounds = rounds
        self.faults = iter(faults)
        self.sent: list[collection_pb2.ReportRequest] = []
        self.before: Callable[[collection_pb2.ReportRequest], None] = lambda _: None
        self._servicer = CollectionServicer(rounds)

    async def GetRound(  # noqa: N802 - its name in the protocol
        self,
        request: collection_pb2.GetRoundRequest,
        timeout: float,  # noqa: ASYNC109 - gRPC's name
    ) -> collection_pb2.GetRoundResponse:
        assert timeout >= 0
        try:
            return await self._servicer.GetRound(request, _nobody)
        except VeiltabError as error:
            raise refusal(error) from None

    async def Report(  # noqa: N802 - its name in the protocol
        self,
        request: collection_pb2.ReportRequest,
        timeout: float,  # noqa: ASYNC109 - gRPC's name
    ) -> collection_pb2.ReportResponse:
        assert timeout >= 0
        fault = next(self.faults, "")
        self.before(request)
        self.sent.append(request)
        if fault == REQUEST_LOST:
            raise _silence()
        if fault == INCIDENT_BEFORE:
            raise refusal(incident(OSError())[0])
        try:
            response = await self._servicer.Report(request, _nobody)
        except VeiltabError as error:
            raise _silence() if fault == ANSWER_LOST else refusal(error) from None
        if fault == ANSWER_LOST:
            raise _silence()
        if fault == INCIDENT_AFTER:
            raise refusal(incident(OSError())[0])
        return response


_nobody: Any = None


def _silence() -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata())


async def ended(server: "asyncio.Future[None]") -> None:
    """End a server's part, with the threads that work for it: nobody may close a database under their hands."""
    server.cancel()
    with suppress(asyncio.CancelledError):
        await server
    await asyncio.get_running_loop().shutdown_default_executor()


@asynccontextmanager
async def serving(study: Study, folder: Path, faults: Iterable[str] = ()) -> AsyncIterator[Loopback]:
    """Run the server's part on a state folder."""
    folder.mkdir(parents=True, exist_ok=True)
    store = CollectionStore(folder)
    rounds = RoundKeeper(study, store)
    task = asyncio.create_task(rounds.run())
    try:
        yield Loopback(rounds, faults)
    finally:
        await ended(task)
        store.close()


def enrol(
    rounds: RoundKeeper, spec: Round, tokens: Iterable[bytes], stratum: str = "everyone", pki: Path | None = None
) -> None:
    """Open a round that its researcher signs, by the certificate of a folder or one of the tests, and enrol tokens."""
    party = Party(study="poll", role=Role.RESEARCHER, name=spec.researcher)
    signer = identity(party) if pki is None else load_identity(pki / f"researcher-{party.name}", party.role, party.name)
    rounds.open_round(spec, spec.researcher, canonical_text(signed(signer, spec.to_json(), utc_now())))
    rounds.enrol(
        spec.round_id, stratum, b"".join(token_digest(spec.round_id, token) for token in tokens), spec.researcher
    )
