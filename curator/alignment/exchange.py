"""How a curator learns which rows of the hub are of its own people: what all ways have in common."""

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from veiltab.curator.peers.calls import Peers
from veiltab.curator.table.execution import Execution
from veiltab.curator.table.table import Table

if TYPE_CHECKING:
    from veiltab.curator.alignment.joining.sessions import Sessions


class Exchange(Protocol):
    """How a curator learns which rows of the hub are of its own people; the hub learns nothing.

    An exchange may be broken off at any point and repeated; it goes on with the files that it has.
    """

    @property
    def progress(self) -> str:
        """What it is doing, for people; empty if that takes no time."""

    sessions: "Sessions | None" = None
    """This curator's sessions with the others; None without such."""

    matched: int = 0
    """How many rows of the hub are of people who are in one's own table, once they are prepared."""

    def most_bytes(self, table: Table) -> int:
        """Return what an alignment of one's own table writes at most, if no other table is larger."""

    async def prepared(self, name: str, table: Table, key: bytes, execution: Execution, peers: Peers) -> Table:
        """Return the rows that enter an alignment, under the ids by which curators compare them.

        Args:
            key: of the alignment, which all curators tossed.
            execution: has the files of the run.
        """
        del name, key, execution, peers
        return table

    async def run(self, name: str, table: Table, folder: Path, peers: Peers) -> Path | None:  # noqa: ARG002 - of tokens
        """Return the file of the ascending tokens of the hub's rows; None where the prepared rows are all of them.

        Args:
            table: one's own, prepared.
            folder: has one's own ascending tokens.
        """
        return None

    def bound(self) -> bytes:
        """Return what the order of the rows follows from, beside the tables and the key; all curators have the same."""
        return b""

    async def is_wanted(self, name: str, table: Table, peers: Peers) -> bool:
        """Whether a peer needs an alignment that is made here to be made again with it."""

    def finish(self, name: str, folder: Path) -> None:
        """Delete what an alignment that is made and recorded no longer needs."""

    def check_tokens_are_shared(self) -> None:
        """Refuse to send tokens if the study aligns otherwise."""


def own_tokens(folder: Path) -> Path:
    """Return the file of a curator's own sorted tokens, in the folder of an alignment."""
    return folder / "own-tokens.bin"
