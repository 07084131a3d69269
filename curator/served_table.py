"""The file of the table that a curator serves, so that a later change of it is noticed."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTable:
    """A table's file, as it was when the latest process read it.

    Args:
        path: the file.
        size: bytes.
        modified: when it was last written, nanoseconds.
    """

    path: Path
    size: int
    modified: int

    @classmethod
    def of(cls, path: Path) -> "ServedTable":
        """Return a file as it is now.

        Raises:
            OSError: it cannot be looked at.
        """
        now = path.stat()
        return cls(path=path.absolute(), size=now.st_size, modified=now.st_mtime_ns)

    @property
    def note(self) -> str:
        """What is to be said of a file that was changed since; empty if it was not."""
        try:
            if ServedTable.of(self.path) == self:
                return ""
        except OSError:
            return f"{self.path} cannot be read any more; the running curator goes on with the table that it read."
        return (
            f"{self.path} was changed since the running curator read it: it goes on with the rows that it read. Restart"
            " `veiltab curator serve` to serve the new ones."
        )
