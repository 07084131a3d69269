"""Runs a server process: its folder, its releases and, where a study has nodes, its rounds."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial, reduce
from operator import or_
from pathlib import Path
from typing import Protocol

from veiltab.common.command.options import ServeOptions
from veiltab.common.command.parties import parties_in
from veiltab.common.command.run import serve_party
from veiltab.common.command.running import serve_anew
from veiltab.common.errors import InvalidInputError
from veiltab.common.observe.sinks import observing
from veiltab.common.observe.status import Observation
from veiltab.common.rpc.parties.identity import Identity, Role
from veiltab.common.rpc.server import Registration
from veiltab.common.storage.files import OwnedFolder
from veiltab.common.web.http_options import HttpOptions
from veiltab.server.party.service import IngestServicer, ReleaseServicer
from veiltab.server.party.status import observe
from veiltab.server.records.databases import hold_folder
from veiltab.server.records.store import ServerStore
from veiltab.server.release.releases import Releases
from veiltab.server.sharing.quota import Quota
from veiltab.v1.ingest_pb2_grpc import add_IngestServiceServicer_to_server
from veiltab.v1.server_release_pb2_grpc import add_ReleaseServiceServicer_to_server


class Part(Protocol):
    """A part of the server beside its releases."""

    @property
    def registration(self) -> Registration:
        """Registers its RPCs."""

    async def run(self) -> None:
        """Work until cancelled."""

    def observe(self) -> Observation:
        """Return what it does."""


def serve_server(
    options: ServeOptions, *, retention_days: int, quota: Quota, database: str, http: HttpOptions | None = None
) -> None:
    """Perturb columns, and count reports where the study has nodes, until a signal stops the process."""
    study, identity = options.load(Role.SERVER)
    if http is not None and study.nodes is None:
        raise InvalidInputError("the study has no nodes that could report", where="--http", remedy="Leave it out.")

    def serve(identity: Identity) -> Identity | None:
        callers = parties_in(study, Role.CURATOR, Role.RESEARCHER, Role.NODE)
        with (
            options.state() as path,
            open_state(path, identity.party.uri, database) as (folder, store),
            ExitStack() as beside,
        ):
            releases = Releases(study, store, retention_days=retention_days, quota=quota)
            parts = list[Part]()
            if study.nodes is not None:
                from veiltab.server.party.collecting import collecting  # noqa: PLC0415 - not for studies without nodes

                reports = None if http is None else (http, options.identity_folder)
                opened = collecting(study, identity, (folder, database), retention_days=retention_days, http=reports)
                parts.append(beside.enter_context(opened))

            def look() -> Observation:
                return reduce(or_, (part.observe() for part in parts), observe(releases, store))

            own: Sequence[Registration] = (
                partial(add_IngestServiceServicer_to_server, IngestServicer(releases)),
                partial(add_ReleaseServiceServicer_to_server, ReleaseServicer(releases, identity)),
                *(part.registration for part in parts),
            )
            with observing(identity, look, metrics=options.metrics) as status:
                work, listen = partial(_together, [releases.run, *(part.run for part in parts)]), study.server.endpoint
                return serve_party(options, identity, callers, [status, *own], listen, work, changes=releases.changes)

    serve_anew(serve, identity)


@contextmanager
def open_state(path: Path, owner: str, database: str) -> Iterator[tuple[Path, ServerStore]]:
    """Hold a server's folder, and open the state of its releases, for a block.

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
        if not isinstance(folder, OwnedFolder):
            folder.join(releases.connection)
        yield folder.path, releases


async def _together(runs: Sequence[Callable[[], Coroutine[object, object, None]]]) -> None:
    """Work on releases, and on what stands beside them; the end of one ends all."""
    async with asyncio.TaskGroup() as tasks:
        for run in runs:
            tasks.create_task(run())
