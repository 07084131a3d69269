"""Options that a curator's commands share, and the state that they open beside its running process."""

import functools
import getpass
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click

from veiltab.common.command.cli import note
from veiltab.common.command.options import checked_name_option, state_option, study_argument, wrong_name
from veiltab.common.command.rare_options import rare_options
from veiltab.common.errors import InvalidInputError
from veiltab.common.tasks.engine_options import ENGINE_OPTIONS, EngineOptions
from veiltab.curator.officer.open_state import open_state
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


def with_own_state(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the state of the curator whose folder its options name, as its argument `own_state`."""

    @study_argument
    @checked_name_option
    @state_option
    @functools.wraps(command)
    def opened(
        study_path: Path, state_folder: Path, name: str | None, policy_path: Path | None = None, **options: object
    ) -> None:
        with open_state(study_path, state_folder, policy_path) as own_state:
            if name not in {None, own_state.name}:
                raise wrong_name(f"the state of curator {own_state.name}", name)
            table = own_state.store.served.served_table()
            for sentence in (own_state.store.served.served_policy().note, "" if table is None else table.note):
                if sentence:
                    note(sentence)
            command(own_state=own_state, **options)

    return opened


def named_person(person: str | None, persons: int = 1) -> str:
    """Return who decides: the person who is named, or who is logged in.

    Args:
        person: the name as it was given; None if none was.
        persons: so many different persons must approve; where they are several, nobody is meant by default.

    Raises:
        InvalidInputError: the name is empty, or is needed, or the operating system does not say who is logged in.
    """
    if person is not None:
        if not person.strip():
            raise InvalidInputError("the name is empty", where="--person", remedy="Say who decides.")
        return person
    if persons > 1:
        raise InvalidInputError(
            f"the policy asks for {persons} different persons",
            where="--person",
            remedy="Name the person with --person.",
        )
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise InvalidInputError("who decides is not known", where="--person", remedy="Say it by --person.") from None
