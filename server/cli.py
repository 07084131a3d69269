"""`veiltab server`: run the cloud server."""

from pathlib import Path

import click

from veiltab.common.command.cli import PATH
from veiltab.common.command.options import ServeOptions, serve_options
from veiltab.common.command.rare_options import rare_options
from veiltab.server.sharing.quota import Quota

_QUOTA = Quota()


@click.group()
def server() -> None:
    """Run the cloud server: it perturbs what it cannot read.

    Example: veiltab server serve study.toml --name cloud --identity pki/server-cloud --state state
    """


@server.command(
    epilog="Example: veiltab server serve study.toml --name cloud --identity pki/server-cloud --state state"
)
@serve_options
@click.option(
    "--database",
    metavar="URL",
    default="",
    envvar="VEILTAB_DATABASE",
    show_envvar=True,
    help="A PostgreSQL for the state, postgresql://user@host/database, which several of this server's processes share,"
    " as they do the --state folder. SQLite in that folder by default. Needs the extra postgres.",
)
@click.option(
    "--http",
    "http_address",
    metavar="[HOST:]PORT",
    help="Take reports of nodes there over HTTPS too, as JSON, from clients without a certificate; without HOST on the"
    " loopback interface. Needs the extra http.",
)
@rare_options(
    "--advanced",
    click.option(
        "--retention-days",
        default=30,
        type=click.IntRange(1, 36_500),
        help="How many days a published release, and a closed round, can be fetched; 30.",
    ),
    click.option(
        "--quota-releases",
        default=_QUOTA.releases,
        type=click.IntRange(min=1),
        help="How many releases one curator may have open here.",
    ),
    click.option(
        "--quota-gib",
        default=_QUOTA.gibibytes,
        type=click.IntRange(min=1),
        help="GiB that the columns of all of them may take together.",
    ),
    click.option(
        "--http-certificate",
        type=PATH,
        help="PEM file with the certificate that these clients see, and its chain; this party's own by default.",
    ),
    click.option("--http-key", type=PATH, help="PEM file with its key."),
    click.option(
        "--allow-origin",
        metavar="https://HOST[:PORT]",
        help="Let pages of this site, and of no other, report from a browser. By default no page of another site can.",
    ),
)
def serve(
    options: ServeOptions,
    retention_days: int,
    quota_releases: int,
    quota_gib: int,
    database: str,
    http_address: str | None,
    http_certificate: Path | None,
    http_key: Path | None,
    allow_origin: str | None,
) -> None:
    """Perturb encrypted columns and serve them to their researchers; count the reports of nodes, round by round."""
    from veiltab.common.web.http_options import http_options
    from veiltab.server.party.serving import serve_server

    quota = Quota(releases=quota_releases, gibibytes=quota_gib)
    http = http_options(http_address, http_certificate, http_key, allow_origin)
    serve_server(options, retention_days=retention_days, quota=quota, database=database, http=http)
