"""Runs a server process: its folder, its releases and its rounds."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path

from veiltab.common.command.options import ServeOptions
from veiltab.common.command.parties import parties_in
from veiltab.common.command.run import serve_party
from veiltab.common.https.http_options import HttpOptions
from veiltab.common.observe.sinks import observing
from veiltab.common.process.logs import log_to_stderr
from veiltab.common.rpc.parties.identity import Role
from veiltab.server.https.port import reports_taken
from veiltab.server.party.service import IngestServicer, ReleaseServicer
from veiltab.server.party.status import observe
from veiltab.server.records.store import ServerStore
from veiltab.server.release.releases import Releases
from veiltab.server.rounds.rounds import RoundKeeper
from veiltab.server.rounds.rounds_service import CollectionServicer
from veiltab.server.rounds.rounds_store import CollectionStore
from veiltab.server.sharing.quota import Quota
from veiltab.server.sharing.shared_folder import SharedFolder, hold_folder
from veiltab.v1.collection_pb2_grpc import add_CollectionServiceServicer_to_server
from veiltab.v1.ingest_pb2_grpc import add_IngestServiceServicer_to_server
from veiltab.v1.server_release_pb2_grpc import add_ReleaseServiceServicer_to_server


def serve_server(
    options: ServeOptions, *, retention_days: int, quota: Quota, database: str, http: HttpOptions | None = None
) -> None:
    """Perturb columns and count reports until a signal stops the process."""
    log_to_stderr(verbose=options.verbose)
    study, identity = options.load(Role.SERVER)
    callers = parties_in(study, Role.CURATOR, Role.RESEARCHER, Role.NODE)
    with options.state() as path, open_state(path, identity.party.uri, database) as (store, round_store):
        releases = Releases(study, store, retention_days=retention_days, quota=quota)
        rounds = RoundKeeper(study, round_store, retention_days=retention_days)
        own = (
            partial(add_IngestServiceServicer_to_server, IngestServicer(releases)),
            partial(add_ReleaseServiceServicer_to_server, ReleaseServicer(releases, identity)),
            partial(add_CollectionServiceServicer_to_server, CollectionServicer(rounds)),
        )
        seen = partial(observe, study, releases, store, rounds, round_store)
        with observing(identity, seen, metrics=options.metrics) as status:
            folder, shared = options.identity_folder, bool(database)
            taking = nullcontext() if http is None else reports_taken(http, rounds, identity, folder, shared=shared)
            work, listen = partial(_both, releases, rounds, taking), study.server.endpoint
            serve_party(options, identity, callers, [status, *own], listen, work, changes=releases.changes)


@contextmanager
def open_state(path: Path, owner: str, database: str) -> Iterator[tuple[ServerStore, CollectionStore]]:
    """Open a server's state for a block.

    Args:
        owner: the server, as its certificate names it.
        database: URL of the PostgreSQL that several processes share; empty for SQLite in the folder.

    Raises:
        ConflictError: the folder or the database belongs to another party.
        InvalidInputError, UnavailableError, IntegrityError: the database cannot be opened.
    """
    with ExitStack() as stack:
        folder = hold_folder(path, owner, database)
        stack.callback(folder.release)
        releases = stack.enter_context(closing(ServerStore(folder.path, database)))
        if isinstance(folder, SharedFolder):
            folder.join(releases.connection)
        yield releases, stack.enter_context(closing(CollectionStore(folder.path, database)))


async def _both(releases: Releases, rounds: RoundKeeper, taking: AbstractAsyncContextManager[None]) -> None:
    """Work on releases and on rounds; the end of one ends both, once the reports that were taken are answered."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(releases.run())
        tasks.create_task(rounds.run())
        async with taking:
            await asyncio.Event().wait()
