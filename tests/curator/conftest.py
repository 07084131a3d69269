"""A curator's database."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from veiltab.common.oblivious.store import THIRD_STEP
from veiltab.curator.records.store import CuratorStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "curator.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[CuratorStore]:
    with closing(CuratorStore(path)) as store:
        yield store


@pytest.fixture(autouse=True)
def small_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions of these tests have few people, and the least store has room for 75,000."""
    monkeypatch.setattr("veiltab.common.oblivious.store.LEAST_THIRD", THIRD_STEP)
