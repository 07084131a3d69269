"""Options that name a file to write: what is there already stays, unless the command line has --force."""

import os
from pathlib import Path
from typing import Any

import click

from veiltab.common.command.cli import flag_option, has_flag
from veiltab.common.errors import ConflictError
from veiltab.common.storage.named_files import check_place

force_option = flag_option("--force", "Overwrite the file if it is there already.")


class NewFile(click.Path):
    """The type of an option that names a file to write."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - as click has it
        """Return the path.

        Raises:
            InvalidInputError: nothing can be written there.
            ConflictError: a file is there, and the command line has no --force.
        """
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        check_place(path)
        refuse_present(path)
        return path


NEW_FILE = NewFile(dir_okay=False, path_type=Path)


def refuse_present(path: Path) -> None:
    """Refuse to write a file that is there already, unless the command line has --force.

    Raises:
        ConflictError: it is there.
    """
    if not has_flag("--force") and (path.exists() or path.is_symlink()):
        context = click.get_current_context(silent=True)
        takes_force = context is not None and any("--force" in one.opts for one in context.command.params)
        remedy = "Name another one, or move this one away" + ("; --force overwrites it." if takes_force else ".")
        raise ConflictError("this file is there already", where=str(path), remedy=remedy)
