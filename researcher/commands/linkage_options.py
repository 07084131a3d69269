"""Options of a command that say how many links are wrong, and which are missing."""

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import click

from veiltab.common.command.cli import PATH, Command
from veiltab.common.errors import InvalidInputError

if TYPE_CHECKING:
    from veiltab.researcher.linkage_errors.linkage_error import LinkageErrors

Linkage: TypeAlias = "LinkageErrors | None"
"""What a command takes."""

_LINKAGE = (
    click.option(
        "--linkage-error",
        default="none",
        show_default=True,
        metavar="estimated|VALUE[:SD]|VALUE:0|none",
        help="Undo wrong links: their share, perhaps with its standard deviation; of VALUE:0 any share up to it.",
    ),
    click.option(
        "--linkage-report",
        type=PATH,
        multiple=True,
        help="JSON file with the share, for --linkage-error estimated; repeat it for the file of each curator.",
    ),
    click.option(
        "--hub",
        default="",
        metavar="CURATOR",
        help="The curator with which all others are linked; by default the hub of the study.",
    ),
    click.option(
        "--match-rates",
        type=PATH,
        help="Weight with this JSON file of a curator's match rates, so that links that are missing bias less.",
    ),
)


def linkage_options(command: Command) -> Command:
    """Give a command the options that say how links are wrong; it takes them as `linkage`, None for none."""

    @functools.wraps(command)
    def with_linkage(
        *client: object,
        linkage_error: str,
        linkage_report: tuple[Path, ...],
        hub: str,
        match_rates: Path | None,
        **values: Any,  # noqa: ANN401 - whatever click read
    ) -> None:
        linkage = None
        if linkage_error != "none" or linkage_report or match_rates is not None:
            from veiltab.researcher.linkage_errors.linkage_error import links_of  # noqa: PLC0415 - not for studies with ids

            linkage = links_of(linkage_error, linkage_report, hub, match_rates)
        elif hub:
            raise InvalidInputError("a hub is named, and no wrong links are", where="--hub", remedy="Leave it out.")
        command(*client, linkage=linkage, **values)

    decorated: Any = with_linkage
    for option in reversed(_LINKAGE):
        decorated = option(decorated)
    return cast("Command", decorated)
