"""A researcher's service fetches nothing that its disk cannot hold."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.conftest import PlayedDisk, request_with, spec_with
from tests.researcher.desks import rosas_driver
from veiltab.common.errors import UnavailableError
from veiltab.common.release.modes import Pad
from veiltab.common.storage.disk import LEAST_RESERVE, RESERVE_PART
from veiltab.common.study.file import Study
from veiltab.researcher.parties.parties import PartyLinks
from veiltab.researcher.parties.polling import Publication
from veiltab.researcher.receiving.receiving import Fetch
from veiltab.researcher.records.store import ResearcherStore

ID = "0" * 31 + "1"


@pytest.fixture
def store(tmp_path: Path, study: Study) -> Iterator[ResearcherStore]:
    with closing(ResearcherStore(tmp_path, study)) as store:
        store.start(request_with(), "wages", 1000)
        yield store


def test_what_is_to_come_is_what_is_not_there(store: ResearcherStore) -> None:
    spec = spec_with(sample=400)
    rows = spec.uploaded_rows
    assert store.files.bytes_to_come(spec) == 2 * rows + 8 * spec.cells
    assert store.files.bytes_to_come(spec_with(sample=400, pad=Pad.OTP)) == 4 * rows + 8 * spec.cells
    assert store.files.bytes_to_come(spec, are_sent=True) == 8 * spec.cells
    store.files.noisy_column(ID, "sex").parent.mkdir(parents=True)
    store.files.noisy_column(ID, "sex").write_bytes(bytes(rows))
    assert store.files.bytes_to_come(spec) == rows + 8 * spec.cells


def test_a_release_for_which_there_is_no_room_is_not_fetched(
    store: ResearcherStore, study: Study, disk: PlayedDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = rosas_driver(study, store)
    spec, fetched = spec_with(sample=400), list[str]()

    async def published(*_: object) -> Publication:
        return Publication(spec=spec, salt=b"salt", columns={})

    async def receive(fetch: Fetch, _salt: bytes) -> None:
        assert (fetch.columns, fetch.tests) == ({}, {})
        assert store.files.reservations._promises == {ID: size}
        fetched.append(fetch.spec.release_id)

    monkeypatch.setattr(driver._polling, "ask_server", published)
    monkeypatch.setattr(driver._receiver, "receive", receive)
    size = store.files.bytes_to_come(spec)
    disk.free = size + size // RESERVE_PART + LEAST_RESERVE - 1

    def advance() -> None:
        links = cast("PartyLinks", SimpleNamespace())
        asyncio.run(driver._receive(store.release(ID), {}, lambda one, _: one, links))

    with pytest.raises(UnavailableError, match=r"this party's disk is full but for 1\.0 MiB"):
        advance()
    assert fetched == []
    assert "disk is full" in driver.statuses[ID]["researcher rosa"][1]
    disk.free += 1
    advance()
    assert fetched == [ID]
    assert (store.files.reservations._promises, driver.statuses[ID]) == ({}, {})
