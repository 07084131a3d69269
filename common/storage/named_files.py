"""Files that a person names and asks for: a name that cannot be written to is refused before any work."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from veiltab.common.errors import InvalidInputError
from veiltab.common.storage.files import written_whole


def check_place(path: Path, suffixes: Sequence[str] = ()) -> None:
    """Refuse a name that nothing can be written to.

    Args:
        suffixes: that it may have, in small letters; any if there are none.

    Raises:
        InvalidInputError: another suffix, no such folder, a folder itself, or one that this user may not write in.
    """
    if suffixes and path.suffix.lower() not in suffixes:
        problem = f"nothing can be written as {path.suffix or 'a file without suffix'} here"
        raise InvalidInputError(problem, where=str(path), remedy=f"End the name in one of {', '.join(suffixes)}.")
    if not path.parent.is_dir():
        raise InvalidInputError("there is no such folder", where=str(path.parent), remedy="Make it first.")
    if path.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise InvalidInputError("no file can be written here", where=str(path), remedy="Choose another place.")


@contextmanager
def written_as_named(path: Path, suffixes: Sequence[str] = ()) -> Iterator[BinaryIO]:
    """Write a file whole, or say why it cannot be written; one that is there is replaced.

    Raises:
        InvalidInputError: as check_place; or the disk does not take it.
    """
    check_place(path, suffixes)
    try:
        with written_whole(path) as file:
            yield file
    except OSError as error:
        problem = f"the file cannot be written ({error.strerror or type(error).__name__})"
        raise InvalidInputError(problem, where=str(path), remedy="Choose another place.") from error
