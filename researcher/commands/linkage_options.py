"""The option of a command that says how many links are wrong, and which are missing."""

from typing import TYPE_CHECKING, TypeAlias

import click

if TYPE_CHECKING:
    from veiltab.researcher.linkage_errors.linkage_error import LinkageErrors

Linkage: TypeAlias = "LinkageErrors | None"
"""What a command takes."""


def _linkage(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> Linkage:
    if not values:
        return None
    from veiltab.researcher.linkage_errors.linkage_error import links_in  # noqa: PLC0415 - not for studies with ids

    return links_in(values)


linkage_option = click.option(
    "--linkage-error",
    "linkage",
    multiple=True,
    callback=_linkage,
    metavar="VALUE[:SD]|VALUE:0|FILE.json|hub=CURATOR",
    help="Undo wrong links: their share, perhaps with its standard deviation; of VALUE:0 any share up to it; or the"
    " file with which a curator estimates it, or that of its match rates, to weight with. Repeat it for more files,"
    " and for the hub if it is not the study's.",
)
"""Gives a command `linkage`: how links are wrong, None for none."""
