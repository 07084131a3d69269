"""`veiltab demo`: the whole system on this machine, in several ways."""

import click

from veiltab.common.command.cli import EXIT_CODES
from veiltab.deploy.local.collection_cli import collect
from veiltab.deploy.local.linked_cli import linked
from veiltab.deploy.local.table_cli import table

DEFAULT = "linked"
"""The demonstration that runs if none is named."""


class DemoGroup(click.Group):
    """Demonstrations, one of which runs if none is named: its options may follow the group at once."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Name the default demonstration before its options, and refuse those of another with their place."""
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            self._check_options(ctx, args)
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)

    def _check_options(self, ctx: click.Context, args: list[str]) -> None:
        known = {name: {opt for one in command.params for opt in one.opts} for name, command in self.commands.items()}
        for option in (word.split("=")[0] for word in args if word.startswith("--")):
            elsewhere = [name for name, options in known.items() if option in options]
            if elsewhere and DEFAULT not in elsewhere:
                message = f"{option} is an option of another demonstration: veiltab demo {elsewhere[0]} {option} ..."
                raise click.UsageError(message, ctx)


@click.group(
    cls=DemoGroup,
    commands=[linked, table, collect],
    epilog=f"Without a command: {DEFAULT}, with its options.\n\n"
    f"Example: veiltab demo table --epsilon 0.5 --delta 1e-6\n{EXIT_CODES}",
)
def demo() -> None:
    """Run the whole system here: every party a process, over real TLS, and the truth beside the result."""
