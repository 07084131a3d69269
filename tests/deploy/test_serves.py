import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from veiltab.common.errors import DeniedError, InvalidInputError, UnavailableError
from veiltab.common.rpc.parties.identity import Party, Role, load_identity
from veiltab.common.rpc.server import build_server
from veiltab.common.study.file import Study
from veiltab.deploy.cli import veiltab
from veiltab.deploy.pki.certificates import init_pki

CLOUD = ("--serves", "server/cloud")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, study: Study, study_bytes: bytes) -> Path:
    path = tmp_path_factory.mktemp("health")
    (path / "study.toml").write_bytes(study_bytes)
    init_pki(study, path / "pki")
    return path


def ask(folder: Path, who: str, *args: str) -> Result:
    at = [str(folder / "study.toml"), "--identity", str(folder / "pki" / who)]
    return CliRunner().invoke(veiltab, ["status", *at, *args])


def while_serving(folder: Path, study: Study, peers: list[tuple[Role, str]], asking: Callable[[str], Result]) -> Result:
    """Ask while the server serves; it admits some peers."""
    identity = load_identity(folder / "pki" / "server-cloud", Role.SERVER, "cloud")
    callers = [Party(study=study.id, role=role, name=name) for role, name in peers]

    async def scenario() -> Result:
        async with build_server(identity, callers, [], "localhost:0") as running:
            return await asyncio.to_thread(asking, f"localhost:{running.port}")

    return asyncio.run(scenario())


def test_a_party_that_serves_is_told_as_json(folder: Path, study: Study) -> None:
    rosa = (Role.RESEARCHER, "rosa")
    result = while_serving(
        folder, study, [rosa], lambda at: ask(folder, "researcher-rosa", *CLOUD, "--endpoint", at, "--json")
    )
    assert result.exit_code == 0
    told = json.loads(result.output)
    assert (told["party"], told["serving"]) == ("veiltab://survey/server/cloud", True)


def test_who_is_no_peer_is_refused(folder: Path, study: Study) -> None:
    result = while_serving(folder, study, [], lambda at: ask(folder, "researcher-rosa", *CLOUD, "--endpoint", at))
    assert isinstance(result.exception, DeniedError)


def test_nobody_at_the_endpoint_serves_nothing(folder: Path) -> None:
    result = ask(folder, "researcher-rosa", *CLOUD, "--endpoint", "localhost:1", "--within", "0.3")
    assert isinstance(result.exception, UnavailableError)
    assert UnavailableError.exit_code == 4


@pytest.mark.parametrize("who", ["curator/cloud", "researcher/zoe"])
def test_a_party_that_the_study_lacks_is_named(folder: Path, who: str) -> None:
    result = ask(folder, "researcher-rosa", "--serves", who)
    assert isinstance(result.exception, InvalidInputError)
    assert "the study has no" in result.exception.problem


def test_no_heavy_module_is_loaded_for_a_health_check() -> None:
    # It runs every few seconds beside every party.
    code = (
        "import sys, veiltab.deploy.cli, veiltab.deploy.operate.status_cli;"
        "print({'pandas', 'scipy', 'pyarrow'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
