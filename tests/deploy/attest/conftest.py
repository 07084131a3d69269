"""A release certificate with what its commands need: study file, authority, the identity of a curator."""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.common.rpc import test_linked_certificate as linked
from tests.common.rpc.test_release_certificate import PEM as LINKED_PEM
from tests.curator.audit.exported_evidence import PEM, certificate, identity
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.study.file import study_from_bytes
from veiltab.deploy.attest.attest_cli import certificate as command

ALICE = Party(study="survey", role=Role.CURATOR, name="alice")


@dataclass(frozen=True)
class Given:
    """Files of one release in a folder, and a way to run `veiltab certificate` on them."""

    folder: Path

    def path(self, name: str) -> Path:
        return self.folder / name

    def run(self, form: str, out: str, *options: str) -> dict[str, Any]:
        """Run a command that must succeed; return what it says as JSON."""
        made = CliRunner().invoke(command, [form, *self.inputs(out), *options, "--json"], catch_exceptions=False)
        assert made.exit_code == 0, made.output
        said: dict[str, Any] = json.loads(made.stdout)
        return said

    def refused(self, form: str, out: str, *options: str) -> BaseException:
        """Run a command that must refuse; return why, after checking that nothing was written."""
        before = sorted(self.folder.rglob("*"))
        made = CliRunner().invoke(command, [form, *self.inputs(out), *options])
        assert made.exception is not None
        assert sorted(self.folder.rglob("*")) == before
        return made.exception

    def inputs(self, out: str) -> list[str]:
        named = [self.path("wages.certificate"), "--study", self.path("study.toml"), "--authority", self.path("ca.pem")]
        return [*map(str, named), "--out", str(self.path(out))]


@pytest.fixture(scope="session", name="write")
def write_fixture(tmp_path_factory: pytest.TempPathFactory, study_bytes: bytes) -> Callable[[str, bytes], Given]:
    numbers = itertools.count()

    def write(text: str, authority: bytes) -> Given:
        folder = tmp_path_factory.mktemp(f"certified-{next(numbers)}")
        (folder / "study.toml").write_bytes(study_bytes)
        (folder / "ca.pem").write_bytes(authority)
        (folder / "wages.certificate").write_text(text)
        return Given(folder)

    return write


@pytest.fixture(name="given")
def given_fixture(write: Callable[[str, bytes], Given], study_bytes: bytes) -> Given:
    """A release of one table, of a pure epsilon."""
    return write(certificate(study_from_bytes(study_bytes, "study.toml")).to_text(), PEM)


@pytest.fixture(name="given_linked")
def given_linked_fixture(write: Callable[[str, bytes], Given]) -> Given:
    """A release of three tables, of which one ran again."""
    return write(linked.certificate().to_text(), LINKED_PEM)


@pytest.fixture(name="alice")
def alice_fixture(given: Given) -> str:
    """The folder of a curator's identity."""
    folder, made = given.path("curator-alice"), identity(ALICE)
    folder.mkdir()
    for name, content in (("ca.pem", PEM), ("alice.pem", made.certificate), ("alice.key", made.key)):
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o600)
    return str(folder)
