"""Single reports of nodes, over gRPC with mutual TLS and over HTTPS: reports a second, their latency, the server's CPU.

python -m benchmarks.reports [--nodes 4000]
"""

import argparse
import asyncio
import ssl
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import psutil

from veiltab.common.collection.tokens import new_token
from veiltab.common.collection.wire import report_from_proto, report_to_proto
from veiltab.common.rpc.channel import call, connect
from veiltab.common.rpc.identity import Role, load_identity
from veiltab.deploy.local.collection import CollectionOptions, prepare
from veiltab.deploy.local.processes import LocalStudy, free_ports
from veiltab.node.decision import decide, symbol_of
from veiltab.node.sending import server_of
from veiltab.researcher.collection.client import Rounds
from veiltab.server.collection.json_messages import report_to_json
from veiltab.v1 import collection_pb2
from veiltab.v1.collection_pb2_grpc import CollectionServiceStub

_CONCURRENCY = (1, 64)


Send = Callable[[LocalStudy, Sequence[collection_pb2.ReportRequest], int], Awaitable[list[float]]]
"""Submits reports, so many at a time; returns the seconds that each took."""


async def over_grpc(
    local: LocalStudy, requests: Sequence[collection_pb2.ReportRequest], concurrency: int
) -> list[float]:
    """Submit reports over one connection with mutual TLS."""
    study = local.study
    identity = load_identity(local.identity_folder(Role.NODE, "fleet"), Role.NODE, "fleet")
    peer, taken, rest = server_of(study), [], iter(requests)
    channel = connect(identity, peer, study.server.endpoint)
    stub = CollectionServiceStub(channel)

    async def work() -> None:
        for request in rest:
            began = time.perf_counter()
            await call(stub.Report, request, peer=peer)
            taken.append(time.perf_counter() - began)

    await asyncio.gather(*(work() for _ in range(concurrency)))
    await channel.close()
    return taken


def over_https(port: int) -> Send:
    """Return what submits reports over HTTPS, over one connection for each that is under way."""

    async def send(
        local: LocalStudy, requests: Sequence[collection_pb2.ReportRequest], concurrency: int
    ) -> list[float]:
        authority = local.identity_folder(Role.SERVER, "cloud") / "ca.pem"
        tls, taken, rest = ssl.create_default_context(cafile=str(authority)), [], iter(requests)

        async def work() -> None:
            reader, writer = await asyncio.open_connection("localhost", port, ssl=tls)
            for request in rest:
                body = report_to_json(request.token, request.stratum, report_from_proto(request))
                head = (
                    f"POST /v1/rounds/{request.round_id}/reports HTTP/1.1\r\nHost: localhost\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n"
                )
                began = time.perf_counter()
                writer.write(head.encode() + body)
                answer = await reader.readuntil(b"}")
                if not answer.startswith(b"HTTP/1.1 200"):
                    raise SystemExit(answer.decode())
                taken.append(time.perf_counter() - began)
            writer.close()

        await asyncio.gather(*(work() for _ in range(concurrency)))
        return taken

    return send


def measure(local: LocalStudy, server: psutil.Process, name: str, send: Send, how: tuple[int, int, str]) -> str:
    """Run a round in which every node reports; return a line of the table.

    Args:
        local: the study.
        server: its process.
        name: of the way that reports take.
        send: submits them.
        how: nodes, reports under way, oracle.
    """
    nodes, concurrency, oracle = how
    identity = local.identity_folder(Role.RESEARCHER, "rosa")
    with Rounds(local.study_path, identity=identity, name="rosa") as rounds:
        spec = rounds.open(
            "value", epsilon="1", rates={"everyone": "1"}, populations={"everyone": nodes}, oracle=oracle
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
        cpu, began = server.cpu_times(), time.perf_counter()
        taken = 1e3 * np.array(asyncio.run(_sent(send, local, requests, concurrency)))
        seconds, after = time.perf_counter() - began, server.cpu_times()
        if sum(rounds.status(spec.round_id).reports) != nodes:
            raise SystemExit("not every report was counted")
    busy = after.user + after.system - cpu.user - cpu.system
    return (
        f"{name:<6} {oracle:<5} {concurrency:>11} {nodes / seconds:>11,.0f} {np.percentile(taken, 50):>9.2f}"
        f" {np.percentile(taken, 99):>9.2f} {1e6 * busy / nodes:>17.0f}"
    )


async def _sent(
    send: Send, local: LocalStudy, requests: Sequence[collection_pb2.ReportRequest], concurrency: int
) -> list[float]:
    return await send(local, requests, concurrency)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=4000)
    nodes = parser.parse_args().nodes
    print("Single reports, each durable before its answer (d = 100)")
    print(f"{'':<12} {'under way':>11} {'reports/s':>11} {'p50 ms':>9} {'p99 ms':>9} {'server CPU us':>17}")
    with tempfile.TemporaryDirectory() as folder:
        options = CollectionOptions(out=Path(folder) / "round", domain=100, epsilon=Decimal(50))
        local = prepare(options)
        (port,) = free_ports(1)
        local.options[Role.SERVER, "cloud"] = ("--http", f"localhost:{port}")
        with local:
            server = psutil.Process(local.start(Role.SERVER, "cloud"))
            local.wait_for(Role.SERVER, "cloud")
            for name, send in {"gRPC": over_grpc, "HTTPS": over_https(port)}.items():
                for oracle in ("krr", "oue", "olh"):
                    for concurrency in _CONCURRENCY:
                        how = nodes if concurrency > 1 else nodes // 8, concurrency, oracle
                        print(measure(local, server, name, send, how), flush=True)


if __name__ == "__main__":
    main()
