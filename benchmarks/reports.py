"""Single reports of nodes, over gRPC with mutual TLS and over HTTPS: the CPU time that one costs the server.

python -m benchmarks.reports [--nodes 4000] [--database postgresql://...]

With the URL of an empty PostgreSQL the server is also measured on that, as one process and as two.
"""

import argparse
import asyncio
import itertools
import socket
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import psutil

from benchmarks.costs.reports import SETTLED_SECONDS, connect_alone, https_request, node_identity
from benchmarks.parties import cpu_of
from veiltab.common.collection.round_messages import report_to_proto
from veiltab.common.collection.tokens import new_token
from veiltab.common.rpc.channel import call, connect
from veiltab.common.rpc.health import wait_until_serving
from veiltab.common.rpc.parties.identity import Role, load_identity
from veiltab.node.answers.decision import decide, symbol_of
from veiltab.node.answers.sending import server_of
from veiltab.play.demos.collection import CollectionOptions, prepare
from veiltab.play.local.processes import LocalStudy, free_ports
from veiltab.researcher.collection.rounds_client import Rounds
from veiltab.v1.collection_pb2 import ReportRequest
from veiltab.v1.collection_pb2_grpc import CollectionServiceStub

_KEPT, _NEW = "kept", "new"
_UNDER_WAY = {_KEPT: 64, _NEW: 32}
"""Reports under way at a time: over kept connections, and each over a connection of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is measured in one line.

    Args:
        way: "gRPC" or "HTTPS".
        connections: _KEPT or _NEW.
        oracle: the local randomiser.
    """

    way: str
    connections: str
    oracle: str = "krr"


CASES = (
    Case(way="gRPC", connections=_KEPT),
    Case(way="gRPC", connections=_NEW),
    Case(way="HTTPS", connections=_KEPT),
    Case(way="HTTPS", connections=_NEW),
)
MORE = (Case(way="HTTPS", connections=_KEPT, oracle="oue"), Case(way="HTTPS", connections=_KEPT, oracle="olh"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server that runs.

    Args:
        local: its study.
        store: its database's name, for people.
        processes: what it consists of.
        endpoints: where each of them takes reports over gRPC.
        ports: where each of them takes reports over HTTPS.
    """

    local: LocalStudy
    store: str
    processes: Sequence[psutil.Process]
    endpoints: Sequence[str]
    ports: Sequence[int]

    def seconds(self) -> float:
        """Return the CPU time of its processes so far."""
        return sum(map(cpu_of, self.processes))


def over_grpc(server: Server, requests: Sequence[ReportRequest], connections: str) -> list[float]:
    """Submit reports, over one connection to each process or over one connection a report; return their seconds."""
    return asyncio.run(_over_grpc(server, requests, connections))


async def _over_grpc(server: Server, requests: Sequence[ReportRequest], connections: str) -> list[float]:
    local, taken, rest = server.local, [], iter(requests)
    identity, peer = node_identity(local), server_of(local.study)
    kept = [connect(identity, peer, endpoint) for endpoint in server.endpoints]

    async def work(number: int) -> None:
        place = number % len(kept)
        for request in rest:
            began = time.perf_counter()
            if connections == _KEPT:
                await call(CollectionServiceStub(kept[place]).Report, request, peer=peer)
            else:
                async with connect_alone(identity, peer, server.endpoints[place]) as channel:
                    await call(CollectionServiceStub(channel).Report, request, peer=peer)
            taken.append(time.perf_counter() - began)

    await asyncio.gather(*(work(number) for number in range(_UNDER_WAY[connections])))
    for channel in kept:
        await channel.close()
    return taken


def over_https(server: Server, requests: Sequence[ReportRequest], connections: str) -> list[float]:
    """Submit reports over HTTPS, from one thread for each that is under way; return their seconds."""
    authority = server.local.identity_folder(Role.SERVER, "cloud") / "ca.pem"
    tls, taken = ssl.create_default_context(cafile=str(authority)), list[float]()
    messages, threads = [https_request(one) for one in requests], _UNDER_WAY[connections]

    def opened(port: int) -> ssl.SSLSocket:
        plain = socket.create_connection(("localhost", port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return tls.wrap_socket(plain, server_hostname="localhost")

    def work(number: int) -> None:
        port, connection = server.ports[number % len(server.ports)], None
        for message in itertools.islice(messages, number, None, threads):
            began = time.perf_counter()
            connection = connection or opened(port)
            connection.sendall(message)
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(4096)
            if not answer.startswith(b"HTTP/1.1 200 "):
                raise SystemExit(answer.decode())
            if connections == _NEW:
                connection.close()
                connection = None
            taken.append(time.perf_counter() - began)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    return taken


SEND: dict[str, Callable[[Server, Sequence[ReportRequest], str], list[float]]] = {
    "gRPC": over_grpc,
    "HTTPS": over_https,
}


def measure(server: Server, case: Case, nodes: int) -> str:
    """Run a round in which every node reports; return a line of the table."""
    local = server.local
    identity = local.identity_folder(Role.RESEARCHER, "rosa")
    with Rounds(local.study_path, identity=identity, name="rosa") as rounds:
        spec = rounds.open(
            "value", epsilon="1", rates={"everyone": "1"}, populations={"everyone": nodes}, oracle=case.oracle
        )
        tokens = [new_token() for _ in range(nodes)]
        rounds.enrol(spec.round_id, "everyone", tokens)
        stratum, symbol = spec.strata[0], symbol_of(local.study, "value", "7")
        reports = [decide(spec, stratum, symbol) for _ in tokens]
        requests = [
            report_to_proto(spec.round_id, token, stratum.name, report)
            for token, report in zip(tokens, reports, strict=True)
            if report is not None
        ]
        before, began = server.seconds(), time.perf_counter()
        taken = 1e3 * np.array(SEND[case.way](server, requests, case.connections))
        seconds = time.perf_counter() - began
        time.sleep(SETTLED_SECONDS)
        each = (server.seconds() - before) / nodes
        if sum(rounds.status(spec.round_id).reports) != nodes:
            raise SystemExit("not every report was counted")
    return (
        f"{case.way:<6} {case.connections:<12} {case.oracle:<5} {server.store:<11} {len(server.processes):>9}"
        f" {1e6 * each:>14,.0f} {1 / each:>17,.0f} {nodes / seconds:>10,.0f}"
        f" {np.percentile(taken, 50):>7.1f} {np.percentile(taken, 99):>7.1f}"
    )


@contextmanager
def running(folder: Path, database: str) -> Iterator[list[Server]]:
    """Start a server for a block: one process, and a second one if its database can be shared."""
    first = prepare(CollectionOptions(out=folder, domain=100, epsilon=Decimal(50)))
    count = 2 if database else 1
    endpoints = [first.endpoint(Role.SERVER, "cloud"), *(f"localhost:{port}" for port in free_ports(count - 1))]
    ports, store = free_ports(count), "PostgreSQL" if database else "SQLite"
    identity = load_identity(first.identity_folder(Role.RESEARCHER, "rosa"), Role.RESEARCHER, "rosa")
    processes = []
    with first, replace(first, _running={}) as second:
        for local, endpoint, port in zip((first, second), endpoints, ports, strict=False):
            options = ("--http", f"localhost:{port}", "--listen", endpoint, "--database", database)
            local.options = {(Role.SERVER, "cloud"): options}
            processes.append(psutil.Process(local.start(Role.SERVER, "cloud")))
            asyncio.run(wait_until_serving(identity, server_of(first.study), endpoint, within=60))
        yield [
            Server(local=first, store=store, processes=processes[:most], endpoints=endpoints[:most], ports=ports[:most])
            for most in range(1, count + 1)
        ]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=4000)
    parser.add_argument("--database", default="")
    options = parser.parse_args()
    print("Single reports, each durable before its answer (d = 100); server CPU in user and system mode")
    print(
        f"{'':<6} {'connections':<12} {'':<5} {'store':<11} {'processes':>9} {'CPU us/report':>14}"
        f" {'reports/s a core':>17} {'reports/s':>10} {'p50 ms':>7} {'p99 ms':>7}"
    )
    for database in ("", options.database) if options.database else ("",):
        with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "round", database) as servers:
            for server in servers:
                for case in CASES if database else CASES + MORE:
                    nodes = options.nodes if case.connections == _KEPT else options.nodes // 4
                    print(measure(server, case, nodes), flush=True)


if __name__ == "__main__":
    main()
