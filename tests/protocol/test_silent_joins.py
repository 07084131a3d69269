"""What others see of a spoke does not depend on whom of its people the hub has: processes over TLS, two tables."""

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.common.observe.collector import collecting
from tests.common.observe.test_metrics import figures
from tests.protocol.test_observability import LAUNCHER, scraped, status
from tests.protocol.village import FREE, TWO, People, Rules, made_people, write_table
from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, Who, World, made_world
from veiltab.play.local.processes import free_ports

pytestmark = pytest.mark.long

WHO = (ALICE, BOB, CLOUD, ROSA)
_CHANCE = re.compile(
    r"[0-9a-f]{16,}|\d{4}-\d\d-\d\d[T ][\d:.,+Z]+|\b\d+(\.\d+)?e-\d+|\b\d+\.\d+\b|(:|port )\d{4,5}\b|\b\d{10}\b"
)
_WAITING = ("refused", "process_", "python_", "veiltab_connections", "_seconds_sum", "_bucket", "certificate_end")
"""What depends on how long one waited for another, and on when it was."""


def without_chance(text: str) -> str:
    """Return a text without times, ids, ports and how long a step took."""
    return _CHANCE.sub("*", text)


def log_lines(world: World, who: Who) -> set[str]:
    lines = without_chance(world.log(who).replace(str(world.local.folder), "")).splitlines()
    return {line for line in lines if not any(word in line for word in _WAITING)}


def files(world: World, who: Who) -> Counter[tuple[str, int]]:
    """Return the files of a party's state with their sizes; what its databases hold is compared by itself."""
    folder = world.local.state_folder(*who)
    paths = [path for path in folder.rglob("*") if path.is_file() and ".sqlite" not in path.name]
    return Counter((without_chance(str(path.relative_to(folder))), path.stat().st_size) for path in paths)


def rows_of_hub(world: World) -> dict[str, Counter[tuple[int, ...]]]:
    """Return how long the secrets and digests in each row of the hub's database are."""
    with world.store("alice") as store:
        read = store.connection.execute
        names = [row["name"] for row in read("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()]
        names.remove("canary_changes")  # as many as the server's coins chose
        return {
            name: Counter(
                tuple(len(value) for value in tuple(row) if isinstance(value, bytes))
                for row in read(f"SELECT * FROM {name}").fetchall()  # noqa: S608 - a table of the schema
            )
            for name in names
        }


def seen(folder: Path, people: People, alignment: str) -> dict[str, Any]:
    """Return all that is told of a join and a release when these people are the spoke's."""
    world = made_world(folder / "study", people=300, rules=Rules(alignment=alignment, complete=False))
    names = [name for name, owner in TWO.items() if owner == "bob"]
    write_table(world.local.tables["bob"], [people], names, seed=5)
    ports = dict(zip(WHO, free_ports(len(WHO)), strict=True))
    world.local.launcher = (sys.executable, str(LAUNCHER), str(folder))
    with collecting() as collector, world.local:
        places: dict[str, Any] = {name: port for (_, name), port in ports.items()}
        places |= {"collector": collector.endpoint, "chunk": 10**6}
        (folder / "ports.json").write_text(json.dumps(places))
        world.start(*WHO)
        with world.client(timeout=60) as client:
            client.request(FREE, epsilon="4", label=world.label()).wait(60)
        world.wait_until(lambda: not world.leftovers())
        world.wait_until(lambda: not [*world.local.state_folder(*BOB).rglob("seeds.bin")])
        world.wait_until(lambda: not [*world.local.state_folder(*ALICE).rglob("values-0.bin")])
        told: dict[str, Any] = {
            f"metrics of {who[1]}": {
                key: value for key, value in figures(scraped(port)).items() if not any(w in key[0] for w in _WAITING)
            }
            for who, port in ports.items()
        }
        stated = {who[1]: json.loads(status(world, who, "--json")) for who in WHO}
        told["matched"] = stated.pop("bob")["work"][0]["matched"]
        told |= {f"status of {name}": without_chance(json.dumps(one, sort_keys=True)) for name, one in stated.items()}
        told |= {f"log of {who[1]}": log_lines(world, who) for who in WHO}
        told |= {f"files of {who[1]}": files(world, who) for who in (ALICE, CLOUD)}
        told["database of alice"] = rows_of_hub(world)
        steps = [(span.party, span.name, *sorted(span.facts.items())) for span in collector.spans()]
        told["spans"] = Counter(without_chance(str(step)) for step in steps if "waiting" not in str(step))
        return told


@pytest.mark.timeout(600)
@pytest.mark.parametrize("alignment", ["oblivious", "tokens"])
def test_nobody_but_the_spoke_sees_whom_the_hub_has(tmp_path: Path, alignment: str) -> None:
    """Two tables of one size: the hub has everybody of the first, and nobody of the second."""
    told = []
    for name, prefix in (("all", "villager"), ("none", "stranger")):
        (tmp_path / name).mkdir()
        told.append(seen(tmp_path / name, made_people(300, seed=20, prefix=prefix), alignment))
    assert [one.pop("matched") for one in told] == [300, 0]
    for what, of_all in told[0].items():
        assert of_all == told[1][what], what
