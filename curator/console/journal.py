"""Who enters the console, in the curator's audit log."""

from veiltab.common.dataclass import dataclass
from veiltab.common.storage.database import transaction
from veiltab.curator.audit.log import Event
from veiltab.curator.records.store import CuratorStore


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditJournal:
    """Records sessions; what cannot be recorded is refused by the database."""

    store: CuratorStore

    def session_began(self, person: str, decides: bool) -> None:  # noqa: FBT001 - of every journal
        """Record that a person entered, to decide or to read."""
        with transaction(self.store.connection):
            self.store.audit.record(Event.SESSION_BEGUN, person=person, right="decide" if decides else "read")

    def session_ended(self, person: str, reason: str) -> None:
        """Record that a person's session is over, and why."""
        with transaction(self.store.connection):
            self.store.audit.record(Event.SESSION_ENDED, person=person, reason=reason)
