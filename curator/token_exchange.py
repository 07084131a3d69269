"""Alignment by tokens: every curator reads the sorted tokens of all others and keeps what all have."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from veiltab.common.errors import InvalidInputError, NotReadyError, UnavailableError, VeiltabError
from veiltab.common.observe.progress import Progress, Stage
from veiltab.common.observe.steps import step
from veiltab.common.storage.disk import named_in_errors
from veiltab.curator.coordination import Peers
from veiltab.curator.exchange import own_tokens
from veiltab.curator.intersection import TOKEN_LENGTH
from veiltab.curator.table import Table


class TokenExchange:
    """Exchanges keyed tokens; see `Exchange`.

    Args:
        folder: where the alignments lie, each in a folder of its name.
    """

    needs_order = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stage = Stage()

    @property
    def progress(self) -> str:
        """Whose tokens are fetched."""
        return str(self._stage)

    async def run(self, name: str, table: Table, folder: Path, peers: Peers) -> Mapping[str, Path]:  # noqa: ARG002 - an Exchange
        """Fetch the tokens of all others."""
        received = {}
        for peer in peers.curators:
            with self._stage.of(f"fetching tokens of {peer}", None) as progress:
                received[peer] = await _fetch(name, peer, folder, peers, progress)
        return received

    async def is_wanted(self, name: str, peers: Peers) -> bool:  # noqa: ARG002 - an Exchange
        """Return false: one's own tokens lie ready for whoever begins again. Those of others may outlast a crash."""
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


async def _fetch(name: str, peer: str, folder: Path, peers: Peers, progress: Progress) -> Path:
    """Fetch a peer's tokens; where a connection broke, the next attempt goes on."""
    path = folder / f"{peer}-tokens.bin"
    begun = path.with_suffix(".part")
    try:
        with step("fetch tokens") as measured, named_in_errors(begun), _appended(begun) as file:
            before = file.tell()
            async for data in peers.tokens(peer, name, before):
                file.write(data)
                progress.advance(len(data) // TOKEN_LENGTH)
            measured.bytes = file.tell() - before
    except (NotReadyError, UnavailableError):
        raise
    except VeiltabError:
        begun.unlink()
        raise
    begun.replace(path)
    if path.stat().st_size % TOKEN_LENGTH:
        raise InvalidInputError("sent tokens that are cut short", where=f"curator {peer}")
    return path


def _appended(path: Path) -> BinaryIO:
    """Open a file of one's own at its end."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
