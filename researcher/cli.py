"""`veiltab researcher`: run the service, ask for a release, see how it stands, estimate, report."""

import click

from veiltab.common.command.lazy_group import LazyGroup
from veiltab.common.command.options import ServeOptions, serve_options

_PLACES = {
    "estimate": "veiltab.researcher.commands.tables_cli:estimate",
    "http": "veiltab.researcher.api.api_cli:http",
    "report": "veiltab.researcher.commands.downloads_cli:report",
    "request": "veiltab.researcher.commands.asking_cli:request",
    "serve": "veiltab.researcher.cli:serve",
    "status": "veiltab.researcher.commands.asking_cli:status",
    "synthesise": "veiltab.researcher.commands.downloads_cli:synthesise",
    "token": "veiltab.researcher.api.api_cli:token",
}


@click.group(cls=LazyGroup, places=_PLACES)
def researcher() -> None:
    """Ask for releases and read their results.

    A researcher's analysts read results with their own names and identities: status, estimate, report.

    Example: veiltab researcher status study.toml --identity pki/researcher-rosa
    """


@click.command(
    epilog="Example: veiltab researcher serve study.toml --name rosa --identity pki/researcher-rosa --state state"
)
@serve_options
def serve(options: ServeOptions) -> None:
    """Carry requests to the curators, fetch and decrypt releases, keep results."""
    from veiltab.researcher.desk.serving import serve_researcher

    serve_researcher(options)
