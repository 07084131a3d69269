"""The service over HTTP in memory, and a program that asks it with a token."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from tests.researcher.made_client import MadeClient
from veiltab.common.rpc.parties.identity import Role
from veiltab.researcher.api.application import Api
from veiltab.researcher.api.handlers import Handlers
from veiltab.researcher.api.tokens import Scope, Tokens
from veiltab.researcher.client.client import Client

OWN = b"the party's own certificate"


@dataclass
class Program:
    """Asks over HTTP.

    Args:
        api: in memory.
        tokens: of the service.
        made: the client behind the service.
        token: that it sends; "" for none.
        now: the service's clock, Unix seconds.
    """

    api: Api
    tokens: Tokens
    made: MadeClient
    token: str = ""
    now: list[float] = field(default_factory=lambda: [1_900_000_000.0])

    def with_scopes(self, *scopes: Scope, days: float = 30) -> "Program":
        """Take a token of these scopes."""
        self.token = self.tokens.add(f"t{len(self.tokens.all())}", frozenset(scopes), days)[1]
        return self

    def ask(self, path: str, method: str = "GET", **more: Any) -> httpx.Response:  # noqa: ANN401 - of httpx
        """Ask, and see that a refusal is a problem document."""

        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(self.api, raise_app_exceptions=True)
            async with httpx.AsyncClient(transport=transport, base_url="https://desk") as client:
                headers = [("Authorization", f"Bearer {self.token}")] if self.token else []
                return await client.request(
                    method, path, headers=[*headers, *httpx.Headers(more.pop("headers", {})).multi_items()], **more
                )

        answer = asyncio.run(asked())
        assert answer.headers["x-content-type-options"] == "nosniff"
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.status_code == answer.json()["status"] or method == "HEAD"
        return answer


def made_program(folder: Path, role: Role = Role.RESEARCHER, made: MadeClient | None = None) -> Iterator[Program]:
    now = [1_900_000_000.0]
    tokens, made = Tokens(folder, lambda: now[0]), made or MadeClient(role=role)
    api = Api(Handlers(cast("Client", made)).resources, tokens, lambda der: der == OWN)
    yield Program(api=api, tokens=tokens, made=made, now=now)
    tokens.close()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    yield from made_program(tmp_path)


@pytest.fixture
def reader(program: Program) -> Program:
    """A program whose token may read."""
    return program.with_scopes(Scope.READ)
