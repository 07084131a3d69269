"""A curator's questions to its peers: table versions, shares of a coin, progress with a release.

Nothing is pushed. Each curator drives its own side and reads the others', so every exchange may be repeated after a
crash at either end, and the same answers come.
"""

import asyncio
import logging
from collections.abc import AsyncIterator

from veiltab.common.core.message_fields import text_from_proto, whole_from_proto, words_from_proto
from veiltab.common.errors import InvalidInputError, NotReadyError, VeiltabError
from veiltab.common.release.wire import state_from_proto
from veiltab.common.rpc.channel import connect
from veiltab.common.rpc.identity import Identity, Party, Role
from veiltab.common.rpc.peer import Peer
from veiltab.common.rpc.status import refusal_of
from veiltab.common.study.file import Study
from veiltab.curator.intersection import MAX_RESPONDENTS, TOKEN_LENGTH
from veiltab.curator.ledger import Ledger
from veiltab.curator.looks import Others
from veiltab.curator.progress import Progress
from veiltab.curator.ring import PART_BYTES, Flow
from veiltab.curator.ring_wire import flow_kind_to_proto
from veiltab.v1 import curator_peer_pb2, curator_peer_pb2_grpc

_log = logging.getLogger(__name__)


class Peers:
    """Connections to the other curators of a study.

    Args:
        identity: the curator's own.
        study: lists the others and their endpoints.
    """

    def __init__(self, identity: Identity, study: Study) -> None:
        self._study = study
        self.curators = {}
        for curator in study.curators:
            if curator.name != identity.party.name:
                party = Party(study=study.id, role=Role.CURATOR, name=curator.name)
                channel = connect(identity, party, curator.endpoint)
                self.curators[curator.name] = Peer(
                    party, channel, curator_peer_pb2_grpc.CuratorPeerServiceStub, curator.endpoint
                )

    async def close(self) -> None:
        """Close the channels."""
        for peer in self.curators.values():
            await peer.close()

    async def table_versions(self, ledger: Ledger) -> dict[str, str]:
        """Return the peers' table versions, after comparing study files and showing them the ledger.

        Raises:
            InvalidInputError: a peer has another study file.
            IntegrityError: a peer remembers entries that the ledger lacks.
            NotReadyError: a peer has no table loaded yet.
        """
        versions = {}
        for name, peer in self.curators.items():
            length, head = ledger.head
            request = curator_peer_pb2.HelloRequest(
                study_digest=self._study.digest, ledger_length=length, ledger_head=head
            )
            hello = await peer.ask(peer.stub.Hello, request)
            check_study_digest(self._study, hello.study_digest, f"curator {name}")
            witnessed = whole_from_proto(hello.witnessed_length, f"curator {name}")
            ledger.verify_against((witnessed, hello.witnessed_head), name)
            if not hello.table_version:
                raise NotReadyError("has no table loaded yet", where=f"curator {name}")
            versions[name] = text_from_proto(hello.table_version, f"curator {name}")
        return versions

    async def commitment(self, curator: str, coin_id: str, mine: bytes) -> bytes:
        """Show a peer one's commitment to a share of a coin; return the peer's."""
        request = curator_peer_pb2.CommitRequest(coin_id=coin_id, commitment=mine)
        peer = self.curators[curator]
        answer = await peer.ask(peer.stub.Commit, request)
        return answer.commitment

    async def opening(self, curator: str, coin_id: str, seen: bytes) -> bytes:
        """Return a peer's share of a coin; the peer opens it only to a curator with the same commitments."""
        request = curator_peer_pb2.RevealRequest(coin_id=coin_id, transcript=seen)
        peer = self.curators[curator]
        answer = await peer.ask(peer.stub.Reveal, request)
        return answer.share

    async def progress(self, release_ids: tuple[str, ...]) -> dict[str, Others]:
        """Return how far every other curator is with some releases, in one call to each."""
        answers = await asyncio.gather(*(self._progress_of(name, release_ids) for name in self.curators))
        return {release_id: _joined([answer[release_id] for answer in answers]) for release_id in release_ids}

    async def _progress_of(self, name: str, release_ids: tuple[str, ...]) -> dict[str, Progress | VeiltabError]:
        """Return how far one curator is with some releases; what it cannot be asked, or says amiss, is its own."""
        peer = self.curators[name]
        request = curator_peer_pb2.GetProgressRequest(release_ids=release_ids)
        found: dict[str, Progress | VeiltabError]
        unknown = NotReadyError("has not received the request yet", where=f"curator {name}")
        found = dict.fromkeys(release_ids, unknown)
        try:
            answer = await peer.ask(peer.stub.GetProgress, request, once=True)
            for release in answer.releases:
                if release.release_id in found:
                    found[release.release_id] = _progress_or_error(name, release)
        except VeiltabError as error:
            return dict.fromkeys(release_ids, error)
        except Exception as error:  # noqa: BLE001 - what a peer sent, and nobody foresaw, is no end of this party
            refusal, logged = refusal_of(error)
            _log.error("a curator's answer cannot be read: %s", logged, extra={"curator": name})
            return dict.fromkeys(release_ids, refusal)
        return found

    def tokens(self, curator: str, alignment_id: str) -> AsyncIterator[bytes]:
        """Stream a peer's sorted tokens, of as many respondents as a table may have."""
        peer = self.curators[curator]
        request = curator_peer_pb2.FetchTokensRequest(alignment_id=alignment_id)
        return peer.stream(peer.stub.FetchTokens, request, most=TOKEN_LENGTH * MAX_RESPONDENTS)

    async def session(self, curator: str, alignment_id: str) -> tuple[bytes, str]:
        """Return (a peer's random part of the session of a private alignment, the session that it has finished)."""
        peer = self.curators[curator]
        answer = await peer.ask(peer.stub.GetSession, curator_peer_pb2.GetSessionRequest(alignment_id=alignment_id))
        if len(answer.part) != PART_BYTES:
            raise InvalidInputError(f"a part of a session has {PART_BYTES} bytes", where=f"curator {curator}")
        return answer.part, text_from_proto(answer.finished, f"curator {curator}")

    def flow(self, flow: Flow, alignment_id: str, session: str, most: int) -> AsyncIterator[bytes]:
        """Stream a flow of a private alignment from the peer that made it, of at most so many bytes."""
        peer = self.curators[flow.producer]
        request = curator_peer_pb2.FetchFlowRequest(
            alignment_id=alignment_id, session=session, kind=flow_kind_to_proto(flow.kind), owner=flow.owner
        )
        return peer.stream(peer.stub.FetchFlow, request, most=most)

    async def indices(self, curator: str, release_id: str, sample: int) -> bytes:
        """Fetch the row indices of a release that shares them explicitly: 8 bytes for each row of its sample."""
        peer = self.curators[curator]
        request = curator_peer_pb2.FetchIndicesRequest(release_id=release_id)
        return await peer.fetch(peer.stub.FetchIndices, request, 8 * sample)


def check_study_digest(study: Study, digest: str, who: str) -> None:
    """Refuse a party that has other bytes of the study file."""
    if digest != study.digest:
        raise InvalidInputError(
            "has another study file",
            where=who,
            remedy="Give every party the same bytes; `sha256sum` must agree.",
        )


def _joined(answers: list[Progress | VeiltabError]) -> Others:
    """Return every curator's progress, or the first error among them."""
    progress = []
    for answer in answers:
        if isinstance(answer, VeiltabError):
            return answer
        progress.append(answer)
    return tuple(progress)


def _progress_or_error(curator: str, answer: curator_peer_pb2.ReleaseProgress) -> Progress | VeiltabError:
    try:
        return _progress_from_proto(curator, answer)
    except VeiltabError as error:
        return error


def _progress_from_proto(curator: str, answer: curator_peer_pb2.ReleaseProgress) -> Progress:
    return Progress(
        curator=curator,
        state=state_from_proto(answer.state),
        decided=answer.decided,
        granted=frozenset(text_from_proto(name, f"curator {curator}") for name in answer.granted),
        denied=frozenset(text_from_proto(name, f"curator {curator}") for name in answer.denied),
        spec_digest=answer.spec_digest,
        reserved=answer.reserved,
        charged=answer.charged,
        sample_check=answer.sample_check,
        tested=answer.tested,
        failure=words_from_proto(answer.failure),
    )
