"""Alignment by tokens: every curator reads the sorted tokens of all others and keeps what all have."""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from veiltab.common.errors import InvalidInputError, NotReadyError, UnavailableError, VeiltabError
from veiltab.common.observe.progress import Stage
from veiltab.common.observe.steps import step
from veiltab.common.storage.disk import Room, named_in_errors
from veiltab.curator.alignment.disk_needs import alignment_bytes
from veiltab.curator.alignment.exchange import Exchange, own_tokens
from veiltab.curator.peers.calls import Peers
from veiltab.curator.table.table import Table
from veiltab.curator.table.tokens import TOKEN_LENGTH


class TokenExchange(Exchange):
    """Exchanges keyed tokens; see `Exchange`.

    Args:
        curators: how many the study has.
        folder: where the alignments lie, each in a folder of its name.
        room: of the disk where they lie.
    """

    needs_order = False

    def __init__(self, curators: int, folder: Path, room: Room) -> None:
        self._curators = curators
        self._folder = folder
        self._room = room
        self._stage = Stage()

    @property
    def progress(self) -> str:
        """Whose tokens are fetched."""
        return str(self._stage)

    def most_bytes(self, table: Table) -> int:
        """Return what an alignment writes at most, if no other table is larger."""
        return alignment_bytes(table.rows, table.respondents.types.values(), self._curators)

    async def run(self, name: str, table: Table, folder: Path, peers: Peers) -> Mapping[str, Path]:
        """Fetch the tokens of all others."""
        received = {}
        for peer in peers.curators:
            received[peer] = await self._fetch(name, peer, table.rows, folder, peers)
        return received

    async def is_wanted(self, name: str, peers: Peers) -> bool:  # noqa: ARG002 - an Exchange
        """Return false: one's own tokens lie ready for anyone who begins again. Those of others may outlast a crash."""
        self.finish(name, self._folder / name)
        return False

    def finish(self, name: str, folder: Path) -> None:  # noqa: ARG002 - an Exchange
        """Delete the tokens of the others."""
        for path in folder.glob("*-tokens.bin"):
            if path != own_tokens(folder):
                path.unlink()

    def check_tokens_are_shared(self) -> None:
        """Do nothing: tokens are shared."""

    def close(self) -> None:
        """Do nothing: nothing goes on."""

    async def _fetch(self, name: str, peer: str, rows: int, folder: Path, peers: Peers) -> Path:
        """Fetch a peer's tokens; where a connection broke, the next attempt goes on."""
        path, kept = folder / f"{peer}-tokens.bin", f"tokens of {peer}"
        begun = path.with_suffix(".part")
        try:
            with ExitStack() as block:
                measured = block.enter_context(step("fetch tokens"))
                block.enter_context(named_in_errors(begun))
                file = block.enter_context(_appended(begun))
                before = file.tell()
                fetching = self._stage.of(f"fetching tokens of {peer}", None, done=before // TOKEN_LENGTH)
                progress = block.enter_context(fetching)

                def admit(total: int) -> None:
                    """Keep room for what goes beyond the tokens of a table as large as one's own."""
                    progress.expect(total // TOKEN_LENGTH)
                    if total > TOKEN_LENGTH * rows:
                        self._room.keep(kept, min(total - TOKEN_LENGTH * rows, total - file.tell()))

                async for data in peers.tokens(peer, name, before, admit):
                    file.write(data)
                    progress.advance(len(data) // TOKEN_LENGTH)
                measured.bytes = file.tell() - before
        except (NotReadyError, UnavailableError):
            raise
        except VeiltabError:
            begun.unlink()
            raise
        finally:
            self._room.give_back(kept)
        begun.replace(path)
        if path.stat().st_size % TOKEN_LENGTH:
            raise InvalidInputError("sent tokens that are cut short", where=f"curator {peer}")
        return path


def _appended(path: Path) -> BinaryIO:
    """Open a file of one's own at its end."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
