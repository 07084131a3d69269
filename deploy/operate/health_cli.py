"""`veiltab health`: ask over mutual TLS whether a party serves."""

import asyncio
from pathlib import Path

import click

from veiltab.common.command.cli import PATH, emit
from veiltab.common.command.options import study_argument
from veiltab.common.rpc.health import wait_until_serving
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.study.file import load_study
from veiltab.deploy.operate.calling import endpoint_of, identity_in


@click.command(epilog="Example: veiltab health study.toml --identity pki/curator-alice --name alice --role curator")
@study_argument
@click.option(
    "--identity",
    "identity_folder",
    required=True,
    type=PATH,
    help="Identity folder of the caller: the party itself, or one that it serves.",
)
@click.option("--name", required=True, help="Name of the party to ask.")
@click.option(
    "--role", required=True, type=click.Choice(["curator", "server", "researcher"]), help="Role of the party to ask."
)
@click.option("--endpoint", metavar="HOST:PORT", help="HOST:PORT of the party, if not the study file's.")
@click.option(
    "--within",
    default=5.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True, max=3600),
    help="Seconds to keep asking.",
)
def health(study_path: Path, identity_folder: Path, name: str, role: str, endpoint: str | None, within: float) -> None:
    """Say whether a party serves: exit code 0 if it does, 4 if it does not answer, 3 if it refuses the caller."""
    study = load_study(study_path)
    party = Party(study=study.id, role=Role(role), name=name)
    address = endpoint or endpoint_of(study, party)
    asyncio.run(wait_until_serving(identity_in(identity_folder, study), party, address, within=within))
    emit({"party": party.uri, "endpoint": address, "serving": True}, f"{party} serves at {address}.")
