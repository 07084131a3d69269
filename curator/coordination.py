"""What a curator asks of the others: who they are, their parts of a coin, how far they are with a release.

Nothing is pushed. Each curator drives its own side and reads the others', so every exchange may be repeated after a
crash at either end, and the same answers come.
"""

from collections.abc import AsyncIterator

from veiltab.common.errors import InvalidInputError, NotFoundError, NotReadyError
from veiltab.common.release.wire import state_from_proto
from veiltab.common.rpc.channel import call, connect
from veiltab.common.rpc.chunks import received
from veiltab.common.rpc.identity import Identity, Party, Role
from veiltab.common.study.file import Study
from veiltab.curator.ledger import Ledger
from veiltab.curator.progress import Progress
from veiltab.v1 import curator_peer_pb2, curator_peer_pb2_grpc

_WITHIN = 5.0
"""Seconds for one question to a peer; the release's own driver asks again after that."""


class Peers:
    """The other curators of a study, as one of them reaches them.

    Args:
        identity: the curator's own.
        study: names the others and their endpoints.
    """

    def __init__(self, identity: Identity, study: Study) -> None:
        self._study = study
        self.parties = {
            c.name: Party(study=study.id, role=Role.CURATOR, name=c.name)
            for c in study.curators
            if c.name != identity.party.name
        }
        self._channels = {n: connect(identity, p, study.curator(n).endpoint) for n, p in self.parties.items()}
        self._stubs = {n: curator_peer_pb2_grpc.CuratorPeerServiceStub(c) for n, c in self._channels.items()}

    async def close(self) -> None:
        """Close the channels."""
        for channel in self._channels.values():
            await channel.close()

    async def table_versions(self, ledger: Ledger) -> dict[str, str]:
        """Return the peers' table versions, after comparing study files and showing them the ledger.

        Raises:
            InvalidInputError: a peer has another study file.
            IntegrityError: a peer remembers entries that the ledger lacks.
            NotReadyError: a peer has no table loaded yet.
        """
        versions = {}
        for name, stub in self._stubs.items():
            length, head = ledger.head
            request = curator_peer_pb2.HelloRequest(
                study_digest=self._study.digest, ledger_length=length, ledger_head=head
            )
            hello = await call(stub.Hello, request, peer=self.parties[name], within=_WITHIN)
            check_study_digest(self._study, hello.study_digest, f"curator {name}")
            ledger.verify_against((hello.witnessed_length, hello.witnessed_head), name)
            if not hello.table_version:
                raise NotReadyError("has no table loaded yet", where=f"curator {name}")
            versions[name] = hello.table_version
        return versions

    async def commitment(self, curator: str, coin_id: str, mine: bytes) -> bytes:
        """Show a peer one's commitment to a share of a coin; return the peer's."""
        request = curator_peer_pb2.CommitRequest(coin_id=coin_id, commitment=mine)
        answer = await call(self._stubs[curator].Commit, request, peer=self.parties[curator], within=_WITHIN)
        return answer.commitment

    async def opening(self, curator: str, coin_id: str, seen: bytes) -> bytes:
        """Return a peer's share of a coin; it opens it to who has seen the same commitments."""
        request = curator_peer_pb2.RevealRequest(coin_id=coin_id, transcript=seen)
        answer = await call(self._stubs[curator].Reveal, request, peer=self.parties[curator], within=_WITHIN)
        return answer.share

    async def progress(self, release_id: str) -> tuple[Progress, ...]:
        """Return how far every other curator is with a release."""
        request = curator_peer_pb2.GetProgressRequest(release_id=release_id)
        answers = []
        for name, stub in self._stubs.items():
            try:
                answer = await call(stub.GetProgress, request, peer=self.parties[name], within=_WITHIN, once=True)
            except NotFoundError:
                raise NotReadyError("has not received the request yet", where=f"curator {name}") from None
            answers.append(_progress_from_proto(name, answer))
        return tuple(answers)

    async def tokens(self, curator: str, alignment_id: str) -> AsyncIterator[bytes]:
        """Stream a peer's sorted tokens."""
        request = curator_peer_pb2.FetchTokensRequest(alignment_id=alignment_id)
        responses = self._stubs[curator].FetchTokens(request, timeout=_STREAM_SECONDS)
        async for data in received(responses, offset=0, peer=f"curator {curator}"):
            yield data

    async def indices(self, curator: str, release_id: str) -> bytes:
        """Fetch the row indices of a release that shares them explicitly."""
        request = curator_peer_pb2.FetchIndicesRequest(release_id=release_id)
        responses = self._stubs[curator].FetchIndices(request, timeout=_STREAM_SECONDS)
        return b"".join([data async for data in received(responses, offset=0, peer=f"curator {curator}")])


_STREAM_SECONDS = 1800.0


def check_study_digest(study: Study, digest: str, who: str) -> None:
    """Refuse a party that has other bytes of the study file."""
    if digest != study.digest:
        raise InvalidInputError(
            "has another study file",
            where=who,
            remedy="Give every party the same bytes; `sha256sum` must agree.",
        )


def _progress_from_proto(curator: str, answer: curator_peer_pb2.GetProgressResponse) -> Progress:
    return Progress(
        curator=curator,
        state=state_from_proto(answer.state),
        decided=answer.decided,
        granted=frozenset(answer.granted),
        denied=frozenset(answer.denied),
        spec_digest=answer.spec_digest,
        reserved=answer.reserved,
        charged=answer.charged,
        sample_check=answer.sample_check,
        failure=answer.failure,
    )
