"""What a curator asks of the others: who they are, coins tossed together, how far they are.

Nothing is pushed. Each curator drives its own side and reads the others', so every exchange may be repeated after a
crash at either end, and the same answers come.
"""

import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from veiltab.common.core.coin import SHARE_LENGTH, commitment, toss, transcript, verify_share
from veiltab.common.errors import ConflictError, InvalidInputError, NotReadyError, VeiltabError
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.wire import state_from_proto
from veiltab.common.rpc.channel import call, connect
from veiltab.common.rpc.chunks import received
from veiltab.common.rpc.identity import Identity, Party, Role
from veiltab.common.study.file import Study
from veiltab.curator.ledger import Ledger
from veiltab.curator.store import CuratorStore
from veiltab.v1 import curator_peer_pb2, curator_peer_pb2_grpc

_WITHIN = 5.0
"""Seconds for one question to a peer; the release's own driver asks again after that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far one curator is with a release."""

    curator: str
    state: ReleaseState
    decided: bool
    granted: frozenset[str]
    denied: frozenset[str]
    spec_digest: bytes
    reserved: bool
    charged: bool
    sample_check: bytes
    failure: str


class Peers:
    """The other curators of a study, as one of them reaches them.

    Args:
        identity: the curator's own.
        study: names the others and their endpoints.
        store: the curator's database, for its shares and what it remembers of peers.
    """

    def __init__(self, identity: Identity, study: Study, store: CuratorStore) -> None:
        self._study = study
        self._store = store
        self._name = identity.party.name
        self.parties = {
            c.name: Party(study=study.id, role=Role.CURATOR, name=c.name)
            for c in study.curators
            if c.name != self._name
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

    async def toss(self, coin_id: str) -> bytes:
        """Toss a coin with all other curators, or return its value if it was tossed.

        Raises:
            IntegrityError: a share was opened that was not committed to.
            ConflictError: a curator committed to two things.
        """
        value = self._store.coin_value(coin_id)
        if value is not None:
            return value
        own = self._store.own_share(coin_id, os.urandom(SHARE_LENGTH))
        if not own:
            raise ConflictError("this coin was tossed and forgotten", where=f"coin {coin_id}")
        mine = commitment(coin_id, self._name, own)
        self._store.commit(coin_id, self._name, mine)
        for name, stub in self._stubs.items():
            request = curator_peer_pb2.CommitRequest(coin_id=coin_id, commitment=mine)
            answer = await call(stub.Commit, request, peer=self.parties[name], within=_WITHIN)
            self._store.commit(coin_id, name, answer.commitment)
        commitments = self._store.commitments(coin_id)
        shares = {self._name: own}
        for name, stub in self._stubs.items():
            opening = curator_peer_pb2.RevealRequest(coin_id=coin_id, transcript=transcript(commitments))
            revealed = await call(stub.Reveal, opening, peer=self.parties[name], within=_WITHIN)
            verify_share(coin_id, name, revealed.share, commitments[name])
            shares[name] = revealed.share
        value = toss(coin_id, shares)
        self._store.set_coin_value(coin_id, value)
        return value

    async def progress(self, release_id: str) -> tuple[Progress, ...]:
        """Return how far every other curator is with a release."""
        request = curator_peer_pb2.GetProgressRequest(release_id=release_id)
        answers = []
        for name, stub in self._stubs.items():
            try:
                answer = await call(stub.GetProgress, request, peer=self.parties[name], within=_WITHIN, once=True)
            except VeiltabError as error:
                if error.reason == "NOT_FOUND":
                    raise NotReadyError("has not received the request yet", where=f"curator {name}") from None
                raise
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


def all_have(progress: tuple[Progress, ...], what: Callable[[Progress], bool], waiting: str) -> None:
    """Raise NotReadyError naming the first curator that is not so far."""
    for peer in progress:
        if not what(peer):
            raise NotReadyError(waiting, where=f"curator {peer.curator}")
