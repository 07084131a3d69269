"""Options that a curator's commands share, and the state that they open beside its running process."""

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click

from veiltab.common.command.rare_options import rare_options
from veiltab.common.tasks.engine_options import ENGINE_OPTIONS, EngineOptions
from veiltab.curator.officer.work_options import WorkOptions

policy_option = click.option(
    "--policy", "policy_path", type=click.Path(path_type=Path), help="Policy file; without one, a person decides."
)

_RELEASE_HELP = "Id of the request, or the beginning of it."
request_option = click.option("--release", "prefix", required=True, help=_RELEASE_HELP)
optional_request_option = click.option("--release", "prefix", help=_RELEASE_HELP)
person_option = click.option(
    "--person", help="Who decides; by default the login name, unless the policy asks for several."
)
reason_option = click.option("--reason", default="", help="Why; it is recorded, and stays at this curator.")
held_option = click.option(
    "--attribute", "attributes", multiple=True, help="Only these attributes; by default all that are held."
)

_SHARED = click.option(
    "--shared",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="With dask: a folder that this process and the workers see at the same path, for encrypted files.",
)

_DATE = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"])


def _seconds_of(_context: click.Context, _option: click.Parameter, value: datetime | None) -> int | None:
    """Return a date as Unix seconds; one without a time zone is UTC."""
    if value is None:
        return None
    return int((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp())


since_option = click.option("--since", type=_DATE, callback=_seconds_of, help="Only from this date on, UTC.")
until_option = click.option("--until", type=_DATE, callback=_seconds_of, help="Only before this date, UTC.")


def work_options(command: Callable[..., None]) -> Callable[..., None]:
    """Pass a command WorkOptions as its argument `work`."""

    @rare_options("--advanced", *ENGINE_OPTIONS, _SHARED)
    @functools.wraps(command)
    def with_work(
        *, workers: int | None, dask: str | None, dask_identity: Path | None, shared: Path | None, **options: object
    ) -> None:
        engine = EngineOptions(workers=workers, dask=dask, dask_identity=dask_identity)
        command(work=WorkOptions(engine=engine, shared=shared), **options)

    return with_work
