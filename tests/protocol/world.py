"""A study's parties as processes of this machine, and what tests do to them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from decimal import Decimal
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.protocol.village import (
    POLICIES,
    RESEARCHERS,
    SERVER,
    TWO,
    People,
    Rules,
    made_people,
    study_file,
    write_tables,
)
from tests.server.publishing import published_by
from veiltab.common.command import cli
from veiltab.common.rpc.parties.identity import Role
from veiltab.common.study.file import study_from_bytes
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.records.store import CuratorStore
from veiltab.deploy.cli import veiltab
from veiltab.deploy.pki.certificates import init_pki
from veiltab.play.local.processes import LocalStudy, free_endpoints
from veiltab.researcher.client.client import Client
from veiltab.server.records.store import ServerStore

Who = tuple[Role, str]
ALICE: Who = (Role.CURATOR, "alice")
BOB: Who = (Role.CURATOR, "bob")
CLOUD: Who = (Role.SERVER, "cloud")
ROSA: Who = (Role.RESEARCHER, "rosa")
RITA: Who = (Role.RESEARCHER, "rita")
ANA: Who = (Role.ANALYST, "ana")
ARI: Who = (Role.ANALYST, "ari")
RELAY: Who = (Role.RELAY, "relay")

THROUGH_RELAY: tuple[str, ...] = ("alice", "bob", "carol") if os.environ.get("VEILTAB_RELAYED") else ()
"""The parties that are called through a relay in worlds that do not say otherwise."""

PACE = "chunk=400,pause=0.2"
"""How parties that are killed run: a column of 1500 bytes in four pieces, and no long pauses."""

KILLING_LAUNCHER = Path(__file__).with_name("killing_launcher.py")


def launcher(*points: str) -> tuple[str, ...]:
    """Return how to start a party with a point at which it kills itself, and other changes."""
    return (sys.executable, str(KILLING_LAUNCHER), ",".join(points))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a command said."""

    code: int
    data: dict[str, Any]
    text: str
    errors: str


def ran_alone(arguments: Sequence[str], how: Sequence[str] = LocalStudy.launcher) -> tuple[int, str, str]:
    """Run `veiltab` as a process of its own; return its exit code, and what it wrote to its two streams."""
    ended = subprocess.run([*how, *arguments], capture_output=True, text=True, timeout=120, check=False)
    return ended.returncode, ended.stdout, ended.stderr


def ran_here(arguments: Sequence[str]) -> tuple[int, str, str]:
    """Run `veiltab` in this process, one command at a time, and return the same."""
    with (
        TextIOWrapper(BytesIO(), "utf-8", newline="") as text,
        TextIOWrapper(BytesIO(), "utf-8", newline="") as errors,
        patch.object(sys, "argv", ["veiltab", *arguments]),
        patch.object(cli, "forbid_memory_dumps"),
        redirect_stdout(text),
        redirect_stderr(errors),
    ):
        code = cli.run(veiltab)
        for stream in (text, errors):
            stream.seek(0)
        return code, text.read(), errors.read()


@dataclass(kw_only=True)
class World:
    """A study on this machine.

    Args:
        local: its processes.
        people: the common respondents.
    """

    local: LocalStudy
    people: People
    counted: int = field(default=0)

    def start(self, *parties: Who, how: tuple[str, ...] | None = None) -> None:
        """Start some parties, and before them the relay if they need one, and wait until they serve."""
        if self.local.study.relay is not None and RELAY not in {*parties, *self.local._running}:
            self.local.start(*RELAY)
        for party in parties:
            self.local.start(*party, launcher=how)
        for party in parties:
            self.local.wait_for(*party)

    def ensure(self, *parties: Who) -> None:
        """Start those of some parties that do not run, as a test that failed may leave them."""
        running = self.local._running
        self.start(*(party for party in parties if party not in running or running[party].poll() is not None))

    def restart(self, party: Who, *, how: tuple[str, ...] | None = None) -> None:
        """Stop a party in order and start it again."""
        self.local.kill(*party, signal.SIGTERM)
        self.start(party, how=how)

    def wait_for_kill(self, party: Who) -> None:
        """Wait until a party has killed itself."""
        code = self.local.wait_for_end(*party, timeout=40)
        assert code == -signal.SIGKILL, f"{party} ended with {code}: {self.log(party)[-2000:]}"

    def ended(self, party: Who, within: float) -> bool:
        """Whether a party ends by itself within some seconds."""
        end = time.monotonic() + within
        while self.local._running[party].poll() is None:
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    def client(self, name: str = "rosa", timeout: float = 20, *, role: Role = Role.RESEARCHER) -> Client:
        """Return a connection to a researcher's service, of the researcher or an analyst."""
        identity = self.local.identity_folder(role, name)
        return Client(self.local.study_path, identity=identity, name=name, timeout=timeout)

    def label(self) -> str:
        """Return a label that was not used before."""
        self.counted += 1
        return f"label-{self.counted}"

    def wait_until(self, condition: Callable[[], bool], seconds: float = 15.0) -> None:
        """Wait for what the parties do by themselves."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "the parties did not do it in time"
            time.sleep(0.05)

    def wait_until_keys_are_erased(self, curator: str, release_id: str) -> None:
        """Wait until a curator has erased the keys of a release that ended: a moment after its end is recorded."""

        def keys() -> set[bytes]:
            with self.store(curator) as store:
                rows = store.connection.execute("SELECT key FROM pad WHERE release_id = ?", [release_id]).fetchall()
            return {bytes(row["key"]) for row in rows}

        self.wait_until(lambda: keys() == {b""})

    def wait_for_state(self, curator: str, release_id: str, state: str, seconds: float = 15.0) -> None:
        """Wait until a release stands somewhere at a curator."""

        def stands() -> bool:
            with self.store(curator) as store:
                return store.releases.knows(release_id) and store.releases.release(release_id).state.value == state

        self.wait_until(stands, seconds)

    def command(self, *words: str | Path, as_json: bool = True, alone: bool = False) -> Answer:
        """Run `veiltab` in this process, which has imported it; or alone, as a process of its own like every party."""
        arguments = [*map(str, words), *(["--json"] if as_json else [])]
        code, text, errors = ran_alone(arguments) if alone or "serve" in arguments else ran_here(arguments)
        return Answer(code=code, data=json.loads(text) if as_json and text.strip() else {}, text=text, errors=errors)

    def ask(
        self, attributes: Sequence[str], *options: str, name: str = "rosa", epsilon: str = "4", alone: bool = False
    ) -> Answer:
        """Run `veiltab researcher request`."""
        return self.command(
            *("researcher", "request", self.local.study_path),
            *("--identity", self.local.identity_folder(Role.RESEARCHER, name)),
            *(["--attributes", ",".join(attributes)] if attributes else ()),
            *("--epsilon", epsilon, *options),
            alone=alone,
        )

    def curator_command(self, verb: str, name: str, *options: str) -> Answer:
        """Run a command of a curator's on its state."""
        state = self.local.state_folder(Role.CURATOR, name)
        return self.command("curator", verb, self.local.study_path, "--state", state, *options)

    def store(self, name: str) -> "closing[CuratorStore]":
        """Open a curator's database beside the process that runs on it."""
        return closing(CuratorStore(self.local.state_folder(Role.CURATOR, name) / "curator.sqlite"))

    def server_store(self) -> "closing[ServerStore]":
        """Open the server's database beside the process that runs on it."""
        return closing(ServerStore(self.local.state_folder(*CLOUD)))

    def charges(self, name: str) -> list[str]:
        """Return the ids of the releases that a curator has charged, with repetitions if there were any."""
        with self.store(name) as store:
            return [
                entry.release_id for entry in Ledger(store.connection, self.local.study.budget_epsilon).chain.entries
            ]

    def spent(self, name: str) -> Decimal:
        with self.store(name) as store:
            return Ledger(store.connection, self.local.study.budget_epsilon).budget.spent

    def releases_folder(self) -> Path:
        """Return where the server keeps releases."""
        return self.local.state_folder(*CLOUD) / "releases"

    def published(self, release_id: str) -> dict[str, bytes]:
        """Return the perturbed columns that the server holds."""
        with self.server_store() as store:
            return published_by(store, release_id)

    def log(self, party: Who) -> str:
        """Return everything a party logged."""
        path = self.local.log(*party)
        return path.read_text("utf-8", errors="replace") if path.exists() else ""

    def logs(self) -> str:
        """Return everything that all parties logged."""
        return "".join(self.log(party) for party in self.local.parties)

    def leftovers(self) -> list[str]:
        """Return the temporary files and folders, and the ciphertexts of curators and server, that are on disk."""
        names = [path.relative_to(self.local.folder) for path in self.local.folder.rglob("*")]
        return sorted(
            str(path)
            for path in names
            if path.suffix in {".tmp", ".ciphertext", ".canaries"} or path.name == "ciphertext"
        )

    def mentions(self, text: str) -> list[str]:
        """Return which ids or category names a text holds."""
        words = [*self.people.ids, *(word for curator in self.local.tables for word in _categories(self, curator))]
        return [word for word in words if word in text]


def _categories(world: World, curator: str) -> list[str]:
    rules = world.local.study.attributes_of(curator)
    return [category for rule in rules for category in rule.attribute.categories if len(category) > 4]


def made_world(  # noqa: PLR0913 - what a study consists of
    folder: Path,
    *,
    people: People | int = 1500,
    owners: Mapping[str, str] = TWO,
    rules: Rules | None = None,
    policies: Mapping[str, str] = POLICIES,
    more: str = "",
    through_relay: Sequence[str] = THROUGH_RELAY,
) -> World:
    """Make tables, study file, certificates and policies; nothing is started.

    Args:
        folder: a new folder.
        people: the common respondents, or how many to make.
        owners: attribute -> curator.
        rules: what the study file says.
        policies: curator -> policy file.
        more: what else the study file says.
        through_relay: who is called through a relay.
    """
    folder.mkdir(parents=True, exist_ok=True)
    common = made_people(people, seed=20) if isinstance(people, int) else people
    rules = rules or Rules()
    tables = write_tables(folder / "tables", common, owners, complete=rules.complete)
    endpoints = free_endpoints([*tables, SERVER, *RESEARCHERS, "relay"])
    if through_relay:
        more += f'\n[relay]\nendpoint = "{endpoints["relay"]}"\n'
        endpoints |= dict.fromkeys(through_relay, "relay")
    text = (study_file(owners, endpoints, rules) + more).encode()
    (folder / "study.toml").write_bytes(text)
    init_pki(study_from_bytes(text, "study.toml"), folder / "pki")
    paths = {}
    for name in tables:
        paths[name] = folder / f"policy-{name}.toml"
        paths[name].write_text(policies[name], "utf-8")
    return World(local=LocalStudy(folder=folder, tables=tables, policies=paths), people=common)
