"""Options that several commands of a researcher have."""

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.command.cli import Command
from veiltab.common.command.options import connected
from veiltab.common.core.numbers.confidence import CONFIDENCE
from veiltab.researcher.client.askable import Absent

if TYPE_CHECKING:
    from veiltab.researcher.client.client import Client


RELEASE = "Label of the release, or its id or the beginning of it"
release_option = click.option("--release", "release_name", required=True, help=f"{RELEASE}.")
confidence_option = click.option(
    "--confidence", default=CONFIDENCE, show_default=True, type=click.FloatRange(0, 1, min_open=True, max_open=True)
)


def member_option(name: str, kind: type[Enum], *, help: str) -> Callable[[Command], Command]:  # noqa: A002 - click's
    """Return an option whose values are the members of an enumeration."""

    def member(_context: click.Context, _option: click.Parameter, value: str | None) -> Enum | None:
        return None if value is None else kind(value)

    return click.option(name, type=click.Choice([one.value for one in kind]), callback=member, help=help)


absent_option = click.option(
    "--absent",
    type=click.Choice([one.value for one in Absent]),
    default=Absent.LEFT_OUT.value,
    show_default=True,
    help="People of the hub who are absent from another curator's table: left out, or shown as a category.",
)


def _client(study_path: Path, identity: Path) -> "Client":
    from veiltab.researcher.client.client import Client

    return Client(study_path, identity=identity)


with_client = connected("client", _client)
"""Gives a command a Client, of the researcher or analyst whom its options name."""
