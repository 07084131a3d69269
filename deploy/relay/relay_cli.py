"""`veiltab relay`: the meeting point of parties that accept no connection."""

from pathlib import Path

import click

from veiltab.common.command.cli import EXIT_CODES
from veiltab.common.command.options import identity_option, listen_option, study_argument


@click.group()
def relay() -> None:
    """Pass on connections between parties that cannot be called, unread.

    Example: veiltab relay serve study.toml --identity pki/relay-relay
    """


@relay.command(epilog=f"Example: veiltab relay serve study.toml --identity pki/relay-relay\n\n{EXIT_CODES}")
@study_argument
@identity_option
@listen_option
@click.option(
    "--heartbeat", type=click.FloatRange(1, 300), default=25.0, show_default=True, help="Seconds between heartbeats."
)
@click.option("--metrics", metavar="HOST:PORT", help="Serve metrics for Prometheus. Needs the extra metrics.")
def serve(study_path: Path, identity_folder: Path, listen: str | None, heartbeat: float, metrics: str | None) -> None:
    """Serve as the study's relay until a signal stops it. It keeps nothing on disk."""
    from veiltab.common.process.logs import log_to_stderr
    from veiltab.common.process.signals import end_at_interrupt
    from veiltab.deploy.relay.limits import RelayLimits
    from veiltab.deploy.relay.serving import serve_relay

    end_at_interrupt()
    log_to_stderr()
    serve_relay(study_path, identity_folder, listen, RelayLimits(heartbeat=heartbeat), metrics)
