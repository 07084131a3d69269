"""The long runs, for a moment each; and what they say when a promise is broken."""

import json
import secrets
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.protocol.village import Rules
from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, made_world
from tests.reliability import kills, large_kills
from tests.reliability.endurance import MOST_GROWTH, SLOWEST, Outcome, endured
from tests.reliability.promises import Books, ready
from tests.server.cluster import Cluster

KEPT = kills.Deployment(
    date="2026-11-22", database="SQLite", seed="a-0", kills=4, releases=2, lost=[], double=[], unequal=False
)
QUIET = Outcome(
    seed="a",
    minutes=1,
    releases=1,
    rounds=1,
    restarts=1,
    half_open=1,
    held=1,
    checks=1,
    health=0.1,
    growth=0.0,
    processes=1,
    faults=(),
)


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ({}, 0, "8 kills over 4 releases, 0 lost, 0 double, ledgers equal in 2 of 2"),
        ({"lost": ["x: not charged"]}, 1, "1 lost, 0 double"),
        ({"double": ["x"]}, 1, "0 lost, 1 double"),
        ({"unequal": True}, 1, "ledgers equal in 1 of 2"),
    ],
)
def test_what_is_on_record_decides(tmp_path: Path, change: dict[str, object], code: int, said: str) -> None:
    record = tmp_path / "record.jsonl"
    lines = (KEPT, replace(KEPT, **change))  # type: ignore[arg-type] # fields by name
    record.write_text("".join(json.dumps(asdict(one)) + "\n" for one in lines), "utf-8")
    ended = CliRunner().invoke(kills.main, ["--record", str(record), "--minutes", "0", "--database", "SQLite"])
    assert ended.exit_code == code
    assert said in ended.stdout


@pytest.mark.parametrize("change", [{"faults": ("a release",)}, {"health": SLOWEST}, {"growth": MOST_GROWTH}])
def test_one_promise_that_is_broken_is_enough(change: dict[str, object]) -> None:
    assert QUIET.holds
    assert not replace(QUIET, **change).holds  # type: ignore[arg-type] # as above


@pytest.mark.long
def test_the_books_notice_what_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = made_world(tmp_path / "study", people=300, rules=Rules(budget="1000"))
    with world.local:
        world.start(ALICE, BOB, CLOUD, ROSA)
        books = Books(world=world)
        release_id = ready(world, kills.NAMES, epsilon="1", within=60)
        books.note(release_id)
        assert (books.uncharged(), books.double(), books.ledgers_differ()) == ((), (), False)
        with world.store("bob") as store:
            store.connection.execute("UPDATE pad SET digest = ? WHERE release_id = ?", [bytes(32), release_id])
        assert books.double() == (release_id,)
        monkeypatch.setattr(world, "charges", {"alice": [release_id], "bob": []}.get)
        assert (books.uncharged(), books.ledgers_differ()) == ((release_id,), True)


@pytest.mark.long
@pytest.mark.parametrize("database", kills.DATABASES)
def test_parties_that_are_killed_at_random_moments(
    database: str, record_property: Callable[[str, object], None]
) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(Cluster()).new_url() if database == "PostgreSQL" else ""
        found = kills.run_deployment(url, seed=secrets.token_hex(4), releases=3, end=time.monotonic() + 120)
    record_property("figure", kills.figure(database, [found]))
    assert found.holds, found
    assert found.kills == kills.KILLS_EACH * found.releases > 0


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("curator-alice/curator.sqlite-wal", b"x" + large_kills.PREFIX + b"1", ["ids"]),
        ("curator-alice/alignments/ab12/own-tokens.bin", large_kills.PREFIX, ["ids"]),
        ("curator-alice/alignments/ab12/column-region.npy", b"head" + large_kills.RUN, []),
        ("curator-alice/alignments/ab12/column-region.npy", large_kills.PREFIX + large_kills.RUN, ["ids"]),
        ("curator-alice/alignments/ab12/column-region.npy.tmp", large_kills.RUN, []),
        ("curator-alice/alignments/ab12/scratch", large_kills.RUN, ["symbols"]),
        ("curator-alice/.scratch-1", b"1" + large_kills.RUN + large_kills.PREFIX, ["ids", "symbols"]),
        ("server-cloud/releases/ab/ciphertext/region", bytes([2, 0, 1]) * 100, []),
        ("curator-alice.log", b"", []),
    ],
)
def test_the_search_finds_what_no_file_may_hold(tmp_path: Path, name: str, content: bytes, found: list[str]) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(content)
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "alice.csv").write_bytes(large_kills.PREFIX)
    assert large_kills.traces(tmp_path) == tuple(f"{name}: {what}" for what in found)


def test_differences_and_traces_break_a_promise() -> None:
    quiet = large_kills.Outcome(seed="a", rows=10, kills={"loading": 2, "idle": 1}, differences=(), traces=())
    assert quiet.holds
    assert quiet.figure == (
        "10 rows: 3 kills (2 while loading, 0 while aligning, 0 while releasing, 1 while idle), 0 differences,"
        " 0 files with traces"
    )
    assert not replace(quiet, differences=("the aligned tokens",)).holds
    assert not replace(quiet, traces=("curator-alice.log: ids",)).holds


@pytest.mark.long
def test_a_curator_of_a_large_table_that_is_killed_at_random_moments(
    record_property: Callable[[str, object], None],
) -> None:
    outcome = large_kills.killed(1_200_000, 8, secrets.token_hex(4))
    record_property("figure", outcome.figure)
    assert outcome.holds, outcome
    assert sum(outcome.kills.values()) == 8


@pytest.mark.long
def test_everything_at_once_for_a_moment() -> None:
    outcome = endured(0.5, secrets.token_hex(4))
    assert not outcome.faults, outcome
    assert min(outcome.releases, outcome.rounds, outcome.half_open, outcome.held, outcome.checks) > 0
