"""All that a server process holds while it runs: its folder, its releases, its rounds."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from veiltab.server.collection.store import CollectionStore
from veiltab.server.sharing import SharedFolder, hold_folder
from veiltab.server.store import ServerStore


@contextmanager
def held_state(path: Path, owner: str, database: str) -> Iterator[tuple[ServerStore, CollectionStore]]:
    """Hold a server's state for a block.

    Args:
        path: the state folder.
        owner: the server, as its certificate names it.
        database: URL of the PostgreSQL that several processes share; empty for SQLite in the folder.

    Raises:
        ConflictError: the folder or the database is another's.
        InvalidInputError, UnavailableError, IntegrityError: the database cannot be opened.
    """
    with ExitStack() as stack:
        folder = hold_folder(path, owner, database)
        stack.callback(folder.release)
        releases = stack.enter_context(closing(ServerStore(folder.path, database)))
        if isinstance(folder, SharedFolder):
            folder.join(releases.connection)
        yield releases, stack.enter_context(closing(CollectionStore(folder.path, database)))
