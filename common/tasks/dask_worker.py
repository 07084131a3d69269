"""What a worker of a Dask cluster does with a task."""

import os
from functools import cache
from importlib.metadata import version as version_of
from pathlib import Path

from veiltab.common.errors import ConflictError, NotFoundError
from veiltab.common.process.protection import keep_files_private
from veiltab.common.tasks.outcome import answer
from veiltab.common.tasks.seal import Seal, read_key

VERSION = version_of("veiltab")
"""What client and workers must have in common."""

KEY_VARIABLE = "VEILTAB_TASKS_KEY"
"""Variable of a worker's environment: path of its `tasks.key`."""


def perform_sealed(version: str, run: str, number: int, sealed: bytes) -> bytes:
    """Perform a sealed task, and return its outcome sealed.

    Args:
        version: of veiltab, at the client.
        run: what the task belongs to.

    Raises:
        ConflictError: this worker has another version of veiltab, and might give another result.
        TransferError: the task is not what it should be, or this worker has another key.
        NotFoundError: this worker has no key.
    """
    seal = Seal(key=_key(), run=run)
    task = seal.open("task", number, sealed)
    return seal.seal("outcome", number, perform_plain(version, task))


def perform_plain(version: str, task: bytes) -> bytes:
    """Perform a task that a trusted client sent, and return its outcome.

    Raises:
        ConflictError: this worker has another version of veiltab, and might give another result.
    """
    if version != VERSION:
        raise ConflictError(
            f"a worker has version {VERSION} of veiltab, and this process has {version}",
            remedy="Install the same version at both ends.",
        )
    return answer(task)


@cache
def _key() -> bytes:
    path = os.environ.get(KEY_VARIABLE)
    if path is None:
        raise NotFoundError(
            "a worker was not given the key of the tasks",
            where=KEY_VARIABLE,
            remedy="Set this variable of the worker's environment to the path of its tasks.key.",
        )
    keep_files_private()
    return read_key(Path(path))
