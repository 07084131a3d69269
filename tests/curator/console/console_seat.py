"""A curator's console in front of one person."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket

from tests.common.web.browser import HOST, Guest, enter
from tests.conftest import request_with
from tests.curator.made_records import hold
from tests.worlds.states import curator_state
from veiltab.common.rpc.parties.identity import Identity
from veiltab.common.web import pages
from veiltab.common.web.application import ConsoleApplication
from veiltab.curator.check.inspection import Inspection, inspect_table
from veiltab.curator.console.curator_console import curator_console
from veiltab.curator.console.journal import AuditJournal
from veiltab.curator.console.state_reader import StateReader
from veiltab.curator.officer.open_state import OpenedState, open_state

ID = "0" * 31 + "1"


ANA, BEN, EVA = "Ana Diaz", "Ben Ode", "Eva Roth"


class Compiled(BytecodeCache):
    """Templates that an office before has compiled."""

    def __init__(self) -> None:
        self.codes = dict[str, bytes]()

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self.codes:
            bucket.bytecode_from_string(self.codes[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self.codes[bucket.key] = bucket.bytecode_to_string()


COMPILED = Compiled()
PURPOSE = "wage <script>alert(1)</script> gap"


@dataclass
class Office:
    """A curator's state, and its console."""

    folder: Path
    own_state: OpenedState
    books: StateReader
    application: ConsoleApplication

    def enter(self, person: str) -> Guest:
        return enter(self.application, person)

    def verdicts(self) -> dict[str, tuple[str, str, str]]:
        return {d.attribute: (d.verdict, d.person, d.reason) for d in self.own_state.store.decisions.decisions(ID)}

    def audit(self) -> list[tuple[str, str, dict[str, Any]]]:
        return [(one.event, one.person, dict(one.facts)) for one in self.own_state.store.audit.entries()]


@pytest.fixture(name="office")
def office_fixture(tmp_path: Path, study_bytes: bytes) -> Iterator[Office]:
    with opened_office(tmp_path, study_bytes) as opened:
        yield opened


def application_of(
    own_state: OpenedState,
    books: StateReader,
    identity: Identity | None = None,
    inspect: Callable[[], Inspection] | None = None,
) -> ConsoleApplication:
    """Return the console of a curator, whose templates are compiled once."""
    console = curator_console(books, AuditJournal(store=own_state.store), identity=identity, inspect=inspect)
    with patch.object(pages, "Environment", partial(Environment, bytecode_cache=COMPILED)):
        return ConsoleApplication(console, HOST)


@contextmanager
def opened_office(tmp_path: Path, study_bytes: bytes, **asked: Any) -> Iterator[Office]:  # noqa: ANN401 - of a request
    """Open an office where a request waits for two persons at alice."""
    path, table = tmp_path / "study.toml", tmp_path / "alice.csv"
    path.write_bytes(study_bytes)
    table.write_text("id,sex,age\n1,f,young\n2,m,old\n3,x,old\n")
    with closing(curator_state(tmp_path / "state")) as store:
        store.served.set_served_policy(None, 0, None, persons=2)
        store.alignments.set_alignment("a" * 32, 1000, "ab" * 16)
        request = request_with(attributes=("sex", "age", "salary"), purpose=PURPOSE, **asked)
        hold(store, request, "sex", "age", now=1_700_000_000)
    with open_state(path, tmp_path / "state", None) as own_state:
        inspect = partial(inspect_table, table, own_state.study, "alice")
        books = StateReader(own_state, path)
        yield Office(tmp_path, own_state, books, application_of(own_state, books, inspect=inspect))
