"""What travels in a session between the hub and one spoke, and the files that hold it at both."""

import asyncio
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from veiltab.common.core.texts.message_fields import text_from_proto
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.observe.progress import Stage
from veiltab.common.observe.steps import step
from veiltab.common.storage.disk import DiskReservations
from veiltab.common.storage.files import sync_folder, write_whole, written_whole
from veiltab.curator.peers.calls import Peers
from veiltab.v1 import curator_peer_pb2

PART_BYTES = 16
"""Length of a curator's random part of a session's name."""

ROOM = "messages of a join"
"""Name of the room that is kept for them."""


class JoinKind(Enum):
    """What travels; see curator_peer.proto."""

    BASE_CHOICES = curator_peer_pb2.JOIN_KIND_BASE_CHOICES
    BASE_ANSWER = curator_peer_pb2.JOIN_KIND_BASE_ANSWER
    COLUMNS = curator_peer_pb2.JOIN_KIND_COLUMNS
    CHALLENGE = curator_peer_pb2.JOIN_KIND_CHALLENGE
    ANSWER = curator_peer_pb2.JOIN_KIND_ANSWER
    VALUES = curator_peer_pb2.JOIN_KIND_VALUES
    AGREEMENT = curator_peer_pb2.JOIN_KIND_AGREEMENT
    TABLE = curator_peer_pb2.JOIN_KIND_TABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a session.

    Args:
        number: of the pass; 0 if it belongs to none.
    """

    kind: JoinKind
    number: int = 0

    @property
    def file_name(self) -> str:
        """Name of its file where it is made."""
        return f"{self.kind.name.lower()}-{self.number}.bin"

    @property
    def received_name(self) -> str:
        """Name of its file where it is received."""
        return f"from-{self.file_name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a curator takes part in a session, as it says to the other.

    Args:
        part: its random part of the session's name.
        size: at the hub the rows of its table; at a spoke the slots of its store, as its rows are a secret.
        order: at the hub what commits to the order of its rows; empty at a spoke.
        finished: the session that it has finished; empty if there is none.
        failed: the session that it has ended for what the other sent; empty if there is none.
    """

    part: bytes
    size: int
    order: bytes = b""
    finished: str = ""
    failed: str = ""


async def standing_of(peers: Peers, curator: str, alignment: str, *, is_hub: bool) -> Standing:
    """Ask a peer, the hub or a spoke, how it takes part in the session with this curator."""
    peer = peers.curators[curator]
    answer = await peer.ask(peer.stub.GetSession, curator_peer_pb2.GetSessionRequest(alignment_id=alignment))
    if len(answer.part) != PART_BYTES or len(answer.order) != PART_BYTES * is_hub:
        raise InvalidInputError(f"the part of a session does not have {PART_BYTES} bytes", where=f"curator {curator}")
    return Standing(
        part=answer.part,
        size=answer.size,
        order=answer.order,
        finished=text_from_proto(answer.finished, f"curator {curator}"),
        failed=text_from_proto(answer.failed, f"curator {curator}"),
    )


def message_from_proto(request: curator_peer_pb2.FetchJoinRequest) -> Message:
    """Return the message that is asked for.

    Raises:
        InvalidInputError: there is no such kind.
    """
    try:
        return Message(kind=JoinKind(request.kind), number=request.number)
    except ValueError:
        raise InvalidInputError("there is no such message of a join", where="FetchJoin") from None


@dataclass(kw_only=True)
class SessionFiles:
    """The messages of one session: those that this curator made, and those that it fetched of the other.

    Args:
        other: the curator at the other end.
        folder: holds the files of the session.
        room: of the disk of the folder.
        stage: says what is under way.
        patience: seconds that a fetch waits for a message to be made, LONGEST_WAIT at most.
    """

    other: str
    alignment: str
    session: str
    folder: Path
    peers: Peers
    room: DiskReservations
    stage: Stage
    patience: float
    _beyond: dict[str, int] = field(default_factory=dict, init=False)

    def path(self, kind: JoinKind, number: int = 0) -> Path:
        """Return where a message lies that this curator made."""
        return self.folder / Message(kind=kind, number=number).file_name

    async def make(self, kind: JoinKind, message: Callable[[], bytes], number: int = 0) -> None:
        """Write a message, once."""
        path = self.path(kind, number)
        if not path.exists():
            write_whole(path, await asyncio.to_thread(message))

    async def fetched(
        self, kind: JoinKind, number: int = 0, *, most: int, check: Callable[[Path], None] = lambda _: None
    ) -> Path:
        """Return the file of a message of the other, fetched and checked once.

        Args:
            most: bytes that it may have.
            check: refuses what no honest curator sends.
        """
        message = Message(kind=kind, number=number)
        path = self.folder / message.received_name
        if not path.exists():
            unchecked = path.with_suffix(".unchecked")
            with step("fetch join") as size, self.stage.of(f"fetching {kind.name.lower()} of {self.other}", None):
                await self._fetch(message, unchecked, most)
                size.bytes = unchecked.stat().st_size
            self._beyond.pop(message.received_name, None)
            try:
                await asyncio.to_thread(check, unchecked)
            except IntegrityError as error:
                raise IntegrityError(error.problem, where=f"curator {self.other}") from None
            unchecked.rename(path)
            sync_folder(self.folder)  # what is made next may be right for these bytes alone
        return path

    async def fetched_whole(
        self, kind: JoinKind, number: int = 0, *, size: int, check: Callable[[Path], object] = lambda _: None
    ) -> Path:
        """Return the file of a message that has so many bytes.

        Raises:
            IntegrityError: it has fewer, or is refused.
        """

        def checked(path: Path) -> None:
            if path.stat().st_size != size:
                raise IntegrityError("sent a message that is cut short")
            check(path)

        return await self.fetched(kind, number, most=size, check=checked)

    async def _fetch(self, message: Message, path: Path, most: int) -> None:
        request = curator_peer_pb2.FetchJoinRequest(
            alignment_id=self.alignment,
            session=self.session,
            kind=message.kind.value,
            number=message.number,
            wait_milliseconds=int(1000 * self.patience),
        )
        peer = self.peers.curators[self.other]
        with written_whole(path) as file:

            def admit(answer: curator_peer_pb2.FetchJoinResponse) -> None:
                if answer.total > most:
                    raise InvalidInputError(
                        f"sends {answer.total:,} bytes ({message.kind.name.lower()}), more than the {most:,} that"
                        " follow from its rows",
                        where=f"curator {self.other}",
                    )
                self._beyond[message.received_name] = answer.total - file.tell()
                self.room.keep(ROOM, sum(self._beyond.values()))

            async for data in peer.stream(peer.stub.FetchJoin, request, most=most, check=admit):
                file.write(data)
