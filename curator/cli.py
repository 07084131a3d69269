"""`veiltab curator`: check a table, serve it, decide about requests, show the ledger."""

from pathlib import Path

import click

from veiltab.common.command.cli import emit
from veiltab.common.command.lazy_group import LazyGroup
from veiltab.common.command.options import ServeOptions, name_option, serve_options, study_argument
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import load_study
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.source_options import table_options
from veiltab.curator.officer.options import policy_option, work_options
from veiltab.curator.officer.work_options import WorkOptions

_PLACES = {
    "approve": "veiltab.curator.commands.requests_cli:approve",
    "audit": "veiltab.curator.evidence.audit_cli:audit",
    "check": "veiltab.curator.cli:check",
    "console": "veiltab.curator.console.cli:console",
    "deny": "veiltab.curator.commands.requests_cli:deny",
    "evidence": "veiltab.curator.evidence.export_cli:evidence",
    "ledger": "veiltab.curator.commands.ledger_cli:ledger",
    "linkage": "veiltab.curator.commands.linkage_cli:linkage",
    "notify": "veiltab.curator.notify.cli:notify",
    "policy": "veiltab.curator.commands.policy_cli:policy",
    "requests": "veiltab.curator.commands.requests_cli:requests",
    "serve": "veiltab.curator.cli:serve",
    "repair": "veiltab.curator.commands.repair_cli:repair",
}


@click.group(cls=LazyGroup, places=_PLACES)
def curator() -> None:
    """Hold some columns, and decide who may learn what about them.

    Example: veiltab curator check study.toml --name alice --table alice.csv
    """


@click.command(epilog="Example: veiltab curator check study.toml --name alice --table alice.csv")
@study_argument
@name_option
@table_options
def check(study_path: Path, name: str, table: TableAddress) -> int:
    """Check a table against the study and report its contents; the command sends nothing."""
    from veiltab.curator.check.inspection import inspect_table

    inspection = inspect_table(table, load_study(study_path), name)
    emit(inspection.as_dict(), inspection.as_text())
    return 0 if inspection.ok else InvalidInputError.exit_code


@click.command(
    epilog="Example: veiltab curator serve study.toml --name alice --identity pki/curator-alice --state state"
    " --table alice.csv --policy policy.toml"
)
@serve_options
@table_options
@policy_option
@work_options
def serve(options: ServeOptions, table: TableAddress, policy_path: Path | None, work: WorkOptions) -> None:
    """Load the table, align it with the other curators', and take part in releases."""
    from veiltab.curator.party.serving import serve_curator

    serve_curator(options, table=table, policy_path=policy_path, work=work)
