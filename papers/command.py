"""Commands that need the extra `papers`."""

from importlib.util import find_spec

import click

from veiltab.common.errors import InvalidInputError
from veiltab.common.extras import EXTRAS


def is_installed() -> bool:
    """Return whether all packages of the extra are installed."""
    return all(find_spec(package) is not None for package in EXTRAS["papers"])


class PapersCommand(click.Command):
    """A command that needs the extra `papers`; its help does not."""

    def invoke(self, ctx: click.Context) -> object:
        """Refuse to run without the extra."""
        if not is_installed():
            raise InvalidInputError(
                "what the papers compute needs packages that are not installed",
                where=str(ctx.info_name),
                remedy="pip install 'veiltab[papers]'.",
            )
        return super().invoke(ctx)


class PapersGroup(click.Group):
    """A group of such commands."""

    command_class = PapersCommand
