"""Single reports of nodes over mutual TLS: reports a second, and the latency of one.

python -m benchmarks.reports [--nodes 4000]
"""

import argparse
import asyncio
import resource
import tempfile
import time
from decimal import Decimal
from pathlib import Path

import numpy as np

from veiltab.common.collection.tokens import new_token
from veiltab.common.collection.wire import report_to_proto
from veiltab.common.rpc.channel import call, connect
from veiltab.common.rpc.identity import Role, load_identity
from veiltab.deploy.local.collection import CollectionOptions, prepare
from veiltab.deploy.local.processes import LocalStudy
from veiltab.node.decision import decide, symbol_of
from veiltab.node.sending import server_of
from veiltab.researcher.collection.client import Rounds
from veiltab.v1 import collection_pb2
from veiltab.v1.collection_pb2_grpc import CollectionServiceStub

_CONCURRENCY = (1, 64)


async def hand_in_all(local: LocalStudy, requests: list[collection_pb2.ReportRequest], concurrency: int) -> list[float]:
    """Submit reports, `concurrency` at a time; return the seconds that each took."""
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


def measure(local: LocalStudy, nodes: int, concurrency: int, oracle: str) -> str:
    """Run a round in which every node reports; return a line of the table."""
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
        cpu, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        taken = 1e3 * np.array(asyncio.run(hand_in_all(local, requests, concurrency)))
        seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
        if sum(rounds.status(spec.round_id).reports) != nodes:
            raise SystemExit("not every report was counted")
    busy = after.ru_utime + after.ru_stime - cpu.ru_utime - cpu.ru_stime
    return (
        f"{oracle:<5} {concurrency:>11} {nodes / seconds:>11,.0f} {np.percentile(taken, 50):>9.2f}"
        f" {np.percentile(taken, 99):>9.2f} {1e6 * busy / nodes:>17.0f}"
    )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=4000)
    nodes = parser.parse_args().nodes
    print("Single reports over mutual TLS, each durable before its answer (d = 100)")
    print(f"{'':<5} {'under way':>11} {'reports/s':>11} {'p50 ms':>9} {'p99 ms':>9} {'client CPU us':>17}")
    with tempfile.TemporaryDirectory() as folder:
        options = CollectionOptions(out=Path(folder) / "round", domain=100, epsilon=Decimal(50))
        local = prepare(options)
        with local:
            local.start(Role.SERVER, "cloud")
            local.wait_for(Role.SERVER, "cloud")
            for oracle in ("krr", "oue", "olh"):
                for concurrency in _CONCURRENCY:
                    print(measure(local, nodes if concurrency > 1 else nodes // 8, concurrency, oracle), flush=True)


if __name__ == "__main__":
    main()
