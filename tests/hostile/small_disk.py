"""A file system of a few megabytes, which tests fill and free."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

MEGABYTES = 8


@dataclass(frozen=True, kw_only=True)
class SmallDisk:
    """A file system of a few megabytes.

    Args:
        path: where it is mounted.
    """

    path: Path

    @property
    def _ballast(self) -> Path:
        return self.path / "ballast"

    def fill(self) -> None:
        """Take all that is free."""
        with self._ballast.open("ab", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))

    def free(self) -> None:
        self._ballast.unlink()


@contextmanager
def small_disk(path: Path) -> Iterator[SmallDisk]:
    """Mount a small file system; skip the test where that is not allowed."""
    if os.geteuid() != 0:
        pytest.skip("mounting a file system takes root")
    path.mkdir(mode=0o700)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m,mode=0700", "tmpfs", str(path)], check=False
    )
    if mounted.returncode:
        pytest.skip("this machine mounts no file systems for its root")
    try:
        yield SmallDisk(path=path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
