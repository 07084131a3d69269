"""The files that a curator serves with, as it read them, so that a later change of one is noticed."""

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from veiltab.common.storage.files import file_digest


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedPolicy:
    """The policy that the latest process served with.

    Args:
        path: its file, if it had one.
        rules: how many it has.
        budget: the curator's own, nats; None for the study's.
        persons: so many different persons must approve what is held.
        digest: SHA-256 of the file as it was read, hexadecimal; empty where it is not known.
    """

    path: Path | None
    rules: int
    budget: Decimal | None
    persons: int
    digest: str = ""

    @property
    def note(self) -> str:
        """What is to be said of a file that is another now than it was read; empty if it is the same."""
        if self.path is None or not self.digest:
            return ""
        try:
            if file_digest(self.path).hex() == self.digest:
                return ""
        except OSError:
            return f"{self.path} cannot be read any more; the running curator goes on with the rules that it read."
        return f"{self.path} was edited since the running curator read it. The new rules count once that gets SIGHUP."
