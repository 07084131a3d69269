"""The client in JavaScript passes its own tests, and a thousand of its nodes answer a real server, each once."""

import json
import os
import re
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients.js_client import SOURCES, VECTORS
from tests.protocol.polling import Asked, Poll, made_poll
from tests.protocol.world import CLOUD
from veiltab.play.local.processes import free_ports
from veiltab.server.https.json_messages import report_from_json

FLEET = Path(__file__).parent / "js_fleet.mjs"
NODES = 1000

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@dataclass(frozen=True, kw_only=True)
class Served:
    """A server that takes reports over HTTPS.

    Args:
        poll: its study.
        url: where.
    """

    poll: Poll
    url: str

    @property
    def ca(self) -> Path:
        return self.poll.local.identity_folder(*CLOUD) / "ca.pem"


@pytest.fixture(scope="module")
def served(client: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    assert client.exists()
    poll = made_poll(tmp_path_factory.mktemp("poll") / "study", budget="100")
    (port,) = free_ports(1)
    poll.local.options[CLOUD] = ("--http", f"localhost:{port}")
    with poll.local:
        poll.start()
        yield Served(poll=poll, url=f"https://localhost:{port}")


def facts(asked: Asked) -> dict[str, Any]:
    """Return what a node knows of a round from elsewhere than from the server."""
    spec = asked.spec
    return {
        "round": spec.round_id,
        "stratum": "north",
        "studyDigest": spec.study_digest,
        "question": spec.question,
        "size": spec.size,
        "budget": "100",
        "share": "100",
        "study": asked.poll.local.study.id,
        "authority": (asked.poll.local.identity_folder(*CLOUD) / "ca.pem").read_text("ascii"),
    }


def fleet(client: Path, served: Served, asked: Asked, folder: Path) -> list[str | Path]:
    """Return the command of a fleet; its files are written once."""
    folder.mkdir(exist_ok=True)
    (folder / "asked.json").write_text(json.dumps(facts(asked)))
    (folder / "tokens.json").write_text(json.dumps([token.hex() for token in asked.tokens["north"]]))
    return ["node", FLEET, client, served.url, served.ca, folder / "asked.json", folder / "tokens.json", folder]


def kept(folder: Path) -> dict[int, set[str | None]]:
    """Return the messages of every node, as they were before they were sent."""
    messages = defaultdict[int, set[str | None]](set)
    for line in (folder / "log").read_text().splitlines():
        one = json.loads(line)
        messages[one["number"]].add(one["body"])
    return messages


def sum_of(asked: Asked, bodies: list[str]) -> list[list[int]]:
    """Return what messages add up to."""
    reports = [report_from_json(body.encode()) for body in bodies]
    return asked.sum_of([asked.request(one.token, one.report, stratum=one.stratum) for one in reports])


def test_the_client_passes_its_own_tests(client: Path) -> None:
    known = {**os.environ, "VEILTAB_VECTORS": str(VECTORS)}
    done = subprocess.run(
        ["npm", "test"], cwd=client, env=known, capture_output=True, text=True, check=False, timeout=800
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr
    passed = re.search(r"^. pass (\d+)$", done.stdout, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) > 200
    assert re.search(r"^. skipped 0$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("folder", [SOURCES, Path(__file__).parent / "grpc_js"], ids=["client", "grpc-js"])
def test_lock_files_name_hashes_and_no_host(folder: Path) -> None:
    text = (folder / "package-lock.json").read_text()
    assert "resolved" not in text
    assert all("integrity" in one for name, one in json.loads(text)["packages"].items() if name)


def test_the_client_needs_no_other_package() -> None:
    package = json.loads((SOURCES / "package.json").read_text())
    assert not {"dependencies", "peerDependencies", "optionalDependencies"} & set(package)
    assert (package["private"], package["license"], package["engines"]) == (True, "Apache-2.0", {"node": ">=20"})


@pytest.mark.parametrize("oracle", ["krr", "oue", "olh", "ss"])
def test_nodes_answer_with_every_oracle(client: Path, served: Served, tmp_path: Path, oracle: str) -> None:
    asked = served.poll.opened(40, rate="0.5", oracle=oracle)
    done = subprocess.run(
        fleet(client, served, asked, tmp_path), capture_output=True, text=True, check=True, timeout=120
    )
    messages = kept(tmp_path)
    bodies = [body for (body,) in messages.values() if body is not None]
    assert json.loads(done.stdout) == {"counted": len(bodies), "silent": 40 - len(bodies)}
    assert 0 < len(bodies) < 40
    assert asked.reports() == [len(bodies), 0]
    assert asked.counts() == sum_of(asked, bodies)


def test_a_thousand_nodes_count_once_each_whatever_is_killed(client: Path, served: Served, tmp_path: Path) -> None:
    asked = served.poll.opened(NODES)
    command = fleet(client, served, asked, tmp_path)
    for begun in (NODES // 5, NODES // 2):
        with subprocess.Popen(command) as running:
            _wait_for(tmp_path / "log", begun)
            running.send_signal(signal.SIGKILL)
        assert sum(asked.reports()) < NODES
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        _wait_for(tmp_path / "log", 7 * NODES // 10)
        served.poll.local.kill(*CLOUD, signal.SIGKILL)
        served.poll.start()
        said, _ = running.communicate(timeout=600)
    assert json.loads(said) == {"counted": NODES}
    messages = kept(tmp_path)
    assert sorted(messages) == list(range(NODES))
    # Whatever was killed in between, a node has sent one message, and it was counted once.
    assert {len(bodies) for bodies in messages.values()} == {1}
    assert asked.reports() == [NODES, 0]
    assert asked.counts() == sum_of(asked, [body for (body,) in messages.values() if body is not None])
    # Asked again, every node repeats its outcome without a word.
    size = (tmp_path / "log").stat().st_size
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert (json.loads(done.stdout), (tmp_path / "log").stat().st_size) == ({"counted": NODES}, size)


def _wait_for(log: Path, messages: int) -> None:
    end = time.monotonic() + 300
    while not log.exists() or log.read_bytes().count(b"\n") < messages:
        assert time.monotonic() < end, "the nodes do not get on"
        time.sleep(0.01)
