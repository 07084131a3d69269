"""The files that the tasks of a run leave to each other, in any process: encrypted, and deleted when the run ends.

Their key is in the memory of the node that began the run, and in the arguments of its tasks. Each file has a key of its
own, which follows from the run's, from its name and from the random salt in its header: a task that runs twice never
uses one key for two files, and anyone who can write to the folder without the run's key can delete files, but neither
alter nor exchange them. Else the table in the place of the sorted tokens would be sent to the other curators. A file
has its name when it is whole. A run that ends by a kill leaves files that nobody can read; the next one in the folder
deletes them.
"""

import hmac
import os
import secrets
import shutil
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import TransferError, UnavailableError
from veiltab.common.storage.files import make_private, named_in_errors
from veiltab.common.storage.sealed import SealedFile

_FOLDER = "run"
_SALT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """A file of a run, for anyone who reads it."""

    path: Path
    key: bytes = field(repr=False)

    @contextmanager
    def opened(self) -> Iterator[SealedFile]:
        """Open the file to read it.

        Raises:
            TransferError: it is not a file of a run.
            UnavailableError: the run's folder is gone.
            OSError: it is not there.
        """
        with _in_folder(self.path.parent), named_in_errors(self.path):
            descriptor = os.open(self.path, os.O_RDONLY)
        try:
            salt = os.read(descriptor, _SALT)
            if len(salt) != _SALT:
                raise TransferError("a file of a run is cut short", where="disk")
            yield _sealed(descriptor, self.path, self.key, salt)
        finally:
            os.close(descriptor)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFiles:
    """The files of a run, by name; plain data, so that tasks have it.

    Args:
        folder: holds them, and nothing else.
        key: 32 bytes, fresh for each run.
    """

    folder: Path
    key: bytes = field(repr=False)

    def file(self, name: str) -> RunFile:
        """Return a file, to be read."""
        return RunFile(path=self.folder / name, key=self.key)

    @contextmanager
    def writing(self, name: str) -> Iterator[SealedFile]:
        """Open a file under a name of its own; when the block ends, it gets its name, in the place of an earlier one.

        Raises:
            UnavailableError: the run's folder is gone.
            OSError: the disk is full or fails.
        """
        temporary = f"{name}.{secrets.token_hex(8)}.part"
        descriptor, salt = self._new(temporary)
        try:
            yield _sealed(descriptor, self.folder / name, self.key, salt)
        except BaseException:
            self.delete(temporary)
            raise
        finally:
            os.close(descriptor)
        with _in_folder(self.folder):
            (self.folder / temporary).replace(self.folder / name)

    def create(self, name: str) -> SealedFile:
        """Return a new file that stays open until nothing refers to it; others read what is there.

        Raises:
            UnavailableError: the run's folder is gone.
            OSError: there is such a file, or the disk is full or fails.
        """
        descriptor, salt = self._new(name)
        file = _sealed(descriptor, self.folder / name, self.key, salt)
        weakref.finalize(file, os.close, descriptor)
        return file

    def delete(self, *names: str) -> None:
        """Delete some files, whether they are there or not."""
        for name in names:
            (self.folder / name).unlink(missing_ok=True)

    def delete_all(self, beginning: str) -> None:
        """Delete the files whose names begin so."""
        for path in self.folder.glob(f"{beginning}*"):
            path.unlink(missing_ok=True)

    def _new(self, name: str) -> tuple[int, bytes]:
        """Return a new file's descriptor and salt."""
        salt = secrets.token_bytes(_SALT)
        with _in_folder(self.folder), named_in_errors(self.folder):
            descriptor = os.open(self.folder / name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            os.pwrite(descriptor, salt, 0)
        return descriptor, salt


@contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    """Say what to do where a file is not there because the whole folder is gone."""
    try:
        yield
    except FileNotFoundError:
        if folder.is_dir():
            raise
        raise UnavailableError(
            "the folder with the files of this run is gone",
            where="disk",
            remedy="If it is what a cluster's workers share, mount it again here and at each of them. If its files are"
            " lost, start this party again.",
        ) from None


def _sealed(descriptor: int, path: Path, key: bytes, salt: bytes) -> SealedFile:
    """Return a file of a run under its own key."""
    own = hmac.digest(key, salt + path.name.encode(), "sha256")
    return SealedFile(descriptor, path.parent, key=own, header=_SALT)


def new_run(folder: Path) -> RunFiles:
    """Begin a run.

    Args:
        folder: gets a folder `run`, for this party alone; what an earlier run left there is deleted.
    """
    own = folder / _FOLDER
    shutil.rmtree(own, ignore_errors=True)
    make_private(own)
    return RunFiles(folder=own, key=secrets.token_bytes(32))


@contextmanager
def run_in(folder: Path) -> Iterator[RunFiles]:
    """Begin a run as `new_run`, and delete its files when the block ends."""
    run = new_run(folder)
    try:
        yield run
    finally:
        shutil.rmtree(run.folder, ignore_errors=True)
