"""What the RPCs of a curator ask about releases; each answer is checked against what is recorded."""

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from veiltab.common.dataclass import dataclass, field, replace
from veiltab.common.errors import DeniedError, InvalidInputError, NotFoundError, NotReadyError
from veiltab.common.release.messages.witness import NONE_SEEN, Witnessed
from veiltab.common.release.modes import Pad
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.rpc.parties.identity import Party
from veiltab.common.rpc.parties.signing import SignedText
from veiltab.common.storage.database import transaction
from veiltab.curator.peers.calls import MOST_CHANGES_SAID, check_study_digest
from veiltab.curator.peers.witnesses import own_checkpoint
from veiltab.curator.planning.checks import check_open_requests, check_request, check_shown_ledger
from veiltab.curator.progress.progress import (
    check_asker,
    check_key_may_leave,
    check_receipt_may_leave,
    check_same_column,
)
from veiltab.curator.progress.release_record import ColumnDigests, CuratorRelease, Progress, PublicationDigests
from veiltab.curator.progress.table_steps import check_choice
from veiltab.curator.release.curator import Curator, for_researcher
from veiltab.curator.release.statements import signed_statement

if TYPE_CHECKING:
    from veiltab.curator.alignment.joining.sessions import Sessions


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


class RpcAnswers:
    """What a curator answers its researchers and the other curators."""

    def __init__(self, curator: Curator) -> None:
        self.curator, self.store, self.name = curator, curator.store, curator.name

    @property
    def sessions(self) -> "Sessions":
        """This curator's sessions of joins.

        Raises:
            DeniedError: the study joins by tokens.
        """
        if self.curator.exchange.sessions is None:
            raise DeniedError("the study joins by tokens", where=f"curator {self.name}")
        return self.curator.exchange.sessions

    def greet(self, peer: str, study_digest: str, witness: tuple[int, bytes]) -> tuple[int, bytes]:
        """Take a peer's greeting.

        Args:
            witness: its ledger's (entries, head), to be remembered.

        Returns:
            The longest ledger (entries, head) that the peer ever showed before.

        Raises:
            InvalidInputError: it has another study file, or shows a ledger that it cannot have.
        """
        check_study_digest(self.curator.study, study_digest, f"curator {peer}")
        check_shown_ledger(witness, peer, self.store.releases.planned())
        longest = self.store.alignments.witness(peer)
        self.store.alignments.set_witness(peer, *witness)
        return longest

    def propose(self, request: ReleaseRequest, study_digest: str, witnessed: Witnessed = NONE_SEEN) -> CuratorRelease:
        """Record a request; a recorded one is answered even after its deadline.

        Args:
            study_digest: of the researcher's study file.
            witnessed: the longest ledger of this curator's that its service has seen.

        Raises:
            IntegrityError: the ledger lacks entries of that.
        """
        check_study_digest(self.curator.study, study_digest, f"researcher {request.researcher}")
        now = int(time.time())
        if not self.store.releases.knows(request.release_id):
            check_request(request, self.curator.study, now)
            self.curator.ledger.chain.verify_against(witnessed, f"researcher {request.researcher}")
            check_open_requests(request.researcher, self.store.releases.open_requests())
            # The others hear of it with what is decided about it.
            self.curator.runs[request.release_id].is_unsaid = True
        release = self.store.releases.add(request, now, study_digest)
        self.curator.submitted.set()
        return release

    async def proposal(self, release_id: str, asker: Party, seconds: float) -> tuple[CuratorRelease, Progress]:
        """Return the status of a request to its researcher, who offers to wait some seconds until it is over here.

        One that waits for a person is not waited for, nor one of several tables that is charged: its tables are.
        """
        release = self.store.releases.release(release_id)
        check_asker(release, asker.name)
        if not self.curator.is_worth_saying(release):
            await self.curator.changes.until(
                lambda: self.curator.is_worth_saying(self.store.releases.release(release_id)),
                [for_researcher(release_id)],
                asker,
                seconds,
            )
            release = self.store.releases.release(release_id)
        if release.request.tables:
            release = replace(release, bytes_uploaded=self.store.tables.bytes_uploaded_of_tables(release_id))
        return release, self.curator.progress(release)

    @property
    def stated_rows(self) -> int | None:
        """How many rows the rules for missing values left out, if the study has curators state that."""
        return self.curator.alignment.rows_left_out if self.curator.study.left_out == "stated" else None

    def choose(self, release_id: str, researcher: str, numbers: tuple[int, ...]) -> None:
        """Record which tables of a release run a second time; the same choice again changes nothing.

        Raises:
            DeniedError: as `check_asker`.
            VeiltabError: as `check_choice`.
        """
        release = self.store.releases.release(release_id)
        check_asker(release, researcher)
        if check_choice(release, numbers):
            self.store.tables.choose_tables(release_id, numbers, int(time.time()))
            self.curator.changes.notify(release_id)
            self.curator.look_after_tables()

    def receipt(self, release_id: str, researcher: str) -> TestedRelease:
        """Return what this curator's test of the server showed, to a researcher that may have one of its keys.

        Raises:
            DeniedError, NotReadyError, FailedReleaseError: as `check_asker` and `check_receipt_may_leave`.
        """
        release = self.store.releases.release(release_id)
        check_asker(release, researcher)
        check_receipt_may_leave(release, self.store.decisions.decisions(release_id), time.time())
        return TestedRelease(
            receipts=self.store.tests.receipts(release_id),
            changes=self.store.tests.canary_changes(release_id),
            canary_key=self.store.keys.canary_key(release_id),
            digests=self.store.tests.publication(release_id),
        )

    def canary_part(self, release_id: str, attribute: str, holder: str) -> Path:
        """Return the ciphertext of the canaries in this curator's part of a column, for another holder of it.

        Raises:
            NotFoundError: the release is not known here, or over.
            DeniedError: the curator that asks does not hold the column.
            NotReadyError: what the server published is not recorded here.
        """
        release = self.store.releases.release(release_id)
        if holder not in release.planned_spec.column(attribute).holders:
            raise DeniedError("this is for those who hold the column", where=f"curator {holder}")
        path = self.curator.encryption(release_id).canaries(attribute)
        if path.exists():
            return path
        if release.state.finished:
            raise NotFoundError("the ciphertext of the canaries is deleted", where=f"curator {self.name}")
        raise NotReadyError("has not heard what the server published yet", where=f"curator {self.name}")

    def changes_of_canaries(self, release_id: str, owner: str) -> bytes:
        """Return the list of changed canaries of one's own columns, for another owner of columns of the release.

        Raises:
            NotFoundError: the release is not known here.
            DeniedError: the curator that asks has no columns there.
            NotReadyError: the server has not passed the test of one's own columns.
        """
        release = self.store.releases.release(release_id)
        if release.spec is not None and not release.spec.columns_of(owner):
            raise DeniedError("this is for those with columns in the release", where=f"curator {owner}")
        if not self.curator.is_tested(release):
            raise NotReadyError("has not tested the server yet", where=f"curator {self.name}")
        return self.curator.server_check.changes(release.planned_spec)

    def statement(self, release_id: str, researcher: str) -> SignedText:
        """Return what this curator states about a release of a researcher's that is ready here, signed now.

        Raises:
            DeniedError: as `check_asker`.
            NotReadyError: the release is not ready here.
            InvalidInputError: this curator's certificate has expired.
        """
        release = self.store.releases.release(release_id)
        check_asker(release, researcher)
        return signed_statement(self.curator.identity, release, self.store, self.curator.ledger)

    def pad_file(self, release_id: str, attribute: str, researcher: str, claimed: ColumnDigests) -> Path:
        """Return the file of the one-time pad of a column that the researcher may have now.

        Args:
            claimed: of the column as the researcher's desk holds it.

        Raises:
            DeniedError, NotReadyError: as `check_asker` and `check_key_may_leave`.
            InvalidInputError: the release has no one-time pads.
            FailedReleaseError: as `check_key_may_leave` and `check_same_column`.
            NotFoundError: the attribute is granted and is not part of the release.
        """
        release = self.store.releases.release(release_id)
        check_asker(release, researcher)
        if release.request.pad is not Pad.OTP:
            raise InvalidInputError("the release has keys, and no pad", where=f"release {release_id}")
        self._give_keys(release, {attribute: claimed})
        return self.curator.encryption(release_id).pad_file(attribute)

    def keys(self, release_id: str, researcher: str, claimed: Mapping[str, ColumnDigests]) -> dict[str, bytes]:
        """Return the keys of some columns, but for those of attributes that are not granted.

        Args:
            claimed: attribute -> its column, as the researcher's desk holds it.

        Raises:
            DeniedError: as `check_asker`; or no key may leave, as `check_key_may_leave` says of the last attribute.
            InvalidInputError: the release has one-time pads.
            VeiltabError: as `pad_file`, of any attribute that is granted.
        """
        release = self.store.releases.release(release_id)
        check_asker(release, researcher)
        if release.request.pad is not Pad.CHACHA20:
            raise InvalidInputError("several one-time pads were asked for at once", where=f"release {release_id}")
        return self._give_keys(release, claimed)

    def _give_keys(self, release: CuratorRelease, claimed: Mapping[str, ColumnDigests]) -> dict[str, bytes]:
        """Return what is recorded as the keys of columns that may leave, and record that they are given."""
        release_id, researcher = release.request.release_id, release.request.researcher
        decisions = {decision.attribute: decision for decision in self.store.decisions.decisions(release_id)}
        keys, refusal = dict[str, bytes](), DeniedError("no attribute is asked for", where=f"release {release_id}")
        for attribute, column in claimed.items():
            try:
                check_key_may_leave(release, decisions.get(attribute), attribute, time.time())
            except DeniedError as error:
                refusal = error
                continue
            pad, tested = (self.store.keys.pad(release_id, attribute), self.store.tests.tested(release_id, attribute))
            if pad is None or tested is None:
                raise NotFoundError("this attribute is not part of the release", where=f"attribute {attribute}")
            check_same_column(tested, column, attribute)
            keys[attribute] = pad[0]
        if not keys:
            raise refusal
        with transaction(self.store.connection):
            for attribute in keys:
                self.store.keys.record_key_given(release.part_of or release_id, attribute, researcher)
        return keys

    def progress(self, release_id: str, peer: str, most: int = MOST_CHANGES_SAID) -> Progress:
        """Return a release's progress here for a peer, with what is signed of the ledger, and a list of most bytes."""
        release = self.store.releases.release(release_id)
        progress = self.curator.progress(release, own_checkpoint(self.store.connection, self.name, release_id))
        if not (progress.tested and (spec := release.spec) and spec.columns_of(self.name) and spec.columns_of(peer)):
            return progress
        changes = self.curator.server_check.changes(spec)
        return replace(progress, changes=changes) if len(changes) <= most else progress

    def progress_of(self, release_ids: Collection[str], peer: str) -> Iterator[tuple[str, Progress]]:
        """Yield this curator's progress with some releases for another, of those that it knows."""
        for release_id in release_ids:
            with suppress(NotFoundError):  # hundreds of lists fit a message, too
                yield release_id, self.progress(release_id, peer, MOST_CHANGES_SAID // (1 + len(release_ids) // 16))

    def shared_indices(self, release_id: str) -> Path:
        """Return the file of the row indices of a release, for a peer.

        Raises:
            NotFoundError: the release is not known here.
            NotReadyError: they are not drawn yet.
        """
        self.store.releases.release(release_id)
        return self.curator.sampler.shared_indices(release_id)
