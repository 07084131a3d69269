"""`veiltab curator repair`: what keeps this curator from working with another party, and going on all the same."""

from secrets import token_bytes

import click

from veiltab.common.command.cli import emit
from veiltab.curator.alignment.joining.join_messages import PART_BYTES
from veiltab.curator.budget.ledger_text import witness_text
from veiltab.curator.officer.open_state import OpenedState, with_own_state
from veiltab.curator.officer.options import person_option
from veiltab.curator.officer.persons import named_person, person_name


@click.command(epilog="Example: veiltab curator repair study.toml tosses bob --state state")
@with_own_state
@click.argument("what", required=False, type=click.Choice(["tosses", "alignment", "ledger"]))
@click.argument("peer", required=False)
@person_option
def repair(own_state: OpenedState, what: str | None, peer: str | None, person: str | None) -> None:
    """Work with a PEER again that was refused, once a person knows why; without a PEER, show whose ledger is doubted.

    tosses: releases count against it, or against the server, that were charged and did not end. alignment: it began too
    many joins, or sent in one what no honest curator sends. ledger: it has seen entries that this ledger lacks. Either
    this ledger was rolled back, and then what a restored backup forgot is spent, or somebody showed an invented one
    under this curator's name: repair it only then.
    """
    if (what is None) != (peer is None):
        raise click.UsageError("Name what to repair and with whom, such as: tosses bob.")
    name = "" if peer is None else person_name(named_person(person))
    if what == "tosses" and peer is not None:
        is_server = peer == own_state.study.server.name
        party = f"server {peer}" if is_server else f"curator {own_state.study.curator(peer).name}"
        cleared = own_state.store.coins.clear_aborted(party, person=name)
        emit({"peer": peer, "cleared": cleared}, f"Cleared: {cleared} releases that are counted against {party}")
        return
    if what == "alignment" and peer is not None:
        began = own_state.store.joins.allow(own_state.study.curator(peer).name, token_bytes(PART_BYTES), person=name)
        emit({"peer": peer, "began": began}, f"Allowed: curator {peer}, which had {began} joins")
        return
    doubts = own_state.ledger.chain.doubts
    if peer is not None:
        doubts.set_aside(peer, person=name)
    own = own_state.ledger.chain.head[0]
    others = [each.name for each in own_state.study.curators if each.name != own_state.name]
    remembered = {one: own_state.store.alignments.witness(one)[0] for one in others}
    plain = {"entries": own, "remembered": remembered, "lacking": [one.as_dict() for one in doubts.all()]}
    emit(plain, witness_text(own, remembered, doubts.all()))
