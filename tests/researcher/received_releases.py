"""A desk that receives from played parties."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from tests.conftest import request_with, spec_with
from tests.researcher.made_release import SALT, MadeRelease, Perturb, honest
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.study.file import Study
from veiltab.researcher.parties.parties import PartyLinks
from veiltab.researcher.receiving.receiving import Fetch, Receiver
from veiltab.researcher.records.store import ResearcherStore

ID = "0" * 31 + "1"


COLUMNS = (
    Column(attribute="sex", owner="alice", size=2),
    Column(attribute="age", owner="alice", size=3),
    Column(attribute="salary", owner="bob", size=300),
)


HALF = 2**63


@pytest.fixture(name="store")
def store_fixture(tmp_path: Path, study: Study) -> Iterator[ResearcherStore]:
    store = ResearcherStore(tmp_path, study)
    store.start(request_with(), "", 100)
    yield store
    store.close()


@pytest.fixture(name="made")
def made_fixture() -> Callable[..., MadeRelease]:
    def make(perturb_rows: Perturb = honest, **changes: object) -> MadeRelease:
        fields: dict[str, Any] = {
            "columns": COLUMNS,
            "population": 4000,
            "sample": 4000,
            "server_replacement": HALF // 2,
            "curator_replacement": HALF // 4,
            "canaries": 2000,
        }
        spec: TableSpec = spec_with(**(fields | changes))
        return MadeRelease(spec, table_of(spec), perturb_rows)

    return make


def table_of(spec: TableSpec) -> dict[str, Symbols]:
    """Return skewed rows: every symbol is 0 or 1."""
    source, table = np.random.default_rng(5), {}
    for column in spec.columns:
        symbols: Symbols = np.zeros(spec.data_rows, symbol_dtype(column.size))
        symbols[:] = source.random(spec.data_rows) < 0.2
        table[column.attribute] = symbols
    return table


def receive(store: ResearcherStore, release: MadeRelease, **sent: Any) -> None:  # noqa: ANN401 - fields of a fetch
    """Receive a release, of which some came before."""
    asyncio.run(receiving(store, release, **sent))


async def receiving(store: ResearcherStore, release: MadeRelease, **sent: Any) -> None:  # noqa: ANN401 - as above
    parties = cast("PartyLinks", release)
    fetch = Fetch(spec=release.spec, parties=parties, files=store.files, **sent)
    await Receiver("rosa", "cloud", store).receive(fetch, SALT)


def counts(store: ResearcherStore) -> Any:  # noqa: ANN401 - an array
    return np.frombuffer(store.files.histogram(ID).read_bytes(), "<i8")
