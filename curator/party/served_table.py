"""Loads the table that a curator serves, and records which file it was."""

import secrets
import sys

from veiltab.common.command.cli import note
from veiltab.common.observe.steps import step
from veiltab.common.storage.run_files import RunFiles
from veiltab.common.study.file import Study
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.opening import file_of
from veiltab.curator.records.served_files import ServedTable
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.table.table import Table
from veiltab.curator.table.table_reading import load_table


def load_served(table: TableAddress, study: Study, name: str, store: CuratorStore, run: RunFiles) -> Table:
    """Load a table, record it as the one that is served, and say what it has.

    Args:
        run: folder of what the process keeps while it runs.

    Raises:
        InvalidInputError: as `load_table`.
    """
    file = _file_as_it_is(table)
    note(f"reading {table.label}")
    with step("load table"):
        loaded = load_table(table, study, name, run=run)
    version = store.alignments.table_version(loaded.content_digest, secrets.token_hex(16))
    store.served.set_served_table(file, loaded.rows, version)
    note(f"table: {loaded.size}; {loaded.description}")
    if sys.stderr.isatty():  # a log has no ids
        note("; ".join(map(str, loaded.ends)))
    if file is not None and file.note:
        note(file.note)
    return loaded


def _file_as_it_is(table: TableAddress) -> ServedTable | None:
    """Return the file of a table before it is read; None if it is not a single file, or cannot be looked at."""
    try:
        file = file_of(table)
        return None if file is None else ServedTable.of(file)
    except OSError:
        return None
