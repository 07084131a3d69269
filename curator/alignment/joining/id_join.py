"""The join by ids: each curator knows those of its own people, and no other."""

from veiltab.common.core.derivation import derive
from veiltab.curator.alignment.disk_needs import alignment_bytes
from veiltab.curator.alignment.joining.join_disk import join_bytes
from veiltab.curator.alignment.joining.join_exchange import SpokeRows
from veiltab.curator.alignment.joining.join_hub import show_rows
from veiltab.curator.alignment.joining.join_messages import SessionFiles, Standing
from veiltab.curator.alignment.joining.join_spoke import find_rows
from veiltab.curator.alignment.joining.own_ids import DigestedIds
from veiltab.curator.alignment.joining.row_numbers import Numbers, commitment_to, own_numbers
from veiltab.curator.alignment.joining.sessions import Sessions
from veiltab.curator.records.join_sessions import JoinSession
from veiltab.curator.table.table import Table


class IdJoin:
    """One curator's part in it; see `Join`."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def most_bytes(self, table: Table, sessions: int) -> int:
        """Return what an alignment writes at most, if no other table is larger."""
        return alignment_bytes(table.rows, table.respondents.types.values(), 2) + join_bytes(table.rows, sessions)

    def rows(self, table: Table) -> int:
        """Return the respondents: no other row takes part."""
        return table.rows

    async def numbers(self, name: str, table: Table, order_key: bytes) -> tuple[Numbers, bytes]:  # noqa: ARG002 - a Join
        """Return the numbers of the hub's respondents, and what commits to them."""
        return own_numbers(order_key, table.rows), commitment_to(order_key)

    async def show(  # noqa: PLR0913, PLR0917 - a Join
        self, table: Table, numbers: Numbers, key: bytes, own: JoinSession, files: SessionFiles, standing: Standing
    ) -> None:
        """Show the values of the hub's rows."""
        ids = DigestedIds(table.respondents, derive(key, f"join {files.other}"))
        await show_rows(self._sessions, own, files, standing, ids, numbers)

    async def find(
        self, table: Table, key: bytes, own: JoinSession, files: SessionFiles, standing: Standing
    ) -> SpokeRows:
        """Find the rows of the spoke's people."""
        ids = DigestedIds(table.respondents, derive(key, f"join {self._sessions.name}"))
        numbers = await find_rows(self._sessions, own, files, standing, ids)
        return SpokeRows(numbers=numbers, rows=standing.size, bound=standing.order)

    def forget(self) -> None:
        """Do nothing: nothing is kept."""
