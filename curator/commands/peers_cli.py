"""`veiltab curator clear-tosses` and `allow-alignment`: work with another curator again."""

from secrets import token_bytes

import click

from veiltab.common.command.cli import emit
from veiltab.curator.officer.opened import OpenedState
from veiltab.curator.officer.options import named_person, person_option, with_standing
from veiltab.curator.officer.persons import person_name
from veiltab.curator.peers.ring import PART_BYTES


@click.command(
    "clear-tosses",
    epilog="Example: veiltab curator clear-tosses study.toml --name alice --state state --peer bob",
)
@with_standing
@click.option("--peer", required=True, help="Name of the other curator, or of the server.")
@person_option
def clear_tosses(standing: OpenedState, peer: str, person: str | None) -> None:
    """Take part in releases again with a party against which too many are counted that were charged."""
    name, is_server = person_name(named_person(person)), peer == standing.study.server.name
    party = f"server {peer}" if is_server else f"curator {standing.study.curator(peer).name}"
    cleared = standing.store.coins.clear_aborted(party, person=name)
    emit({"peer": peer, "cleared": cleared}, f"Cleared: {cleared} releases that are counted against {party}")


@click.command(
    "allow-alignment",
    epilog="Example: veiltab curator allow-alignment study.toml --name alice --state state --peer bob",
)
@with_standing
@click.option("--peer", required=True, help="Name of the other curator.")
@person_option
def allow_alignment(standing: OpenedState, peer: str, person: str | None) -> None:
    """Align privately again with a curator that had too many private alignments, or is suspected to change ids."""
    name = person_name(named_person(person))
    began = standing.store.private.allow(standing.study.curator(peer).name, token_bytes(PART_BYTES), person=name)
    emit({"peer": peer, "began": began}, f"Allowed: curator {peer}, which had {began} private alignments")
