"""`veiltab researcher`: run the service, ask for a release, see how it stands, estimate, report."""

from typing import TYPE_CHECKING

import click

from veiltab.common.command.cli import EXIT_CODES, json_option
from veiltab.common.command.options import ServeOptions, serve_options
from veiltab.common.extras import importing
from veiltab.researcher.api.api_cli import http, token
from veiltab.researcher.commands.asking_cli import request, status
from veiltab.researcher.commands.downloads_cli import access_log, certificate, synthesise
from veiltab.researcher.commands.options_cli import with_client
from veiltab.researcher.commands.series_cli import series
from veiltab.researcher.commands.tables_cli import estimate, report

if TYPE_CHECKING:
    from veiltab.researcher.client.client import Client


@click.group(epilog=EXIT_CODES)
def researcher() -> None:
    """Ask for releases and read their results.

    A researcher's analysts read results with their own names and identities: status, estimate, series, report.

    Example: veiltab researcher status study.toml --name rosa --identity pki/researcher-rosa
    """


@researcher.command(
    epilog="Example: veiltab researcher serve study.toml --name rosa --identity pki/researcher-rosa --state state"
)
@serve_options
def serve(options: ServeOptions) -> None:
    """Carry requests to the curators, fetch and decrypt releases, keep results."""
    from veiltab.researcher.desk.serving import serve_researcher

    serve_researcher(options)


@researcher.command(epilog="Example: veiltab researcher console study.toml --name rosa --identity pki/researcher-rosa")
@with_client
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=0, help="Of the loopback interface; 0 takes a free one."
)
@json_option
def console(client: "Client", port: int, as_json: bool) -> None:
    """Show releases, tables and plans as pages of a browser on this machine, and ask for releases there.

    It prints a link that works once. An analyst's console has no page that asks for a release.
    """
    with importing("console", "the console"):
        from veiltab.researcher.console.console import run_console

    run_console(client, port=port, as_json=as_json)


for command in (request, status, estimate, series, report, synthesise, certificate, access_log, http, token):
    researcher.add_command(command)
