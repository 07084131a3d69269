"""Alignment by tokens: every curator reads the sorted tokens of all others and keeps what all have."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veiltab.common.errors import InvalidInputError
from veiltab.common.observe.steps import step
from veiltab.common.storage.files import written_whole
from veiltab.curator.coordination import Peers
from veiltab.curator.exchange import FindRows, own_tokens, token_pieces
from veiltab.curator.intersection import TOKEN_LENGTH, Intersection, tokens_of
from veiltab.curator.table import Table


class TokenExchange:
    """Exchanges keyed tokens; see `Exchange`."""

    progress = ""

    async def run(self, name: str, table: Table, folder: Path, peers: Peers) -> FindRows:  # noqa: ARG002 - an Exchange
        """Fetch the tokens of all others."""
        received = {peer: await _fetch(name, peer, folder, peers) for peer in peers.curators}
        return lambda: _common_rows(own_tokens(folder), received)

    async def is_wanted(self, name: str, peers: Peers) -> bool:  # noqa: ARG002 - an Exchange
        """Return false: one's own tokens lie ready for whoever begins again."""
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


async def _fetch(name: str, peer: str, folder: Path, peers: Peers) -> Path:
    path = folder / f"{peer}-tokens.bin"
    with step("fetch tokens") as measured, written_whole(path) as file:
        async for data in peers.tokens(peer, name):
            file.write(data)
        measured.bytes = file.tell()
    if path.stat().st_size % TOKEN_LENGTH:
        raise InvalidInputError("sent tokens that are cut short", where=f"curator {peer}")
    return path


def _common_rows(own: Path, received: dict[str, Path]) -> NDArray[np.int64]:
    """Return the positions of the common respondents among one's own sorted tokens."""
    intersection = Intersection(tokens_of(own))
    for peer, path in received.items():
        intersection.keep(peer, token_pieces(path))
    return intersection.rows
