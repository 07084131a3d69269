"""`veiltab relay`: the meeting point of parties that accept no connection."""

import asyncio
from pathlib import Path

import click

from veiltab.common.command.cli import EXIT_CODES, PATH, note
from veiltab.common.command.options import study_argument


@click.group()
def relay() -> None:
    """Pass on connections between parties that cannot be called, unread.

    Example: veiltab relay serve study.toml --identity pki/relay-relay
    """


@relay.command(epilog=f"Example: veiltab relay serve study.toml --identity pki/relay-relay\n\n{EXIT_CODES}")
@study_argument
@click.option(
    "--identity", "identity_folder", required=True, type=PATH, help="Folder of the relay's certificate and key."
)
@click.option("--listen", metavar="HOST:PORT", help="Where to listen; by default all addresses, at the study's port.")
@click.option(
    "--heartbeat",
    type=click.FloatRange(min=0.1, max=300),
    default=25.0,
    show_default=True,
    help="Seconds between heartbeats on connections that wait: fewer than a firewall's patience.",
)
@click.option("--metrics", metavar="HOST:PORT", help="Serve metrics for Prometheus. Needs the extra metrics.")
def serve(study_path: Path, identity_folder: Path, listen: str | None, heartbeat: float, metrics: str | None) -> None:
    """Serve as the study's relay until a signal stops it. It keeps nothing on disk."""
    from veiltab.common.process.logs import log_to_stderr
    from veiltab.deploy.relay.limits import RelayLimits
    from veiltab.deploy.relay.serving import serve_relay

    log_to_stderr()
    asyncio.run(serve_relay(study_path, identity_folder, listen, RelayLimits(heartbeat=heartbeat), metrics, note))
