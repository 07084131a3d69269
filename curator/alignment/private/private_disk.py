"""How much a private alignment writes to a curator's disk at most."""

from collections.abc import Iterable

from veiltab.curator.alignment.disk_needs import FOLDERS, ROW_BYTES
from veiltab.curator.alignment.intersection import SymbolType
from veiltab.curator.alignment.private.ristretto import ELEMENT_BYTES
from veiltab.curator.peers.ring import Flow, FlowKind
from veiltab.curator.table.tokens import TOKEN_LENGTH


def private_alignment_bytes(rows: int, types: Iterable[SymbolType], flows: Iterable[Flow], curator: str) -> int:
    """Return what a private alignment writes at most, if no other table is larger; see `private_work`.

    While a table is put in order its tokens, symbols and row numbers lie there twice, and the tokens and numbers by
    themselves. Half of that is then free for the common respondents. Each flow that the curator makes or receives is a
    file, and so are the batches of the one that it makes now. The querier keeps its query in another order, and what
    the others share, masked by itself; its query has one element more than its table, and so has what is made of that.

    Args:
        types: of the symbols of each attribute.
        flows: all of the study's curators; see `ring.flows`.
    """
    row = TOKEN_LENGTH + sum(type_.itemsize for type_ in types) + ROW_BYTES
    files = 1 + sum(flow.producer == curator or curator in flow.receivers for flow in flows)
    files += 2 * any(flow.kind is FlowKind.RESPONDENTS and flow.producer == curator for flow in flows)
    return rows * (2 * row + TOKEN_LENGTH + ROW_BYTES) + (rows + 1) * ELEMENT_BYTES * files + FOLDERS
