"""`veiltab curator console`: the pages for the persons who decide."""

from functools import partial
from pathlib import Path

import click

from veiltab.common.command.cli import PATH, json_option
from veiltab.common.command.options import name_option, state_option, study_argument
from veiltab.common.extras import importing
from veiltab.common.rpc.identity import Identity, Role, load_identity
from veiltab.common.study.file import Study
from veiltab.curator.persons import person_name
from veiltab.curator.standing import open_standing
from veiltab.curator.tables.address import TableAddress
from veiltab.curator.tables.options import optional_table_options


@click.command(
    epilog='Example: veiltab curator console study.toml --name alice --state state --person "Ana Diaz"'
    ' --person "Ben Ode"'
)
@study_argument
@name_option
@state_option
@click.option("--policy", "policy_path", type=PATH, help="Policy file; by default the one that is served.")
@click.option("--person", "persons", multiple=True, required=True, help="Who may enter; each gets a link of their own.")
@click.option(
    "--identity",
    "identity_folder",
    type=PATH,
    help="Folder of the certificate: to ask others for theirs, and to sign evidence.",
)
@optional_table_options
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="Of 127.0.0.1; by default a free one.")
@json_option
def console(
    study_path: Path,
    name: str,
    state_folder: Path,
    policy_path: Path | None,
    persons: tuple[str, ...],
    identity_folder: Path | None,
    table: TableAddress | None,
    port: int,
    as_json: bool,
) -> None:
    """Show what waits for a person in a browser on this machine, beside the running service.

    Prints one link for each person; it works once, for ten minutes.
    """
    with importing("console", "the console"):
        from veiltab.common.web.serving import check_persons, serve_console
        from veiltab.curator.console.books import Books
        from veiltab.curator.console.curator_console import curator_console
        from veiltab.curator.console.journal import AuditJournal
        from veiltab.curator.inspection import inspect_table

    names = tuple(map(person_name, persons))
    check_persons(names)
    with open_standing(study_path, name, state_folder, policy_path) as standing:
        served = curator_console(
            Books(standing, study_path),
            AuditJournal(store=standing.store),
            identity=_identity(standing.study, name, identity_folder),
            inspect=None if table is None else partial(inspect_table, table, standing.study, name),
        )
        serve_console(served, names, port=port, as_json=as_json)


def _identity(study: Study, name: str, folder: Path | None) -> Identity | None:
    return None if folder is None else load_identity(folder, Role.CURATOR, name, study=study.id)
