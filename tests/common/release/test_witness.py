"""The longest ledger that a curator showed is remembered, and no shorter one takes its place."""

from contextlib import closing
from pathlib import Path

from veiltab.common.release.messages.witness import NONE_SEEN, WITNESS_TABLE, longest_ledger, remember_ledger
from veiltab.common.storage.database import open_database


def test_a_longer_ledger_takes_the_place_of_a_shorter_one_alone(tmp_path: Path) -> None:
    with closing(open_database(tmp_path / "party.sqlite", [WITNESS_TABLE])) as database:
        assert longest_ledger(database, "alice") == NONE_SEEN
        seen = []
        for length in (1, 3, 2, 3):
            remember_ledger(database, "alice", (length, bytes([length]) * 32))
            seen.append(longest_ledger(database, "alice"))
        remember_ledger(database, "alice", (3, b"x" * 32))
        assert seen == [(length, bytes([length]) * 32) for length in (1, 3, 3, 3)]
        assert longest_ledger(database, "alice") == (3, b"\3" * 32)
        assert longest_ledger(database, "bob") == NONE_SEEN
