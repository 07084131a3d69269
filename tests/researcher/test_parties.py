import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from veiltab.researcher import parties
from veiltab.researcher.parties import PartyLinks

Make = Callable[..., Any]


class Server:
    """A server that streams a column."""

    stub = SimpleNamespace(FetchColumn=None)

    async def stream(self, _method: object, _request: object, total: int) -> AsyncIterator[bytes]:
        yield bytes(total)


@pytest.mark.parametrize("excess", [0, 1])
def test_a_column_that_is_kept_after_a_restart_is_synced(
    make_spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, excess: int
) -> None:
    synced, fsync = list[int](), os.fsync

    def recorded(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_size)
        fsync(descriptor)

    monkeypatch.setattr("veiltab.common.storage.files.os.fsync", recorded)
    spec = make_spec()
    length = spec.columns[0].byte_length(spec.published_rows)
    monkeypatch.setattr(parties, "LONGEST_UNSYNCED", length - excess)
    links = object.__new__(PartyLinks)
    links._server = cast("Any", Server())
    asyncio.run(links.fetch_column(spec, spec.columns[0], tmp_path / "column"))
    assert (tmp_path / "column").stat().st_size == length
    assert (length in synced) is bool(excess)
