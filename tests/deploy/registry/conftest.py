"""A release certificate with what its command needs: study file, authority."""

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.common.rpc import test_linked_certificate as linked
from tests.common.rpc.test_release_certificate import PEM as LINKED_PEM
from tests.curator.audit.exported_evidence import PEM, certificate
from veiltab.common.study.file import study_from_bytes
from veiltab.deploy.cli import veiltab


def about(options: Sequence[str]) -> list[str]:
    """Return options of an entry as they are typed: --about KEY=VALUE."""
    pairs = zip(options[::2], options[1::2], strict=True)
    return [word for key, value in pairs for word in ("--about", f"{key.removeprefix('--')}={value}")]


@dataclass(frozen=True)
class Given:
    """Files of one release in a folder, and a way to run the command on them."""

    folder: Path

    def path(self, name: str) -> Path:
        return self.folder / name

    def run(self, out: str, *options: str) -> dict[str, Any]:
        """Run the command, which must succeed; return what it says as JSON."""
        words = ["verify", *self.inputs(out), *about(options), "--json"]
        made = CliRunner().invoke(veiltab, words, catch_exceptions=False)
        assert made.exit_code == 0, made.output
        said: dict[str, Any] = json.loads(made.stdout)
        return said

    def refused(self, out: str, *options: str) -> BaseException:
        """Run the command, which must refuse; return why, after checking that nothing was written."""
        before = sorted(self.folder.rglob("*"))
        made = CliRunner().invoke(veiltab, ["verify", *self.inputs(out), *about(options)])
        assert made.exception is not None
        assert sorted(self.folder.rglob("*")) == before
        return made.exception

    def inputs(self, out: str) -> list[str]:
        named = [self.path("wages.certificate"), "--study", self.path("study.toml"), "--authority", self.path("ca.pem")]
        return [*map(str, named), "--as", "registry", "--out", str(self.path(out))]


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
