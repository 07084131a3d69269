"""Every role at every RPC of every running party, and certificates whose time is over."""

import asyncio
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor

from tests.protocol.wire import Published, answer, connection
from tests.protocol.world import ALICE, ANA, ARI, BOB, CLOUD, RITA, ROSA, Who, World
from veiltab.common.errors import DeniedError, InvalidInputError, NotFoundError, UnavailableError
from veiltab.common.rpc.authorisation import declared_roles
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.rpc.statuses import error_from_rpc
from veiltab.deploy.pki.certificates import init_pki, issue_party
from veiltab.v1 import curator_pb2, curator_peer_pb2, ingest_pb2, researcher_pb2, server_release_pb2

HOSTED = {BOB: (curator_pb2, curator_peer_pb2), CLOUD: (ingest_pb2, server_release_pb2), RITA: (researcher_pb2,)}
CALLERS = (ALICE, BOB, CLOUD, ROSA, RITA, ANA, ARI)


def methods_at(host: Who) -> list[MethodDescriptor]:
    """Return all RPCs that a party serves."""
    services = [service for module in HOSTED[host] for service in module.DESCRIPTOR.services_by_name.values()]
    return [method for service in services for method in service.methods]


def path_of(method: MethodDescriptor) -> str:
    return f"/{method.containing_service.full_name}/{method.name}"


async def refusal(channel: grpc.aio.Channel, path: str) -> str:
    """Call an RPC with an empty request, whatever streams it has; return its refusal, if it is refused."""
    raw: Any = channel
    try:
        async for _ in raw.unary_stream(path)(b"", timeout=10):
            pass
    except grpc.aio.AioRpcError as error:
        return str(error_from_rpc(error, "the peer"))
    return ""


def may_call(caller: Who, host: Who, method: MethodDescriptor) -> bool:
    """Whether an RPC is for this caller: Rita's service is for her and her analyst, and no curator is its own peer."""
    if caller[0] not in declared_roles(path_of(method)):
        return False
    return caller in {RITA, ARI} if host == RITA else caller != host


@pytest.mark.parametrize("host", list(HOSTED), ids=lambda host: host[1])
async def test_every_role_at_every_rpc(village: World, host: Who) -> None:
    said = {}
    for caller in CALLERS:
        async with connection(village, caller, host) as channel:
            for method in methods_at(host):
                said[caller[1], path_of(method)] = await refusal(channel, path_of(method))
    for caller in CALLERS:
        for method in methods_at(host):
            stopped = any(
                words in said[caller[1], path_of(method)]
                for words in (
                    f"{caller[0].with_article} may not call this RPC",
                    "not among the parties that may call here",
                )
            )
            assert stopped != may_call(caller, host, method), (
                caller,
                path_of(method),
                said[caller[1], path_of(method)],
            )
    assert len(said) == len(CALLERS) * len(methods_at(host))


async def test_a_certificate_of_another_authority_gets_no_connection(village: World, tmp_path: Path) -> None:
    init_pki(village.local.study, tmp_path / "pki")
    async with connection(village, ROSA, CLOUD, tmp_path / "pki" / "researcher-rosa") as channel:
        with pytest.raises(UnavailableError, match="no connection"):
            await Published.on(channel).state("0" * 32)


@pytest.mark.long
async def test_a_certificate_that_expires_on_an_open_connection_is_refused_at_the_next_call(
    village: World, tmp_path: Path
) -> None:
    shutil.copytree(village.local.folder / "pki", tmp_path / "pki")
    rosa = Party(study=village.local.study.id, role=Role.RESEARCHER, name="rosa")
    folder = issue_party(village.local.study, tmp_path / "pki", rosa, lifetime=timedelta(seconds=10))
    async with connection(village, ROSA, CLOUD, folder) as channel:
        server = Published.on(channel)
        with pytest.raises(NotFoundError):
            await server.state("0" * 32)
        await asyncio.sleep(11)
        with pytest.raises(DeniedError, match="certificate of researcher rosa expired on"):
            await server.state("0" * 32)


async def test_a_call_without_a_deadline_is_refused(village: World) -> None:
    async with connection(village, ROSA, CLOUD) as channel:
        request = server_release_pb2.GetReleaseRequest(release_id="0" * 32)
        with pytest.raises(InvalidInputError, match="the call has no deadline"):
            await answer(Published.on(channel).stub.GetRelease(request))
