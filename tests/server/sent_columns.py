"""Columns that tests send to the server."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from veiltab.common.release.table_spec import TableSpec
from veiltab.common.study.file import Study
from veiltab.server.records.session import Session
from veiltab.server.records.store import ServerStore
from veiltab.server.release.receiving import Announced
from veiltab.server.release.releases import Releases

Make = Callable[..., Any]


ID = "0" * 31 + "1"


DATA = {"sex": bytes(400), "salary": bytes([1] * 400)}


OWNERS = {"sex": "alice", "salary": "bob"}


@pytest.fixture(name="releases")
def releases_fixture(study: Study, store: ServerStore) -> Releases:
    return Releases(study, store, retention_days=1)


async def pieces(
    data: bytes, offset: int = 0, length: int = 64, event: Callable[[], Any] | None = None
) -> AsyncIterator[tuple[int, bytes]]:
    for start in range(offset, len(data), length):
        await (asyncio.sleep(0) if event is None or start != 200 else event())
        yield start, data[start : start + length]


async def send(
    releases: Releases, spec: TableSpec, attribute: str, data: bytes | None = None, stop: int | None = None
) -> tuple[int, bool]:
    """Announce a release and send one column, or its beginning, as its owner does."""
    whole = DATA[attribute] if data is None else data
    session, received = releases.open_release(spec, OWNERS[attribute])
    return await releases.upload(announced(session, attribute, whole), pieces(whole[:stop], received[attribute]))


def announced(session: Session, attribute: str, data: bytes) -> Announced:
    return Announced(
        curator=OWNERS[attribute],
        release_id=session.spec.release_id,
        attribute=attribute,
        spec_digest=session.spec.digest(),
        column_digest=hashlib.sha256(data).digest(),
        noise_digest=session.noise_digest,
    )


async def settled(releases: Releases) -> None:
    while releases._perturbing:
        await asyncio.gather(*releases._perturbing.values(), return_exceptions=True)


def run(work: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - whatever it returns
    return asyncio.run(work)


def whole(attribute: str, data: bytes | None = None) -> dict[str, tuple[bytes, bytes]]:
    """Return a column and its digest, by its name."""
    column = DATA[attribute] if data is None else data
    return {attribute: (column, hashlib.sha256(column).digest())}


async def started(releases: Releases, seconds: float = 0.3) -> None:
    """Let a server process run for a moment."""
    running = asyncio.create_task(releases.run())
    await asyncio.sleep(seconds)
    await settled(releases)
    running.cancel()
