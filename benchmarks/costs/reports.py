"""Measures what collecting reports costs on this machine: a server of its own process, and nodes that report to it."""

import asyncio
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from pathlib import Path

import grpc

from benchmarks.costs.processor import cpu_seconds
from benchmarks.costs.relay import relayed
from tests.common.collection.rounds import report_to_json
from veiltab.common.collection.round_messages import report_from_proto, report_to_proto
from veiltab.common.collection.tokens import new_token
from veiltab.common.core.randomness import SystemSource
from veiltab.common.errors import UnavailableError
from veiltab.common.rpc.channel import call
from veiltab.common.rpc.parties.identity import Identity, Party, Role, load_identity
from veiltab.node.answers.sending import server_of
from veiltab.play.demos.collection import CollectionOptions, prepare
from veiltab.play.local.processes import LocalStudy, free_ports
from veiltab.researcher.collection.rounds_client import Rounds
from veiltab.v1.collection_pb2 import ReportRequest
from veiltab.v1.collection_pb2_grpc import CollectionServiceStub


class Way(StrEnum):
    """How reports reach the server: each on a connection of its own, as a phone's, or on one that is kept."""

    HTTPS = "HTTPS"
    HTTPS_KEPT = "HTTPS, kept"
    GRPC = "gRPC"
    GRPC_KEPT = "gRPC, kept"

    @property
    def is_https(self) -> bool:
        """Whether it is HTTPS, and not gRPC with mutual TLS."""
        return self in {Way.HTTPS, Way.HTTPS_KEPT}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCosts:
    """What a report costs the server.

    Args:
        report: microseconds of CPU, its connection included where it has one of its own.
        received, sent: bytes on the link.
        enrol: microseconds of CPU to take the digest of its token.
        token_bytes: bytes of the token in the database.
    """

    report: float
    received: float
    sent: float
    enrol: float
    token_bytes: float


_SERVER = (Role.SERVER, "cloud")
_TOKENS = 50_000
"""Tokens that are enrolled at the least."""

_REPORTS = {Way.GRPC: 400, Way.GRPC_KEPT: 2000, Way.HTTPS: 400, Way.HTTPS_KEPT: 2000}
_UNDER_WAY = 64
_WARM = 50
"""Reports that warm the server up and do not count."""

SETTLED_SECONDS = 0.2
"""After the last answer, until the server has closed its connections: what that costs belongs to the reports."""

Send = Callable[[ReportRequest], Awaitable[None]]


def measured_reports(way: Way) -> ReportCosts:
    """Return what reports cost that come in one way.

    Raises:
        UnavailableError: the server does not start, or this machine has no /proc.
    """
    count = _REPORTS[way]
    enrolled = max(count + _WARM, _TOKENS)
    with tempfile.TemporaryDirectory() as name, _server(Path(name)) as (local, pid, port):
        identity = local.identity_folder(Role.RESEARCHER, "rosa")
        with Rounds(local.study_path, identity=identity, name="rosa") as rounds:
            spec = rounds.open("value", epsilon="1", rates={"everyone": "1"}, populations={"everyone": enrolled})
            database, tokens = _database_size(local), [new_token() for _ in range(enrolled)]
            before = cpu_seconds(pid)
            rounds.enrol(spec.round_id, "everyone", tokens)
            enrol = cpu_seconds(pid) - before
            requests = [
                report_to_proto(spec.round_id, token, "everyone", spec.randomiser.randomise(0, SystemSource()))
                for token in tokens[: count + _WARM]
            ]
            taken = asyncio.run(_taken(local, pid, way, port, requests))
            rounds.close_round(spec.round_id)
        token_bytes = (_database_size(local) - database) / enrolled
    return ReportCosts(
        report=1e6 * taken.cpu,
        received=taken.received,
        sent=taken.sent,
        enrol=1e6 * enrol / enrolled,
        token_bytes=token_bytes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taken:
    """What a report took: CPU seconds of the server, bytes on the link to it and from it."""

    cpu: float
    received: float
    sent: float


@contextmanager
def _server(folder: Path) -> Iterator[tuple[LocalStudy, int, int]]:
    """Run a server; return its study, its process and its port for HTTPS."""
    (port,) = free_ports(1)
    local = prepare(CollectionOptions(out=folder / "round", domain=100, epsilon=Decimal(4)))
    local.options[_SERVER] = ("--http", f"localhost:{port}")
    with local:
        pid = local.start(*_SERVER)
        local.wait_for(*_SERVER)
        yield local, pid, port


def _database_size(local: LocalStudy) -> int:
    return sum(path.stat().st_size for path in local.state_folder(*_SERVER).glob("collection.sqlite*"))


async def _taken(local: LocalStudy, pid: int, way: Way, port: int, reports: Sequence[ReportRequest]) -> _Taken:
    """Submit reports, and return what one took."""
    endpoint = f"localhost:{port}" if way.is_https else local.study.server.endpoint
    async with relayed(endpoint) as relay, _sender(local, way, relay.port) as send:
        await _send_all(send, reports[:_WARM])
        await asyncio.sleep(SETTLED_SECONDS)
        cpu, received, sent = cpu_seconds(pid), relay.received, relay.sent
        await _send_all(send, reports[_WARM:])
        await asyncio.sleep(SETTLED_SECONDS)
        count = len(reports) - _WARM
        return _Taken(
            cpu=(cpu_seconds(pid) - cpu) / count,
            received=(relay.received - received) / count,
            sent=(relay.sent - sent) / count,
        )


async def _send_all(send: Send, reports: Sequence[ReportRequest]) -> None:
    rest = iter(reports)

    async def work() -> None:
        for report in rest:
            await send(report)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(_UNDER_WAY):
            tasks.create_task(work())


@asynccontextmanager
async def _sender(local: LocalStudy, way: Way, port: int) -> AsyncIterator[Send]:
    """Return what submits a report to a port of this machine."""
    if way.is_https:
        async with _https_sender(local, port, kept=way is Way.HTTPS_KEPT) as send:
            yield send
        return
    identity, peer, endpoint = node_identity(local), server_of(local.study), f"localhost:{port}"
    async with connect_alone(identity, peer, endpoint) as kept:

        async def send(report: ReportRequest) -> None:
            if way is Way.GRPC_KEPT:
                await call(CollectionServiceStub(kept).Report, report, peer=peer)
                return
            async with connect_alone(identity, peer, endpoint) as own:
                await call(CollectionServiceStub(own).Report, report, peer=peer)

        yield send


def node_identity(local: LocalStudy) -> Identity:
    """Return what the nodes of a study on this machine show."""
    return load_identity(local.identity_folder(Role.NODE, "fleet"), Role.NODE, "fleet")


def connect_alone(identity: Identity, peer: Party, endpoint: str) -> grpc.aio.Channel:
    """Return a channel with a connection of its own, and no settings but gRPC's, as another program's node has it.

    Args:
        identity: of the node.
        peer: the server.
        endpoint: "host:port".
    """
    credentials = grpc.ssl_channel_credentials(identity.authority, identity.key, identity.certificate)
    # Channels would otherwise share one connection.
    options = [("grpc.ssl_target_name_override", peer.dns_name), ("grpc.use_local_subchannel_pool", 1)]
    return grpc.aio.secure_channel(endpoint, credentials, options)


@asynccontextmanager
async def _https_sender(local: LocalStudy, port: int, *, kept: bool) -> AsyncIterator[Send]:
    tls = ssl.create_default_context(cafile=str(local.identity_folder(*_SERVER) / "ca.pem"))
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def send(report: ReportRequest) -> None:
        connection = idle.pop() if idle else await asyncio.open_connection("localhost", port, ssl=tls)
        reader, writer = connection
        writer.write(https_request(report))
        answer = await reader.readuntil(b"}")
        if not answer.startswith(b"HTTP/1.1 200"):
            raise UnavailableError("the server took no report", where="server")
        if kept:
            idle.append(connection)
            return
        writer.close()
        await writer.wait_closed()

    yield send
    for _, writer in idle:
        writer.close()


def https_request(report: ReportRequest) -> bytes:
    """Return the HTTP request that submits a report."""
    body = report_to_json(report.token, report.stratum, report_from_proto(report))
    path = f"/v1/rounds/{report.round_id}/reports"
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
