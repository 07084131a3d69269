"""The folder of a demonstration: new, or empty."""

from pathlib import Path

from veiltab.common.errors import InvalidInputError


def new_folder(path: Path) -> None:
    """Make a folder and its parents; accept an empty one that exists.

    Raises:
        InvalidInputError: it is not empty, or cannot be made.
    """
    if path.is_dir() and any(path.iterdir()):
        raise InvalidInputError("this folder is not empty", where=str(path), remedy="Give another folder.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"the folder cannot be made ({error.strerror})", where=str(path)) from None
