"""State folders of curators, as a process leaves them."""

from pathlib import Path

from tests.worlds.parties import ALICE
from veiltab.common.rpc.parties.identity import Party
from veiltab.curator.records.store import CuratorStore


def curator_state(folder: Path, party: Party = ALICE) -> CuratorStore:
    """Open the store of a curator's state folder, which says whose it is."""
    store = CuratorStore(folder / "curator.sqlite")
    owner = folder / "party"
    if not owner.exists():
        owner.write_text(party.uri, "utf-8")
    return store
