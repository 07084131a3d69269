"""State folders of curators, as a process leaves them, and the parts of a curator that runs on one."""

from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from tests.curator.made_rows import execution
from tests.worlds.parties import ALICE
from veiltab.common.rpc.parties.identity import Identity, Party
from veiltab.common.study.file import Study
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.officer.policy import Policy
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.release.curator import Curator


def curator_state(folder: Path, party: Party = ALICE) -> CuratorStore:
    """Open the store of a curator's state folder, which says whose it is."""
    store = CuratorStore(folder / "curator.sqlite")
    owner = folder / "party"
    if not owner.exists():
        owner.write_text(party.uri, "utf-8")
    return store


def curator_parts(
    folder: Path,
    study: Study,
    policy: Policy | None = None,
    *,
    identity: Identity | Party = ALICE,
    budget: Decimal = Decimal(1),
) -> Curator:
    """Return the parts of a curator that performs its tasks in this process; the test closes the store."""
    store = CuratorStore(folder / "curator.sqlite")
    one = identity if isinstance(identity, Identity) else cast("Identity", SimpleNamespace(party=identity))
    ledger = Ledger(store.connection, budget)
    return Curator(one, study, folder, store, ledger, policy or Policy(), execution(folder))
