"""The Adult study as containers under test: start, ask from inside, ask as the researcher, break, mend, remove."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.compose.engine import Engine
from veiltab.common.errors import UnavailableError

PARTIES = {"alice": "curator-alice", "bob": "curator-bob", "cloud": "server-cloud", "rosa": "researcher-rosa"}
"""Party -> its service in compose.yaml."""

_PROBE = Path(__file__).parent / "probe.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One running compose project.

    Args:
        engine: what runs it.
        folder: where `prepare` put the study.
        project: the project's name.
        image: the image's name.
    """

    engine: Engine
    folder: Path
    project: str
    image: str

    def compose(self, *args: str, timeout: float = 300.0) -> str:
        """Run `docker compose` in the study's folder."""
        where = ["--project-directory", str(self.folder), "--project-name", self.project]
        files = [self.folder / name for name in ("compose.yaml", "relay.yaml")]
        where += [word for file in files if file.exists() for word in ("--file", str(file))]
        return self.engine.run("compose", *where, *args, timeout=timeout)

    def up(self) -> None:
        """Start what is down, and wait until every health check says that its party serves."""
        self.compose("up", "--no-build", "--detach", "--wait", "--wait-timeout", "150", "--quiet-pull")

    def container(self, party: str) -> str:
        """Return the name of a party's container."""
        return f"{self.project}-{PARTIES[party]}-1"

    def network(self, name: str) -> str:
        """Return the engine's name of a network of compose.yaml."""
        return f"{self.project}_{name}"

    def inspect(self, party: str) -> dict[str, Any]:
        """Return what the engine knows of a party's container."""
        result: dict[str, Any] = json.loads(self.engine.run("inspect", self.container(party)))[0]
        return result

    def addresses(self, party: str) -> dict[str, str]:
        """Return network of compose.yaml -> a party's address in it."""
        networks = self.inspect(party)["NetworkSettings"]["Networks"]
        return {name.removeprefix(f"{self.project}_"): known["IPAddress"] for name, known in networks.items()}

    def networks(self) -> dict[str, dict[str, Any]]:
        """Return network of compose.yaml -> what the engine knows of it."""
        names = [self.network(name) for name in ("curators", "ingest", "results", "nodes", "desk")]
        result: list[dict[str, Any]] = json.loads(self.engine.run("network", "inspect", *names))
        return {known["Name"].removeprefix(f"{self.project}_"): known for known in result}

    def probe(self, party: str, *args: str) -> dict[str, Any]:
        """Run the probe inside a party's container."""
        return self._probe("exec", "--interactive", self.container(party), "python", "-", *args)

    def probe_without_identity(self, network: str, *args: str) -> dict[str, Any]:
        """Run the probe in a new container in a network, with the image and no certificate."""
        options = ("--rm", "--interactive", "--network", network, "--entrypoint", "python")
        return self._probe("run", *options, self.image, "-", *args)

    def _probe(self, *command: str) -> dict[str, Any]:
        # The image does not have it: Python reads it.
        result: dict[str, Any] = json.loads(self.engine.run(*command, stdin=_PROBE))
        return result

    def researcher(self, *args: str) -> dict[str, Any]:
        """Run `veiltab researcher` on this machine as rosa; return its JSON.

        Raises:
            UnavailableError: it failed; says what it said.
        """
        command = [*self.engine.host, sys.executable, "-m", "veiltab", "researcher", args[0]]
        command += [str(self.folder / "study.toml")]
        command += ["--identity", str(self.folder / "pki" / "researcher-rosa"), *args[1:], "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            raise UnavailableError(done.stderr.strip().splitlines()[-1], where=f"veiltab researcher {args[0]}")
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    def curator(self, name: str, *args: str) -> dict[str, Any]:
        """Run `veiltab curator` in a curator's container; return its JSON."""
        command = ("exec", self.container(name), "veiltab", "curator", args[0], "study.toml", *args[1:])
        result: dict[str, Any] = json.loads(self.engine.run(*command, "--json"))
        return result

    def collect(self, *args: str) -> dict[str, Any]:
        """Run `veiltab collect` as rosa in her container, which reaches the server; return its JSON."""
        command = ("exec", self.container("rosa"), "veiltab", "collect", args[0], "study.toml")
        result: dict[str, Any] = json.loads(self.engine.run(*command, *args[1:], "--json"))
        return result

    def fleet(self, round_id: str) -> str:
        """Let the fleet answer a round; return what it says."""
        with (self.folder / ".env").open("a", encoding="utf-8") as settings:
            settings.write(f"VEILTAB_ROUND='{round_id}'\n")
        return self.compose("--profile", "fleet", "run", "--rm", "--no-deps", "--no-TTY", "node-fleet")

    def kill(self, party: str) -> None:
        """End a party without a warning."""
        self.engine.run("kill", self.container(party))

    def start(self, party: str) -> None:
        """Start a party that is down; do not wait for it."""
        self.engine.run("start", self.container(party))

    def disconnect(self, party: str, network: str) -> None:
        """Take a party out of a network."""
        self.engine.run("network", "disconnect", self.network(network), self.container(party))

    def reconnect(self, party: str, network: str) -> None:
        """Put a party back into a network, under its name if it accepts connections there."""
        alias = ("--alias", party) if party == "cloud" else ()
        self.engine.run("network", "connect", *alias, self.network(network), self.container(party))

    def remove(self) -> None:
        """Remove containers, networks and volumes."""
        self.compose("down", "--volumes", "--remove-orphans", "--timeout", "15")


def until(condition: Callable[[], str], within: float) -> None:
    """Return once a condition names nothing that is still missing.

    Raises:
        UnavailableError: it still does after so many seconds; says what.
    """
    end = time.monotonic() + within
    while missing := condition():
        if time.monotonic() > end:
            raise UnavailableError(f"after {within:.0f} s: {missing}")
        time.sleep(0.5)
