"""What docs/operations/cluster.md says about clusters is what Dask's commands know, and what ours need."""

import os
import re
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.common.tasks.cluster import WAIT, wait_for
from tests.common.tasks.samples import Square
from veiltab.common.tasks.cluster_identity import load_cluster_identity
from veiltab.common.tasks.dask import Dask
from veiltab.common.tasks.dask_worker import KEY_VARIABLE
from veiltab.deploy.pki.cluster import init_cluster
from veiltab.play.local.processes import free_ports

pytest.importorskip("distributed")
yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[3]
OPERATIONS = ROOT / "docs/operations"
MANIFEST = (OPERATIONS / "cluster.yaml").read_text("utf-8")
SECTION = (OPERATIONS / "cluster.md").read_text("utf-8").split("\n## A cluster\n")[1] + (
    OPERATIONS / "worker.sh"
).read_text("utf-8")


def deployments() -> dict[str, Any]:
    return {one["metadata"]["name"]: one for one in yaml.safe_load_all(MANIFEST) if one["kind"] == "Deployment"}


def container(role: str) -> dict[str, Any]:
    (found,) = deployments()[role]["spec"]["template"]["spec"]["containers"]
    return dict(found)


def commands(role: str) -> list[list[str]]:
    """Return the words of each command that starts a role, in pods and in scripts, after `dask ROLE`."""
    pod = container(role)["command"]
    assert pod[:2] == ["dask", role]
    lines = re.findall(rf"^(?:exec \S*)?dask {role} (.*)$", SECTION, re.MULTILINE)
    return [pod[2:], *(line.removesuffix(" &").split() for line in lines)]


@pytest.mark.parametrize("role", ["scheduler", "worker"])
def test_dask_knows_every_option(role: str) -> None:
    from distributed.cli import dask_scheduler, dask_worker  # noqa: PLC0415 - an optional package

    main = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}[role]
    known = {name for option in main.params for name in (*option.opts, *option.secondary_opts)}
    every = commands(role)
    assert len(every) == 3
    for words in every:
        options = [word for word in words if word.startswith("--")]
        assert {"--tls-ca-file", "--tls-cert", "--tls-key"} <= set(options) <= known


@pytest.mark.parametrize("role", ["scheduler", "worker"])
def test_every_file_is_one_that_is_made(role: str, tmp_path: Path) -> None:
    made = {path.name for path in init_cluster(tmp_path)[role].iterdir()}
    for words in commands(role):
        named = {Path(word).name for word in words if word.endswith((".pem", ".key"))}
        assert named == made - {"tasks.key"}


ROUTES = {role: f"DASK_DISTRIBUTED__{role.upper()}__HTTP__ROUTES" for role in ("scheduler", "worker")}


def test_a_worker_gets_its_key_by_the_variable() -> None:
    assert {"name": KEY_VARIABLE, "value": "/pki/tasks.key"} in container("worker")["env"]
    assert f"export {KEY_VARIABLE}=worker/tasks.key" in SECTION
    assert f"export {KEY_VARIABLE}=$pki/tasks.key" in SECTION


@pytest.mark.parametrize("role", ["scheduler", "worker"])
def test_no_command_opens_a_page_to_the_network(role: str) -> None:
    for words in commands(role):
        assert words[words.index("--dashboard-address") + 1] == "127.0.0.1:0"
    assert {"name": ROUTES[role], "value": "[]"} in container(role)["env"]
    lines = re.findall(rf"^(.*)\n(?:exec \S*)?dask {role} ", SECTION, re.MULTILINE)
    assert [f"{ROUTES[role]}='[]'" in line for line in lines] == [True, True]


@contextmanager
def typed(role: str, folder: Path, port: int) -> Iterator[psutil.Process]:
    """Type the first lines of the page that start a role, as they stand there but for the scheduler's address."""
    blocks = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)
    line = next(block for block in blocks if re.search(rf"^dask {role} ", block, re.MULTILINE))
    line = line.replace("tls://scheduler:8786", f"tls://127.0.0.1:{port}").replace("--port 8786", f"--port {port}")
    line = line.replace(f"dask {role} ", f"exec '{sys.executable}' -m dask {role} ")
    nowhere = subprocess.DEVNULL
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}  # a worker performs a task of the tests
    shell = subprocess.Popen(
        ["sh", "-c", line], cwd=folder, env=environment, stdout=nowhere, stderr=nowhere, start_new_session=True
    )
    try:
        yield psutil.Process(shell.pid)
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait(WAIT)


def listening(process: psutil.Process) -> set[tuple[str, int]]:
    """Return the addresses at which a process and its children listen."""
    every = [process, *process.children(recursive=True)]
    places = [one.laddr for each in every for one in each.net_connections("inet") if one.status == psutil.CONN_LISTEN]
    return {(place.ip, place.port) for place in places}


def answer(port: int, path: str, *, tls: bool) -> bytes:
    """Return what a port answers whoever has no certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    got = b""
    try:
        with socket.create_connection(("127.0.0.1", port), WAIT) as plain:
            caller = context.wrap_socket(plain) if tls else plain
            with closing(caller):
                caller.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                while part := caller.recv(4096):
                    got += part
    except OSError:
        pass
    return got


PAGES = ("/", "/health", "/metrics", "/json/identity.json", "/info/main/workers.html", "/eventstream", "/statics/x")


def test_no_port_of_a_cluster_that_was_started_as_the_page_says_answers_without_a_certificate(tmp_path: Path) -> None:
    pki = init_cluster(tmp_path)
    (port,) = free_ports(1)
    client = load_cluster_identity(pki["client"])
    with (
        typed("scheduler", tmp_path, port) as scheduler,
        typed("worker", tmp_path, port) as worker,
        closing(Dask(f"127.0.0.1:{port}", client, wait=WAIT)) as engine,
    ):
        wait_for(lambda: port in {one for _, one in listening(scheduler)} or None)
        assert list(engine.perform([Square(base=3)])) == [(0, 9)]
        places = listening(scheduler) | listening(worker)
        pages = {place for place in places if answer(place[1], "/", tls=False)}
        assert (len({one for _, one in places}), len(pages)) == (5, 2)
        for _, number in places - pages:
            assert answer(number, "/", tls=True) == b""
        for address, number in pages:
            assert ip_address(address).is_loopback
            assert {answer(number, page, tls=False).split()[1] for page in PAGES} == {b"404"}
            assert answer(number, "/sitemap.json", tls=False).endswith(b'{"paths": ["/sitemap.json"]}')
