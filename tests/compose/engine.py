"""The Docker engine that the tests run on: the one that is there, or one of our own that leaves nothing behind.

Our own engine runs from a Debian tree in a temporary folder, with namespaces of its own for processes, mounts and the
network, and a way out through slirp4netns. This machine's network, mounts and packages stay as they are, and the end
of the one process that holds the namespaces is the end of the engine and of every container.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.compose import debian
from veiltab.common.errors import UnavailableError

SUITE = "trixie"
"""The Debian suite of an engine of our own."""

PACKAGES = (
    "docker.io",
    "docker-cli",
    "docker-compose",
    "docker-buildx",
    "iptables",
    "slirp4netns",
    "iproute2",
    "mount",
)
"""What it needs of that suite."""

_START_SECONDS = 60.0
_ENVIRONMENT = (
    "env",
    "-i",
    "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/root",
    "DOCKER_HOST=unix:///run/veiltab-engine.sock",
)

# $1 tree, $2 data folder, $3 control group, then the paths that the engine sees as this machine does.
_INSIDE = """
set -eu
tree=$1 data=$2 group=$3
shift 3
mount --bind "$tree" "$tree"
mount -t proc proc "$tree/proc"
mount -t sysfs sysfs "$tree/sys"
mount --rbind /sys/fs/cgroup "$tree/sys/fs/cgroup"
mount --rbind /dev "$tree/dev"
mount -t tmpfs tmpfs "$tree/run"
mkdir -p "$tree/var/lib/docker"
mount --bind "$data" "$tree/var/lib/docker"
for path in "$@"; do
    mkdir -p "$tree$path"
    mount --bind "$path" "$tree$path"
done
echo "nameserver 10.0.2.3" > "$tree/etc/resolv.conf"
cd "$tree"
mkdir -p before
# Containers are made by pivot_root: the tree must be the root of the mounts, not only of the process.
pivot_root . before
exec chroot . /bin/sh -eu -c '
umount --lazy /before
ip netns add engine
nsenter --net=/run/netns/engine ip link set lo up
slirp4netns --configure --mtu=1500 --disable-host-loopback --netns-type=path /run/netns/engine tap0 &
nsenter --net=/run/netns/engine dockerd --host unix:///run/veiltab-engine.sock --log-level warn \\
    --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent "$1" &
wait "$!"
' engine "$group"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An engine that answers.

    Args:
        docker: how to start its client.
        host: what to put before a command so that it runs where ports are published.
        own: whether it is one of our own.
    """

    docker: tuple[str, ...] = ("docker",)
    host: tuple[str, ...] = ()
    own: bool = False

    def run(self, *args: str, stdin: Path | None = None, timeout: float = 600.0, lines: int = 6) -> str:
        """Run the client and return what it prints.

        Args:
            args: its arguments.
            stdin: what it reads.
            timeout: seconds that it may take.
            lines: how many of its last lines stand in an error.

        Raises:
            UnavailableError: it failed; says what it last said.
        """
        with (stdin or Path(os.devnull)).open("rb") as source:
            done = subprocess.run(
                [*self.docker, *args], stdin=source, capture_output=True, text=True, timeout=timeout, check=False
            )
        if done.returncode:
            last = " | ".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-lines:])
            raise UnavailableError(last or f"exit code {done.returncode}", where=f"docker {' '.join(args[:3])}")
        return done.stdout


def running_engine() -> Engine | None:
    """Return the engine that this machine's docker client reaches, if there is one and it has `docker compose`."""
    if not shutil.which("docker"):
        return None
    engine = Engine()
    try:
        engine.run("version", timeout=20)
        engine.run("compose", "version", timeout=20)
    except (UnavailableError, subprocess.TimeoutExpired):
        return None
    return engine


def unavailable_because() -> str:
    """Return why no engine of our own can run here; empty if one can."""
    if os.geteuid() != 0:
        return "no Docker engine with compose answers, and only root can start one"
    reason = debian.unavailable_because()
    if not reason:
        missing = [tool for tool in ("unshare", "nsenter", "setpriv") if not shutil.which(tool)]
        reason = f"{', '.join(missing)} missing" if missing else ""
    if not reason and not Path("/dev/net/tun").exists():
        reason = "there is no /dev/net/tun"
    if not reason and subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], check=False).returncode:
        reason = "root may not make namespaces here"
    return f"no Docker engine with compose answers, and none can be started: {reason}" if reason else ""


@contextmanager
def own_engine(folder: Path, tree: Path, shared: Sequence[Path]) -> Iterator[Engine]:
    """Run an engine of our own while the block lasts.

    Args:
        folder: an existing folder for its data and log; the caller deletes it.
        tree: Debian with PACKAGES.
        shared: folders that the engine sees under their own names: build contexts and what containers mount.

    Raises:
        UnavailableError: it does not start; says what it last said.
    """
    data, group = folder / "data", f"/{folder.name}"
    data.mkdir(exist_ok=True)
    # The first process of the namespaces dies with us, however we die, and takes all others along.
    command = [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "unshare",
        "--mount",
        "--pid",
        "--ipc",
        "--uts",
        "--fork",
        "--kill-child",
    ]
    command += ["sh", "-c", _INSIDE, "sh", str(tree), str(data), group, *map(str, shared)]
    with (folder / "engine.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        yield _wait_for_engine(process, folder / "engine.log")
    finally:
        _end(process)
        _remove_groups(group)


def _wait_for_engine(process: "subprocess.Popen[bytes]", log: Path) -> Engine:
    """Return the engine once it answers."""
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        first = _first_inside(process)
        if first is not None:
            enter = ("nsenter", f"--target={first}", "--mount", "--", *_ENVIRONMENT)
            engine = Engine(
                docker=(*enter, "docker"), host=("nsenter", f"--net=/proc/{first}/root/run/netns/engine"), own=True
            )
            try:
                engine.run("version", timeout=20)
            except UnavailableError:
                pass
            else:
                return engine
        time.sleep(0.3)
    raise UnavailableError(
        "the engine did not start: " + " | ".join(log.read_text("utf-8", errors="replace").splitlines()[-5:])
    )


def _first_inside(process: "subprocess.Popen[bytes]") -> int | None:
    """Return the first process of the namespaces, which is unshare's child."""
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("ascii").split()
    except OSError:
        return None
    return int(children[0]) if children else None


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill the first process inside: the kernel ends all others before it lets that one go."""
    first = _first_inside(process)
    if first is not None and process.poll() is None:
        os.kill(first, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _remove_groups(group: str) -> None:
    """Remove the empty control groups that the engine made for its containers."""
    root = Path("/sys/fs/cgroup")
    for top in (*root.glob(group.strip("/")), *root.glob("*" + group)):
        for folder in (*sorted((p for p in top.rglob("*") if p.is_dir()), reverse=True), top):
            for _ in range(20):
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.1)
                else:
                    break
