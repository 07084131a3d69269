"""Options that the commands of a round share, and the rounds that they name."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.command.options import connected

if TYPE_CHECKING:
    from veiltab.researcher.collection.rounds_client import Rounds

CONNECTION = "study.toml --identity pki/researcher-rosa"
"""Connection options in the examples of --help."""

_ROUND = "Id of the round, or the beginning of it"


def round_option(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that has the Rounds the option of one of them, as its argument `round_id`."""

    @click.option("--round", "round_name", required=True, help=f"{_ROUND}.")
    @functools.wraps(command)
    def with_round(*, rounds: "Rounds", round_name: str, **options: object) -> None:
        command(rounds=rounds, round_id=rounds.whole_id(round_name), **options)

    return with_round


optional_round_option = click.option("--round", "round_name", help=f"{_ROUND}; by default all are listed.")


def _rounds(study_path: Path, identity: Path) -> "Rounds":
    from veiltab.researcher.collection.rounds_client import Rounds  # noqa: PLC0415 - not for --help

    return Rounds(study_path, identity=identity)


with_rounds = connected("rounds", _rounds)
"""Gives a command the Rounds of the researcher in its options."""
