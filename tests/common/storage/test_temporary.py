"""Folders among the temporary files, and what becomes of those that a kill leaves."""

import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from veiltab.common.storage.temporary import TemporaryFolder

_KEEPS = """
from veiltab.common.storage.temporary import TemporaryFolder
folder = TemporaryFolder()
(folder.path / "microdata.csv").write_text("x")
print(folder.path, flush=True)
input()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_a_folder_is_its_users_alone_and_goes_with_it(place: Path) -> None:
    folder = TemporaryFolder()
    assert folder.path.parent == place
    assert folder.path.stat().st_mode & 0o777 == 0o700
    (folder.path / "inner").mkdir()
    folder.delete()
    folder.delete()
    assert list(place.iterdir()) == []


def test_what_nothing_refers_to_is_deleted(place: Path) -> None:
    TemporaryFolder()
    assert list(place.iterdir()) == []


def test_the_next_folder_deletes_what_a_kill_left_and_nothing_of_a_process_that_lives(place: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _KEEPS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        own, other = TemporaryFolder(), TemporaryFolder()
        assert set(place.iterdir()) == {left, own.path, other.path}
        process.kill()
        process.wait()
        assert (left / "microdata.csv").exists()
        another = TemporaryFolder()
        assert set(place.iterdir()) == {own.path, other.path, another.path}


def test_a_folder_that_another_process_deletes_is_made_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, taken = fcntl.flock, list[Path]()

    def locked(descriptor: int, how: int) -> None:
        if not taken:
            taken.extend(place.iterdir())
            taken[0].rmdir()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", locked)
    folder = TemporaryFolder()
    assert [folder.path] == list(place.iterdir()) != taken


def test_nothing_but_own_folders_is_deleted(place: Path) -> None:
    (place / "elsewhere").mkdir()
    (place / "veiltab-files-link").symlink_to(place / "elsewhere")
    (place / "veiltab-files-file").touch()
    (place / "other").mkdir()
    TemporaryFolder().delete()
    assert sorted(path.name for path in place.iterdir()) == [
        "elsewhere",
        "other",
        "veiltab-files-file",
        "veiltab-files-link",
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_a_folder_of_another_user_is_left_alone(place: Path) -> None:
    (place / "veiltab-files-other").mkdir()
    os.chown(place / "veiltab-files-other", 12345, -1)
    TemporaryFolder().delete()
    assert list(place.iterdir()) == [place / "veiltab-files-other"]
