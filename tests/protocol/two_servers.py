"""Two processes of one server on one database and one folder, and what stands before them."""

import asyncio
import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import psutil

from tests.protocol.world import CLOUD, ROSA, World, made_world
from tests.server.cluster import Cluster
from tests.server.publishing import published_by
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.health import wait_until_serving
from veiltab.common.rpc.parties.identity import Party, Role, load_identity
from veiltab.common.study.toml_text import toml_text
from veiltab.play.local.processes import free_ports
from veiltab.server.records.store import ServerStore

LAUNCHER = Path(__file__).with_name("two_servers_launcher.py")
NODES = toml_text(
    {
        "nodes": {"name": "fleet", "budget_epsilon": 100},
        "question": [{"name": "value", "integers": [1, 20]}],
    }
)


class Balancer:
    """A tiny TCP load balancer: each connection goes to the next of its targets.

    Args:
        port: where it listens.
        targets: ports behind it.
    """

    def __init__(self, port: int, targets: list[int]) -> None:
        self._targets = list(targets)
        self._turns = itertools.count()
        self._pairs: list[tuple[int, socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._listening = socket.create_server(("localhost", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def only(self, *targets: int) -> None:
        """Send new connections to some targets, and cut those to others."""
        with self._lock:
            self._targets = list(targets)
            for target, *both in self._pairs:
                if target not in targets:
                    _cut(*both)
            self._pairs = [pair for pair in self._pairs if pair[0] in targets]

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listening.accept()
                with self._lock:
                    target = self._targets[next(self._turns) % len(self._targets)]
                    try:
                        behind = socket.create_connection(("localhost", target), timeout=5)
                    except OSError:
                        caller.close()
                        continue
                    behind.settimeout(None)
                    self._pairs.append((target, caller, behind))
                for one, other in ((caller, behind), (behind, caller)):
                    threading.Thread(target=_pump, args=[one, other], daemon=True).start()

    def close(self) -> None:
        """Cut everything."""
        _cut(self._listening)
        self.only()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    _cut(source, target)


def _cut(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


@dataclass(kw_only=True)
class TwoServers:
    """Two server processes of a study on this machine.

    Args:
        world: its other parties.
        cluster: runs the database.
        url: the database.
        ports: where the two listen.
        balancer: stands at the study's endpoint.
        options: further options of both.
    """

    world: World
    cluster: Cluster
    url: str
    ports: list[int]
    balancer: Balancer
    options: tuple[str, ...] = ()
    running: dict[int, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def log(self, number: int) -> str:
        """Return what a process logged."""
        return self._log(number).read_text("utf-8", errors="replace")

    def _log(self, number: int) -> Path:
        return self.world.local.folder / f"server-{number}.log"

    def start(self, number: int, point: str = "-", url: str | None = None) -> None:
        """Start one of the two and wait until it serves."""
        local = self.world.local
        command = [
            *(sys.executable, str(LAUNCHER), point, "server", "serve", str(local.study_path), "--name", CLOUD[1]),
            *("--identity", str(local.identity_folder(*CLOUD)), "--state", str(local.state_folder(*CLOUD))),
            *("--listen", f"localhost:{self.ports[number]}", "--verbose", *self.options),
        ]
        environment = {**os.environ, "VEILTAB_DATABASE": url or self.url}
        with self._log(number).open("ab") as log:
            self.running[number] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        asyncio.run(self.wait_until_serving(number))

    async def wait_until_serving(self, number: int) -> None:
        """Wait until one of the two answers."""
        local = self.world.local
        cloud = Party(study=local.study.id, role=CLOUD[0], name=CLOUD[1])
        identity = load_identity(local.identity_folder(*ROSA), *ROSA)
        await wait_until_serving(identity, cloud, f"localhost:{self.ports[number]}", within=60)

    def restart(self, number: int, point: str = "-") -> None:
        """Start one anew, to stop at a point."""
        self.stop(number)
        self.start(number, point)

    def stop(self, number: int) -> None:
        """End one of the two."""
        process = self.running.pop(number, None)
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            process.wait(30)

    def wait_until_stopped(self, number: int, seconds: float = 40) -> None:
        """Wait until one has stopped or killed itself."""

        def stopped() -> bool:
            process = self.running[number]
            return process.poll() is not None or psutil.Process(process.pid).status() == psutil.STATUS_STOPPED

        self.wait_until(stopped, seconds)

    def wait_until(self, condition: Callable[[], bool], seconds: float = 40) -> None:
        """Wait for what happens by itself."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"{self.log(0)[-3000:]}\n\n{self.log(1)[-3000:]}"
            time.sleep(0.02)

    def wake(self, number: int) -> None:
        """Let a stopped process go on, and wait until it serves."""
        self.running[number].send_signal(signal.SIGCONT)
        asyncio.run(self.wait_until_serving(number))

    def send_to(self, *numbers: int) -> None:
        """Let callers reach some of the two only."""
        self.balancer.only(*(self.ports[number] for number in numbers))

    def store(self) -> "closing[ServerStore]":
        """Open the state beside the processes."""
        return closing(ServerStore(self.world.local.state_folder(*CLOUD), self.url))

    def folder(self, release_id: str) -> Path:
        """Return where the columns of a release lie."""
        return self.world.releases_folder() / release_id

    def published(self, release_id: str) -> dict[str, bytes]:
        """Return the columns that the database says are published."""
        with self.store() as store:
            assert store.session(release_id).state is ReleaseState.READY
            return published_by(store, release_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End everything."""
        for number in list(self.running):
            self.stop(number)
        self.balancer.close()


def two_servers(folder: Path, cluster: Cluster) -> TwoServers:
    """Make a study whose server is two processes; nothing is started."""
    world = made_world(folder, more=NODES)
    port = int(world.local.endpoint(Role.SERVER, CLOUD[1]).rpartition(":")[2])
    ports = free_ports(2)
    return TwoServers(world=world, cluster=cluster, url=cluster.new_url(), ports=ports, balancer=Balancer(port, ports))
