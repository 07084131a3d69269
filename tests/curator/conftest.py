"""A curator's database."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from veiltab.curator.records.store import CuratorStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "curator.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[CuratorStore]:
    with closing(CuratorStore(path)) as store:
        yield store
