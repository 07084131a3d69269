"""Watches parties while they run: the most memory and the most disk that each takes at a time."""

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from benchmarks.parties import Parties, memory_of

_MEMORY_SECONDS = 0.1
_FILES_EVERY = 20
_STATUS = {"RssAnon": "anonymous", "VmHWM": "resident", "RssFile": "mapped"}


@dataclass(kw_only=True, slots=True)
class Peaks:
    """The most that a party took at a time, bytes; the processes that it started count too.

    Args:
        alone: memory of its own of its first process, without those that this one started.
        anonymous: memory of its own.
        resident: memory with mapped file pages, by the kernel's own peak of each process.
        mapped: pages of files.
        disk: of its state folder, files without a name included.
    """

    alone: int = 0
    anonymous: int = 0
    resident: int = 0
    mapped: int = 0
    disk: int = 0

    def raise_to(self, seen: Mapping[str, int]) -> None:
        """Take what is larger than what was seen before."""
        for name, size in seen.items():
            setattr(self, name, max(getattr(self, name), size))


class Watch:
    """Looks again and again at parties, in a thread.

    Args:
        parties: those that are watched; their processes may start later.
    """

    def __init__(self, parties: Parties) -> None:
        self._parties = parties
        self._ends = threading.Event()
        self._thread = ThreadPoolExecutor(1)
        self.peaks: dict[str, Peaks] = {}
        """Party -> its peaks."""

    def __enter__(self) -> Self:
        """Begin."""
        self._done = self._thread.submit(self._run)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End; raise what ended it before."""
        self._ends.set()
        self._thread.shutdown()
        self._done.result()

    def _run(self) -> None:
        looks, started = 0, dict[str, list[psutil.Process]]()
        while not self._ends.wait(_MEMORY_SECONDS):
            for name, process in dict(self._parties.processes).items():
                peaks = self.peaks.setdefault(name, Peaks())
                if looks % _FILES_EVERY == 0:
                    started[name] = _tree(process)
                    peaks.raise_to({"disk": disk_of(self._parties.state_folders[name], started[name])})
                peaks.raise_to({"alone": _memory([process])["anonymous"]})
                peaks.raise_to(_memory(started.get(name, [process])))
            looks += 1


def _tree(process: psutil.Process) -> list[psutil.Process]:
    """Return a process and all that it started; nothing if it has ended."""
    with suppress(psutil.NoSuchProcess):
        return [process, *process.children(recursive=True)]
    return []


def _memory(processes: list[psutil.Process]) -> dict[str, int]:
    sizes = dict.fromkeys(_STATUS.values(), 0)
    for process in processes:
        with suppress(OSError):
            memory = memory_of(process.pid)
            for field, name in _STATUS.items():
                # A process that has ended, and not been waited for, has none.
                sizes[name] += memory.get(field, 0)
    return sizes


def disk_of(folder: Path, processes: list[psutil.Process]) -> int:
    """Return the bytes that a folder takes on its disk.

    Args:
        folder: of a party.
        processes: whose open files count too, though they have no name.
    """
    paths = list(folder.rglob("*"))
    for process in processes:
        with suppress(OSError):
            paths += [path for path in Path(f"/proc/{process.pid}/fd").iterdir() if _is_nameless(path, folder)]
    files = {}
    for path in paths:
        with suppress(OSError):
            status = path.stat()
            files[status.st_dev, status.st_ino] = 512 * status.st_blocks
    return sum(files.values())


def _is_nameless(path: Path, folder: Path) -> bool:
    with suppress(OSError):
        target = str(path.readlink())
        return target.startswith(str(folder)) and target.endswith(" (deleted)")
    return False
