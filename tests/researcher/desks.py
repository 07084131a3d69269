"""A researcher's service and its client in one process, without a network between them."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from tests.worlds.parties import ROSA
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.parties.identity import Identity, Party
from veiltab.common.storage.files import written_whole
from veiltab.common.study.file import Study
from veiltab.researcher.client.client import Client
from veiltab.researcher.desk.driver import ResearcherDriver
from veiltab.researcher.desk.service import ResearcherServicer
from veiltab.researcher.records.store import ResearcherStore


def rosas_driver(study: Study, store: ResearcherStore) -> ResearcherDriver:
    """Return the driver of rosa's service over a state folder."""
    return ResearcherDriver(cast("Identity", SimpleNamespace(party=ROSA, authority=b"")), study, store)


def client_of(servicer: ResearcherServicer, study: Study, asker: Party = ROSA) -> Client:
    """Return a client with some study file that calls the methods of a servicer."""
    client = object.__new__(Client)
    client.study, client._timeout, client._asker, client.desk = study, 1.0, asker, ROSA

    async def ask(method: str, message: Any, **_: object) -> Any:  # noqa: ANN401 - messages
        return await getattr(servicer, method)(message, None)

    async def fetch(method: str, message: object) -> bytes:
        return b"".join([piece.chunk.data async for piece in getattr(servicer, method)(message, None)])

    methods = ("StartRelease", "ListReleases", "ListAccesses", "GetResult", "FetchHistogram", "FetchStudy")
    stub = SimpleNamespace(**{name: name for name in methods})
    client.service = cast("Any", SimpleNamespace(stub=stub, ask=ask, fetch=fetch))
    client._link = cast("Any", SimpleNamespace(wait=asyncio.run, close=lambda: None))
    return client


def finish(store: ResearcherStore, spec: TableSpec) -> None:
    """Let a release of sex and salary become ready: 300 of its 400 rows are of the first cell."""
    store.set_spec(spec)
    with written_whole(store.files.histogram(spec.release_id)) as file:
        file.write(np.array([300, 50, 25, 25], "<i8").data)
    store.record_counts(spec.release_id, ("sex", "salary"), {}, {})
