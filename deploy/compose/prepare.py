"""`python -m veiltab.deploy.compose.prepare DIR`: what compose.yaml mounts, for the Adult study and a fleet.

DIR/study.toml  alice.csv  bob.csv  policy-alice.toml  policy-bob.toml   what the parties read
DIR/pki/                                                                 an authority, and a folder a party
DIR/compose.yaml  .env                                                   what `docker compose` reads in DIR
"""

import os
import shutil
import sys
from decimal import Decimal
from pathlib import Path

import click

from veiltab.common.command.cli import EXIT_CODES, PATH, emit, json_option, run
from veiltab.common.study.file import study_from_bytes
from veiltab.deploy.local.folder import new_folder
from veiltab.deploy.pki import init_pki
from veiltab.deploy.studies.adult_tables import adult_study, write_tables

IMAGE_USER = 10001
"""User and group of the image; they own the files when root prepares them, since no party runs as root."""

PORT = 7410
"""Port of the researcher's service on this machine's loopback interface."""

_FOLDER = Path(__file__).resolve().parent
_ENDPOINTS = {"cloud": "cloud:7400", "alice": "alice:7401", "bob": "bob:7402"}
_POLICY = """\
# What no rule matches waits for a person: docker compose exec curator-{name} veiltab curator requests ...
[[rule]]
researcher = "rosa"
maximum_epsilon = 1.0
decision = "approve"
"""
_NODES = b"""
[nodes]
name = "fleet"
budget_epsilon = 10.0 # nats, over all rounds, for one node

[[question]]
name = "satisfaction"
integers = [1, 10]
"""


def prepare(folder: Path, *, port: int = PORT, source: Path = _FOLDER.parents[1]) -> tuple[int, int]:
    """Write the Adult study for containers.

    Args:
        folder: destination; new or empty.
        port: the researcher's port on this machine's loopback interface.
        source: root of the clone that the image is built from.

    Returns:
        User and group id of the containers, who own the files that they read.

    Raises:
        InvalidInputError: the folder is not empty, or cannot be made.
    """
    new_folder(folder)
    owner = (os.getuid() or IMAGE_USER, os.getgid() or IMAGE_USER)
    endpoints = _ENDPOINTS | {"rosa": f"localhost:{port}", "rita": f"localhost:{port + 1}"}
    text = adult_study(endpoints=endpoints, epsilon=Decimal(4), delta=Decimal("1e-5")) + _NODES
    (folder / "study.toml").write_bytes(text)
    given = [folder / "study.toml", *write_tables(folder).values()]
    for table in given[1:]:
        table.chmod(0o600)
    for name in ("alice", "bob"):
        given.append(folder / f"policy-{name}.toml")
        given[-1].write_text(_POLICY.format(name=name), "utf-8")
    for party in init_pki(study_from_bytes(text, "study.toml"), folder / "pki").values():
        given += [party, *party.iterdir()]
    for path in given:
        os.chown(path, *owner)
    shutil.copyfile(_FOLDER / "compose.yaml", folder / "compose.yaml")
    settings = {"VEILTAB_SOURCE": source, "VEILTAB_USER": f"{owner[0]}:{owner[1]}", "VEILTAB_PORT": port}
    (folder / ".env").write_text("".join(f"{key}='{value}'\n" for key, value in settings.items()), "utf-8")
    return owner


@click.command(name="prepare", epilog=f"Example: python -m veiltab.deploy.compose.prepare adult-compose\n{EXIT_CODES}")
@click.argument("folder", type=PATH, metavar="DIR")
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(1, 65_534), help="The researcher's, here.")
@json_option
def command(folder: Path, port: int, as_json: bool) -> None:  # noqa: FBT001 - mirrors the option
    """Write the Adult study for `docker compose`: study file, tables, policies, certificates, settings."""
    user, group = prepare(folder, port=port)
    emit(
        as_json,
        {"folder": folder, "user": user, "group": group, "port": port},
        f"Prepared; the containers will run as user {user}. Keep {folder / 'pki' / 'ca.key'} away from the parties.\n"
        f"Now: cd {folder} && docker compose up --build --detach --wait",
    )


if __name__ == "__main__":
    sys.exit(run(command))
