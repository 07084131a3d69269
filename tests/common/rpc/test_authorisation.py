""""""

import asyncio
import importlib
import pkgutil
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from google.protobuf import descriptor_pb2, descriptor_pool, empty_pb2
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

import veiltab.v1
from tests.common.rpc.called_services import PEERS, Identities, answering, ask, called, raw, registered, who
from tests.worlds.parties import BOB, CLOUD, RITA
from veiltab.common.errors import DeniedError, InvalidInputError, UnavailableError
from veiltab.common.rpc.authorisation import Handler, caller, declared_roles
from veiltab.common.rpc.channel import connect
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.rpc.parties.revocation import FILE
from veiltab.common.rpc.server import build_server
from veiltab.common.rpc.statuses import error_from_rpc
from veiltab.deploy.pki.authority import Authority, names_of, new_authority
from veiltab.v1 import access_pb2, curator_pb2

CALLERS = {
    "CuratorService": {Role.RESEARCHER},
    "CuratorPeerService": {Role.CURATOR},
    "IngestService": {Role.CURATOR},
    "ReleaseService": {Role.RESEARCHER},
    "ResearcherService": {Role.RESEARCHER, Role.ANALYST},
    "ResearcherService.StartRelease": {Role.RESEARCHER},
    "ResearcherService.FetchCertificate": {Role.RESEARCHER},
    "ResearcherService.ListAccesses": {Role.RESEARCHER},
    "CollectionService": {Role.RESEARCHER},
    "CollectionService.Report": {Role.NODE},
    "CollectionService.GetRound": {Role.NODE, Role.RESEARCHER},
    "StatusService": {Role.CURATOR, Role.SERVER, Role.RESEARCHER},
}
"""Who may call each service, or one RPC of it, from the design and not from the descriptors."""


def all_methods() -> list[MethodDescriptor]:
    modules = [name for _, name, _ in pkgutil.iter_modules(veiltab.v1.__path__) if name.endswith("_pb2")]
    files = [importlib.import_module(f"veiltab.v1.{name}").DESCRIPTOR for name in modules]
    return [method for file in files for service in file.services_by_name.values() for method in service.methods]


METHODS = all_methods()


def callers_of(method: MethodDescriptor) -> set[Role]:
    service = method.containing_service.name
    return CALLERS.get(f"{service}.{method.name}", CALLERS[service])


def path_of(method: MethodDescriptor) -> str:
    return f"/{method.containing_service.full_name}/{method.name}"


def handler_of(method: MethodDescriptor) -> Handler:
    """A handler of the right kind that answers with empty messages."""
    request, response = GetMessageClass(method.input_type), GetMessageClass(method.output_type)

    async def one(_request: object, _context: object) -> object:
        return response()

    async def many(_request: object, _context: object) -> AsyncIterator[object]:
        yield response()
        yield response()

    behaviour = many if method.server_streaming else one
    handler: Handler = getattr(grpc, f"{kind_of(method)}_rpc_method_handler")(
        behaviour, request.FromString, response.SerializeToString
    )
    return handler


def kind_of(method: MethodDescriptor) -> str:
    """Return the kind of a method as gRPC names it, such as "unary_stream"."""
    return "_".join("stream" if one else "unary" for one in (method.client_streaming, method.server_streaming))


async def outcome(method: MethodDescriptor, channel: grpc.aio.Channel) -> grpc.StatusCode:
    """Call any kind of method and return how it ended."""
    request = GetMessageClass(method.input_type)().SerializeToString()
    call = getattr(raw(channel), kind_of(method))(path_of(method))(
        iter([request]) if method.client_streaming else request, timeout=5.0
    )
    if method.server_streaming:
        with suppress(grpc.aio.AioRpcError):
            async for _ in call:
                pass
    code: grpc.StatusCode = await call.code()
    return code


def test_declared_roles_are_those_of_the_design() -> None:
    services = {method.containing_service.name for method in METHODS}
    methods = {f"{method.containing_service.name}.{method.name}" for method in METHODS}
    assert services <= set(CALLERS) <= services | methods
    for method in METHODS:
        assert declared_roles(path_of(method)) == callers_of(method), path_of(method)


async def test_every_role_on_every_rpc(identity_of: Identities) -> None:
    services = [registered(path_of(method), handler_of(method)) for method in METHODS]
    async with build_server(identity_of(BOB), PEERS, services, "localhost:0") as server:
        for peer in [*PEERS, BOB]:
            async with connect(identity_of(peer), BOB, f"localhost:{server.port}") as channel:
                for method in METHODS:
                    code = await outcome(method, channel)
                    for _ in range(5 if method.client_streaming else 0):
                        # A write that fails after the refusal hides it in grpc.aio (grpc/grpc, issue 36066).
                        if code is grpc.StatusCode.INTERNAL:
                            code = await outcome(method, channel)
                    # A party is not its own peer, and its status is for it alone.
                    own = method.containing_service.name == "StatusService"
                    admitted = peer.role in callers_of(method) and (peer == BOB) == own
                    expected = grpc.StatusCode.OK if admitted else grpc.StatusCode.PERMISSION_DENIED
                    assert code is expected, (peer.uri, path_of(method))


async def test_health_is_open_to_every_role_and_says_serving(identity_of: Identities) -> None:
    async with build_server(identity_of(BOB), PEERS, [], "localhost:0") as server:
        for peer in PEERS:
            async with connect(identity_of(peer), BOB, f"localhost:{server.port}") as channel:
                health: Any = HealthStub(channel)
                answer = await health.Check(HealthCheckRequest(), timeout=5.0)
                assert answer.status == HealthCheckResponse.SERVING
                watch = health.Watch(HealthCheckRequest(), timeout=5.0)
                assert (await watch.read()).status == HealthCheckResponse.SERVING
                watch.cancel()


async def test_health_is_closed_to_a_stranger(identity_of: Identities) -> None:
    async with called(identity_of, [], peers=PEERS) as channel:
        health: Any = HealthStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await health.Check(HealthCheckRequest(), timeout=5.0)
        assert refusal.value.code() is grpc.StatusCode.PERMISSION_DENIED


class Connection:
    """A context that knows nothing but the certificates shown on its connection."""

    def __init__(self, *pems: bytes) -> None:
        self._pems = pems

    def auth_context(self) -> dict[str, tuple[bytes, ...]]:
        return {"x509_pem_cert": self._pems} if self._pems else {}


def test_a_connection_shows_exactly_one_certificate(identity_of: Identities) -> None:
    pem = identity_of(RITA).certificate
    shown: list[Any] = [Connection(), Connection(pem, identity_of(BOB).certificate)]
    for connection in shown:
        with pytest.raises(DeniedError, match="shows no certificate"):
            caller(connection)
    alone: Any = Connection(pem)
    assert caller(alone) == RITA


def undeclared_service() -> str:
    """Make a service whose first RPC names no callers and whose second names role 0 only."""
    file = descriptor_pb2.FileDescriptorProto(name="undeclared.proto", package="undeclared", syntax="proto3")
    file.dependency.append("google/protobuf/empty.proto")
    service = file.service.add(name="Open")
    for name in ("Silent", "Unspecified"):
        service.method.add(name=name, input_type=".google.protobuf.Empty", output_type=".google.protobuf.Empty")
    options: Any = service.method[1].options
    options.Extensions[access_pb2.callers].append(access_pb2.ROLE_UNSPECIFIED)
    assert empty_pb2.DESCRIPTOR is not None
    descriptor_pool.Default().Add(file)
    return "/undeclared.Open"


async def test_an_rpc_without_declared_callers_is_refused_to_everyone(identity_of: Identities) -> None:
    service = undeclared_service()
    paths = [f"{service}/Silent", f"{service}/Unspecified", "/no.descriptor.Service/Call"]
    services = [registration for path in paths for registration in answering(who, path)]
    async with build_server(identity_of(BOB), PEERS, services, "localhost:0") as server:
        for peer in PEERS:
            async with connect(identity_of(peer), BOB, f"localhost:{server.port}") as channel:
                for path in paths:
                    with pytest.raises(DeniedError, match="declares no callers"):
                        await ask(channel, path)
                with pytest.raises(InvalidInputError, match="does not know this call"):
                    await ask(channel, "/veiltab.v1.CuratorService/Nonsense")


OTHER_STUDY = Party(study="another", role=Role.RESEARCHER, name="rita")


MALLORY = Party(study="survey", role=Role.RESEARCHER, name="mallory")


def uri(text: str) -> x509.GeneralName:
    return x509.UniformResourceIdentifier(text)


CERTIFIED_BUT_REFUSED: dict[str, tuple[list[x509.GeneralName], str]] = {
    "another study": ([uri(OTHER_STUDY.uri)], "of another study"),
    "another role": ([uri(CLOUD.uri)], "a server may not call"),
    "a name the study lacks": ([uri(MALLORY.uri)], "not among the parties"),
    "two parties": ([uri(RITA.uri), uri(MALLORY.uri)], "carries 2 URIs"),
    "a second URI": ([uri(RITA.uri), uri("https://example.org")], "carries 2 URIs"),
    "no URI": ([x509.DNSName(RITA.dns_name)], "carries 0 URIs"),
    "another scheme": ([uri("https://survey/researcher/rita")], "does not read"),
}


def channel_with(server_authority: Authority, port: int, key: bytes | None, chain: bytes | None) -> grpc.aio.Channel:
    """A channel that shows whatever it is given, without the checks of `connect`."""
    root = server_authority.certificate.public_bytes(Encoding.PEM)
    options = [("grpc.ssl_target_name_override", BOB.dns_name)]
    return grpc.aio.secure_channel(f"localhost:{port}", grpc.ssl_channel_credentials(root, key, chain), options=options)


@pytest.mark.parametrize("case", CERTIFIED_BUT_REFUSED)
async def test_a_certificate_of_the_authority_is_not_enough(
    case: str, authority: Authority, identity_of: Identities
) -> None:
    names, told = CERTIFIED_BUT_REFUSED[case]
    now = datetime.now(UTC)
    issued = authority.issue("case", names, now - timedelta(1), now + timedelta(1))
    async with (
        build_server(identity_of(BOB), [RITA, CLOUD, OTHER_STUDY], answering(who), "localhost:0") as server,
        channel_with(authority, server.port, issued.key_pem, issued.certificate_pem) as channel,
    ):
        with pytest.raises(DeniedError, match=told):
            await ask(channel)


def issued_by(authority: Authority, since: int, until: int) -> tuple[bytes, bytes]:
    now = datetime.now(UTC)
    names = names_of(RITA, "localhost:1")
    issued = authority.issue("case", names, now + timedelta(days=since), now + timedelta(days=until))
    return issued.key_pem, issued.certificate_pem


async def test_tls_refuses_what_the_authority_does_not_vouch_for_now(
    authority: Authority, identity_of: Identities
) -> None:
    now = datetime.now(UTC)
    rogue = new_authority("survey", since=now - timedelta(1), until=now + timedelta(1))
    shown: dict[str, tuple[bytes | None, bytes | None]] = {
        "good": issued_by(authority, -1, 1),
        "rogue authority": issued_by(rogue, -1, 1),
        "expired": issued_by(authority, -2, -1),
        "not yet valid": issued_by(authority, 1, 2),
        "no certificate": (None, None),
    }
    async with build_server(identity_of(BOB), [RITA], answering(who), "localhost:0") as server:
        for case, (key, chain) in shown.items():
            async with channel_with(authority, server.port, key, chain) as channel:
                if case == "good":
                    assert await ask(channel) == RITA.uri
                    continue
                with pytest.raises(UnavailableError, match="no connection"):
                    await ask(channel)


@pytest.mark.parametrize(("minutes", "told"), [(25 * 60, "expired"), (-1, "valid only from")])
async def test_an_open_connection_does_not_outlive_its_certificate(
    minutes: int, told: str, identity_of: Identities
) -> None:
    identity = identity_of(RITA)
    now = identity.certificate_facts.not_before + timedelta(seconds=1)
    async with (
        build_server(identity_of(BOB), [RITA], answering(who), "localhost:0", clock=lambda: now) as server,
        connect(identity, BOB, f"localhost:{server.port}") as channel,
    ):
        assert await ask(channel) == RITA.uri
        now += timedelta(minutes=minutes)
        with pytest.raises(DeniedError, match=told):
            await ask(channel)


async def test_a_stream_does_not_outlive_the_certificate_of_its_caller(
    authority: Authority, identity_of: Identities, tmp_path: Path
) -> None:
    """It may expire or be revoked: either ends the stream before its next message."""
    identity, fetch = identity_of(RITA), "/veiltab.v1.CuratorService/FetchPad"
    now = identity.certificate_facts.not_before + timedelta(seconds=1)
    crl = tmp_path / FILE
    own = replace(identity_of(BOB), folder=tmp_path)
    more = asyncio.Queue[int]()

    async def asked_for(_request: object, _context: object) -> AsyncIterator[curator_pb2.FetchPadResponse]:
        while True:
            yield curator_pb2.FetchPadResponse(total=await more.get())

    handler = grpc.unary_stream_rpc_method_handler(
        asked_for, curator_pb2.FetchPadRequest.FromString, curator_pb2.FetchPadResponse.SerializeToString
    )

    async def told(end: Callable[[], object]) -> str:
        call = raw(channel).unary_stream(fetch, None, curator_pb2.FetchPadResponse.FromString)(b"", timeout=5.0)
        for total in (1, 2):
            more.put_nowait(total)
            assert (await call.read()).total == total
        end()
        more.put_nowait(3)
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await call.read()
        return str(error_from_rpc(refusal.value, "bob"))

    def expire() -> None:
        nonlocal now
        now += timedelta(days=1000)

    def revoke() -> None:
        crl.write_bytes(
            authority.revocation_list([], [identity.certificate_facts.serial], now).public_bytes(Encoding.PEM)
        )

    async with (
        build_server(own, [RITA], [registered(fetch, handler)], "localhost:0", clock=lambda: now) as server,
        connect(identity, BOB, f"localhost:{server.port}") as channel,
    ):
        before = now
        assert "expired" in await told(expire)
        now = before
        assert "revoked" in await told(revoke)


async def test_refusals_of_one_caller_and_reason_fill_no_log(
    identity_of: Identities, caplog: pytest.LogCaptureFixture
) -> None:
    path = f"{undeclared_service()}/Silent"
    async with build_server(identity_of(BOB), PEERS, answering(who, path), "localhost:0") as server:
        for peer in PEERS:
            async with connect(identity_of(peer), BOB, f"localhost:{server.port}") as channel:
                for _ in range(20):
                    with pytest.raises(DeniedError):
                        await ask(channel, path)
    lines = [record.getMessage() for record in caplog.records if "refused to" in record.getMessage()]
    assert len(PEERS) <= len(lines) < 3 * len(PEERS)
    assert all(any(peer.uri in line for line in lines) for peer in PEERS)
