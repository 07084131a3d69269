"""A work lasts as long as its slowest resource, a stage as long as its slowest party."""

from dataclasses import replace
from typing import Any

import pytest

from tests.deploy.scale.small import MACHINE
from veiltab.common.errors import InvalidInputError
from veiltab.deploy.plan.scale.model import Need, Party, Resource, Room, Scale, Work, stage_seconds

LIMIT = Need("rows", 5, 10, "Take fewer.")


def scale(*works: Work, limits: tuple[Need, ...] = (LIMIT,)) -> Scale:
    return Scale(
        works=works,
        machine=MACHINE,
        rooms={Party.CURATOR: Room(2e8, 3e9, 1e9), Party.SERVER: Room(1e8, 9e8, 0.0)},
        limits=limits,
        remedies={Party.CURATOR: "more cores", Party.SERVER: "another process"},
    )


@pytest.mark.parametrize(
    ("work", "resource", "seconds"),
    [
        (Work("a", Party.CURATOR, parallel=8.0, serial=3.0), Resource.CPU, 5.0),
        (Work("a", Party.CURATOR, sent=50e6, received=20e6), Resource.SENDING, 5.0),
        (Work("a", Party.CURATOR, sent=20e6, received=70e6), Resource.RECEIVING, 7.0),
        (Work("a", Party.CURATOR, written=200e6, read=100e6, flushing=1.5, parallel=16.0), Resource.DISK, 4.5),
        (Work("a", Party.CURATOR, trips=30, serial=2.0), Resource.LATENCY, 3.0),
    ],
)
def test_a_work_lasts_as_long_as_its_slowest_resource(work: Work, resource: Resource, seconds: float) -> None:
    waits = work.waits(MACHINE)
    slowest, lasts = work.slowest(MACHINE)
    assert (slowest, lasts) == (resource, waits[resource])
    assert waits[resource] == pytest.approx(seconds)
    total = scale(work).parties[0]
    assert (total["party"], total["slowest"]) == ("each curator", resource)
    assert (total["seconds"], total["cpu_seconds"]) == pytest.approx((seconds, work.parallel + work.serial))


def test_stages_follow_one_another_and_last_as_long_as_their_slowest_party() -> None:
    works = (
        Work("send", Party.CURATOR, serial=1.0),
        Work("send", Party.SERVER, serial=4.0),
        Work("count", Party.SERVER, serial=2.0),
    )
    assert stage_seconds(works, MACHINE) == {"send": 4.0, "count": 2.0}
    later = Work("certify", Party.SERVER, serial=9.0, is_awaited=False)
    assert scale(*works, later).seconds == 6.0
    assert scale(*works, later).stages["certify"] == 9.0
    whole = scale(*works)
    assert whole.seconds == 6.0
    assert [(one["party"], one["seconds"], one["remedy"]) for one in whole.parties] == [
        (Party.CURATOR, 1.0, "more cores"),
        (Party.SERVER, 6.0, "another process"),
    ]


def test_what_a_party_waits_for_the_longest_is_summed_over_its_works() -> None:
    works = [Work(f"send {number}", Party.CURATOR, sent=40e6) for number in range(3)]
    whole = scale(Work("load", Party.CURATOR, serial=10.0), *works)
    curator = whole.parties[0]
    assert (curator["slowest"], curator["remedy"]) == (Resource.SENDING, "a faster link")
    assert (curator["sent_bytes"], curator["seconds"]) == (120e6, 22.0)


def test_the_most_strained_comes_first_and_breaks_over_the_most() -> None:
    needs = scale().needs
    assert [(need.what, need.share) for need in needs] == [
        ("disk: each curator", 3.0),
        ("disk: server", 0.9),
        ("rows", 0.5),
        ("memory: each curator", 0.2),
        ("memory: server", 0.1),
    ]
    assert [need.what for need in scale().broken] == ["disk: each curator"]
    at_its_most = LIMIT._replace(value=10)
    assert at_its_most not in scale(limits=(at_its_most,)).broken
    beyond = LIMIT._replace(value=11)
    assert scale(limits=(beyond,)).broken[1] == beyond


@pytest.mark.parametrize("name", ["cores", "memory", "disk", "link", "disk_speed", "latency"])
@pytest.mark.parametrize("amount", [0, -1, float("nan"), float("inf")])
def test_a_machine_has_something_of_everything(name: str, amount: float) -> None:
    changed: dict[str, Any] = {name: amount}
    with pytest.raises(InvalidInputError, match="more than 0") as refused:
        replace(MACHINE, **changed)
    assert refused.value.where == f"--{name.replace('_', '-')}"
