"""Curators of the command line's tests."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran, reserve
from tests.worlds.states import curator_state
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.cli import curator
from veiltab.curator.progress.progress import HELD
from veiltab.curator.progress.release_record import GrantDecision
from veiltab.curator.records.store import CuratorStore

Make = Callable[..., Any]


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
    ("evidence", "--identity", "nowhere", "--out", "nowhere/evidence.zip", "--person", "Ana Diaz"),
)


class Terminal:
    """A curator's folder, and what its commands print."""

    def __init__(self, folder: Path, study: bytes, ran: Ran) -> None:
        self.study = folder / "study.toml"
        self.study.write_bytes(study)
        self.folder = folder
        self._ran = ran

    def store(self) -> CuratorStore:
        return curator_state(self.folder / "state")

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


def held(terminal: Terminal, request: Any, *attributes: str) -> None:  # noqa: ANN401 - a request
    store = terminal.store()
    store.releases.add(request, 1)
    store.decisions.decide(
        request.release_id,
        tuple(GrantDecision(attribute=a, verdict=HELD, expires=None, decided_by="policy") for a in attributes),
    )
    store.close()


def verdicts(terminal: Terminal, release_id: str = ID) -> dict[str, tuple[str, str]]:
    store = terminal.store()
    found = {d.attribute: (d.verdict, d.decided_by) for d in store.decisions.decisions(release_id)}
    store.close()
    return found


def charge(terminal: Terminal, make_spec: Make, *ids: str) -> None:
    store = terminal.store()
    ledger = Ledger(store.connection, Decimal(1))
    for release_id in ids:
        reserve(ledger, make_spec(release_id=release_id))
        ledger.charge(release_id)
    store.close()
