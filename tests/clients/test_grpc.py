"""Three clients that are not ours complete a request and a report, from the .proto files alone."""

import json
import os
import shutil
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients.js_client import ROOT, installed
from tests.protocol.village import Rules
from tests.protocol.world import CLOUD, ROSA, Who, World, made_world
from veiltab.common.collection.tokens import new_token
from veiltab.common.rpc.parties.identity import Role
from veiltab.researcher.collection.rounds_client import Rounds

PROTOS = ROOT / "protos"
HERE = Path(__file__).parent
FLEET: Who = (Role.NODE, "fleet")
NODES = """
[nodes]
name = "fleet"
budget_epsilon = 40
[[question]]
name = "pet"
categories = ["cat", "dog", "none"]
"""
DIGITS = 16
"""Bytes of an id."""

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@dataclass(frozen=True, kw_only=True)
class Asked(ABC):
    """A client of another make.

    Args:
        folder: of what it needs.
    """

    folder: Path

    @abstractmethod
    def command(self, call: tuple[str, str, str], endpoint: str, pems: tuple[Path, Path, Path]) -> list[str | Path]:
        """Return what calls (file, service, method); its message comes as JSON on the standard input."""

    def read(self, done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
        """Return {"answer": message} or {"refused": status} of what it printed."""
        assert done.returncode == 0, done.stderr
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    @property
    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def ask(self, world: World, who: Who, called: Who, rpc: str, message: dict[str, Any]) -> dict[str, Any]:
        folder = world.local.identity_folder(*who)
        pems = (folder / "ca.pem", folder / f"{who[1]}.pem", folder / f"{who[1]}.key")
        file, service, method = rpc.split("/")
        done = subprocess.run(
            self.command((file, service, method), world.local.endpoint(*called), pems),
            input=json.dumps(message),
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return self.read(done)


class Buf(Asked):
    """buf curl, which reads the .proto files when it runs."""

    def command(self, call: tuple[str, str, str], endpoint: str, pems: tuple[Path, Path, Path]) -> list[str | Path]:
        options = [word for pair in zip(("--cacert", "--cert", "--key"), pems, strict=True) for word in pair]
        url = f"https://{endpoint}/veiltab.v1.{call[1]}/{call[2]}"
        buf = Path(sys.executable).parent / "buf"
        return [buf, "curl", "--schema", PROTOS, "--protocol", "grpc", "--timeout", "15s", *options, "-d", "@-", url]

    def read(self, done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
        assert not done.stderr or done.stderr.startswith("{"), done.stderr
        if done.returncode:
            return {"refused": json.loads(done.stderr)["code"].upper()}
        return {"answer": json.loads(done.stdout)}


class GrpcJs(Asked):
    """@grpc/grpc-js with @grpc/proto-loader, which reads the .proto files when it runs."""

    def command(self, call: tuple[str, str, str], endpoint: str, pems: tuple[Path, Path, Path]) -> list[str | Path]:
        file, service, method = call
        return ["node", self.folder / "ask.mjs", PROTOS, f"veiltab/v1/{file}.proto", service, method, endpoint, *pems]


class Grpclib(Asked):
    """grpclib, whose plugin made code of the .proto files; nothing of this project can be imported there."""

    def command(self, call: tuple[str, str, str], endpoint: str, pems: tuple[Path, Path, Path]) -> list[str | Path]:
        host, port = endpoint.rsplit(":", 1)
        return [sys.executable, "-S", HERE / "grpclib_ask.py", *call, host, port, *pems]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": f"{self.folder / 'packages'}{os.pathsep}{self.folder / 'code'}"}


def made_buf(folder: Path) -> Asked:
    return Buf(folder=folder)


def made_grpc_js(folder: Path) -> Asked:
    shutil.copytree(HERE / "grpc_js", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
    installed(folder)
    return GrpcJs(folder=folder)


def made_grpclib(folder: Path) -> Asked:
    made = Grpclib(folder=folder)
    packages, code = folder / "packages", folder / "code"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(packages)]
    wanted = ["--require-hashes", "-r", str(HERE / "grpclib-requirements.txt")]
    done = subprocess.run([*pip, *wanted], capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        pytest.skip(f"pip cannot install grpclib here: {done.stderr.strip().splitlines()[-1:]}")
    code.mkdir()
    plugin = packages / "bin" / "protoc-gen-grpclib_python"
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTOS}", f"--python_out={code}"]
        + [f"--plugin=protoc-gen-grpclib_python={plugin}", f"--grpclib_python_out={code}"]
        + [str(path) for path in sorted((PROTOS / "veiltab" / "v1").glob("*.proto"))],
        env=made.environment,
        check=True,
    )
    return made


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = made_world(tmp_path_factory.mktemp("grpc") / "study", people=900, rules=Rules(budget="30"), more=NODES)
    with made.local:
        made.local.start_all()
        yield made


@pytest.fixture(scope="module", params=[made_buf, made_grpc_js, made_grpclib], ids=["buf", "grpc-js", "grpclib"])
def client(request: pytest.FixtureRequest, world: World, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    assert world.local.study.nodes
    found: Asked = request.param(tmp_path_factory.mktemp("client"))
    return found


def test_a_request_becomes_a_table(client: Asked, world: World) -> None:
    release = os.urandom(DIGITS).hex()
    request = {
        "releaseId": release,
        "attributes": ["region", "income"],
        "epsilon": "2",
        "delta": "1e-6",
        "purpose": "a client of another make",
        "deadline": str(int(time.time()) + 3600),
        "sampling": "SAMPLING_MODE_SEED",
        "pad": "PAD_KIND_CHACHA20",
        "scheme": "SCHEME_WOR",
        "noiseSplit": "0.5",
    }
    start = {"request": request, "studyDigest": world.local.study.digest}
    began = client.ask(world, ROSA, ROSA, "researcher/ResearcherService/StartRelease", start)
    assert began["answer"]["releaseId"] == release
    # The same again is the same release.
    again = client.ask(world, ROSA, ROSA, "researcher/ResearcherService/StartRelease", start)
    assert (again["answer"]["releaseId"], again["answer"]["continued"]) == (release, True)
    wanted = {"release": release, "waitMilliseconds": 10_000, "withCounts": True}
    end = time.monotonic() + 120
    state = ""
    while state != "RELEASE_STATE_READY":
        assert time.monotonic() < end, state
        answer = client.ask(world, ROSA, ROSA, "researcher/ResearcherService/GetResult", wanted)["answer"]
        state = answer["summary"]["state"]
    counts = b64decode(answer["counts"])
    with world.client() as ours:
        assert counts == ours.histogram(release)
    assert answer["granted"] == ["region", "income"]


def test_a_report_counts_once(client: Asked, world: World) -> None:
    identity = world.local.identity_folder(*ROSA)
    with Rounds(world.local.study_path, identity=identity, name="rosa", timeout=20) as rounds:
        spec = rounds.open(
            "pet",
            epsilon="1",
            rates={"everyone": "1"},
            populations={"everyone": 9},
            oracle="krr",
            lifetime_seconds=3600,
        )
        tokens = [new_token(), new_token()]
        rounds.enrol(spec.round_id, "everyone", tokens)
        told = client.ask(world, FLEET, CLOUD, "collection/CollectionService/GetRound", {"roundId": spec.round_id})
        assert told["answer"]["round"]["parameters"] == {name: str(value) for name, value in spec.parameters}
        assert (told["answer"]["round"]["oracle"], told["answer"]["state"]) == ("ORACLE_KRR", "ROUND_STATE_OPEN")
        report = {"roundId": spec.round_id, "stratum": "everyone", "category": 2}
        sent = [report | {"token": b64encode(token).decode()} for token in (tokens[0], tokens[0], tokens[1], bytes(16))]
        method = "collection/CollectionService/Report"
        answers = [client.ask(world, FLEET, CLOUD, method, one) for one in sent]
        assert answers == [
            {"answer": {}},
            {"refused": "ALREADY_EXISTS"},
            {"answer": {}},
            {"refused": "PERMISSION_DENIED"},
        ]
        # A researcher may not report, whatever its client.
        assert "refused" in client.ask(world, ROSA, CLOUD, method, sent[0])
        assert rounds.status(spec.round_id).reports == (2,)
        rounds.close_round(spec.round_id)
        assert [list(map(int, row)) for row in rounds.tally(spec.round_id).counts] == [[0, 0, 2]]
