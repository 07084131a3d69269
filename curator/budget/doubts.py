"""What other parties say that they saw of this curator's ledger, and the ledger lacks; a person may set it aside.

Either the ledger was rolled back, or somebody showed an invented one under this curator's name. Nobody but a person can
tell which.
"""

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import NotFoundError
from veiltab.common.storage.database import Database, transaction
from veiltab.curator.audit.log import AuditLog, Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A ledger that another party says it saw.

    Args:
        who: the party, as messages name it.
        head: digest of the last one.
        is_set_aside: whether a person decided that this ledger is the right one all the same.
    """

    who: str
    length: int
    head: bytes
    is_set_aside: bool = False

    def as_dict(self) -> dict[str, object]:
        """Return it as plain data for JSON."""
        return {"who": self.who, "entries": self.length, "head": self.head.hex(), "set_aside": self.is_set_aside}


class Doubts:
    """The doubts about one curator's ledger: the last one of each other party."""

    def __init__(self, connection: Database) -> None:
        self._connection = connection

    def all(self) -> tuple[Doubt, ...]:
        """Return them, in order of the parties."""
        rows = self._connection.execute("SELECT * FROM doubt ORDER BY who")
        return tuple(
            Doubt(who=row["who"], length=row["length"], head=bytes(row["head"]), is_set_aside=bool(row["is_set_aside"]))
            for row in rows
        )

    def is_set_aside(self, who: str, length: int, head: bytes) -> bool:
        """Return whether a person set aside that a party says this; else keep that it does."""
        if Doubt(who=who, length=length, head=head, is_set_aside=True) in self.all():
            return True
        self._connection.execute(
            "INSERT INTO doubt (who, length, head) VALUES (?, ?, ?) ON CONFLICT (who)"
            " DO UPDATE SET length = excluded.length, head = excluded.head, is_set_aside = 0",
            [who, length, head],
        )
        return False

    def set_aside(self, name: str, *, person: str) -> Doubt:
        """Record that a person decided to go on, whatever a party of this name says that it saw.

        Raises:
            NotFoundError: no party of this name says anything that the ledger lacks.
        """
        doubt = next((one for one in self.all() if one.who.partition(" ")[2] == name and not one.is_set_aside), None)
        if doubt is None:
            raise NotFoundError(
                "has seen nothing that the ledger lacks",
                where=name,
                remedy="`veiltab curator repair` without a party lists who has.",
            )
        with transaction(self._connection) as db:
            db.execute("UPDATE doubt SET is_set_aside = 1 WHERE who = ?", [doubt.who])
            AuditLog(self._connection).record(
                Event.WITNESS_CLEARED, person=person, witness=doubt.who, entries=doubt.length, head=doubt.head.hex()
            )
        return doubt
