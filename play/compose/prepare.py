"""`python -m veiltab.play.compose.prepare DIR`: what compose.yaml mounts, for the Adult study and a fleet.

DIR/study.toml  alice.csv  bob.csv  policy-alice.toml  policy-bob.toml   what the parties read
DIR/pki/                                                                 an authority, and a folder a party
DIR/compose.yaml  .env                                                   what `docker compose` reads in DIR

With `--study study.toml` it is the rehearsal of that study, with dummy tables: dummy-NAME.csv instead of NAME.csv.
"""

import os
import sys
from decimal import Decimal
from pathlib import Path

import click

from veiltab.common.command.cli import EXIT_CODES, PATH, emit, json_option, run
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.members import RELAYED
from veiltab.play.compose.services import TEMPLATE, compose_text, endpoints_of
from veiltab.play.local.command import rehearsal_options
from veiltab.play.local.folder import new_folder
from veiltab.play.local.processes import LocalStudy
from veiltab.play.rehearsal.rehearsal import RehearsalOptions, draft_rehearsal
from veiltab.play.studies.adult_tables import adult_study, write_tables

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
maximum_pair_epsilon = 3.0
maximum_row_epsilon = 12.0
tested = "enough"
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
_RELAY = b"""
[relay]
endpoint = "relay:7443"
"""


def prepare(
    folder: Path, *, port: int = PORT, source: Path = _FOLDER.parents[1], relay: bool = False
) -> tuple[int, int]:
    """Write the Adult study for containers.

    Args:
        folder: destination; new or empty.
        port: the researcher's port on this machine's loopback interface.
        source: root of the clone that the image is built from.
        relay: curators accept no connection, and are called through a relay.

    Returns:
        User and group id of the containers, who own the files that they read.

    Raises:
        InvalidInputError: the folder is not empty, or cannot be made.
    """
    new_folder(folder)
    endpoints = _ENDPOINTS | {"rosa": f"localhost:{port}", "rita": f"localhost:{port + 1}"}
    if relay:
        endpoints |= {"alice": RELAYED, "bob": RELAYED}
    text = adult_study(endpoints=endpoints, epsilon=Decimal(4), delta=Decimal("1e-5")) + _NODES + _RELAY * relay
    policies = {name: _POLICY.format(name=name) for name in ("alice", "bob")}
    local = LocalStudy.made_in(folder, text, tables=write_tables(folder), policies=policies)
    owner = _handed_over(local, TEMPLATE.read_text("utf-8"), port, source)
    if relay:
        (folder / "relay.yaml").write_bytes(TEMPLATE.with_name("relay.yaml").read_bytes())
        with (folder / ".env").open("a", encoding="utf-8") as settings:
            settings.write("COMPOSE_FILE='compose.yaml:relay.yaml'\n")
    return owner


def prepare_rehearsal(
    options: RehearsalOptions, *, port: int = PORT, source: Path = _FOLDER.parents[1]
) -> tuple[int, int]:
    """Write the rehearsal of a study for containers; returns what `prepare` does.

    Args:
        port: of the first researcher on this machine's loopback interface; the others follow.
        source: as in `prepare`.

    Raises:
        InvalidInputError: the study file or a policy is not valid, or the folder is not empty.
    """
    draft = draft_rehearsal(options, lambda study: endpoints_of(study, port))
    new_folder(options.out)
    rehearsal = draft.written_to(options.out)
    # A policy is mounted in every case; one without a rule leaves everything to a person.
    for curator in rehearsal.study.curators:
        path = rehearsal.local.policies.setdefault(curator.name, options.out / f"policy-{curator.name}.toml")
        path.touch()
    tables = {name: path.name for name, path in rehearsal.local.tables.items()}
    return _handed_over(rehearsal.local, compose_text(rehearsal.study, tables), port, source)


def _handed_over(local: LocalStudy, compose: str, port: int, source: Path) -> tuple[int, int]:
    """Give the files of a study to the user of the containers, and write what compose reads; return user and group."""
    owner = (os.getuid() or IMAGE_USER, os.getgid() or IMAGE_USER)
    paths = [local.study_path, *local.tables.values(), *local.policies.values()]
    for table in local.tables.values():
        table.chmod(0o600)
    for party in (path for path in (local.folder / "pki").iterdir() if path.is_dir()):
        paths += [party, *party.iterdir()]
    for path in paths:
        os.chown(path, *owner)
    (local.folder / "compose.yaml").write_text(compose, "utf-8")
    settings = {"VEILTAB_SOURCE": source, "VEILTAB_USER": f"{owner[0]}:{owner[1]}", "VEILTAB_PORT": port}
    (local.folder / ".env").write_text("".join(f"{key}='{value}'\n" for key, value in settings.items()), "utf-8")
    return owner


@click.command(
    name="prepare",
    epilog="Example: python -m veiltab.play.compose.prepare adult-compose\n\n"
    f"Your own study: python -m veiltab.play.compose.prepare rehearsal --study study.toml\n{EXIT_CODES}",
)
@click.argument("folder", type=PATH, metavar="DIR")
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(1, 65_534), help="The researcher's, here.")
@click.option("--study", "study_path", type=PATH, help="Rehearse this study, with dummy tables, instead of Adult.")
@click.option("--relay", is_flag=True, help="Curators accept no connection, and are called through a relay.")
@rehearsal_options
@json_option
def command(  # noqa: PLR0913 - the options of the command
    folder: Path,
    *,
    port: int,
    study_path: Path | None,
    relay: bool,
    population: int | None,
    policies: dict[str, Path],
) -> None:
    """Write a study for `docker compose`: study file, tables, policies, certificates, settings."""
    if study_path is None and (population is not None or policies):
        raise InvalidInputError("--population and --policy are of a rehearsal", remedy="Give its --study.")
    if study_path is None:
        user, group = prepare(folder, port=port, relay=relay)
    else:
        options = RehearsalOptions(study=study_path, out=folder, people=population, policies=policies)
        user, group = prepare_rehearsal(options, port=port)
    emit(
        {"folder": folder, "user": user, "group": group, "port": port},
        f"Prepared; the containers will run as user {user}."
        f" Keep {folder / 'pki' / 'ca.key'} away from the parties.\n"
        f"Now: cd {folder} && docker compose up --build --detach --wait",
    )


if __name__ == "__main__":
    sys.exit(run(command))
