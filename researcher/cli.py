"""`veiltab researcher`: run the service, ask for a release, see how it stands, estimate, report."""

import click

from veiltab.common.command.cli import EXIT_CODES
from veiltab.common.command.options import ServeOptions, serve_options
from veiltab.researcher.api.api_cli import http, token
from veiltab.researcher.commands.asking_cli import request, status
from veiltab.researcher.commands.downloads_cli import access_log, certificate, synthesise
from veiltab.researcher.commands.series_cli import series
from veiltab.researcher.commands.tables_cli import estimate, report


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


for command in (request, status, estimate, series, report, synthesise, certificate, access_log, http, token):
    researcher.add_command(command)
