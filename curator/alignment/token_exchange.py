"""The join by tokens: every spoke reads the sorted tokens of the hub, and says nothing.

Tokens are keyed (see veiltab.curator.table.tokens): a spoke learns which of its own people the hub has. It could also
test ids that it guesses, because all curators have the key; docs/threat-model.md says so.
"""

import os
from contextlib import ExitStack
from pathlib import Path

from veiltab.common.errors import DeniedError, InvalidInputError, NotReadyError, UnavailableError, VeiltabError
from veiltab.common.observe.progress import Stage
from veiltab.common.observe.steps import step
from veiltab.common.storage.disk import DiskReservations
from veiltab.common.storage.files import named_in_errors
from veiltab.curator.alignment.disk_needs import aligned_row_bytes, alignment_bytes
from veiltab.curator.alignment.exchange import Exchange
from veiltab.curator.peers.calls import Peers
from veiltab.curator.table.table import Table
from veiltab.curator.table.tokens import TOKEN_LENGTH

_ROOM = "rows of the hub"


class TokenExchange(Exchange):
    """Reads the keyed tokens of the hub; see `Exchange`.

    Args:
        folder: where the alignments lie, each in a folder of its name.
        room: of the disk where they lie.
    """

    def __init__(self, name: str, hub: str, folder: Path, room: DiskReservations) -> None:
        self._hub, self._is_hub = hub, name == hub
        self._folder = folder
        self._room = room
        self._stage = Stage()

    @property
    def progress(self) -> str:
        """Whose tokens are fetched."""
        return str(self._stage)

    def most_bytes(self, table: Table) -> int:
        """Return what an alignment writes at most, if no other table is larger."""
        return alignment_bytes(table.rows, table.respondents.types.values(), 1 if self._is_hub else 2)

    async def run(self, name: str, table: Table, folder: Path, peers: Peers) -> Path | None:
        """Fetch the tokens of the hub."""
        return None if self._is_hub else await self._fetch(name, table, folder, peers)

    async def is_wanted(self, name: str, table: Table, peers: Peers) -> bool:  # noqa: ARG002 - an Exchange
        """Return false: the hub's tokens lie ready for anyone who begins again. At a spoke they may outlast a crash."""
        self.finish(name, self._folder / name)
        return False

    def finish(self, name: str, folder: Path) -> None:  # noqa: ARG002 - an Exchange
        """Delete the tokens of the hub, at a spoke."""
        _of_hub(folder).unlink(missing_ok=True)
        self._room.give_back(_ROOM)

    def check_tokens_are_shared(self) -> None:
        """Refuse to send tokens of a spoke: only the hub's list is open to the others.

        Raises:
            DeniedError: this is not a hub.
        """
        if not self._is_hub:
            raise DeniedError("the curator that was asked for tokens is not the hub", where=f"hub {self._hub}")

    async def _fetch(self, name: str, table: Table, folder: Path, peers: Peers) -> Path:
        """Fetch the hub's tokens; where a connection broke, the next attempt goes on."""
        path, peer = _of_hub(folder), self._hub
        row = aligned_row_bytes(table.respondents.types.values())
        begun = path.with_suffix(".part")
        try:
            with ExitStack() as block:
                size = block.enter_context(step("fetch tokens"))
                block.enter_context(named_in_errors(begun))
                end = os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                file = block.enter_context(os.fdopen(end, "ab"))
                before = file.tell()
                fetching = self._stage.of(f"fetching tokens of {peer}", None, done=before // TOKEN_LENGTH)
                progress = block.enter_context(fetching)

                def admit(total: int) -> None:
                    """Keep room for what goes beyond a table as large as one's own: tokens, and aligned rows."""
                    progress.expect(total // TOKEN_LENGTH)
                    if (more := total // TOKEN_LENGTH - table.rows) > 0:
                        self._room.keep(_ROOM, min(TOKEN_LENGTH * more, total - file.tell()) + row * more)

                async for data in peers.tokens(peer, name, before, admit):
                    file.write(data)
                    progress.advance(len(data) // TOKEN_LENGTH)
                size.bytes = file.tell() - before
                file.flush()
                os.fsync(file.fileno())
        except (NotReadyError, UnavailableError):
            raise
        except VeiltabError:
            begun.unlink()
            raise
        begun.replace(path)
        if path.stat().st_size % TOKEN_LENGTH:
            raise InvalidInputError("sent tokens that are cut short", where=f"curator {peer}")
        return path


def _of_hub(folder: Path) -> Path:
    return folder / "hub-tokens.bin"
