"""How much a curator's long steps write to its disk at most, so that none begins that cannot end."""

from collections.abc import Iterable

from veiltab.common.release.modes import Pad
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.table_spec import TableSpec
from veiltab.curator.alignment.intersection import SymbolType
from veiltab.curator.progress.table_steps import MOST_TABLES_AT_A_TIME
from veiltab.curator.table.tokens import TOKEN_LENGTH

ROW_BYTES = 8
"""Of a row number, and of a word by which rows are ordered."""

FOLDERS = 2**16
"""Bytes of folders, ends of files and canaries' ciphertext that no count of rows says."""


def alignment_bytes(rows: int, types: Iterable[SymbolType], curators: int) -> int:
    """Return what an alignment by tokens writes at most, if the hub has no more rows; see `TokenExchange`.

    While a table is put in order its tokens and symbols lie there twice, and the tokens by themselves; then come the
    tokens of the hub and the aligned table, for which half of that is free again.

    Args:
        types: of the symbols of each attribute.
        curators: whose tokens lie there: 1 at the hub, 2 at a spoke.
    """
    return rows * (2 * aligned_row_bytes(types) + TOKEN_LENGTH * curators) + FOLDERS


def aligned_row_bytes(types: Iterable[SymbolType]) -> int:
    """Return the bytes of a row of an aligned table."""
    return TOKEN_LENGTH + sum(type_.itemsize for type_ in types)


def release_bytes(release: ReleaseSpec, curator: str, *, copies: bool = False) -> int:
    """Return what a release writes at a curator at most: of several tables, those that run at a time.

    Args:
        copies: whether a draw copies the tokens and columns of all respondents for tasks elsewhere.
    """

    def drawn_bytes(spec: TableSpec) -> int:
        copied = _rounded_bytes(spec, curator) + TOKEN_LENGTH * spec.population if copies else 0
        return _drawn_bytes(spec, curator) + _rounded_bytes(spec, curator) + copied

    sizes = sorted((drawn_bytes(one) + _sent_bytes(one, curator) for one in release.each_table()), reverse=True)
    return sum(sizes[:MOST_TABLES_AT_A_TIME]) + release.most(
        lambda table: _sent_bytes(table, curator) if table.pad is Pad.OTP else 0
    )


def _drawn_bytes(spec: TableSpec, curator: str) -> int:
    """Return the bytes of the sample: its rows, and what orders them, or those twice with the symbols in tasks.

    Of two stages, what looks the first up comes to that.
    """
    looked_up = 0 if spec.stage is None else spec.stage + 2 * spec.sample
    rows = ROW_BYTES * spec.data_rows
    return max(3 * rows + ROW_BYTES * looked_up, 2 * (rows + _sent_bytes(spec, curator))) + FOLDERS


def _rounded_bytes(spec: TableSpec, curator: str) -> int:
    """Return the bytes of a curator's columns with all respondents, as they are if all of them are numbers."""
    return sum(column.byte_length(spec.population) for column in spec.columns_of(curator))


def _sent_bytes(spec: TableSpec, curator: str) -> int:
    return sum(column.byte_length(spec.uploaded_rows) for column in spec.columns_of(curator))
