"""What is said of the advisories' answer, and that no version with a known hole satisfies the requirements."""

import re
import subprocess
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.advisories import LOCKS, ROOT, answered, verdict

FINE = {"name": "rich", "version": "15.0.0", "vulns": []}
HOLED = {"name": "h11", "version": "0.14.0", "vulns": [{"id": "CVE-2025-43859", "fix_versions": ["0.16.0"]}]}
SKIPPED = {"name": "numpy", "skip_reason": "Dependency not found on PyPI and could not be audited: numpy (2.4.6)"}

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
HOLES = {
    "CVE-2026-69247": "cryptography 49.0.0",
    "CVE-2026-0994": "protobuf 6.33.4",
    "CVE-2026-25087": "pyarrow 23.0.0",
    "CVE-2026-48710": "starlette 1.0.0",
    "CVE-2026-54283": "starlette 1.3.0",
    "CVE-2025-43859": "h11 0.15.0",
    "CVE-2025-27516": "jinja2 3.1.5",
    "CVE-2026-23528": "distributed 2025.12.0",
}
"""Each with the newest version that has it."""


@pytest.mark.parametrize("hole", HOLES)
def test_no_version_with_a_known_hole_satisfies_the_requirements(hole: str) -> None:
    name, version = HOLES[hole].split()
    extras = (text for texts in PROJECT["optional-dependencies"].values() for text in texts)
    wanted = [one for one in map(Requirement, (*PROJECT["dependencies"], *extras)) if one.name == name]
    assert wanted
    assert not any(version in one.specifier for one in wanted)


def test_every_lock_of_a_party_is_asked_about() -> None:
    assert "party.lock" in (ROOT / "deploy/compose/Dockerfile").read_text("utf-8")
    extras = {"dask", "metrics", "notify", "otel", "postgres", "researcher", "tables"}
    assert {path.stem for path in LOCKS} == {"requirements", "party", *extras}
    assert all(re.search(r"^[a-z0-9-]+==\S+", path.read_text("utf-8"), re.MULTILINE) for path in LOCKS)


def test_a_known_hole_fails() -> None:
    assert verdict([FINE, HOLED]) == (
        ["h11 0.14.0: CVE-2025-43859, mended in 0.16.0", "2 pinned packages checked, 1 known holes"],
        True,
    )


def test_what_was_not_asked_is_said_and_does_not_fail() -> None:
    lines, is_bad = verdict([FINE, SKIPPED])
    assert not is_bad
    assert lines[0].startswith("NOT CHECKED: 1 of 2 pinned packages")
    assert verdict([SKIPPED, HOLED])[1]
    lines, is_bad = verdict([], "no route to host")
    assert (lines[0], is_bad) == ("NOT CHECKED: the advisory database gave no answer (no route to host)", False)
    assert verdict([FINE]) == (["1 pinned packages checked, 0 known holes"], False)


@pytest.mark.parametrize(
    ("printed", "error", "expected"),
    [
        ('{"dependencies": [{"name": "rich", "version": "1", "vulns": []}], "fixes": []}', "", (1, "")),
        ("", "Traceback\nProxyError: refused\n", (0, "ProxyError: refused")),
        ("[]", "", (0, "no answer")),
    ],
)
def test_an_answer_is_read(
    monkeypatch: pytest.MonkeyPatch, printed: str, error: str, expected: tuple[int, str]
) -> None:
    done = subprocess.CompletedProcess[str]((), 1, printed, error)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    packages, why = answered(LOCKS)
    assert (len(packages), why) == expected
