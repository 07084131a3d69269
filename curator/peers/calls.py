"""A curator's questions to its peers: table versions, shares of a coin, progress with a release.

Nothing is pushed. Each curator drives its own side and reads the others', so every exchange may be repeated after a
crash at either end, and the same answers come.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable

import grpc

from veiltab.common.core.texts.message_fields import text_from_proto, words_from_proto
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.errors import InvalidInputError, NotReadyError, UnavailableError, VeiltabError
from veiltab.common.release.messages.release_messages import MAX_COLUMNS, state_from_proto
from veiltab.common.release.messages.witness import NONE_SEEN, check_head
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.rpc.parties.identity import Identity, Party, Role
from veiltab.common.rpc.peer import ASK_SECONDS, STREAM_SECONDS, Peer
from veiltab.common.rpc.statuses import refusal_of
from veiltab.common.rpc.waiting.changes import LONGEST_WAIT
from veiltab.common.study.file import Study
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.peers.subscriptions import MOST_ASKED, PeerAnswer
from veiltab.curator.progress.release_record import Progress
from veiltab.curator.table.tokens import TOKEN_LENGTH
from veiltab.v1 import curator_peer_pb2, curator_peer_pb2_grpc

_MOST_A_SECOND = 400.0
"""Short answers of one curator that are read in a second: several times as many as say what is new."""

_SHORT_BYTES = 4096

_CALL = 20.0
"""Answers that a call counts for."""

_DIGESTS = ("spec_digest", "sample_check", "commitment", "publication", "request_digest")
SAID = (*_DIGESTS, "checkpoint", "changes", "considered", "decided", "reserved", "charged", "tested", "uploaded")
"""What a curator says of its progress with a release as it is."""

_LONGEST_CHECKPOINT = 2**14
MOST_CHANGES_SAID = 2**13  # bytes; a longer list of changed canaries is asked for
_DIGEST_BYTES = 32

_log = logging.getLogger(__name__)


class Peers:
    """Connections to the other curators of a study.

    Args:
        study: lists the others and their endpoints.
    """

    def __init__(self, identity: Identity, study: Study) -> None:
        self._study = study
        self.curators = {}
        for curator in study.curators:
            if curator.name != identity.party.name:
                party = Party(study=study.id, role=Role.CURATOR, name=curator.name)
                self.curators[curator.name] = Peer.at(
                    curator.endpoint, party, identity, curator_peer_pb2_grpc.CuratorPeerServiceStub
                )

        self._paces = defaultdict[str, Pace](Pace)
        self.versions: dict[str, str] = {}
        """The peers' table versions, as `table_versions` returned them last."""

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
            length, head = ledger.chain.head
            request = curator_peer_pb2.HelloRequest(
                study_digest=self._study.digest, ledger_length=length, ledger_head=head
            )
            hello = await peer.ask(peer.stub.Hello, request)
            check_study_digest(self._study, hello.study_digest, f"curator {name}")
            witnessed = (hello.witnessed_length, hello.witnessed_head)
            if witnessed != NONE_SEEN:
                check_head(witnessed, f"curator {name}")
            ledger.chain.verify_against(witnessed, f"curator {name}")
            if not hello.table_version:
                raise NotReadyError("has no table loaded yet", where=f"curator {name}")
            versions[name] = text_from_proto(hello.table_version, f"curator {name}")
        self.versions = versions
        return versions

    async def commitment(self, curator: str, coin_id: str, mine: bytes) -> bytes:
        """Show a peer one's commitment to a share of a coin; return the peer's."""
        request = curator_peer_pb2.CommitRequest(coin_id=coin_id, commitment=mine)
        peer = self.curators[curator]
        answer = await peer.ask(peer.stub.Commit, request)
        return answer.commitment

    async def opening(self, curator: str, coin_id: str, transcript: bytes, mine: bytes) -> bytes:
        """Return a peer's share of a coin; the peer opens it only to a curator with the same commitments.

        Args:
            mine: one's own among them.
        """
        request = curator_peer_pb2.RevealRequest(coin_id=coin_id, transcript=transcript, commitment=mine)
        peer = self.curators[curator]
        answer = await peer.ask(peer.stub.Reveal, request)
        return answer.share

    async def follow(
        self, curator: str, release_ids: AsyncIterator[tuple[str, ...]]
    ) -> AsyncGenerator[dict[str, PeerAnswer], None]:
        """Yield what is new at one curator about releases, until it ends the call.

        Args:
            release_ids: ids of at most MOST_ASKED releases at a time, to be followed from then on.

        Raises:
            VeiltabError: it cannot be asked, or says amiss.
        """
        peer = self.curators[curator]
        own = frozenset(rule.name for rule in self._study.attributes_of(curator))

        async def requests() -> AsyncIterator[curator_peer_pb2.FollowProgressRequest]:
            async for names in release_ids:
                yield curator_peer_pb2.FollowProgressRequest(release_ids=names)

        pace = self._paces[curator]
        await pace.keep(_CALL)
        call = peer.stub.FollowProgress(requests(), timeout=STREAM_SECONDS)
        try:
            while (answer := await _next(call, str(peer.party))) is not None:
                yield _said_from_proto(curator, own, answer)
                await pace.keep(1 + answer.ByteSize() / _SHORT_BYTES)
        except grpc.aio.AioRpcError as error:
            raise peer.error_of(error) from None
        except VeiltabError:
            raise
        except Exception as error:  # noqa: BLE001 - what a peer sent, and nobody foresaw, is no end of this party
            raise _incident(error, curator) from None
        finally:
            call.cancel()

    def tokens(
        self, curator: str, alignment_id: str, offset: int, admit: Callable[[int], None]
    ) -> AsyncIterator[bytes]:
        """Stream a peer's sorted tokens from a byte on, of as many respondents as a table of the study may have.

        Args:
            offset: where to begin, in bytes.
            admit: called with the bytes of all tokens before each piece of them; raises if they are not to be taken.
        """
        peer, most = self.curators[curator], TOKEN_LENGTH * self._study.maximum_respondents

        def check(answer: curator_peer_pb2.FetchTokensResponse) -> None:
            if answer.total <= most:
                admit(answer.total)

        request = curator_peer_pb2.FetchTokensRequest(alignment_id=alignment_id, offset=offset)
        return peer.stream(peer.stub.FetchTokens, request, offset=offset, most=most, has_digests=False, check=check)

    async def changes(self, curator: str, release_id: str) -> bytes:
        """Return a peer's list of changed canaries of its columns."""
        peer = self.curators[curator]
        request = curator_peer_pb2.GetCanaryChangesRequest(release_id=release_id)
        answer = await peer.ask(peer.stub.GetCanaryChanges, request)
        return answer.changes

    def canary_part(self, curator: str, spec: TableSpec, column: Column) -> AsyncIterator[bytes]:
        """Stream the ciphertext of the canaries in a peer's part of a column."""
        peer = self.curators[curator]
        request = curator_peer_pb2.FetchCanaryPartRequest(release_id=spec.release_id, attribute=column.attribute)
        return peer.stream(peer.stub.FetchCanaryPart, request, column.byte_length(spec.canaries))

    def indices(self, curator: str, release_id: str, sample: int) -> AsyncIterator[bytes]:
        """Stream the row indices of a release that shares them explicitly: 8 bytes for each row of its sample."""
        peer = self.curators[curator]
        request = curator_peer_pb2.FetchIndicesRequest(release_id=release_id)
        return peer.stream(peer.stub.FetchIndices, request, 8 * sample)


def check_study_digest(study: Study, digest: str, who: str) -> None:
    """Refuse a party that has other bytes of the study file."""
    if digest != study.digest:
        raise InvalidInputError(
            "has another study file", where=who, remedy="Give every party the same bytes; `sha256sum` must agree."
        )


def _incident(error: Exception, curator: str) -> VeiltabError:
    """Log that what a curator sent cannot be read, and return what is said of it."""
    refusal, logged = refusal_of(error)
    _log.error("a curator's answer cannot be read: %s", logged, extra={"curator": curator})
    return refusal


async def _next(
    call: grpc.aio.StreamStreamCall[curator_peer_pb2.FollowProgressRequest, curator_peer_pb2.FollowProgressResponse],
    peer: str,
) -> curator_peer_pb2.FollowProgressResponse | None:
    """Return what a curator says next; None if it ends the call.

    Raises:
        UnavailableError: it says nothing for too long.
    """
    try:
        async with asyncio.timeout(ASK_SECONDS + LONGEST_WAIT):
            answer = await call.read()
    except TimeoutError:
        raise UnavailableError("no answer before the deadline", where=peer, remedy="Ask again later.") from None
    return answer if isinstance(answer, curator_peer_pb2.FollowProgressResponse) else None


class Pace:
    """How fast one curator's answers are read: one that sends them without an end takes no core here."""

    def __init__(self) -> None:
        self._ends = 0.0
        self._rest = 0.0

    async def keep(self, cost: float) -> None:
        """Wait for the next second if this one had enough.

        Args:
            cost: of what was read, or is asked now, in short answers.
        """
        now = asyncio.get_running_loop().time()
        if now >= self._ends:
            self._ends, self._rest = now + 1.0, _MOST_A_SECOND
        self._rest -= cost
        if self._rest <= 0:
            await asyncio.sleep(self._ends - now)


def _said_from_proto(
    curator: str, own: frozenset[str], answer: curator_peer_pb2.FollowProgressResponse
) -> dict[str, PeerAnswer]:
    if len(answer.releases) + len(answer.unknown) > MOST_ASKED:
        raise InvalidInputError(f"the answer is about more than {MOST_ASKED} releases", where=f"curator {curator}")
    unknown = NotReadyError("has not received the request yet", where=f"curator {curator}")
    answers = {one.release_id: _progress_or_error(curator, own, one) for one in answer.releases}
    return dict[str, PeerAnswer](dict.fromkeys(answer.unknown, unknown)) | answers


def _progress_or_error(curator: str, own: frozenset[str], answer: curator_peer_pb2.ReleaseProgress) -> PeerAnswer:
    try:
        return _progress_from_proto(curator, own, answer)
    except VeiltabError as error:
        return error


def _progress_from_proto(curator: str, own: frozenset[str], answer: curator_peer_pb2.ReleaseProgress) -> Progress:
    """Return what a curator says about a release; of the attributes that it names, its own."""
    # It is kept as long as the release is under way, so no more of it is taken than a curator has to say.
    if len(answer.granted) + len(answer.denied) > MAX_COLUMNS:
        raise InvalidInputError(f"the release has more than {MAX_COLUMNS} columns", where=f"curator {curator}")
    if max(map(len, same_fields(answer, _DIGESTS).values())) > _DIGEST_BYTES:
        raise InvalidInputError(f"the digest does not have {_DIGEST_BYTES} bytes", where=f"curator {curator}")
    if len(answer.checkpoint) > _LONGEST_CHECKPOINT or len(answer.changes) > MOST_CHANGES_SAID:
        raise InvalidInputError("a checkpoint or a list is longer than any can be", where=f"curator {curator}")
    return Progress(
        **same_fields(answer, SAID),
        curator=curator,
        state=state_from_proto(answer.state),
        granted=own & {text_from_proto(name, f"curator {curator}") for name in answer.granted},
        denied=own & {text_from_proto(name, f"curator {curator}") for name in answer.denied},
        failure=words_from_proto(answer.failure),
    )
