"""The one command, `veiltab`; its groups load when they are used."""

import importlib
import sys
from difflib import get_close_matches

import click

from veiltab.common.command.cli import EXIT_CODES, run
from veiltab.common.errors import UnavailableError
from veiltab.common.process.memory import keep_freed_memory
from veiltab.common.process.signals import raise_at_interrupt

_COMMANDS = {
    "demo": ("veiltab.play.cli", "demo", "Run the whole system on this machine: every party a process, real TLS."),
    "plan": (
        "veiltab.deploy.plan.plan_cli",
        "plan",
        "Which error an epsilon gives, which sample size is best, what machines and hours it takes.",
    ),
    "rehearse": (
        "veiltab.play.rehearsal.rehearsal_cli",
        "rehearse",
        "Run a study here with dummy tables, before any data is touched.",
    ),
    "study": ("veiltab.deploy.study.study_cli", "study", "Make the study file, and check it."),
    "pki": ("veiltab.deploy.pki.pki_cli", "pki", "Make a study's certificates."),
    "curator": ("veiltab.curator.cli", "curator", "Check a table, serve it, decide about requests, show the ledger."),
    "server": ("veiltab.server.cli", "server", "Run the cloud server."),
    "researcher": ("veiltab.researcher.cli", "researcher", "Ask for a release, estimate, report."),
    "verify": (
        "veiltab.deploy.operate.verify_cli",
        "verify",
        "Check a release certificate or a curator's evidence, offline.",
    ),
    "certificate": (
        "veiltab.deploy.attest.attest_cli",
        "certificate",
        "Give a release certificate on: to a registry, an archive, an evaluator.",
    ),
    "status": ("veiltab.deploy.operate.status_cli", "status", "Show what a party is doing and what it waits for."),
    "health": ("veiltab.deploy.operate.health_cli", "health", "Ask whether a party serves."),
    "trace": ("veiltab.deploy.operate.trace_cli", "trace", "Show one release over all parties as a timeline."),
    "collect": (
        "veiltab.researcher.collection.cli",
        "collect",
        "Ask thousands of nodes for one randomised value each.",
    ),
    "node": ("veiltab.node.cli", "node", "Answer a round, as one node or as thousands."),
    "lab": (
        "veiltab.papers.cli",
        "lab",
        "What the papers compute: what sampling is worth to any mechanism, and all their figures and numbers anew.",
    ),
}


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order in which people need them."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module, name, _ = _COMMANDS[cmd_name]
        try:
            command = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            if error.name != "veiltab.play":
                raise
            raise UnavailableError(
                "the demonstrations and rehearsals are not installed",
                where=f"veiltab {cmd_name}",
                remedy="Run: pip install 'veiltab[demo]'.",
            ) from None
        if not isinstance(command, click.Command):
            raise TypeError(cmd_name)
        raise_at_interrupt()
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or refuse its name with the one that may be meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            near = get_close_matches(args[0], _COMMANDS, 1)
            if not near:
                raise
            raise click.UsageError(f"No such command {args[0]!r}. Did you mean {near[0]!r}?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, _, summary) in _COMMANDS.items()])


@click.group(cls=LazyGroup, epilog=EXIT_CODES)
@click.version_option(package_name="veiltab")
def veiltab() -> None:
    """Release joint statistics of a table that nobody may hold whole.

    Curators encrypt a secret sample of their columns, a server perturbs what it cannot read, and a researcher
    estimates joint and marginal distributions with intervals.

    Example: veiltab demo
    """


def main() -> None:
    """Run the command line."""
    keep_freed_memory()
    sys.exit(run(veiltab))
