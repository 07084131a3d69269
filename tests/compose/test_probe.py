import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compose.probe import greet, ports
from veiltab.common.rpc.parties.identity import Party, Role, load_identity
from veiltab.common.rpc.server import build_server
from veiltab.common.study.file import Study
from veiltab.deploy.pki.certificates import init_pki


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_an_open_port_and_why_others_are_closed(listener: int) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        targets = [f"127.0.0.1:{listener}", f"127.0.0.1:{unused.getsockname()[1]}", "nobody.invalid:1"]
        assert list(ports(targets).values()) == ["open", "ECONNREFUSED", "no such name"]


def test_only_a_certificate_is_answered(tmp_path: Path, study: Study) -> None:
    folders = init_pki(study, tmp_path / "pki")
    server, rosa = (
        Party(study=study.id, role=r, name=n) for r, n in ((Role.SERVER, "cloud"), (Role.RESEARCHER, "rosa"))
    )
    identity = load_identity(folders[server], Role.SERVER, "cloud")

    async def scenario() -> tuple[dict[str, str], dict[str, str]]:
        async with build_server(identity, [rosa], [], "127.0.0.1:0") as running:
            target = [f"127.0.0.1:{running.port}"]
            known = await asyncio.to_thread(greet, str(folders[rosa]), target)
            return known, await asyncio.to_thread(greet, "none", target)

    known, unknown = asyncio.run(scenario())
    assert set(known.values()) == {"answers"}
    (refusal,) = unknown.values()
    assert refusal in {"closed", "ECONNRESET"} or refusal.startswith("TLS")
