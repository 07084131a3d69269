"""What docs/operations.md says about clusters is what Dask's commands know, and what ours need."""

import re
from pathlib import Path
from typing import Any

import pytest

from veiltab.common.tasks.dask_worker import KEY_VARIABLE
from veiltab.deploy.cluster_pki import init_cluster

pytest.importorskip("distributed")
yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[3]
SECTION = (ROOT / "docs/operations.md").read_text("utf-8").split("\n## A cluster\n")[1].split("\n## ")[0]


def deployments() -> dict[str, Any]:
    (text,) = re.findall(r"```yaml\n(.*?)```", SECTION, re.DOTALL)
    return {one["metadata"]["name"]: one for one in yaml.safe_load_all(text) if one["kind"] == "Deployment"}


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


def test_a_worker_gets_its_key_by_the_variable() -> None:
    assert container("worker")["env"] == [{"name": KEY_VARIABLE, "value": "/pki/tasks.key"}]
    assert f"export {KEY_VARIABLE}=worker/tasks.key" in SECTION
    assert f"export {KEY_VARIABLE}=$pki/tasks.key" in SECTION
