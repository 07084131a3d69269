"""What a curator consists of while it works at releases, and what it knows of each.

Three objects work with it: the answers to RPCs (rpc_answers.py), the driver that chooses the steps of a release
(driver.py), and what takes them (step_executor.py).
"""

import asyncio
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from veiltab.common.dataclass import dataclass
from veiltab.common.observe.progress import Stages
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.parties.identity import Identity
from veiltab.common.rpc.waiting.changes import Changes
from veiltab.common.storage.disk import DiskReservations
from veiltab.common.study.file import Study
from veiltab.curator.alignment.alignment import Alignment
from veiltab.curator.alignment.exchanges import exchange_of, lacking_of
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.columns.encryption import ColumnEncryption
from veiltab.curator.columns.shared_sample import Sampler, SharedSample
from veiltab.curator.officer.decisions import Decider
from veiltab.curator.peers.coins import Coins
from veiltab.curator.peers.subscriptions import Others, Subscriptions
from veiltab.curator.planning.planner import Planner
from veiltab.curator.progress.release_record import CuratorRelease, Progress
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.release.server_check import ServerCheck
from veiltab.curator.table.execution import Execution

if TYPE_CHECKING:
    from veiltab.curator.officer.policy import Policy


@dataclass(slots=True, kw_only=True)
class Run:
    """What this process knows of a release that is not over here, beside what is recorded.

    Args:
        is_driven: a task takes its steps.
        is_held: it waits for a person: nothing is done for it until it is decided about.
        others: what the others said when the last step was considered.
        is_refused: its last step was refused.
        is_hanging: its toss is logged as one that hangs.
        waits_for: what it waits for since its last step; empty if a step is under way that did not wait before.
        shown: which text its record has of what it waits for, or of what is done for it.
        sample: which this process drew and did not encrypt yet.
        is_unsaid: its last step was not said to the other curators, as another was to follow at once.
        is_published: its publication came with the answer to this process's upload, and is recorded.
    """

    is_driven: bool = False
    is_held: bool = False
    others: Others | None = None
    is_refused: bool = False
    is_hanging: bool = False
    waits_for: str = ""
    shown: str = ""
    sample: SharedSample | None = None
    is_unsaid: bool = False
    is_published: bool = False


class Curator:
    """What a curator consists of.

    Args:
        store: the curator's database in it.
        execution: performs the passes over its rows.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what a curator consists of
        self,
        identity: Identity,
        study: Study,
        folder: Path,
        store: CuratorStore,
        ledger: Ledger,
        policy: "Policy",
        execution: Execution,
    ) -> None:
        self.name = identity.party.name
        self.study = study
        self.store = store
        self.ledger = ledger
        self.coins = Coins(self.name, (curator.name for curator in study.curators), store, ledger)
        self.execution = execution
        self.room = DiskReservations(folder, f"curator {self.name}", execution.run.folder)
        self.exchange = exchange_of(study, self.name, folder / "alignments", store, self.room)
        self.alignment = Alignment(
            self.name,
            folder,
            store,
            ledger,
            self.coins,
            self.exchange,
            self.room,
            execution,
            most_respondents=study.maximum_respondents,
            lacking=lacking_of(study, self.name, store),
        )
        self.folder = folder / "releases"
        self.server_check = ServerCheck(self.name, store)
        self.sampler = Sampler(self.name, self.folder, self.coins, store, execution)
        self.planner = Planner(store)
        self.decisions = Decider(self.name, study, store, ledger, self.planner, policy, self.alignment.result)
        self.subscriptions = Subscriptions()
        self.changes = Changes()
        self.identity = identity
        self.submitted = asyncio.Event()
        # How far the steps under way are.
        self.stages = Stages()
        self.runs = defaultdict[str, Run](Run)

    def progress(self, release: CuratorRelease, checkpoint: bytes = b"") -> Progress:
        """Return this curator's progress with a release, with what it signed of its ledger."""
        release_id = release.request.release_id
        verdicts, (is_reserved, is_charged) = self.decisions.verdicts(release), self.ledger.chain.standing(release_id)
        return Progress(
            curator=self.name,
            state=release.state,
            considered=self.decisions.is_considered(release),
            decided=verdicts.are_all,
            granted=verdicts.granted,
            denied=verdicts.denied,
            spec_digest=release.digest,
            reserved=is_reserved,
            charged=is_charged,
            sample_check=release.sample_check,
            tested=self.is_tested(release),
            failure=release.failure,
            commitment=self.coins.commitment(release_id) if release.state is ReleaseState.CHARGED else b"",
            publication=self.publication(release),
            request_digest=release.request_digest,
            checkpoint=checkpoint,
            uploaded=release.state is ReleaseState.PERTURBING or release.bytes_uploaded > 0,
        )

    def publication(self, release: CuratorRelease) -> bytes:
        """Return the digest of what the server stated that it published; empty before it is recorded."""
        if release.state is not ReleaseState.PERTURBING and not release.state.finished:
            return b""
        published = self.store.tests.publication(release.request.release_id)
        return published.digest() if published.columns else b""

    @property
    def asks_a_person(self) -> frozenset[str]:
        """Ids of the requests that wait for a person here alone."""
        return frozenset(name for name, run in list(self.runs.items()) if run.is_held)

    def is_tested(self, release: CuratorRelease) -> bool:
        """Whether the server passed this curator's test of the release."""
        may_be = release.state is ReleaseState.PERTURBING or release.state.finished
        return may_be and release.spec is not None and self.server_check.is_passed(release.spec)

    def is_worth_saying(self, release: CuratorRelease) -> bool:
        """Whether a researcher that waits for a release has something to do about it, or a person here."""
        if release.state is ReleaseState.REQUESTED:
            return bool(release.waiting_for and self.decisions.review(release).waiting_attributes)
        return release.state.finished or (release.several is not None and release.state is ReleaseState.UPLOADING)

    def encryption(self, release_id: str) -> ColumnEncryption:
        """Return the encrypted columns of a release."""
        return ColumnEncryption(self.store, self.folder / release_id, release_id)

    def forget(self, release_id: str) -> None:
        """Erase what is left of a release that ended without a result; the keys last, as they tell what is left."""
        self.runs[release_id].sample = None
        self.server_check.forget(release_id)
        self.ledger.cancel(release_id)
        self.encryption(release_id).forget_ciphertext()
        self.encryption(release_id).forget_pads()
        self.store.keys.forget_keys(release_id)

    def look_after_tables(self) -> None:
        """Take up tables that may run now, and let the release that they are part of go on."""
        self.subscriptions.wake()
        self.submitted.set()


def for_researcher(release_id: str) -> str:
    """Return the name of the changes of a release for which its researcher waits; its peers wait for all."""
    return f"researcher/{release_id}"
