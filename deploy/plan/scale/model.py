"""What machines, what hours, and what breaks first: a study of any size, by arithmetic.

A study is a list of works: what one party does in one stage, in CPU seconds, bytes on its link and bytes of its disk.
Stages follow one another, and a stage lasts as long as its slowest party. A work lasts as long as its slowest resource:
the party's cores, its link either way, its disk, or messages that wait for one another. Everything else is a sum.
"""

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from math import inf
from typing import Any, NamedTuple

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


_REMEDIES = {
    Resource.SENDING: "a faster link",
    Resource.RECEIVING: "a faster link",
    Resource.DISK: "a faster disk",
    Resource.LATENCY: "parties that are nearer to each other",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What each party has: cores, bytes of memory and of free disk, bits a second each way, bytes a second, seconds.

    Raises:
        InvalidInputError: there is nothing of one of them.
    """

    cores: float
    memory: float
    disk: float
    link: float
    disk_speed: float
    latency: float

    def __post_init__(self) -> None:
        """Check."""
        for name in self.__slots__:
            if not 0 < getattr(self, name) < inf:
                where, remedy = f"--{name.replace('_', '-')}", "Leave it away for a usual machine, as --help says."
                raise InvalidInputError("must be more than 0", where=where, remedy=remedy)


@dataclass(frozen=True, slots=True)
class Work:
    """What one party does in one stage.

    Args:
        parallel, serial: CPU seconds that all cores share, and of one core after the other.
        sent, received: bytes.
        written, read: bytes, to and from its disk.
        flushing: seconds in which its disk makes something durable.
        trips: messages there and back that wait for one another.
        is_awaited: whether the result waits for it.
    """

    stage: str
    party: Party
    _: KW_ONLY
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

    def slowest(self, machine: Machine) -> tuple[Resource, float]:
        """Return what it waits for the longest, and how long: so long it lasts."""
        return max(self.waits(machine).items(), key=lambda wait: wait[1])


class Need(NamedTuple):
    """A size or an amount, the most that is allowed or there is, and what to do where it is too much."""

    what: str
    value: float
    most: float
    remedy: str
    unit: str = ""

    @property
    def share(self) -> float:
        """What part of the most is needed; over 1 it breaks."""
        return self.value / self.most


class Room(NamedTuple):
    """Bytes that a party takes: of memory, of disk at most at a time, and of disk as long as it runs."""

    memory: float
    disk: float
    kept: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """What a study takes.

    Args:
        works: of all parties, stage by stage.
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
    def needs(self) -> list[Need]:
        """Limits and machines, the most strained first."""
        needs = list(self.limits)
        for party, room in self.rooms.items():
            needs.append(Need(f"disk: {party}", room.disk, self.machine.disk, "Give it a larger disk.", "B"))
            needs.append(Need(f"memory: {party}", room.memory, self.machine.memory, "Give it more memory.", "B"))
        return sorted(needs, key=lambda need: -need.share)

    @property
    def broken(self) -> list[Need]:
        """What breaks, the first first."""
        return [need for need in self.needs if need.share > 1]

    @property
    def parties(self) -> list[dict[str, Any]]:
        """What each party does and takes in all, what it waits for the longest, and what would make that faster."""
        return [self._total(party, room) for party, room in self.rooms.items()]

    def _total(self, party: Party, room: Room) -> dict[str, Any]:
        waits = dict.fromkeys(Resource, 0.0)
        own = [work for work in self.works if work.party is party]
        for resource, seconds in (work.slowest(self.machine) for work in own):
            waits[resource] += seconds
        slowest = max(Resource, key=waits.__getitem__)
        return {
            "party": party.value,
            "cpu_seconds": sum(work.cpu for work in own),
            "seconds": sum(waits.values()),
            "memory_bytes": room.memory,
            "disk_bytes": room.disk,
            "kept_bytes": room.kept,
            "sent_bytes": sum(work.sent for work in own),
            "received_bytes": sum(work.received for work in own),
            "slowest": slowest.value,
            "remedy": _REMEDIES.get(slowest, self.remedies[party]),
        }


def stage_seconds(works: Iterable[Work], machine: Machine) -> dict[str, float]:
    """Return how long each stage lasts: as long as its slowest party."""
    stages: dict[str, float] = {}
    for work in works:
        stages[work.stage] = max(stages.get(work.stage, 0.0), work.slowest(machine)[1])
    return stages


def seconds_to_result(works: Iterable[Work], machine: Machine) -> float:
    """Return how long the stages last that a result waits for."""
    return sum(stage_seconds((work for work in works if work.is_awaited), machine).values())
