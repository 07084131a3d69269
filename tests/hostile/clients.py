"""Callers that share no code with the product: the protocol compiled anew, raw calls, and servers that say anything.

The messages come from the .proto files alone, in a descriptor pool of their own, and travel over mutual TLS with the
certificates of a test's study. What such a caller can do, any party of a study can do.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.protocol.world import Who
from veiltab.common.rpc.parties.identity import Party
from veiltab.play.local.processes import LocalStudy

PROTOS = Path(__file__).parents[2] / "protos"
PACKAGE = "veiltab.v1"
SECONDS = 20.0

Message: TypeAlias = Any
"""A message of a class that is made here."""


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    """Compile the protocol into a pool of its own."""
    pool = descriptor_pool.DescriptorPool()
    with tempfile.TemporaryDirectory() as folder:
        compiled = Path(folder) / "protocol.bin"
        files = [str(path.relative_to(PROTOS)) for path in sorted(PROTOS.glob("veiltab/v1/*.proto"))]
        options = [f"-I{PROTOS}", f"--descriptor_set_out={compiled}", "--include_imports"]
        subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *options, *files], check=True)
        described = descriptor_pb2.FileDescriptorSet.FromString(compiled.read_bytes())
    for file in described.file:
        pool.Add(file)
    return pool


@cache
def kind(name: str) -> Any:  # noqa: ANN401 - a class that is made here
    """Return the class of a message, as in kind("OpenReleaseRequest")."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{PACKAGE}.{name}"))


def message(name: str, /, **fields: object) -> Message:
    """Return a message, as in message("HelloRequest", study_digest="...")."""
    return kind(name)(**fields)


def number_of(enum: str, value: str) -> int:
    found: int = _pool().FindEnumTypeByName(f"{PACKAGE}.{enum}").values_by_name[value].number
    return found


def _method(path: str) -> Any:  # noqa: ANN401 - a descriptor
    service, name = path.split("/")
    return _pool().FindServiceByName(f"{PACKAGE}.{service}").methods_by_name[name]


def call(channel: grpc.aio.Channel, path: str) -> Any:  # noqa: ANN401 - one of gRPC's four kinds
    """Return what calls an RPC, as in call(channel, "IngestService/OpenRelease")(request, timeout=5)."""
    method = _method(path)
    kinds = {
        (False, False): channel.unary_unary,
        (False, True): channel.unary_stream,
        (True, False): channel.stream_unary,
        (True, True): channel.stream_stream,
    }
    return kinds[method.client_streaming, method.server_streaming](
        f"/{PACKAGE}.{path}",
        request_serializer=kind(method.input_type.name).SerializeToString,
        response_deserializer=kind(method.output_type.name).FromString,
    )


def unsent(channel: grpc.aio.Channel, path: str, timeout: float) -> grpc.aio.StreamUnaryCall[Any, Any]:
    """Begin a call and send no message on it."""
    method: grpc.aio.StreamUnaryMultiCallable[Any, Any] = channel.stream_unary(f"/{PACKAGE}.{path}")
    return method(timeout=timeout)


def _pems(folder: Path) -> tuple[bytes, bytes, bytes]:
    """Return a party's private key, its certificate and its authorities' certificates."""
    stem = folder.name.partition("-")[2]
    names = (f"{stem}.key", f"{stem}.pem", "ca.pem")
    key, certificate, authority = ((folder / name).read_bytes() for name in names)
    return key, certificate, authority


@asynccontextmanager
async def connection(local: LocalStudy, caller: Who, peer: Who, **options: Any) -> AsyncIterator[grpc.aio.Channel]:  # noqa: ANN401 - gRPC's
    """Connect with a party's certificate to another party; every connection is one of its own."""
    key, certificate, authority = _pems(local.identity_folder(*caller))
    credentials = grpc.ssl_channel_credentials(authority, key, certificate)
    name = Party(study=local.study.id, role=peer[0], name=peer[1]).dns_name
    given = {"grpc.ssl_target_name_override": name, "grpc.use_local_subchannel_pool": 1, **options}
    channel = grpc.aio.secure_channel(local.endpoint(*peer), credentials, options=list(given.items()))
    try:
        yield channel
    finally:
        await channel.close()


async def code_of(answer: Awaitable[object]) -> grpc.StatusCode:
    try:
        await answer
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


Behaviour = Callable[[Any, Any], Any]


class _Says(grpc.GenericRpcHandler):
    """Answers RPCs by a table of behaviours."""

    def __init__(self, behaviours: Mapping[str, Behaviour]) -> None:
        self._behaviours = {f"/{PACKAGE}.{path}": (path, behaviour) for path, behaviour in behaviours.items()}

    def service(self, details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any] | None":
        if details.method not in self._behaviours:
            return None
        path, behaviour = self._behaviours[details.method]
        method = _method(path)
        wrapped = {
            (False, False): grpc.unary_unary_rpc_method_handler,
            (False, True): grpc.unary_stream_rpc_method_handler,
            (True, False): grpc.stream_unary_rpc_method_handler,
            (True, True): grpc.stream_stream_rpc_method_handler,
        }[method.client_streaming, method.server_streaming]
        return wrapped(
            behaviour,
            request_deserializer=kind(method.input_type.name).FromString,
            response_serializer=kind(method.output_type.name).SerializeToString,
        )


@asynccontextmanager
async def impostor(local: LocalStudy, party: Who, behaviours: Mapping[str, Behaviour]) -> AsyncIterator[None]:
    """Serve in a party's place, with its certificate, and say whatever the behaviours say."""
    key, certificate, authority = _pems(local.identity_folder(*party))
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_Says(behaviours),))
    credentials = grpc.ssl_server_credentials([(key, certificate)], authority, require_client_auth=True)
    server.add_secure_port(local.endpoint(*party), credentials)
    await server.start()
    try:
        yield
    finally:
        await server.stop(0)


def proposal(local: LocalStudy, number: int, **changes: Any) -> Message:  # noqa: ANN401 - fields of a request
    """Return a request for bob's health, which a person must decide on, unless changed."""
    fields: dict[str, Any] = {
        "release_id": f"{number:032x}",
        "attributes": ["health"],
        "epsilon": "1",
        "purpose": "",
        "deadline": int(time.time()) + 86_400,
        "sampling": number_of("SamplingMode", "SAMPLING_MODE_SEED"),
        "pad": number_of("PadKind", "PAD_KIND_CHACHA20"),
        "scheme": number_of("Scheme", "SCHEME_WOR"),
        "noise_split": "0",
    }
    request = message("ReleaseRequest", **(fields | changes))
    return message("ProposeReleaseRequest", study_digest=local.study.digest, request=request)
