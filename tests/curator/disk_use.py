"""How many bytes of a disk a piece of work takes at the most."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from veiltab.common.storage import files
from veiltab.common.storage.sealed import SealedFile


class DiskUse:
    """The bytes of a folder's files, those without a name too; `most` is the largest number that was there at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before = self._now()
        self.most = 0

    def look(self) -> None:
        """Count once more."""
        self.most = max(self.most, self._now() - self._before)

    def _now(self) -> int:
        return sum(_named(self._folder)) + sum(_unnamed(Path("/proc/self/fd"), self._folder))


def _named(folder: Path) -> Iterator[int]:
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # another thread has deleted or renamed it
            if path.is_file():
                yield path.stat().st_size


def _unnamed(descriptors: Path, folder: Path) -> Iterator[int]:
    for path in descriptors.iterdir():
        try:
            target = str(path.readlink())
            if target.startswith(str(folder)) and target.endswith("(deleted)"):
                yield path.stat().st_size
        except FileNotFoundError:  # the descriptor of this listing
            continue


@contextmanager
def disk_use(folder: Path) -> Iterator[DiskUse]:
    """Watch the files of a folder in a block: after whatever encrypted files take, and before a file has its name."""
    use = DiskUse(folder)

    def looked_at(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the method takes and returns
            result = method(*args, **kwargs)
            use.look()
            return result

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SealedFile, "append", looked_at(SealedFile.append))
        patch.setattr(os, "fsync", looked_at(os.fsync))
        patch.setattr(files, "sync_folder", looked_at(files.sync_folder))
        yield use
