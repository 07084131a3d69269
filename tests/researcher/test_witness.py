"""What a desk remembers of the curators' ledgers."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import refuses
from veiltab.common.errors import IntegrityError
from veiltab.common.rpc.certificates.statement import LedgerHead
from veiltab.common.study.file import Study
from veiltab.researcher.records.store import ResearcherStore


@pytest.fixture
def store(tmp_path: Path, study: Study) -> Iterator[ResearcherStore]:
    with closing(ResearcherStore(tmp_path, study)) as opened:
        yield opened


def test_the_longest_ledger_that_is_stated_is_remembered_and_shorter_ones_refused(store: ResearcherStore) -> None:
    def stated(length: int, digit: str, at: int) -> None:
        ledger = LedgerHead(length=length, digest=digit * 64)
        store.witness([("bob", ledger, at), ("carol", LedgerHead(length=at, digest="d" * 64), at)])

    assert store.witnessed("bob") == (0, b"")
    stated(2, "a", 11)
    stated(1, "b", 10)  # made before, and read afterwards
    stated(2, "a", 15)
    for length, digit in ((1, "b"), (2, "b"), (0, "c")):
        with refuses(IntegrityError, where="curator bob"):
            stated(length, digit, 16)
        assert store.witnessed("bob") == (2, bytes.fromhex("a" * 64))
        assert store.witnessed("carol")[0] == 16  # who is right is remembered all the same
    stated(3, "c", 17)
    assert store.witnessed("bob") == (3, bytes.fromhex("c" * 64))
    assert store.witnessed("alice") == (0, b"")
    assert store.witnessed("carol") == (17, bytes.fromhex("d" * 64))
