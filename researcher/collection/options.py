"""Options that the commands of a round share, and the rounds that they name."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.command.options import connected

if TYPE_CHECKING:
    from veiltab.researcher.collection.client import Rounds

CONNECTION = "study.toml --name rosa --identity pki/researcher-rosa"
"""Connection options in the examples of --help."""

round_option = click.option("--round", "round_id", required=True, help="Id of the round.")


def _rounds(study_path: Path, identity: Path, name: str) -> "Rounds":
    from veiltab.researcher.collection.client import Rounds  # noqa: PLC0415 - --help stays light

    return Rounds(study_path, identity=identity, name=name)


with_rounds = connected("rounds", _rounds)
"""Gives a command the Rounds of the researcher in its options."""
