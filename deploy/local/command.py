"""What the commands of all demonstrations have in common."""

import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click

from veiltab.common.command.cli import PATH, Command


def out_option(prefix: str) -> Callable[[Command], Command]:
    """Return the option for the folder of a demonstration, which is named after the moment if it is not given."""

    def named(_context: click.Context, _option: click.Parameter, out: Path | None) -> Path:
        return out or Path(f"{prefix}-{datetime.now(UTC):%Y%m%d-%H%M%S}")

    return click.option(
        "--out", type=PATH, callback=named, help=f"New folder for all output; by default {prefix}-TIME."
    )


def end_parties_on_sigterm() -> None:
    """Let SIGTERM end the demonstration in order, and its parties with it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
