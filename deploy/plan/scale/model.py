"""What machines, what hours, and what breaks first: a study of any size, by arithmetic.

A study is a list of works: what one party does in one stage, in CPU seconds, bytes on its link and bytes of its disk.
Stages follow one another, and a stage lasts as long as its slowest party. A work lasts as long as its slowest resource:
the party's cores, its link either way, its disk, or messages that wait for one another. Everything else is a sum.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import assert_never

from veiltab.common.errors import InvalidInputError


class Party(StrEnum):
    """Who works."""

    CURATOR = "each curator"
    SERVER = "server"
    RESEARCHER = "researcher"


class Resource(StrEnum):
    """What a work may wait for."""

    CPU = "CPU"
    SENDING = "link, out"
    RECEIVING = "link, in"
    DISK = "disk"
    LATENCY = "round trips"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What each party has.

    Args:
        cores: of its processor.
        memory: bytes.
        disk: bytes that are free.
        link: bits a second, each way.
        disk_speed: bytes a second, read or written.
        latency: seconds there and back to another party.

    Raises:
        InvalidInputError: there is nothing of one of them.
    """

    cores: int
    memory: float
    disk: float
    link: float
    disk_speed: float
    latency: float

    def __post_init__(self) -> None:
        """Check."""
        for name in self.__slots__:
            if not 0 < getattr(self, name) < inf:
                raise InvalidInputError(
                    "must be more than 0",
                    where=f"--{name.replace('_', '-')}",
                    remedy="Leave it away for a usual machine, which --help describes.",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one party does in one stage.

    Args:
        stage: its name.
        party: who works.
        parallel: CPU seconds that all cores share.
        serial: CPU seconds of one core after the other.
        sent: bytes.
        received: bytes.
        written: bytes, to its disk.
        read: bytes, from its disk.
        flushing: seconds in which its disk makes something durable.
        trips: messages there and back that wait for one another.
        is_awaited: whether the result waits for it.
    """

    stage: str
    party: Party
    parallel: float = 0.0
    serial: float = 0.0
    sent: float = 0.0
    received: float = 0.0
    written: float = 0.0
    read: float = 0.0
    flushing: float = 0.0
    trips: float = 0.0
    is_awaited: bool = True

    @property
    def cpu(self) -> float:
        """CPU seconds."""
        return self.parallel + self.serial

    def waits(self, machine: Machine) -> dict[Resource, float]:
        """Return the seconds that each resource takes alone."""
        return {
            Resource.CPU: self.parallel / machine.cores + self.serial,
            Resource.SENDING: 8 * self.sent / machine.link,
            Resource.RECEIVING: 8 * self.received / machine.link,
            Resource.DISK: (self.written + self.read) / machine.disk_speed + self.flushing,
            Resource.LATENCY: self.trips * machine.latency,
        }

    def seconds(self, machine: Machine) -> float:
        """Return how long it lasts."""
        return max(self.waits(machine).values())

    def slowest(self, machine: Machine) -> Resource:
        """Return what it waits for the longest."""
        waits = self.waits(machine)
        return max(Resource, key=waits.__getitem__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A size or an amount, beside the most that is allowed or there is.

    Args:
        what: it is.
        value: needed.
        most: allowed, or there.
        remedy: what to do where it is too much.
        unit: of both; empty for a number.
    """

    what: str
    value: float
    most: float
    remedy: str
    unit: str = ""

    @property
    def share(self) -> float:
        """What part of the most is needed; over 1 it breaks."""
        return self.value / self.most


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What a party's process takes.

    Args:
        memory: bytes of its own, at the most.
        disk: bytes of its state folder at the most at a time, scratch space included.
        kept: bytes of it that stay once all is done, as long as it runs.
    """

    memory: float
    disk: float
    kept: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyTotal:
    """What one party does and takes in all.

    Args:
        party: who.
        room: memory and disk.
        cpu: seconds.
        seconds: that its works last, one after the other.
        sent: bytes.
        received: bytes.
        slowest: what it waits for the longest.
        remedy: what would make that faster.
    """

    party: Party
    room: Room
    cpu: float
    seconds: float
    sent: float
    received: float
    slowest: Resource
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """What a study takes.

    Args:
        works: of all parties, stage by stage.
        machine: of each party.
        rooms: of the parties.
        limits: of the product.
        remedies: what makes a party faster that waits for its processor; the other resources have the same for all.
    """

    works: tuple[Work, ...]
    machine: Machine
    rooms: Mapping[Party, Room]
    limits: tuple[Need, ...]
    remedies: Mapping[Party, str]

    @property
    def stages(self) -> dict[str, float]:
        """Name and seconds of each stage, one after the other."""
        return stage_seconds(self.works, self.machine)

    @property
    def seconds(self) -> float:
        """From the beginning to the result."""
        return seconds_to_result(self.works, self.machine)

    @property
    def parties(self) -> tuple[PartyTotal, ...]:
        """The totals of each party."""
        return tuple(self._total(party, room) for party, room in self.rooms.items())

    @property
    def needs(self) -> tuple[Need, ...]:
        """Limits and machines, the most strained first."""
        rooms = (need for party, room in self.rooms.items() for need in self._rooms(party, room))
        return tuple(sorted((*self.limits, *rooms), key=lambda need: -need.share))

    @property
    def broken(self) -> tuple[Need, ...]:
        """What breaks, the first first."""
        return tuple(need for need in self.needs if need.share > 1)

    def _rooms(self, party: Party, room: Room) -> Iterable[Need]:
        disk, memory = self.machine.disk, self.machine.memory
        yield Need(what=f"disk: {party}", value=room.disk, most=disk, remedy="Give it a larger disk.", unit="B")
        yield Need(what=f"memory: {party}", value=room.memory, most=memory, remedy="Give it more memory.", unit="B")

    def _total(self, party: Party, room: Room) -> PartyTotal:
        waits = dict.fromkeys(Resource, 0.0)
        own = [work for work in self.works if work.party is party]
        for work in own:
            waits[work.slowest(self.machine)] += work.seconds(self.machine)
        slowest = max(Resource, key=waits.__getitem__)
        return PartyTotal(
            party=party,
            room=room,
            cpu=sum(work.cpu for work in own),
            seconds=sum(waits.values()),
            sent=sum(work.sent for work in own),
            received=sum(work.received for work in own),
            slowest=slowest,
            remedy=self._remedy(party, slowest),
        )

    def _remedy(self, party: Party, slowest: Resource) -> str:
        match slowest:
            case Resource.CPU:
                return self.remedies[party]
            case Resource.SENDING | Resource.RECEIVING:
                return "a faster link"
            case Resource.DISK:
                return "a faster disk"
            case Resource.LATENCY:
                return "parties that are nearer to each other"
            case _:
                assert_never(slowest)


def stage_seconds(works: Iterable[Work], machine: Machine) -> dict[str, float]:
    """Return how long each stage lasts: as long as its slowest party."""
    stages: dict[str, float] = {}
    for work in works:
        stages[work.stage] = max(stages.get(work.stage, 0.0), work.seconds(machine))
    return stages


def seconds_to_result(works: Iterable[Work], machine: Machine) -> float:
    """Return how long the stages last that a result waits for."""
    return sum(stage_seconds((work for work in works if work.is_awaited), machine).values())
