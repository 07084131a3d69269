"""What travels between the hub of a linkage and a spoke, as records and as messages."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from veiltab.common.errors import InvalidInputError
from veiltab.common.storage.files import written_whole
from veiltab.curator.peers.calls import Peers
from veiltab.v1 import curator_peer_pb2


class LinkKind(Enum):
    """What travels; see curator_peer.proto."""

    AGREEMENT = "agreement"
    ASKED = "asked"
    ANSWERED = "answered"
    TABLE = "table"
    ACCEPTED = "accepted"
    JOINT = "joint"


_OF_HUB = frozenset({LinkKind.AGREEMENT, LinkKind.ANSWERED, LinkKind.TABLE, LinkKind.JOINT})
_OF_SPOKE = frozenset({LinkKind.AGREEMENT, LinkKind.ASKED, LinkKind.ACCEPTED})

_KINDS = {
    LinkKind.AGREEMENT: curator_peer_pb2.LINK_KIND_AGREEMENT,
    LinkKind.ASKED: curator_peer_pb2.LINK_KIND_ASKED,
    LinkKind.ANSWERED: curator_peer_pb2.LINK_KIND_ANSWERED,
    LinkKind.TABLE: curator_peer_pb2.LINK_KIND_TABLE,
    LinkKind.ACCEPTED: curator_peer_pb2.LINK_KIND_ACCEPTED,
    LinkKind.JOINT: curator_peer_pb2.LINK_KIND_JOINT,
}
_NUMBERS = {number: kind for kind, number in _KINDS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkMessage:
    """One message between the hub and a spoke.

    Args:
        number: of the pass; 0 if it belongs to none.
    """

    kind: LinkKind
    spoke: str
    number: int = 0

    def made_by(self, curator: str) -> bool:
        """Whether a curator may make it, the hub or this spoke."""
        return self.kind in (_OF_SPOKE if curator == self.spoke else _OF_HUB)

    @property
    def file_name(self) -> str:
        """Name of its file where it is made."""
        return f"{self.kind.value}-{self.spoke}-{self.number}.bin"

    @property
    def received_name(self) -> str:
        """Name of its file where it is received."""
        return f"from-{self.file_name}"


def message_from_proto(request: curator_peer_pb2.FetchLinkRequest) -> LinkMessage:
    """Return the message that is asked for.

    Raises:
        InvalidInputError: there is no such kind.
    """
    if request.kind not in _NUMBERS:
        raise InvalidInputError("there is no such message of a linkage", where="FetchLink")
    return LinkMessage(kind=_NUMBERS[request.kind], spoke=request.spoke, number=request.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Where messages are fetched."""

    alignment: str
    name: str
    peers: Peers

    async def fetch(
        self, curator: str, message: LinkMessage, path: Path, most: int, admit: Callable[[int, int], None]
    ) -> None:
        """Write a message of another curator to a file, which is there whole or not.

        Args:
            most: bytes that it may have.
            admit: called with the bytes of all of it and those written before each piece; raises if they do not fit.
        """
        request = curator_peer_pb2.FetchLinkRequest(
            alignment_id=self.alignment,
            session=self.name,
            kind=_KINDS[message.kind],
            spoke=message.spoke,
            number=message.number,
        )
        peer = self.peers.curators[curator]
        with written_whole(path) as file:

            def check(answer: curator_peer_pb2.FetchLinkResponse) -> None:
                admit(answer.total, file.tell())

            async for data in peer.stream(peer.stub.FetchLink, request, most=most, check=check):
                file.write(data)
