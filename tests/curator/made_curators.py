"""Curators of the command line's tests."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran, spec_with
from tests.curator.made_records import charge, hold
from tests.worlds.states import curator_state
from veiltab.common.release.request import ReleaseRequest
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.cli import curator
from veiltab.curator.records.store import CuratorStore

ID, OTHER = "0" * 31 + "1", "0" * 31 + "2"


WHY = ("--reason", "not agreed")


OFFICER_COMMANDS = (
    ("requests",),
    ("approve", "--release", ID, "--person", "Ana Diaz"),
    ("deny", "--release", ID, "--person", "Ana Diaz", "--reason", "too much"),
    ("ledger",),
    ("audit",),
    ("repair", "tosses", "bob", "--person", "Ana Diaz"),
    ("repair", "alignment", "bob", "--person", "Ana Diaz"),
    ("repair",),
    ("console", "--person", "Ana Diaz"),
    ("evidence", "--identity", "nowhere", "--out", "evidence.zip", "--person", "Ana Diaz"),
)


class Terminal:
    """A curator's folder, and what its commands print."""

    def __init__(self, folder: Path, study: bytes, ran: Ran) -> None:
        self.study = folder / "study.toml"
        self.study.write_bytes(study)
        self.folder = folder
        self._ran = ran

    @contextmanager
    def store(self) -> Iterator[CuratorStore]:
        with closing(curator_state(self.folder / "state")) as store:
            yield store

    def hold(self, request: ReleaseRequest, *attributes: str) -> None:
        """Let a request wait for a person."""
        with self.store() as store:
            hold(store, request, *attributes)

    def charge(self, *ids: str) -> None:
        with self.store() as store:
            charge(Ledger(store.connection, Decimal(1)), *(spec_with(release_id=one) for one in ids))

    def align(self, population: int = 1000, matched: int | None = None) -> None:
        with self.store() as store:
            store.alignments.set_alignment("a", population, "ab" * 16, matched or 0)

    def verdicts(self, release_id: str = ID) -> dict[str, tuple[str, str]]:
        with self.store() as store:
            return {one.attribute: (one.verdict, one.decided_by) for one in store.decisions.decisions(release_id)}

    def run(self, command: str, *args: str, name: str = "alice") -> tuple[int, str, str]:
        state = ("--name", name) if command == "check" else ("--state", str(self.folder / "state"))
        return self._ran(curator, command, str(self.study), *state, *args)

    def group(self, group: str, command: str, *args: str, code: int = 0) -> tuple[Any, str]:
        """Run a command of a group twice: what it says as JSON, and to people."""
        words = [group, command, str(self.study), "--state", str(self.folder / "state"), *args]
        (first, out, _), (second, *texts) = self._ran(curator, *words, "--json"), self._ran(curator, *words)
        assert first == second == code
        return json.loads(out), "".join(texts)

    def json(self, command: str, *args: str, code: int = 0) -> Any:  # noqa: ANN401 - as JSON has it
        found, out, _ = self.run(command, *args, "--json")
        assert found == code
        assert out.count("\n") == 1
        return json.loads(out)


@pytest.fixture(name="terminal")
def terminal_fixture(tmp_path: Path, study_bytes: bytes, ran: Ran) -> Terminal:
    return Terminal(tmp_path, study_bytes, ran)
