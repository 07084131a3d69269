"""The files of a release's columns at the server: every holder of a lease writes to files of its own.

A file or folder is named by the fence of the lease under which it was written: `sex.3`, `published.5`. So a process
that wakes up after a pause cannot touch the files of its successor. Fence 0, of a sole process, gives the plain name.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MARK = "database"
"""Name of the file in a state folder whose state is in a PostgreSQL; it says in which."""


class ReleaseFolder:
    """The files of one release.

    Args:
        path: the folder; made when something is written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def ciphertext(self) -> Path:
        """Where unperturbed columns lie until they are perturbed; no RPC reads it."""
        return self.path / "ciphertext"

    def column(self, attribute: str, fence: int) -> Path:
        """Return the file of an unperturbed column."""
        return self.ciphertext / _named(attribute, fence)

    def received(self, attribute: str) -> int:
        """Return how many bytes of an unperturbed column are held."""
        for _, path in sorted(_versions(self.ciphertext, attribute), reverse=True):
            try:
                return path.stat().st_size
            except FileNotFoundError:  # gone on to another process since
                continue
        return 0

    def begin_column(self, attribute: str, fence: int) -> Path:
        """Return the file for the rest of a column; it starts with all bytes received under earlier fences."""
        own = self.column(attribute, fence)
        earlier = sorted((version, path) for version, path in _versions(self.ciphertext, attribute) if version < fence)
        if earlier:
            # Copy it: the holder of the earlier lease may still write to it.
            copy = own.with_name(own.name + ".tmp")
            shutil.copyfile(earlier[-1][1], copy)
            copy.chmod(0o600)
            copy.replace(own)
        for _, path in earlier:
            path.unlink(missing_ok=True)
        return own

    def published(self, fence: int) -> Path:
        """Return the file of the perturbed columns, which are published once the database says so."""
        return self.path / _named("published", fence)

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(_length(Path(folder, name)) for folder, _, names in os.walk(self.path) for name in names)

    def delete_ciphertext(self) -> None:
        """Delete the unperturbed columns."""
        # The standard library's way takes several times as long.
        with suppress(OSError):
            for path in list(self.ciphertext.iterdir()):
                with suppress(OSError):
                    path.unlink()
            self.ciphertext.rmdir()

    def delete_outputs_through(self, fence: int) -> None:
        """Delete the perturbed columns of this fence and earlier ones."""
        for version, path in list(_versions(self.path, "published")):
            if version <= fence:
                path.unlink(missing_ok=True)

    def delete_outputs_but(self, output: Path | None) -> None:
        """Delete all perturbed columns except those of one file."""
        for _, path in list(_versions(self.path, "published")):
            if path != output:
                path.unlink(missing_ok=True)


def _length(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # deleted or renamed meanwhile
        return 0


def _named(name: str, fence: int) -> str:
    return f"{name}.{fence}" if fence else name


def _versions(folder: Path, name: str) -> Iterator[tuple[int, Path]]:
    """Yield each fence under which something was written, and its path."""
    try:
        paths = list(folder.iterdir())
    except FileNotFoundError:
        return
    for path in paths:
        stem, _, number = path.name.partition(".")
        if stem == name and (not number or number.isdecimal()):
            yield int(number or 0), path
