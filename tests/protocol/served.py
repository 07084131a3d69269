"""A researcher's service over HTTP, as a process of its own beside the parties."""

import re
import signal
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.protocol.world import Answer, World
from veiltab.play.local.processes import LocalStudy


@dataclass(frozen=True, kw_only=True)
class Served:
    """A service over HTTP.

    Args:
        world: that it asks.
        url: where it answers.
        state: its folder.
        identity: of the researcher.
    """

    world: World
    url: str
    state: Path
    identity: Path

    @property
    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.identity / "ca.pem"))

    def token(self, label: str, *more: str) -> str:
        made = self.world.command("researcher", "token", "add", "--state", self.state, "--label", label, *more)
        assert made.code == 0, made.errors
        return str(made.data["token"])

    def link(self, label: str, release: str) -> Answer:
        """Run the command that makes a link of a report."""
        common = (self.world.local.study_path, "--identity", self.identity, "--state", self.state)
        words = (*common, "--label", label, "--release", release, "--at", self.url)
        return self.world.command("researcher", "token", "add", *words)

    def client(self, token: str) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, verify=self.tls, headers=headers, timeout=120)


@contextmanager
def http_beside(world: World) -> Iterator[Served]:
    """Start the service over HTTP of a study whose parties run."""
    folder = world.local.folder
    identity, state = folder / "pki" / "researcher-rosa", folder / "state-http"
    words = ("researcher", "http", str(world.local.study_path), "--identity", str(identity))
    command = [*LocalStudy.launcher, *words, "--state", str(state), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        port = re.search(r"127\.0\.0\.1:(\d+)", process.stderr.readline())
        assert port is not None
        yield Served(world=world, url=f"https://localhost:{port[1]}", state=state, identity=identity)
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0
