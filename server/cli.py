"""`veiltab server`: run the cloud server."""

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.command.cli import EXIT_CODES
from veiltab.common.command.options import listen_address, load_party, serve_options
from veiltab.common.process.logs import log_to_stderr
from veiltab.common.rpc.identity import Party, Role

if TYPE_CHECKING:
    from veiltab.server.collection.rounds import RoundKeeper
    from veiltab.server.releases import Releases


@click.group(epilog=EXIT_CODES)
def server() -> None:
    """Run the cloud server: it perturbs what it cannot read.

    Example: veiltab server serve study.toml --name cloud --identity pki/server-cloud --state state
    """


@server.command(
    epilog="Example: veiltab server serve study.toml --name cloud --identity pki/server-cloud --state state"
)
@serve_options
@click.option(
    "--retention-days",
    default=30,
    show_default=True,
    type=click.IntRange(1, 36_500),
    help="How long a published release, and a closed round, can be fetched.",
)
@click.option(
    "--database",
    metavar="URL",
    default="",
    envvar="VEILTAB_DATABASE",
    show_envvar=True,
    help="A PostgreSQL for the state, postgresql://user@host/database, which several of this server's processes share,"
    " as they do the --state folder. SQLite in that folder by default. Needs the extra postgres.",
)
def serve(  # noqa: PLR0913, PLR0917 - one argument an option
    study_path: Path,
    name: str,
    identity_folder: Path,
    state_folder: Path,
    listen: str | None,
    retention_days: int,
    database: str,
    metrics: str | None,
    trace_file: Path | None,
    verbose: bool,  # noqa: FBT001 - an option
) -> None:
    """Perturb encrypted columns and serve them to their researchers; count the reports of nodes, round by round."""
    from veiltab.common.command.run import run_party  # noqa: PLC0415
    from veiltab.common.observe.sinks import observed  # noqa: PLC0415 - --help stays light
    from veiltab.common.rpc.server import Registration, build_server  # noqa: PLC0415
    from veiltab.server.collection.rounds import RoundKeeper  # noqa: PLC0415
    from veiltab.server.collection.service import CollectionServicer  # noqa: PLC0415
    from veiltab.server.releases import Releases  # noqa: PLC0415
    from veiltab.server.service import IngestServicer, ReleaseServicer  # noqa: PLC0415
    from veiltab.server.state import held_state  # noqa: PLC0415
    from veiltab.server.status import observe  # noqa: PLC0415
    from veiltab.v1.collection_pb2_grpc import add_CollectionServiceServicer_to_server  # noqa: PLC0415
    from veiltab.v1.ingest_pb2_grpc import add_IngestServiceServicer_to_server  # noqa: PLC0415
    from veiltab.v1.server_release_pb2_grpc import add_ReleaseServiceServicer_to_server  # noqa: PLC0415

    log_to_stderr(verbose=verbose)
    study, identity = load_party(study_path, identity_folder, Role.SERVER, name)
    callers = [Party(study=study.id, role=Role.CURATOR, name=c.name) for c in study.curators]
    callers += [Party(study=study.id, role=Role.RESEARCHER, name=r.name) for r in study.researchers]
    callers += [Party(study=study.id, role=Role.NODE, name=study.nodes.name)] if study.nodes else []

    async def main(releases: Releases, rounds: RoundKeeper, status: Registration) -> None:
        services: list[Registration] = [
            status,
            partial(add_IngestServiceServicer_to_server, IngestServicer(releases)),
            partial(add_ReleaseServiceServicer_to_server, ReleaseServicer(releases)),
            partial(add_CollectionServiceServicer_to_server, CollectionServicer(rounds)),
        ]
        running = build_server(identity, callers, services, listen_address(listen, study.server.endpoint))
        await run_party(identity, running, _both(releases, rounds))

    with held_state(state_folder, identity.party.uri, database) as (release_store, round_store):
        releases = Releases(study, release_store, retention_days=retention_days)
        rounds = RoundKeeper(study, round_store, retention_days=retention_days)
        seen = partial(observe, study, releases, release_store, rounds, round_store)
        with observed(identity, seen, metrics=metrics, trace_file=trace_file) as status:
            asyncio.run(main(releases, rounds, status))


async def _both(releases: "Releases", rounds: "RoundKeeper") -> None:
    """Work on releases and on rounds; what ends one ends both."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(releases.run())
        tasks.create_task(rounds.run())
