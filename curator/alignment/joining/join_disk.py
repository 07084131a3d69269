"""How much an oblivious join writes to a curator's disk at most."""

from veiltab.common.oblivious.code import ROW_BYTES, WORD_BYTES
from veiltab.common.oblivious.extension import EXTRA_ROWS
from veiltab.common.oblivious.function import DIGEST_BYTES
from veiltab.common.oblivious.store import slots_for
from veiltab.curator.alignment.disk_needs import ROW_BYTES as NUMBER_BYTES
from veiltab.curator.alignment.joining.join_hub import SHOWN_BYTES


def join_bytes(rows: int, sessions: int) -> int:
    """Return what the sessions of a join write at most, if no other table is larger; see `join_hub` and `join_spoke`.

    Of each link the columns and the rows that follow from them, and at a spoke its store and its digests before.

    Args:
        sessions: sessions of this curator.
    """
    slots = EXTRA_ROWS + slots_for(rows)
    return sessions * (slots * (2 * ROW_BYTES + WORD_BYTES) + rows * (DIGEST_BYTES + SHOWN_BYTES)) + rows * NUMBER_BYTES
