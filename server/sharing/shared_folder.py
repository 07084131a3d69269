"""A state folder that several server processes use at once; their state is in a shared database.

Folder and database belong together: the folder has the columns, and the database says which of them are published. A
random mark in each identifies the other.
"""

import fcntl
import secrets
from pathlib import Path

from veiltab.common.errors import ConflictError
from veiltab.common.storage.database import Connection, transaction
from veiltab.common.storage.files import check_owner, make_private, open_lock, write_whole
from veiltab.server.sharing.folders import MARK

DEPLOYMENT = ("CREATE TABLE deployment (party TEXT PRIMARY KEY, folder TEXT NOT NULL)",)
"""Migrations of the table that says whose database it is, and which folder goes with it."""

_OWNER = "party"


class SharedFolder:
    """A state folder of one party, held together with its other processes.

    Args:
        path: the folder; made if missing.
        owner: the party, as its certificate names it.

    Raises:
        ConflictError: it is another party's, or a sole process holds it.
    """

    def __init__(self, path: Path, owner: str) -> None:
        make_private(path)
        self.path = path
        self._owner = owner
        check_owner(path, owner)
        if any(path.glob("*.sqlite")):
            raise ConflictError(
                "this folder's state is in SQLite",
                where=str(path),
                remedy="Leave --database out, or begin with an empty folder.",
            )
        self._lock = open_lock(path)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise ConflictError(
                "a process without --database runs on this folder", where=str(path), remedy="Stop it first."
            ) from None

    def join(self, connection: Connection) -> None:
        """Refuse a database that is another party's, or that belongs to another folder.

        Raises:
            ConflictError: says which.
        """
        with transaction(connection) as db:
            row = db.execute("SELECT party, folder FROM deployment").fetchone()
            if row is None:
                db.execute("INSERT INTO deployment VALUES (?, ?)", [self._owner, self._marked()])
            elif row["party"] != self._owner:
                raise ConflictError(
                    f"this database holds the state of {row['party']!r}, not of {self._owner!r}",
                    where="--database",
                    remedy="Give each party a database of its own.",
                )
            elif row["folder"] != self._mark():
                raise ConflictError(
                    "this is not the folder that goes with the database",
                    where=str(self.path),
                    remedy="All processes of a server share one --state folder, which lies where all can reach it.",
                )

    def _mark(self) -> str:
        path = self.path / MARK
        return path.read_text("utf-8") if path.exists() else ""

    def _marked(self) -> str:
        """Write the owner and the mark into the folder, under the lock of the first process."""
        if self._mark() and any(self.path.glob("releases/*")):
            raise ConflictError(
                "this folder goes with another database",
                where=str(self.path),
                remedy="Name that database, or begin with an empty folder.",
            )
        mark = secrets.token_hex(16)
        for name, text in ((_OWNER, self._owner), (MARK, mark)):
            write_whole(self.path / name, text.encode())
        return mark

    def release(self) -> None:
        """Release the folder."""
        self._lock.close()
