"""`veiltab demo`: the whole system on this machine, in several ways."""

import click

from veiltab.play.demos.collection_cli import collect
from veiltab.play.demos.join_cli import join
from veiltab.play.demos.linked_cli import linked
from veiltab.play.demos.table_cli import table
from veiltab.play.linkage.linking_cli import link
from veiltab.play.local.default_group import DefaultGroup

DEFAULT = "table"
"""The demonstration that runs if none is named."""


@click.group(
    cls=DefaultGroup,
    default=DEFAULT,
    kind="demonstration",
    commands=[table, join, linked, link, collect],
    epilog=f"Without a command: {DEFAULT}, with its options.\n\nExample: veiltab demo table --epsilon 0.5 --delta 1e-6",
)
def demo() -> None:
    """Run the whole system here: every party a process, over real TLS, and the truth beside the result."""
