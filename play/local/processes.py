"""A study's parties as processes of this machine, each with its own folder, certificate and log."""

import asyncio
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self, assert_never

from veiltab.common.command.parties import with_way
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError, UnavailableError, VeiltabError, error_class
from veiltab.common.rpc.health import wait_until_serving
from veiltab.common.rpc.parties.identity import Party, Role, load_identity
from veiltab.common.study.file import Study, load_study, study_from_bytes
from veiltab.common.study.members import RELAYED
from veiltab.deploy.operate.calling import endpoint_of
from veiltab.deploy.pki.certificates import init_pki

_START_SECONDS = 60.0

APPROVAL = '[[rule]]\nmaximum_pair_epsilon = "any"\nmaximum_row_epsilon = "any"\ntested = "not"\ndecision = "approve"\n'
"""A policy that approves everything."""


def free_ports(count: int) -> list[int]:
    """Return free ports of the loopback interface, below those that systems give to outgoing calls."""
    ports: list[int] = []
    with ExitStack() as sockets:
        while len(ports) < count:
            one, port = sockets.enter_context(socket.socket()), 10_000 + secrets.randbelow(20_000)
            with suppress(OSError):
                one.bind(("127.0.0.1", port))
                ports.append(port)
    return ports


def free_endpoints(names: Sequence[str]) -> dict[str, str]:
    """Return a free endpoint of this machine for each of some parties."""
    return {name: f"localhost:{port}" for name, port in zip(names, free_ports(len(names)), strict=True)}


@dataclass(kw_only=True)
class LocalStudy:
    """The files of a study on this machine, and the processes that run it.

    Args:
        folder: holds study.toml, pki/, and a folder a party for its state and log.
        tables: curator -> its table.
        policies: curator -> its policy file, if it has one.
        launcher: command that starts `veiltab`; a test may wrap it.
        launchers: party -> the command that starts `veiltab` for it, where it is another.
        options: party -> further options of its `serve`.
    """

    folder: Path
    tables: dict[str, Path]
    policies: dict[str, Path] = field(default_factory=dict)
    launcher: tuple[str, ...] = (sys.executable, "-m", "veiltab")
    launchers: dict[tuple[Role, str], tuple[str, ...]] = field(default_factory=dict)
    options: dict[tuple[Role, str], tuple[str, ...]] = field(default_factory=dict)
    _running: dict[tuple[Role, str], subprocess.Popen[bytes]] = field(default_factory=dict)
    _guard: subprocess.Popen[bytes] | None = None

    @classmethod
    def made_in(cls, folder: Path, source: bytes, *, tables: Mapping[str, Path], policies: Mapping[str, str]) -> Self:
        """Write the files of a study, with a new authority and certificates of its own; start nothing.

        Args:
            tables: curator -> its table.
            policies: curator -> the text of its policy file, if it has one.
        """
        (folder / "study.toml").write_bytes(source)
        init_pki(study_from_bytes(source, "study.toml"), folder / "pki")
        paths = {name: folder / f"policy-{name}.toml" for name in policies}
        for name, path in paths.items():
            path.write_text(policies[name], "utf-8")
        return cls(folder=folder, tables=dict(tables), policies=paths)

    @property
    def study_path(self) -> Path:
        """The study file."""
        return self.folder / "study.toml"

    @property
    def study(self) -> Study:
        """The study."""
        return load_study(self.study_path)

    @property
    def parties(self) -> list[tuple[Role, str]]:
        """Every party: the relay, if there is one, curators, server, researchers."""
        study = self.study
        return [
            *((Role.RELAY, one.name) for one in (study.relay,) if one is not None),
            *((Role.CURATOR, c.name) for c in study.curators),
            (Role.SERVER, study.server.name),
            *((Role.RESEARCHER, r.name) for r in study.researchers),
        ]

    def identity_folder(self, role: Role, name: str) -> Path:
        """Folder of a party's certificate and key."""
        return self.folder / "pki" / f"{role.value}-{name}"

    def state_folder(self, role: Role, name: str) -> Path:
        """Folder of a party's state."""
        return self.folder / f"{role.value}-{name}"

    def log(self, role: Role, name: str) -> Path:
        """File of a party's log."""
        return self.folder / f"{role.value}-{name}.log"

    def processor_seconds(self, role: Role, name: str) -> float | None:
        """Return the seconds of processor time of a party that runs; None where the system does not say."""
        stat = Path(f"/proc/{self._running[role, name].pid}/stat")
        if not stat.exists():
            return None
        user, system = stat.read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def start(self, role: Role, name: str, *, launcher: tuple[str, ...] | None = None) -> int:
        """Start a party without waiting for it; return its process id."""
        command = [
            *(launcher or self.launchers.get((role, name), self.launcher)),
            role.value,
            "serve",
            str(self.study_path),
            *(() if role is Role.RELAY else ("--name", name)),
            *("--identity", str(self.identity_folder(role, name))),
            *self.options.get((role, name), ()),
        ]
        if role is not Role.RELAY:
            command += ["--state", str(self.state_folder(role, name))]
            if (endpoint := self.endpoint(role, name)) != RELAYED:
                command += ["--listen", endpoint]
        match role:
            case Role.CURATOR:
                command += ["--table", str(self.tables[name])]
                if name in self.policies:
                    command += ["--policy", str(self.policies[name])]
            case Role.SERVER | Role.RESEARCHER | Role.ANALYST | Role.NODE | Role.RELAY:
                pass
            case _:
                assert_never(role)
        with self.log(role, name).open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - the product's own command
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._running[role, name] = process
        self._end_with_this_process(process.pid)
        return process.pid

    def _end_with_this_process(self, pid: int) -> None:
        """Have a party ended with this process, however it ends, where the system can (Linux)."""
        if not hasattr(os, "pidfd_open"):
            return
        if self._guard is None:
            self._guard = subprocess.Popen(  # noqa: S603 - the product's own file
                [sys.executable, "-I", "-S", str(Path(__file__).with_name("guard.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        if self._guard.stdin is not None:
            self._guard.stdin.write(f"{pid}\n".encode())
            self._guard.stdin.flush()

    def endpoint(self, role: Role, name: str) -> str:
        """Where a party listens."""
        study = self.study
        return endpoint_of(study, Party(study=study.id, role=role, name=name))

    def start_all(self) -> dict[tuple[Role, str], int]:
        """Start every party and wait until all serve; return their process ids."""
        pids = {(role, name): self.start(role, name) for role, name in self.parties}
        asyncio.run(self._wait_for_all())
        return pids

    async def _wait_for_all(self) -> None:
        await asyncio.gather(*(self._wait_for(role, name) for role, name in self.parties))

    def wait_for(self, role: Role, name: str) -> None:
        """Wait until a party serves."""
        asyncio.run(self._wait_for(role, name))

    async def _wait_for(self, role: Role, name: str) -> None:
        if role is Role.RELAY:
            return  # the parties called through it answer once it serves
        party = Party(study=self.study.id, role=role, name=name)
        asker = (role, name) if role is Role.RESEARCHER else (Role.RESEARCHER, self.study.researchers[0].name)
        identity = with_way(self.study, load_identity(self.identity_folder(*asker), *asker))
        waiting = asyncio.create_task(
            wait_until_serving(identity, party, self.endpoint(role, name), within=_START_SECONDS)
        )
        while not waiting.done():
            await asyncio.wait({waiting}, timeout=0.2)
            if self._running[role, name].poll() is not None and not waiting.done():
                waiting.cancel()
                raise UnavailableError(
                    f"ended while starting: {self._last_words(role, name)}", where=f"{role.value} {name}"
                )
        await waiting

    def _last_words(self, role: Role, name: str) -> str:
        lines = self.log(role, name).read_text("utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "its log is empty"

    def run(self, *arguments: str) -> tuple[dict[str, Any], int]:
        """Run a command of `veiltab` as a process of its own; return its JSON object and its process id.

        Raises:
            VeiltabError: its refusal, in its class.
        """
        command = [*self.launcher, *arguments, "--json"]
        process = subprocess.Popen(  # noqa: S603 - the product's own command
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            out, err = process.communicate()
        except BaseException:
            process.kill()
            process.wait()
            raise
        if process.returncode:
            raise _refusal(out, err, arguments[:2], process.returncode)
        answer: dict[str, Any] = json.loads(out)
        return answer, process.pid

    def run_as_researcher(self, name: str, group: str, command: str, *arguments: str) -> tuple[dict[str, Any], int]:
        """Run a command of `veiltab researcher` or `veiltab collect` with a researcher's identity; see `run`."""
        identity = self.identity_folder(Role.RESEARCHER, name)
        connection = (str(self.study_path), "--identity", str(identity))
        return self.run(group, command, *connection, *arguments)

    def ended(self) -> dict[tuple[Role, str], str]:
        """Return the parties that have ended by themselves, each with the last line of its log."""
        return {
            party: self._last_words(*party) for party, process in self._running.items() if process.poll() is not None
        }

    def kill(self, role: Role, name: str, number: int = signal.SIGKILL) -> None:
        """Send a party a signal and wait for its end."""
        process = self._running.pop((role, name))
        if process.poll() is None:
            os.kill(process.pid, number)
        process.wait()

    def wait_for_end(self, role: Role, name: str, timeout: float = 60.0) -> int:
        """Wait for a party to end by itself; return its exit code."""
        code = self._running[role, name].wait(timeout)
        del self._running[role, name]
        return code

    def stop(self) -> None:
        """Stop every party that runs."""
        for process in self._running.values():
            if process.poll() is None:
                process.terminate()
        for process in self._running.values():
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running.clear()
        if self._guard is not None:
            self._guard.communicate()
            self._guard = None

    def __enter__(self) -> Self:
        """Return the study."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop every party."""
        self.stop()


def _refusal(out: str, err: str, command: Sequence[str], code: int) -> VeiltabError:
    where = f"veiltab {' '.join(command)}"
    try:
        error = json.loads(out)["error"]
    except (ValueError, KeyError):
        lines = err.strip().splitlines()[-1:] or ["it said nothing"]
        # Options that it does not know are refused before it can answer in JSON.
        kind = InvalidInputError if code == InvalidInputError.exit_code else VeiltabError
        return kind(lines[0].removeprefix("Error: ")[-300:].rstrip("."), where=where)
    return error_class(error["reason"])(error["problem"], where=error["where"], remedy=error["remedy"])
