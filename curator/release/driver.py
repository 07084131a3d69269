"""The curator at work: it aligns tables, and takes every release through the steps that curator/progress names.

This file only executes the steps and records their outcomes. Every step is durable before the next, and may be
repeated.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, assert_never

from veiltab.common.core.symbols import CHUNK
from veiltab.common.errors import (
    BudgetExceededError,
    DeniedError,
    IntegrityError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
    UnavailableError,
    VeiltabError,
)
from veiltab.common.observe.progress import Stage, Stages
from veiltab.common.observe.steps import state_left, step
from veiltab.common.release.messages.witness import NONE_SEEN, Witnessed
from veiltab.common.release.modes import Pad
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import PLACE_BYTES, ReleaseSpec
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.workload import WorkloadSpec
from veiltab.common.rpc.parties.identity import Identity, Party
from veiltab.common.rpc.parties.signing import SignedText
from veiltab.common.rpc.statuses import failures_logged, refusal_of
from veiltab.common.rpc.waiting.changes import Changes
from veiltab.common.storage.database import transaction
from veiltab.common.storage.disk import Room
from veiltab.common.study.file import Study
from veiltab.common.study.id_rules import id_rules
from veiltab.curator.alignment.alignment import Alignment
from veiltab.curator.alignment.disk_needs import release_bytes
from veiltab.curator.alignment.intersection import AlignedTable
from veiltab.curator.alignment.token_exchange import TokenExchange
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.columns.encryption import ColumnEncryption, PlainColumn
from veiltab.curator.columns.shared_sample import Sampler, SharedSample
from veiltab.curator.officer.decisions import Decisions
from veiltab.curator.officer.policy import Policy
from veiltab.curator.peers.calls import Peers, check_study_digest
from veiltab.curator.peers.coins import Coins, release_coin
from veiltab.curator.peers.looks import Looks, Others
from veiltab.curator.planning.checks import (
    agreed_columns,
    check_aborted,
    check_asked_under,
    check_open_requests,
    check_request,
    check_shown_ledger,
    joint_decision,
    plan_question,
)
from veiltab.curator.planning.planner import Planner
from veiltab.curator.progress.progress import (
    awaited,
    check_asker,
    check_key_may_leave,
    check_receipt_may_leave,
    check_same_column,
    decides_alone,
    next_step,
    outcome_of,
)
from veiltab.curator.progress.release_record import (
    ColumnDigests,
    CuratorRelease,
    End,
    Progress,
    PublicationDigests,
    Review,
    Step,
    Wait,
)
from veiltab.curator.progress.table_steps import check_choice, next_step_of_tables
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.release.server_check import ServerCheck, canary_width
from veiltab.curator.release.statements import signed_statement
from veiltab.curator.release.upload import ServerLink
from veiltab.curator.table.table import Table
from veiltab.curator.table.workplace import Workplace

if TYPE_CHECKING:
    from veiltab.curator.alignment.private.private_exchange import PrivateExchange

_log = logging.getLogger(__name__)
_LOOK_AGAIN_SECONDS = 1.0
_HANGS_AFTER_SECONDS = 60.0
_FOLLOWED = frozenset({Step.PLAN, Step.ENCRYPT, Step.UPLOAD, Step.TEST})
"""Steps that are said with the next one, which follows at once if nothing is in its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedRelease:
    """What a desk needs to repeat this curator's test of the server.

    Args:
        receipts: what the tests showed: of this curator's columns, then of all together.
        changes: owner -> its list of changed canaries.
        canary_key: key of the canaries' places and symbols.
        digests: of what the server published, as it stated them before the test.
    """

    receipts: tuple[Receipt, ...]
    changes: Mapping[str, bytes] = field(repr=False)
    canary_key: bytes = field(repr=False)
    digests: PublicationDigests


class CuratorDriver:
    """What a curator does, behind its RPCs.

    Args:
        identity: the curator's own.
        study: the study file.
        folder: the curator's state folder.
        store: the curator's database in it.
        ledger: what was spent.
        policy: who may have what.
        workplace: performs the passes over its rows.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what a curator consists of
        self,
        identity: Identity,
        study: Study,
        folder: Path,
        store: CuratorStore,
        ledger: Ledger,
        policy: Policy,
        workplace: Workplace,
    ) -> None:
        self.name = identity.party.name
        self.study = study
        self.store = store
        self.ledger = ledger
        self.coins = Coins(self.name, (curator.name for curator in study.curators), store, ledger)
        self._workplace = workplace
        self._room = Room(folder, f"curator {self.name}", workplace.run.folder)
        self._exchange = self._exchange_of(folder / "alignments")
        rules = id_rules(study.curators)
        self.alignment = Alignment(
            self.name,
            folder,
            store,
            ledger,
            self.coins,
            self._exchange,
            self._room,
            workplace,
            most_respondents=study.maximum_respondents,
            id_rules=rules,
        )
        self._folder = folder / "releases"
        self.server_check = ServerCheck(self.name, store)
        self.sampler = Sampler(self.name, self._folder, self.coins, store, workplace)
        self.planner = Planner(store)
        self.decisions = Decisions(self.name, study, store, ledger, self.planner, policy, self.alignment.result)
        self.looks = Looks()
        self.changes = Changes()
        self._identity = identity
        self._submitted = asyncio.Event()
        self._driven: set[str] = set()
        # Requests that wait for a person: nothing is done for them until they are decided about.
        self._held: set[str] = set()
        # What the others said when the last step was considered, and the releases of which a step was refused.
        self._seen: dict[str, Others] = {}
        self._refused: set[str] = set()
        # Releases whose toss is logged as one that hangs.
        self._hanging: set[str] = set()
        # How far the steps under way are, and the releases whose record says that instead of what they waited for.
        self._stages = Stages()
        self._shown: set[str] = set()
        # Samples that this process drew and did not encrypt yet.
        self._samples: dict[str, SharedSample] = {}
        # Releases whose last step was not said to the other curators, as another was to follow at once.
        self._unsaid: set[str] = set()
        # Releases whose publication came with the answer to this process's upload, and is recorded.
        self._published: set[str] = set()

    def _exchange_of(self, folder: Path) -> "TokenExchange | PrivateExchange":
        if self.study.alignment == "tokens":
            return TokenExchange(len(self.study.curators), folder, self._room)
        # A study that aligns by tokens needs neither these nor libsodium.
        from veiltab.curator.alignment.private.masking import MAX_IDS, Masking  # noqa: PLC0415
        from veiltab.curator.alignment.private.private_exchange import PrivateExchange  # noqa: PLC0415

        names = [curator.name for curator in self.study.curators]
        return PrivateExchange(
            self.name,
            names,
            folder,
            self.store,
            Masking(folder.parent),
            self._room,
            most_ids={each.name: each.most_ids for each in self.study.curators if each.most_ids is not None},
            maximum=min(MAX_IDS, self.study.maximum_respondents),
        )

    # Called by the RPCs

    @property
    def private_exchange(self) -> "PrivateExchange":
        """This curator's part in private alignments.

        Raises:
            DeniedError: the study aligns by tokens.
        """
        if isinstance(self._exchange, TokenExchange):
            raise DeniedError("the study aligns by tokens", where=f"curator {self.name}")
        return self._exchange

    def greet(self, peer: str, study_digest: str, witness: tuple[int, bytes]) -> tuple[int, bytes]:
        """Take a peer's greeting.

        Args:
            peer: who greets.
            study_digest: of its study file.
            witness: its ledger's (entries, head), to be remembered.

        Returns:
            The longest ledger (entries, head) that the peer ever showed before.

        Raises:
            InvalidInputError: it has another study file, or shows a ledger that it cannot have.
        """
        check_study_digest(self.study, study_digest, f"curator {peer}")
        check_shown_ledger(witness, peer, self.store.releases.planned())
        longest = self.store.alignments.witness(peer)
        self.store.alignments.set_witness(peer, *witness)
        return longest

    def propose(self, request: ReleaseRequest, study_digest: str, witnessed: Witnessed = NONE_SEEN) -> CuratorRelease:
        """Record a request; a recorded one is answered even after its deadline.

        Args:
            request: what is asked for.
            study_digest: of the researcher's study file.
            witnessed: the longest ledger of this curator's that its service has seen.

        Raises:
            IntegrityError: the ledger lacks entries of that.
        """
        check_study_digest(self.study, study_digest, f"researcher {request.researcher}")
        now = int(time.time())
        if not self.store.releases.knows(request.release_id):
            check_request(request, self.study, now)
            self.ledger.verify_against(witnessed, f"researcher {request.researcher}")
            check_open_requests(request.researcher, self.store.releases.open_requests())
            # The others hear of it with what is decided about it.
            self._unsaid.add(request.release_id)
        stored = self.store.releases.add(request, now, study_digest)
        self._submitted.set()
        return stored

    async def proposal(self, release_id: str, asker: Party, seconds: float) -> tuple[CuratorRelease, Progress]:
        """Return the status of a request to its researcher, who offers to wait some seconds until it is over here.

        One that waits for a person is not waited for, nor one of several tables that is charged: its tables are.
        """
        stored = self.store.releases.release(release_id)
        check_asker(stored, asker.name)
        if not self._is_worth_saying(stored):
            await self.changes.until(
                lambda: self._is_worth_saying(self.store.releases.release(release_id)),
                [_for_researcher(release_id)],
                asker,
                seconds,
            )
            stored = self.store.releases.release(release_id)
        if stored.request.is_workload:
            stored = replace(stored, bytes_uploaded=self.store.tables.bytes_uploaded_of_tables(release_id))
        return stored, self._progress(stored)

    def _is_worth_saying(self, stored: CuratorRelease) -> bool:
        """Whether a researcher that waits for a release has something to do about it, or a person here."""
        if stored.state is ReleaseState.REQUESTED:
            return bool(stored.waiting_for and self.decisions.review(stored).held)
        return stored.state.finished or (stored.workload is not None and stored.state is ReleaseState.UPLOADING)

    @property
    def asks_a_person(self) -> frozenset[str]:
        """Ids of the requests that wait for a person here alone."""
        return frozenset(self._held)

    @property
    def stated_rows(self) -> int | None:
        """How many rows the rules for missing values left out, if the study has curators state that."""
        return self.alignment.rows_left_out if self.study.left_out == "stated" else None

    def choose(self, release_id: str, researcher: str, numbers: tuple[int, ...]) -> None:
        """Record which tables of a release run a second time; the same choice again changes nothing.

        Raises:
            DeniedError: as `check_asker`.
            VeiltabError: as `check_choice`.
        """
        stored = self.store.releases.release(release_id)
        check_asker(stored, researcher)
        if check_choice(stored, numbers):
            self.store.tables.choose_tables(release_id, numbers, int(time.time()))
            self.changes.notify(release_id)
            self._look_after_tables()

    def receipt(self, release_id: str, researcher: str) -> TestedRelease:
        """Return what this curator's test of the server showed, to a researcher that may have one of its keys.

        Raises:
            DeniedError, NotReadyError, FailedReleaseError: as `check_asker` and `check_receipt_may_leave`.
        """
        stored = self.store.releases.release(release_id)
        check_asker(stored, researcher)
        check_receipt_may_leave(stored, self.store.decisions.decisions(release_id), time.time())
        return TestedRelease(
            receipts=self.store.tests.receipts(release_id),
            changes=self.store.tests.canary_changes(release_id),
            canary_key=self.store.pads.canary_key(release_id),
            digests=PublicationDigests(
                columns=self.store.tests.published_digests(release_id),
                places=self.store.tests.places_digest(release_id),
            ),
        )

    def changes_of_canaries(self, release_id: str, owner: str) -> bytes:
        """Return the list of changed canaries of one's own columns, for another owner of columns of the release.

        Raises:
            NotFoundError: the release is not known here.
            DeniedError: the curator that asks has no columns there.
            NotReadyError: the server has not passed the test of one's own columns.
        """
        stored = self.store.releases.release(release_id)
        if stored.spec is not None and not stored.spec.columns_of(owner):
            raise DeniedError("this is for those with columns in the release", where=f"curator {owner}")
        if not self._is_tested(stored):
            raise NotReadyError("has not tested the server yet", where=f"curator {self.name}")
        return self.server_check.changes(stored.planned_spec)

    def statement(self, release_id: str, researcher: str) -> SignedText:
        """Return what this curator states about a release of a researcher's that is ready here, signed now.

        Raises:
            DeniedError: as `check_asker`.
            NotReadyError: the release is not ready here.
            InvalidInputError: this curator's certificate has expired.
        """
        stored = self.store.releases.release(release_id)
        check_asker(stored, researcher)
        return signed_statement(self._identity, stored, self.store, self.ledger)

    def pad_file(self, release_id: str, attribute: str, researcher: str, claimed: ColumnDigests) -> Path:
        """Return the file of the one-time pad of a column that the researcher may have now.

        Args:
            release_id: the release.
            attribute: the column.
            researcher: who asks.
            claimed: of the column as the researcher's desk holds it.

        Raises:
            DeniedError, NotReadyError: as `check_asker` and `check_key_may_leave`.
            InvalidInputError: the release has no one-time pads.
            FailedReleaseError: as `check_key_may_leave` and `check_same_column`.
            NotFoundError: the attribute is granted and is not part of the release.
        """
        stored = self.store.releases.release(release_id)
        check_asker(stored, researcher)
        if stored.request.pad is not Pad.OTP:
            raise InvalidInputError("the keys of a curator are asked for together", where=f"release {release_id}")
        self._given(stored, {attribute: claimed})
        return self.encryption(release_id).pad_file(attribute)

    def keys(self, release_id: str, researcher: str, claimed: Mapping[str, ColumnDigests]) -> dict[str, bytes]:
        """Return the keys of some columns, but for those of attributes that are not granted.

        Args:
            release_id: the release.
            researcher: who asks.
            claimed: attribute -> its column, as the researcher's desk holds it.

        Raises:
            DeniedError: as `check_asker`; or no key may leave, as `check_key_may_leave` says of the last attribute.
            InvalidInputError: the release has one-time pads.
            VeiltabError: as `pad_file`, of any attribute that is granted.
        """
        stored = self.store.releases.release(release_id)
        check_asker(stored, researcher)
        if stored.request.pad is not Pad.CHACHA20:
            raise InvalidInputError("one-time pads are fetched one by one", where=f"release {release_id}")
        return self._given(stored, claimed)

    def _given(self, stored: CuratorRelease, claimed: Mapping[str, ColumnDigests]) -> dict[str, bytes]:
        """Return what is recorded as the keys of columns that may leave, and record that they are given."""
        release_id, researcher = stored.request.release_id, stored.request.researcher
        decisions = {decision.attribute: decision for decision in self.store.decisions.decisions(release_id)}
        keys, refusal = dict[str, bytes](), DeniedError("no attribute is asked for", where=f"release {release_id}")
        for attribute, column in claimed.items():
            try:
                check_key_may_leave(stored, decisions.get(attribute), attribute, time.time())
            except DeniedError as error:
                refusal = error
                continue
            pad, tested = self.store.pads.pad(release_id, attribute), self.store.tests.tested(release_id, attribute)
            if pad is None or tested is None:
                raise NotFoundError("this attribute is not part of the release", where=f"attribute {attribute}")
            check_same_column(tested, column, attribute)
            keys[attribute] = pad[0]
        if not keys:
            raise refusal
        with transaction(self.store.connection):
            for attribute in keys:
                self.store.pads.record_key_given(release_id, attribute, researcher)
        return keys

    def progress(self, release_id: str) -> Progress:
        """Return this curator's progress with a release."""
        return self._progress(self.store.releases.release(release_id))

    def progress_of(self, release_ids: Iterable[str]) -> Iterator[tuple[str, Progress]]:
        """Yield this curator's progress with some releases, of those that it knows."""
        for release_id in release_ids:
            with suppress(NotFoundError):
                yield release_id, self.progress(release_id)

    def _progress(self, stored: CuratorRelease) -> Progress:
        release_id = stored.request.release_id
        verdicts = self.decisions.verdicts(stored)
        return Progress(
            curator=self.name,
            state=stored.state,
            considered=self.decisions.is_considered(stored),
            decided=verdicts.are_all,
            granted=verdicts.granted,
            denied=verdicts.denied,
            spec_digest=b"" if stored.planned is None else stored.planned.digest(),
            reserved=self.ledger.is_reserved(release_id),
            charged=self.ledger.is_charged(release_id),
            sample_check=stored.sample_check,
            tested=self._is_tested(stored),
            failure=stored.failure,
            commitment=self.coins.commitment(release_id) if stored.state is ReleaseState.CHARGED else b"",
            publication=self._publication(stored),
            request_digest=stored.request_digest,
        )

    def _publication(self, stored: CuratorRelease) -> bytes:
        """Return the digest of what the server stated that it published; empty before it is recorded."""
        if stored.state is not ReleaseState.PERTURBING and not stored.state.finished:
            return b""
        release_id = stored.request.release_id
        columns, places = self.store.tests.published_digests(release_id), self.store.tests.places_digest(release_id)
        return PublicationDigests(columns=columns, places=places).digest() if columns else b""

    def _is_tested(self, stored: CuratorRelease) -> bool:
        may_be = stored.state is ReleaseState.PERTURBING or stored.state.finished
        return may_be and stored.spec is not None and self.server_check.is_passed(stored.spec)

    def encryption(self, release_id: str) -> ColumnEncryption:
        """Return the encrypted columns of a release."""
        return ColumnEncryption(self.store, self._folder / release_id, release_id)

    def shared_indices(self, release_id: str) -> Path:
        """Return the file of the row indices of a release, for a peer.

        Raises:
            NotFoundError: the release is not known here.
            NotReadyError: they are not drawn yet.
        """
        self.store.releases.release(release_id)
        return self.sampler.shared_indices(release_id)

    # The driver

    async def run(self, table: Table) -> None:
        """Align the table and drive releases until cancelled."""
        peers = Peers(self._identity, self.study)
        server = ServerLink(self._identity, self.study, self.ledger, self.store.tests.noise_digest)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.alignment.run(table, peers))
                tasks.create_task(self.looks.run(peers))
                tasks.create_task(self._erase_traces())
                while True:
                    self._submitted.clear()
                    self._show_work()
                    for release_id in self._unfinished():
                        if release_id not in self._driven and release_id not in self._held:
                            self._driven.add(release_id)
                            tasks.create_task(self._drive_or_log(release_id, peers, server))
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._submitted.wait(), _LOOK_AGAIN_SECONDS)
        finally:
            self._exchange.close()
            await self.planner.close()
            await peers.close()
            await server.close()

    def _unfinished(self) -> tuple[str, ...]:
        with failures_logged(_log, "the releases under way cannot be read"):
            if self.store.has_changed_elsewhere():
                self.looks.wake()
                self.changes.notify_all()
            decided = self._held - self.store.decisions.waiting_for_a_person(time.time())
            self._held -= decided | self.decisions.refused_of(self._held) | self.looks.ended(self._held)
            for release_id in decided:
                self.looks.forget(release_id)  # whoever goes on with it looks anew
            return self.store.releases.unfinished()
        return ()

    def _show_work(self) -> None:
        """Let whoever looks read what is done for a release, instead of what it waited for before."""
        with failures_logged(_log, "the work under way cannot be shown"):
            for release_id, text in self._stages.texts.items():
                self._shown.add(release_id)
                self._say(self.store.releases.release(release_id), text)

    def _say(self, stored: CuratorRelease, text: str) -> None:
        """Record what a release waits for, or what is done for it; of one of several tables, with them."""
        self.store.releases.set_waiting(stored.request.release_id, text)
        if stored.part_of:
            self.store.releases.set_waiting(stored.part_of, f"table {', '.join(stored.request.attributes)}: {text}")

    async def _erase_traces(self) -> None:
        """Erase what was forgotten for good: of all releases of a second at once, and while none waits for it."""
        while True:
            if self.store.coins.has_traces:
                with failures_logged(_log, "the traces of seeds cannot be erased"):
                    await asyncio.to_thread(self.store.coins.erase_traces)
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    async def _drive_or_log(self, release_id: str, peers: Peers, server: ServerLink) -> None:
        """Drive a release; a failure on the way, such as a full disk, is tried again later."""
        with failures_logged(_log, "a release cannot go on", release=release_id):
            await self._drive(release_id, peers, server)
        self._driven.discard(release_id)

    async def _drive(self, release_id: str, peers: Peers, server: ServerLink) -> None:
        attempt, entered = 0, time.monotonic()
        stored = self.store.releases.release(release_id)
        while not stored.state.finished:
            before, wakes = stored.state, self.looks.wakes
            stored = await self._take_steps(stored, entered, peers, server)
            if stored.state is not before:
                attempt, entered = 0, time.monotonic()
            elif await self._waits_for_a_person(stored):
                self._held.add(release_id)
                return
            else:
                attempt = await self._wait(stored, attempt, wakes)
                stored = self.store.releases.release(release_id)
        if stored.part_of:
            self._look_after_tables()
        if stored.state.unsuccessful:
            self._forget(release_id)  # a person ended it, or a process that did not come to the end of it
        self.decisions.forget(release_id)
        self._room.give_back(release_id)
        await self._tidy(release_id, stored.request.deadline)
        self._stop_looking(release_id)

    async def _waits_for_a_person(self, stored: CuratorRelease) -> bool:
        """Whether every other curator has considered a request, and a person here has not."""
        others = self._seen.get(stored.request.release_id)
        if others is None or isinstance(others, VeiltabError) or not all(peer.considered for peer in others):
            return False
        return await self.decisions.waits_for_a_person(stored)

    def _stop_looking(self, release_id: str) -> None:
        self.looks.forget(release_id)
        self._seen.pop(release_id, None)
        self._refused.discard(release_id)
        self._unsaid.discard(release_id)
        self._published.discard(release_id)
        self._shown.discard(release_id)

    def _look_after_tables(self) -> None:
        """Take up tables that may run now, and let the release that they are part of go on."""
        self.looks.wake()
        self._submitted.set()

    async def _wait(self, stored: CuratorRelease, attempt: int, wakes: int) -> int:
        """Wait until a step is worth another attempt; return how many were in vain."""
        release_id, deadline = stored.request.release_id, stored.request.deadline
        is_refused, seen = release_id in self._refused, self._seen.get(release_id)
        await self.looks.news(release_id, seen, attempt=attempt, wakes=wakes, deadline=deadline, is_refused=is_refused)
        return attempt + 1 if is_refused else 0

    async def _take_steps(
        self, stored: CuratorRelease, entered: float, peers: Peers, server: ServerLink
    ) -> CuratorRelease:
        """Take the steps that can be taken now.

        Args:
            stored: the release.
            entered: when this process found it in its state, monotonic seconds.
            peers: the other curators.
            server: the server.

        Returns:
            The release once it has left its state, or has to wait in it.
        """
        release_id, before = stored.request.release_id, stored.state
        while stored.state is before:
            match await self._step(stored, peers, server):
                case Wait(reason):
                    self._say_what_was_left_unsaid(release_id)
                    if reason != stored.waiting_for or stored.part_of or release_id in self._shown:
                        self._say(stored, reason)
                        self._shown.discard(release_id)
                    if before is ReleaseState.REQUESTED:
                        self.changes.notify(_for_researcher(release_id))  # it hears that a person decides
                    return stored
                case End() as ended:
                    self._end(stored, ended, _left(stored, entered))
                    return self._changed(release_id)
                case Step(leads_to=state) as taken:
                    if state is not before:  # else there is more to do in this state
                        self.store.releases.set_state(release_id, state, seconds=_left(stored, entered))
            stored = self._changed(release_id, taken)
        return stored

    def _changed(self, release_id: str, taken: Step | None = None) -> CuratorRelease:
        """Return a release that has changed, by a step that was taken or otherwise; wake whoever waits for that."""
        stored = self.store.releases.release(release_id)
        if taken in _FOLLOWED:
            self._unsaid.add(release_id)
        else:
            self._unsaid.discard(release_id)
            self.changes.notify(release_id)
        if self._is_worth_saying(stored):
            self.changes.notify(_for_researcher(release_id))
        return stored

    def _say_what_was_left_unsaid(self, release_id: str) -> None:
        """Wake the other curators if a step was to be followed by another, which has to wait."""
        if release_id in self._unsaid:
            self._unsaid.discard(release_id)
            self.changes.notify(release_id)

    async def _step(self, stored: CuratorRelease, peers: Peers, server: ServerLink) -> Step | Wait | End:
        """Take the next step if there is one; return it, or the outcome that replaces it."""
        release_id = stored.request.release_id
        try:
            was_refused, is_published = release_id in self._refused, release_id in self._published
            self._refused.add(release_id)
            own = replace(
                self.decisions.review(stored),
                is_published=is_published,
                is_tested=self._is_tested(stored),
                publication=self._publication(stored),
            )
            others: Others = ()
            # What is decided here alone waits for nobody, unless it was refused before.
            if was_refused or not decides_alone(stored, own):
                others = self._seen[release_id] = await self.looks.progress(release_id, awaited(stored))
            outcome = self._next(stored, own, others)
            if isinstance(outcome, Step):
                if not own.is_charged:
                    check_asked_under(stored, self.study)
                await self._take(outcome, stored, () if isinstance(others, VeiltabError) else others, peers, server)
            self._refused.discard(release_id)
        except (VeiltabError, OSError) as error:
            return outcome_of(error, is_charged=self.ledger.is_charged(release_id))
        except Exception as error:  # noqa: BLE001 - also what a peer sent, and nobody foresaw, ends no more than a step
            refusal, logged = refusal_of(error)
            _log.error("a step failed: %s", logged, extra={"release": release_id})
            return outcome_of(refusal, is_charged=self.ledger.is_charged(release_id))
        return outcome

    def _next(self, stored: CuratorRelease, own: Review, others: Others) -> Step | Wait | End:
        if not stored.request.is_workload:
            return next_step(stored, own, others, time.time())
        tables = self.store.tables.tables(stored.request.release_id)
        return next_step_of_tables(stored, own, others, tables, time.time())

    def _end(self, stored: CuratorRelease, ended: End, seconds: float) -> None:
        if stored.state.finished:
            return  # it keeps what it has
        release_id = stored.request.release_id
        _log.warning("release ended", extra={"release": release_id, "state": ended.state.value})
        others = {curator.name for curator in self.study.curators} - {self.name}
        for curator in sorted(others & (self.coins.withheld(release_coin(release_id)) | set(ended.by))):
            _log.warning("a charged release ended by a curator", extra={"release": release_id, "curator": curator})
            self.store.coins.add_aborted(stored.part_of or release_id, curator)
        self.store.releases.end(release_id, ended.state, ended.reason, seconds=seconds)
        self._forget(release_id)

    def _forget(self, release_id: str) -> None:
        """Erase what is left of a release that ended without a result; the keys last, as they tell what is left."""
        self._samples.pop(release_id, None)
        self.server_check.forget(release_id)
        self.ledger.cancel(release_id)
        self.encryption(release_id).forget_ciphertext()
        self.encryption(release_id).forget_canaries()
        self.encryption(release_id).forget_pads()
        self.store.pads.forget_keys(release_id)

    async def _take(
        self, chosen: Step, stored: CuratorRelease, others: tuple[Progress, ...], peers: Peers, server: ServerLink
    ) -> None:
        match chosen:
            case Step.DECIDE:
                await self.decisions.apply_policy(stored.request)
            case Step.APPROVE:
                pass
            case Step.PLAN:
                await self._plan(stored, others)
            case Step.RESERVE:
                await self._reserve(stored.planned_release)
            case Step.CHARGE:
                await self._charge(stored.planned_release, server)
            case Step.OPEN_TABLES:
                self._open_tables(stored)
            case Step.DRAW | Step.ENCRYPT | Step.UPLOAD | Step.TEST | Step.FINISH:
                with self._stages.stage(stored.request.release_id) as stage:
                    await self._take_charged(chosen, stored, others, stage, peers, server)
            case _:
                assert_never(chosen)

    async def _take_charged(  # noqa: PLR0913, PLR0917 - what a step may depend on
        self,
        chosen: Literal[Step.DRAW, Step.ENCRYPT, Step.UPLOAD, Step.TEST, Step.FINISH],
        stored: CuratorRelease,
        others: tuple[Progress, ...],
        stage: Stage,
        peers: Peers,
        server: ServerLink,
    ) -> None:
        match chosen:
            case Step.DRAW:
                shown = {peer.curator: peer.commitment for peer in others if peer.commitment}
                await self._draw(stored.planned_spec, shown, stage, peers)
            case Step.ENCRYPT:
                await self._encrypt(stored, stage, peers)
            case Step.UPLOAD:
                await self._upload(stored.planned_spec, stage, server)
            case Step.TEST:
                await self._test(stored, stage, server)
            case Step.FINISH:
                # A crash may have come between the receipt and this.
                self.encryption(stored.request.release_id).forget_canaries()
                if stored.spec is not None:  # of several tables, each has been tested
                    await self._test_together(stored.spec, peers, server)
            case _:
                assert_never(chosen)

    async def _plan(self, stored: CuratorRelease, others: tuple[Progress, ...]) -> None:
        release_id = stored.request.release_id
        everyone = (self._progress(stored), *others)
        granted, denied = joint_decision(everyone, self.study)
        columns = agreed_columns(stored.request, self.study, granted, denied)
        population, digest = self.alignment.result()
        with step("plan", release_id=release_id), self._stages.stage(release_id) as stage, stage.of("planning", None):
            question = plan_question(stored.request, columns, self.study, population=population, alignment=digest)
            planned = await self.planner.spec(question)
        # Before any curator reserves anything.
        self._keep_room(planned)
        if isinstance(planned, WorkloadSpec):
            self.store.tables.set_workload(planned.release_id, planned)
        else:
            self.store.releases.set_spec(planned.release_id, planned)

    def _keep_room(self, planned: ReleaseSpec | WorkloadSpec) -> None:
        """Keep room for what a release writes here."""
        size = release_bytes(planned, self.name, copies=self._workplace.is_remote)
        self._room.keep(planned.release_id, size)

    async def _reserve(self, spec: ReleaseSpec | WorkloadSpec) -> None:
        check_aborted(self.store.coins.aborted())
        with step("reserve", release_id=spec.release_id):
            with self._stages.stage(spec.release_id) as stage, stage.of("computing the charge", None):
                charge = await self.planner.charge(spec, self.ledger.allowance)
            self.decisions.check_others_share(spec, charge)
            try:
                self.ledger.reserve(spec, charge)
            except BudgetExceededError:
                if not self.ledger.fits_what_is_charged(spec.release_id, charge):
                    raise
                raise NotReadyError(
                    "the rest of the budget is reserved for other releases", where=f"curator {self.name}"
                ) from None

    async def _charge(self, planned: ReleaseSpec | WorkloadSpec, server: ServerLink) -> None:
        tables = planned.each_table() if isinstance(planned, WorkloadSpec) else (planned,)
        own = next((table for table in tables if table.columns_of(self.name)), None)
        # The disk may have filled up since the release was planned.
        self._keep_room(planned)
        if own is not None:
            # An unreachable server, or one with another study file, is noticed before the charge.
            with step("announce", release_id=own.release_id):
                announced = await server.announce(own)
        with step("charge", release_id=planned.release_id), transaction(self.store.connection):
            self.ledger.charge(planned.release_id)
            if own is not None:
                self.store.tests.record_noise_digest(own.release_id, announced.noise_digest)
            if isinstance(planned, ReleaseSpec):
                self.coins.commit(planned.release_id)

    def _open_tables(self, stored: CuratorRelease) -> None:
        if stored.workload is None:
            raise AssertionError("only a release of several tables has any to open")
        numbers = range(len(stored.workload.tables))
        self.store.tables.open_tables(stored.request.release_id, numbers, int(time.time()))
        self._submitted.set()

    async def _draw(self, spec: ReleaseSpec, shown: Mapping[str, bytes], stage: Stage, peers: Peers) -> None:
        table = self.alignment.table(spec.alignment)
        try:
            sample = await self.sampler.draw(spec, table, peers, stage, shown)
        except (NotReadyError, UnavailableError):
            self._log_hanging(spec.release_id)
            raise
        self._hanging.discard(spec.release_id)
        self._samples[spec.release_id] = sample
        self.store.releases.set_sample_check(
            spec.release_id, sample.check, has_columns=bool(spec.columns_of(self.name))
        )

    def _log_hanging(self, release_id: str) -> None:
        """Log a toss that hangs although every curator has charged the release, once a process."""
        since = self.store.releases.release(release_id).since
        if release_id in self._hanging or time.time() - since <= _HANGS_AFTER_SECONDS:
            return
        if missing := ", ".join(sorted(self.coins.awaited(release_coin(release_id)))):
            self._hanging.add(release_id)
            _log.warning("a toss of a charged release hangs", extra={"release": release_id, "curator": missing})

    async def _encrypt(self, stored: CuratorRelease, stage: Stage, peers: Peers) -> None:
        spec = stored.planned_spec
        table = self.alignment.table(spec.alignment)
        sample = self._samples.get(spec.release_id)
        if sample is None:  # an earlier process drew it
            sample = await self.sampler.draw(spec, table, peers, stage)
            if sample.check != stored.sample_check:
                raise IntegrityError("drew another sample than before", where=f"curator {self.name}")
        try:
            await asyncio.to_thread(self._encrypt_columns, spec, table, sample, stage)
        finally:
            # After a failure, too: its files may be damaged or gone, and the next attempt draws the same again.
            self._samples.pop(spec.release_id, None)
        self._room.give_back(spec.release_id)

    def _encrypt_columns(self, spec: ReleaseSpec, table: AlignedTable, sample: SharedSample, stage: Stage) -> None:
        columns, encryption = spec.columns_of(self.name), self.encryption(spec.release_id)
        with stage.of("encrypting columns", len(columns) * spec.uploaded_rows) as progress:
            plain = [
                PlainColumn(
                    attribute=column.attribute,
                    symbols=sample.rows.column(table, column.attribute),
                    size=column.size,
                )
                for column in columns
            ]
            # A long column is recorded by itself: after a crash it is not made again.
            for some in [plain] if spec.uploaded_rows <= CHUNK else [[one] for one in plain]:
                encryption.encrypt_together(some, spec.pad, sample.noise, progress.advance)

    async def _upload(self, spec: ReleaseSpec, stage: Stage, server: ServerLink) -> None:
        encryption = self.encryption(spec.release_id)
        columns = {
            c.attribute: (
                encryption.ciphertext(c.attribute),
                self.store.pads.ciphertext_digest(spec.release_id, c.attribute),
            )
            for c in spec.columns_of(self.name)
        }
        if columns:
            if not self.store.tests.noise_digest(spec.release_id):  # a table that was not announced with the charge
                self.store.tests.record_noise_digest(spec.release_id, (await server.announce(spec)).noise_digest)
            size = sum(column.byte_length(spec.uploaded_rows) for column in spec.columns_of(self.name))
            with step("upload", release_id=spec.release_id, size=size):
                published = await server.upload(spec, columns, stage=stage)
            with transaction(self.store.connection):
                self.store.releases.set_bytes_uploaded(spec.release_id, size)
                if published is not None:
                    self.store.tests.record_publication(spec.release_id, published)
            if published is not None:  # and not before it is durable
                self._published.add(spec.release_id)
        encryption.forget_ciphertext()

    async def _test(self, stored: CuratorRelease, stage: Stage, server: ServerLink) -> None:
        spec = stored.planned_spec
        if spec.columns_of(self.name):
            # For what the server sends, until it is compared, and for the places.
            self._room.keep(spec.release_id, spec.canaries * (canary_width(spec, self.name) + PLACE_BYTES))
        with step("test server", release_id=spec.release_id):
            encryption = self.encryption(spec.release_id)
            is_published = spec.release_id in self._published
            await self.server_check.run(spec, server, encryption, stage, is_published=is_published)
        self._room.give_back(spec.release_id)

    async def _test_together(self, spec: ReleaseSpec, peers: Peers, server: ServerLink) -> None:
        """Test all columns together, on the lists of changed canaries of every owner."""
        if not spec.columns_of(self.name):
            return
        owners = {column.owner for column in spec.columns} - {self.name}
        with step("test server together", release_id=spec.release_id):
            lists = {owner: await peers.changes(owner, spec.release_id) for owner in sorted(owners)}
            await self.server_check.run_together(spec, server, lists, self._folder)

    async def _tidy(self, release_id: str, deadline: int) -> None:
        """Forget the seed once every curator has encrypted, or the release is over everywhere."""
        # Whatever a peer answers, also that one's own certificate has expired, is no reason to end here.
        while time.time() < deadline and not _needs_no_seed(others := await self.looks.progress(release_id)):
            await self.looks.news(
                release_id, others, attempt=0, wakes=self.looks.wakes, deadline=deadline, is_refused=False
            )
        self.store.coins.forget_coin(release_coin(release_id))
        self.sampler.indices_file(release_id).unlink(missing_ok=True)


def _for_researcher(release_id: str) -> str:
    """Return the name of the changes of a release for which its researcher waits; its peers wait for all."""
    return f"researcher/{release_id}"


def _left(stored: CuratorRelease, entered: float) -> float:
    """Log that a release leaves its state; return how many seconds it was in it."""
    seconds = time.monotonic() - entered
    state_left(stored.state.value, release_id=stored.request.release_id, seconds=seconds)
    return seconds


def _needs_no_seed(others: Others) -> bool:
    """Whether no other curator will draw the sample again."""
    return not isinstance(others, VeiltabError) and all(
        peer.state in {ReleaseState.UPLOADING, ReleaseState.PERTURBING} or peer.state.finished for peer in others
    )
