"""The option of a command that says how many links are wrong."""

import functools
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from veiltab.common.command.cli import Command

if TYPE_CHECKING:
    from veiltab.researcher.linkage_errors.linkage_error import LinkageErrors

Linkage: TypeAlias = "LinkageErrors | None"
"""What a command takes."""


def linkage_option(command: Command) -> Any:  # noqa: ANN401 - as click has it
    """Give a command the option that says how links are wrong; it takes it as `linkage`, None for none."""

    @functools.wraps(command)
    def with_linkage(*client: object, linkage_error: tuple[str, ...], **values: Any) -> None:  # noqa: ANN401 - click's
        linkage = None
        if linkage_error:
            from veiltab.researcher.linkage_errors.linkage_error import links_in  # noqa: PLC0415 - not for studies with ids

            linkage = links_in(linkage_error)
        command(*client, linkage=linkage, **values)

    return click.option(
        "--linkage-error",
        multiple=True,
        metavar="VALUE[:SD]|VALUE:0|FILE.json|hub=CURATOR",
        help="Undo wrong links: their share, perhaps with its standard deviation; of VALUE:0 any share up to it; or the"
        " file with which a curator estimates it. Repeat it for more files, and for the hub if it is not the study's.",
    )(with_linkage)
