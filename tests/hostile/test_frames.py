"""Abuse of HTTP/2 over TLS, with a certificate of the study and without: others are served, and memory comes back."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import grpc
import psutil
import pytest

from tests.hostile.frames import ABUSES, Target, abused
from tests.hostile.test_crowding import healthy
from tests.protocol.polling import FLEET, Poll, made_poll, poll_fixture  # noqa: F401 - a fixture
from tests.protocol.world import CLOUD

pytestmark = pytest.mark.long
ABUSERS = 4
LITTLE = 20 * 2**20
GROWTH = {"endless_headers": 256 * 2**20}
"""Bytes that a server may keep: gRPC's own memory is in pieces after header fields without an end."""


@pytest.fixture(scope="module")
def abusers() -> Iterator[ProcessPoolExecutor]:
    """Processes of their own: threads of this one would delay those who ask for the server's health."""
    with ProcessPoolExecutor(ABUSERS, mp_context=get_context("spawn")) as pool:
        yield pool


def target(poll: Poll, *, certified: bool) -> Target:
    folder = poll.local.identity_folder(*FLEET)
    return Target(
        address=("localhost", int(poll.local.endpoint(*CLOUD).rpartition(":")[2])),
        name=poll.cloud.dns_name,
        authority=folder / "ca.pem",
        certificate=(folder / "fleet.pem", folder / "fleet.key") if certified else None,
    )


@pytest.mark.parametrize("caller", [FLEET[1], "unknown"])
@pytest.mark.parametrize("abuse", list(ABUSES))
def test_others_are_served_and_memory_comes_back(
    poll: Poll, abusers: ProcessPoolExecutor, abuse: str, caller: str, record_property: Callable[[str, object], None]
) -> None:
    server = psutil.Process(poll.local._running[CLOUD].pid)
    assert healthy(poll) is grpc.StatusCode.OK
    before, seconds = server.memory_info().rss, [0.0]
    certified = caller == FLEET[1]
    abusing = [abusers.submit(abused, target(poll, certified=certified), abuse) for _ in range(ABUSERS)]
    while not all(one.done() for one in abusing):
        began = time.monotonic()
        assert healthy(poll) is grpc.StatusCode.OK
        seconds.append(time.monotonic() - began)
    taken = sum(one.result() for one in abusing)
    assert taken > 0 or not certified
    # What was freed goes back to the system from time to time.
    end = time.monotonic() + 60
    while server.memory_info().rss - before > GROWTH.get(abuse, LITTLE):
        assert time.monotonic() < end, "the memory of connections that are closed stays taken"
        time.sleep(0.5)
    if certified:
        name = abuse.replace("_", " ")
        record_property("figure", f"{name}: {taken} frames taken, health within {max(seconds):.2f} s")
