"""Options that the commands of a round share, and the rounds that they name."""

import functools
from collections.abc import Callable
from pathlib import Path

import click

from veiltab.common.command.options import identity_option, name_option, study_argument

CONNECTION = "study.toml --name rosa --identity pki/researcher-rosa"
"""Connection options in the examples of --help."""

round_option = click.option("--round", "round_id", required=True, help="Id of the round.")


def with_rounds(command: Callable[..., None]) -> Callable[..., None]:
    """Pass a command the Rounds of the researcher in its options, as the argument `rounds`."""

    @study_argument
    @name_option
    @identity_option
    @functools.wraps(command)
    def connected(study_path: Path, name: str, identity_folder: Path, **options: object) -> None:
        from veiltab.researcher.collection.client import Rounds  # noqa: PLC0415 - --help stays light

        with Rounds(study_path, identity=identity_folder, name=name) as rounds:
            command(rounds=rounds, **options)

    return connected
