import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import closing, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.conftest import refuses, request_with, spec_with
from veiltab.common.errors import FailedReleaseError
from veiltab.common.rpc.peer import ASK_SECONDS
from veiltab.common.study.file import Study
from veiltab.researcher.parties import parties
from veiltab.researcher.parties.parties import ColumnDigests, PartyLinks
from veiltab.researcher.records.store import ResearcherStore
from veiltab.v1 import curator_pb2


class Server:
    """A server that streams a column."""

    stub = SimpleNamespace(FetchColumn=None)

    async def stream(self, _method: object, _request: object, total: int) -> AsyncIterator[bytes]:
        yield bytes(total)


class Curator:
    """A curator that answers what the researcher's service proposes, and says how it stands there or nothing."""

    def __init__(self, *, says_how: bool) -> None:
        self.says_how = says_how
        self.stub = SimpleNamespace(ProposeRelease="propose")
        self.asked: list[tuple[str, int]] = []

    async def ask(self, method: str, request: Any, *, within: float, once: bool) -> Any:  # noqa: ANN401 - of any kind
        assert (within, once) == (ASK_SECONDS + 0.5, True)
        self.asked.append((method, request.wait_milliseconds))
        assert (request.witnessed.length, request.witnessed.head) == (2, b"h" * 32)
        proposal = curator_pb2.GetProposalResponse(waiting_for="a person decides")
        return curator_pb2.ProposeReleaseResponse(proposal=proposal if self.says_how else None)


@pytest.mark.parametrize("says_how", [False, True])
def test_a_request_is_proposed_and_asked_about_in_one_question(study: Study, tmp_path: Path, *, says_how: bool) -> None:
    links, curator = object.__new__(PartyLinks), Curator(says_how=says_how)
    links._study, links.curators = study, {"alice": cast("Any", curator)}
    links._witnessed = {"alice": (2, b"h" * 32)}.__getitem__
    with closing(ResearcherStore(tmp_path, study)) as store:
        stored, _ = store.start(request_with(), "", 100)
    answer = asyncio.run(links.ask_curator("alice", stored, 0.5, is_first=True))
    assert answer.waiting_for == ("a person decides" if says_how else "")
    assert curator.asked == [("propose", 500)]


@pytest.mark.parametrize(
    ("keys", "is_taken"),
    [
        ({"sex": bytes(32)}, True),
        ({"sex": bytes(32), "age": bytes(32)}, True),
        ({}, False),
        ({"sex": bytes(31)}, False),
        ({"sex": bytes(32), "salary": bytes(32)}, False),
    ],
)
def test_keys_are_those_of_columns_that_were_asked_for(keys: dict[str, bytes], *, is_taken: bool) -> None:
    async def ask(_method: object, request: curator_pb2.GetKeysRequest, *, once: bool) -> curator_pb2.GetKeysResponse:
        assert once
        assert {name: (one.published, one.canaries) for name, one in request.columns.items()} == {
            "sex": (b"p", b"c"),
            "age": (b"p", b"c"),
        }
        return curator_pb2.GetKeysResponse(keys=keys)

    links, held = object.__new__(PartyLinks), ColumnDigests(published=b"p", canaries=b"c")
    links.curators = {"alice": cast("Any", SimpleNamespace(stub=SimpleNamespace(GetKeys=None), ask=ask))}
    with nullcontext() if is_taken else refuses(FailedReleaseError, where="curator alice"):
        assert asyncio.run(links.fetch_keys(spec_with(), "alice", dict.fromkeys(("sex", "age"), held))) == keys


@pytest.mark.parametrize("excess", [0, 1])
def test_a_column_that_is_kept_after_a_restart_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, excess: int
) -> None:
    synced, fsync = list[int](), os.fsync

    def recorded(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_size)
        fsync(descriptor)

    monkeypatch.setattr("veiltab.common.storage.files.os.fsync", recorded)
    spec = spec_with()
    length = spec.columns[0].byte_length(spec.published_rows)
    monkeypatch.setattr(parties, "LONGEST_UNSYNCED", length - excess)
    links = object.__new__(PartyLinks)
    links._server = cast("Any", Server())
    asyncio.run(links.fetch_column(spec, spec.columns[0], tmp_path / "column"))
    assert (tmp_path / "column").stat().st_size == length
    assert (length in synced) is bool(excess)
