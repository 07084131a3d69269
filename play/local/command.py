"""What the commands of all demonstrations have in common."""

import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click

from veiltab.common.command.cli import PATH, Command
from veiltab.common.errors import InvalidInputError


def out_option(prefix: str) -> Callable[[Command], Command]:
    """Return the option for the folder of a demonstration, which is named after the moment if it is not given."""

    def named(_context: click.Context, _option: click.Parameter, out: Path | None) -> Path:
        return out or Path(f"{prefix}-{datetime.now(UTC):%Y%m%d-%H%M%S}")

    return click.option(
        "--out", type=PATH, callback=named, help=f"New folder for all output; by default {prefix}-TIME."
    )


verbose_option = click.option(
    "--verbose", is_flag=True, help="Show every row, every reason of the card, seconds and bytes too."
)


def rehearsal_options(command: Command) -> Command:
    """Give a command the options of a rehearsal's tables and policies: `population` and `policies`, curator -> file."""
    for option in (
        click.option(
            "--policy",
            "policies",
            multiple=True,
            metavar="NAME=FILE",
            callback=_policies,
            help="A curator's policy file; may be repeated. Without one a person decides about everything there.",
        ),
        click.option(
            "--population",
            type=click.IntRange(min=1),
            help="Dummy people whom every curator holds, or nodes of each stratum; by default 2000, or as many as are"
            " needed.",
        ),
    ):
        command = option(command)
    return command


def _policies(_context: click.Context, _option: click.Parameter, texts: tuple[str, ...]) -> dict[str, Path]:
    """Read NAME=FILE, once for each curator."""
    policies: dict[str, Path] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals:
            raise InvalidInputError(
                f"{text!r} does not say whose policy it is", where="--policy", remedy="Write it like alice=policy.toml."
            )
        if name in policies:
            raise InvalidInputError(f"{name} has two policies", where="--policy", remedy="Give one file a curator.")
        policies[name] = Path(path)
    return policies


def end_parties_on_sigterm() -> None:
    """Let SIGTERM end the demonstration in order, and its parties with it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
