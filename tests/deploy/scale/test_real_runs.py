"""What the model says against what real processes took, here and now.

Bytes and disk agree within 5 %. CPU agrees within a factor of FACTOR either way: a machine that does other work as well
takes up to so much longer for the same.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import pytest

from benchmarks.costs.relay import Relay, relayed
from benchmarks.costs.reports import measured_reports
from benchmarks.costs.tables import measured_tables
from benchmarks.made_tables import write_tables
from benchmarks.parties import Parties
from benchmarks.watching import disk_of
from veiltab.deploy.plan.scale.costs import TABLE_COSTS, Way
from veiltab.deploy.plan.scale.model import Machine, Party, Scale
from veiltab.deploy.plan.scale.works import Rounds, Tables, scale_of_rounds, scale_of_tables
from veiltab.play.local.processes import free_ports

FACTOR = 2.0
CLOSE = 0.05
ROWS = 10**6
NODES = 10**5
MACHINE = Machine(cores=2, memory=16e9, disk=1e12, link=1e9, disk_speed=500e6, latency=0.001)

PARTIES = {"alice": Party.CURATOR, "bob": Party.CURATOR, "cloud": Party.SERVER, "rosa": Party.RESEARCHER}


@contextmanager
def relays(parties: Parties) -> Iterator[dict[str, Relay]]:
    """Stand before every party, in a thread, while the block lasts."""
    loop, ready, made = asyncio.new_event_loop(), threading.Event(), dict[str, Relay]()
    ends = asyncio.Event()

    async def run() -> None:
        async with AsyncExitStack() as stack:
            for (name, endpoint), port in zip(parties.endpoints.items(), free_ports(len(PARTIES)), strict=True):
                parties.listen(name, f"localhost:{port}")
                found = int(endpoint.rpartition(":")[2])
                made[name] = await stack.enter_async_context(relayed(f"localhost:{port}", found))
            ready.set()
            await ends.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=[run()])
    thread.start()
    assert ready.wait(10)
    try:
        yield made
    finally:
        loop.call_soon_threadsafe(ends.set)
        thread.join()
        loop.close()


def rows_on_disk(parties: Parties, name: str) -> int:
    """Return what a party's folder takes but for its databases, whose sizes do not depend on the rows of a table."""
    folder = parties.state_folders[name]
    databases = sum(512 * path.stat().st_blocks for path in folder.glob("*.sqlite*"))
    return disk_of(folder, [parties.processes[name]]) - databases


def total(scale: Scale, party: Party) -> dict[str, float]:
    (found,) = (one for one in scale.parties if one["party"] == party)
    return {"cpu": found["cpu_seconds"], **{name: found[f"{name}_bytes"] for name in ("sent", "received", "kept")}}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_release_of_a_million(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    tables = write_tables(tmp_path, ROWS, "parquet")
    costs = measured_tables()
    parties = Parties(tmp_path / "parties", tables)
    # The relays end once the parties have.
    with relays(parties) as made, parties:
        stages = [parties.load(), parties.align()]
        spec, released = parties.release(ROWS)
        stages += [released, parties.certify(spec)]
        disk = {name: rows_on_disk(parties, name) for name in PARTIES}
    cpu = {name: sum(stage.cpu.get(name, 0.0) for stage in stages) for name in PARTIES}
    # Each table has a fiftieth of people whom the other one lacks.
    study = Tables(curators=2, rows=ROWS + ROWS // 50, attributes=2, sample=ROWS, pairs=False)
    scale = scale_of_tables(study, costs, MACHINE)
    foreseen = {party: total(scale, party) for party in Party}

    ratios = {name: cpu[name] / foreseen[party]["cpu"] for name, party in PARTIES.items()}
    record_property("figure", ", ".join(f"{name} {ratio:.2f} times its CPU" for name, ratio in ratios.items()))
    assert all(1 / FACTOR <= ratio <= FACTOR for ratio in ratios.values()), ratios

    tokens = made["alice"].sent
    uploaded = made["cloud"].received
    assert tokens + uploaded / 2 == pytest.approx(foreseen[Party.CURATOR]["sent"], rel=CLOSE)
    assert uploaded == pytest.approx(foreseen[Party.SERVER]["received"], rel=CLOSE)
    assert made["cloud"].sent == pytest.approx(foreseen[Party.RESEARCHER]["received"], rel=CLOSE)
    for name in ("alice", "bob", "cloud"):
        assert disk[name] == pytest.approx(foreseen[PARTIES[name]]["kept"], rel=CLOSE), name


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_hundred_thousand_reports(record_property: Callable[[str, object], None]) -> None:
    few, many = measured_reports(Way.HTTPS_KEPT), measured_reports(Way.HTTPS_KEPT, NODES)
    rounds = Rounds(nodes=NODES, reports=1, way=Way.HTTPS_KEPT)
    foreseen, found = (
        total(scale_of_rounds(rounds, costs, TABLE_COSTS, MACHINE), Party.SERVER) for costs in (few, many)
    )
    ratio = found.pop("cpu") / foreseen.pop("cpu")
    record_property("figure", f"{ratio:.2f} times its CPU")
    assert 1 / FACTOR <= ratio <= FACTOR
    assert found == pytest.approx(foreseen, rel=CLOSE)
