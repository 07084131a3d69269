"""What hub and spoke have at hand in one session of a linkage, and what both know of its passes."""

from collections.abc import Iterable

from veiltab.common.core.derivation import derive
from veiltab.common.dataclass import dataclass, field
from veiltab.common.linkage.identity_rule import IdentityRule
from veiltab.common.linkage.ladder import Pass
from veiltab.common.linkage.row_keys import most_variants
from veiltab.common.oblivious.function import DIGEST_BYTES
from veiltab.curator.alignment.disk_needs import FOLDERS, ROW_BYTES
from veiltab.curator.alignment.intersection import SymbolType
from veiltab.curator.alignment.joining.join_disk import join_bytes
from veiltab.curator.alignment.joining.join_messages import SessionFiles
from veiltab.curator.alignment.joining.sessions import Sessions
from veiltab.curator.alignment.linking.own_keys import MOST_KEPT, RECORD_BYTES, OwnRows, compared
from veiltab.curator.alignment.linking.shown_keys import ENTRY_BYTES
from veiltab.curator.records.join_sessions import JoinSession
from veiltab.curator.table.table import Table
from veiltab.curator.table.tokens import TOKEN_LENGTH

PAD = 4096
"""The keys that a hub shows in a pass are as many as a multiple of this."""

COMPARED = 100
"""Number of the pass in which fields of linked pairs are compared; those of a ladder are at most 64."""

MOST_SHOWN = 40_000
"""Rows of the hub whose fields may be compared: those of the least numbers."""

MOST_PAIRS = 20_000
"""Linked pairs that are compared."""

MOST_PLACEBO_ROWS = 20_000
"""Rows that a spoke runs with moved dates too, at most: enough to foresee links by chance in a table of any size."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkSession:
    """What a hub or a spoke has at hand in one session.

    Args:
        table: its own.
        own: the identity fields of its rows.
        session: its part.
        key: which hub and spoke tossed: of digests, or of tokens.
        rows: of the spoke; at the hub the most that its store may have.
        is_private: whether keys are compared obliviously, else by tokens.
    """

    identity: IdentityRule
    table: Table
    own: OwnRows
    sessions: Sessions
    session: JoinSession
    files: SessionFiles
    key: bytes = field(repr=False)
    rows: int
    is_private: bool

    @property
    def placebo_rows(self) -> int:
        """How many rows the spoke runs with moved dates: none privately, unless the study says so."""
        return min(self.rows, MOST_PLACEBO_ROWS) if self.identity.placebo or not self.is_private else 0

    @property
    def pairs(self) -> int:
        """How many pairs are compared at most, which no link decides."""
        return min(self.rows, MOST_PAIRS)

    def key_count(self, step: Pass) -> int:
        """Return how many keys the spoke asks about in a pass, the same for any links."""
        return (self.rows + self.placebo_rows) * most_variants(step, self.identity)

    @property
    def pair_key_count(self) -> int:
        """How many keys it asks about in the comparison."""
        return self.pairs * len(compared(self.identity))

    def named(self, number: int) -> str:
        """Return what people call a pass."""
        return "the comparison" if number == COMPARED else f"pass {number} of {len(self.identity.ladder)}"

    def derived(self, label: str) -> bytes:
        """Return a secret key of this session for one purpose."""
        return derive(self.session.secret, f"linkage {label}")


def linkage_bytes(rows: int, types: Iterable[SymbolType], identity: IdentityRule, sessions: int) -> int:
    """Return what a linkage and the alignment after it write at most, if no other table is larger.

    The keys of a pass lie there up to three times: sorted, as they are asked about, and with their values; few are kept
    of all passes; what is shown of all passes stays until it was fetched; the columns are those of a pass. Rows are
    written, and then put in order, twice each. Rows with moved dates have keys too.

    Args:
        types: of the symbols of each attribute.
        sessions: sessions of this curator.
    """
    keys = [most_variants(step, identity) for step in identity.ladder]
    row = TOKEN_LENGTH + ROW_BYTES + sum(type_.itemsize for type_ in types)
    key_count = rows + min(rows, MOST_PLACEBO_ROWS)
    key_bytes = ENTRY_BYTES * sum(keys) * sessions + (3 * RECORD_BYTES + DIGEST_BYTES) * max(keys)
    kept = RECORD_BYTES * sum(min(rows * one, MOST_KEPT) for one in keys)
    return kept + key_count * key_bytes + join_bytes(key_count * max(keys), sessions) + 4 * rows * row + FOLDERS
