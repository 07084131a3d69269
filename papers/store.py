"""Computed points on disk, so that an interrupted run can resume."""

import hashlib
import json
import os
import tempfile
from pathlib import Path

from veiltab.papers.experiment import Plain
from veiltab.papers.point import Point


class Store:
    """A folder of computed points, one file each; several runs may share it.

    A file holds the digest of the rest, what the result depends on, and the result. A damaged file, or one of another
    version, counts as missing.

    Args:
        folder: made when the first point is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, point: Point) -> Plain | None:
        """Return the kept result of a point, or None."""
        try:
            digest, identity, result = self._path(point).read_text("utf-8").removesuffix("\n").split("\n")
        except (OSError, ValueError):
            return None
        if identity != point.identity or digest != _digest(identity, result):
            return None
        return dict(json.loads(result))

    def keep(self, point: Point, result: str) -> None:
        """Write the result of a point atomically."""
        path = self._path(point)
        path.parent.mkdir(parents=True, exist_ok=True)
        identity = point.identity
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
                file.write(f"{_digest(identity, result)}\n{identity}\n{result}\n")
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def _path(self, point: Point) -> Path:
        """Return the file of a question; an answer of a newer version takes the place of an older one."""
        name = hashlib.blake2b(point.question.encode(), digest_size=16).hexdigest()
        return self._folder / point.experiment / f"{name}.point"


def _digest(identity: str, result: str) -> str:
    return hashlib.sha256(f"{identity}\n{result}".encode()).hexdigest()
