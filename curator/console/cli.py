"""`veiltab curator console`: the pages for the persons who decide."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from veiltab.common.command.cli import PATH
from veiltab.common.command.options import state_option, study_argument
from veiltab.common.command.parties import with_way
from veiltab.common.extras import importing
from veiltab.common.rpc.parties.identity import Identity, Role, load_identity
from veiltab.common.study.file import Study
from veiltab.common.web.links import LinkFolder, check_persons, print_links
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.source_options import config_option
from veiltab.curator.officer.open_state import open_state
from veiltab.curator.officer.persons import person_name


@click.command(
    epilog='Example: veiltab curator console study.toml --state state --person "Ana Diaz" --person "Ben Ode"'
)
@study_argument
@state_option
@click.option("--person", "persons", multiple=True, help="Who may enter and decide; each gets a link of their own.")
@click.option("--reader", "readers", multiple=True, help="Who may enter and read everything, but decide nothing.")
@click.option(
    "--identity",
    "identity_folder",
    type=PATH,
    help="Folder of the certificate: to ask others for theirs, and to sign evidence.",
)
@config_option
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="Of 127.0.0.1; by default a free one.")
@click.option("--links", is_flag=True, help="Print new links of the console that runs, and end no session.")
def console(
    study_path: Path,
    state_folder: Path,
    persons: tuple[str, ...],
    readers: tuple[str, ...],
    identity_folder: Path | None,
    table: TableAddress | None,
    port: int,
    links: bool,
) -> None:
    """Show what waits for a person in a browser on this machine, beside the running service.

    Prints one link for each person; it works once, for ten minutes. With --links it prints more, of the console on this
    state folder that began last. The table is the one that is served; --config says how to read it if it is not one
    plain file.
    """
    rights, folder = _rights(persons, readers), LinkFolder(state_folder / "console")
    if links:
        print_links({name: folder.leave(name, decides=decides) for name, decides in rights.items()})
        return
    with importing("console", "the console"):
        from veiltab.common.web.application import serve_console
        from veiltab.curator.check.inspection import inspect_table
        from veiltab.curator.console.curator_console import curator_console
        from veiltab.curator.console.journal import AuditJournal
        from veiltab.curator.console.state_reader import StateReader

    with open_state(study_path, state_folder, None) as own_state:
        if table is None and (file := own_state.store.served.served_table()) is not None:
            table = TableAddress.of(file.path)
        served = curator_console(
            StateReader(own_state, study_path),
            AuditJournal(store=own_state.store),
            identity=_identity(own_state.study, own_state.name, identity_folder),
            inspect=None if table is None else partial(inspect_table, table, own_state.study, own_state.name),
        )
        serve_console(served, rights, port=port, folder=folder)


def _rights(persons: Sequence[str], readers: Sequence[str]) -> dict[str, bool]:
    """Return the persons who may enter, and whether they may decide.

    Raises:
        InvalidInputError: nobody may, or two names are the same person's.
    """
    deciding, reading = (tuple(map(person_name, names)) for names in (persons, readers))
    check_persons([*deciding, *reading])
    return dict.fromkeys(deciding, True) | dict.fromkeys(reading, False)


def _identity(study: Study, name: str, folder: Path | None) -> Identity | None:
    return None if folder is None else with_way(study, load_identity(folder, Role.CURATOR, name, study=study.id))
