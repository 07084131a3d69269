"""The one command, `veiltab`; its groups load when they are used."""

import atexit
import os
import sys
import threading
from pathlib import Path
from typing import NoReturn

import click

from veiltab.common.command.cli import EXIT_CODES, PATH, json_option, run
from veiltab.common.command.lazy_group import LazyGroup
from veiltab.common.errors import UnavailableError
from veiltab.common.process.imports import do_without_large_modules
from veiltab.common.process.memory import keep_freed_memory
from veiltab.common.process.signals import raise_at_interrupt
from veiltab.common.rpc.proxy import PROXY, ProxyOption

_GROUPS = {
    "To see it": {
        "demo": "Run the whole system on this machine: every party a process, real TLS.",
        "lab": "What the papers compute: all their figures and numbers anew.",
    },
    "Data manager": {
        "study": "Draft a study file from your table, and check and merge the drafts.",
        "curator check": "Check a table against the study; it sends nothing.",
        "rehearse": "Run a study here with dummy tables, before any data is touched.",
    },
    "Officer": {
        "curator": "Decide about requests, show the ledger, export evidence.",
        "verify": "Check a release certificate or a curator's evidence, offline.",
    },
    "Operator": {
        "pki": "Make a study's certificates.",
        "curator serve": "Run a curator.",
        "server": "Run the cloud server.",
        "relay": "Pass on connections between parties that accept none.",
        "researcher serve": "Run a researcher's service.",
        "status": "Show what a party is doing, or ask whether one serves.",
    },
    "Researcher": {
        "plan": "Which error an epsilon gives, which epsilon an error needs, which sample size is best.",
        "researcher": "Ask for a release, estimate, report, write microdata.",
        "collect": "Ask thousands of nodes for one randomised value each.",
    },
    "Node": {"node": "Answer a round, as one node or as thousands."},
}

_PLACES = {
    "demo": "veiltab.play.cli:demo",
    "plan": "veiltab.deploy.plan.plan_cli:plan",
    "rehearse": "veiltab.play.rehearsal.rehearsal_cli:rehearse",
    "study": "veiltab.deploy.study.study_cli:study",
    "pki": "veiltab.deploy.pki.pki_cli:pki",
    "curator": "veiltab.curator.cli:curator",
    "server": "veiltab.server.cli:server",
    "researcher": "veiltab.researcher.cli:researcher",
    "verify": "veiltab.deploy.operate.verify_cli:verify",
    "status": "veiltab.deploy.operate.status_cli:status",
    "collect": "veiltab.researcher.collection.cli:collect",
    "node": "veiltab.node.cli:node",
    "relay": "veiltab.deploy.relay.relay_cli:relay",
    "lab": "veiltab.papers.cli:lab",
}

_HELP = """New here? veiltab demo

Release joint statistics of a table that nobody may hold whole. Curators encrypt a secret sample of their columns, a
server perturbs what it cannot read, and a researcher estimates joint and marginal distributions with intervals.

Example: veiltab demo
"""


class _Roles(LazyGroup):
    """The first commands: their help imports none of them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take --json from any place before "--"."""
        end = args.index("--") if "--" in args else len(args)
        own = [word for word in args[:end] if word != "--json"]
        return super().parse_args(ctx, [*(["--json"] if len(own) < end else []), *own, *args[end:]])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command, or say which package it needs."""
        try:
            command = super().get_command(ctx, cmd_name)
        except ModuleNotFoundError as error:
            if error.name != "veiltab.play":
                raise
            raise UnavailableError(
                "the demonstrations and rehearsals are not installed",
                where=f"veiltab {cmd_name}",
                remedy="Run: pip install 'veiltab[demo]'.",
            ) from None
        raise_at_interrupt()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, by who you are, without importing them."""
        del ctx
        for who, commands in _GROUPS.items():
            with formatter.section(who):
                formatter.write_dl(list(commands.items()), col_max=18)


@click.group(cls=_Roles, places=_PLACES, help=_HELP, epilog=EXIT_CODES)
@click.version_option(package_name="veiltab")
@json_option
@click.option("--proxy", metavar="http://HOST:PORT|environment", help="Call others through an HTTP proxy.")
@click.option("--proxy-user", type=PATH, help="File with USER:PASSWORD for the proxy, which its owner alone may read.")
@click.pass_context
def veiltab(context: click.Context, proxy: str | None, proxy_user: Path | None) -> None:
    """Run a command."""
    context.meta[PROXY] = None if proxy is None else ProxyOption(url=proxy, user=proxy_user)


def main() -> None:
    """Run the command line."""
    keep_freed_memory()
    if "serve" in sys.argv[2:8]:  # --json and --proxy may stand before
        do_without_large_modules()
    try:
        code = run(veiltab)
    except SystemExit as ending:  # SIGTERM ended it
        code = int(ending.code or 0)
    _end(code)


def _end(code: int) -> NoReturn:
    """End the process as Python does, but before it takes itself apart.

    A thread of a library that asks for Python then, such as Arrow's after its last read, would abort it.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - Python has no public name for its first steps
    atexit._run_exitfuncs()  # noqa: SLF001 - as above
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        code = 120  # as Python has it
    os._exit(code)
