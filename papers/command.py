"""Commands that need the extra `papers`."""

import click

from veiltab.common.errors import InvalidInputError
from veiltab.common.extras import is_installed


class PapersCommand(click.Command):
    """A command that needs the extra `papers`; its help does not."""

    def invoke(self, ctx: click.Context) -> object:
        """Refuse to run without the extra."""
        if not is_installed("papers"):
            raise InvalidInputError(
                "what the papers compute needs packages that are not installed",
                where=str(ctx.info_name),
                remedy="pip install 'veiltab[papers]'.",
            )
        return super().invoke(ctx)


class PapersGroup(click.Group):
    """A group of such commands."""

    command_class = PapersCommand
