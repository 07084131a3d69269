"""A curator's state as the pages of one console read it, beside the running service.

What grows with the ledger is read once and kept: charges are never changed, so a page reads those that have come since.
The chain is checked from its beginning when the console starts, and again by `check_chain` if anything has changed.
"""

import threading
import time
from dataclasses import replace
from pathlib import Path

from veiltab.common.errors import ConflictError, IntegrityError
from veiltab.common.privacy.cards.card import Bound
from veiltab.common.study.file import read_file
from veiltab.curator.audit.log import EMPTY, chained
from veiltab.curator.budget.coalitions import bounds_of_charges
from veiltab.curator.budget.entries import Entry
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.officer.open_state import OpenedState, check_served_study, current_budget


class StateReader:
    """The opened state of one curator; its threads take turns.

    Args:
        study_path: the study file, which must stay as it was read.
    """

    def __init__(self, own_state: OpenedState, study_path: Path) -> None:
        self._own_state = own_state
        self._study_path = study_path
        self._turn = threading.RLock()
        self._entries: tuple[Entry, ...] = ()
        self._audited = EMPTY
        self._bounds: tuple[tuple[int, bytes], tuple[Bound, ...]] | None = None
        self._checked: tuple[tuple[int, bytes], float] = (own_state.ledger.chain.head, time.time())

    @property
    def now(self) -> int:
        """Unix seconds."""
        return int(time.time())

    @property
    def own_state(self) -> OpenedState:
        """The state, against the budget that is served by now.

        Raises:
            ConflictError: the study file is another one by now, or the curator serves another one.
        """
        if read_file(self._study_path) != self._own_state.study.source:
            raise ConflictError(
                "the study file has changed since this console started",
                where=str(self._study_path),
                remedy="Start the console again.",
            )
        with self._turn:
            old = self._own_state
            check_served_study(old.study, self._study_path, old.store)
            budget = current_budget(old.study, old.store, old.named_policy)
            if budget != old.ledger.budget.epsilon:
                ledger = Ledger(old.store.connection, budget, old.study.budget_delta)
                self._own_state = replace(old, ledger=ledger)
                self._entries, self._bounds = (), None
            return self._own_state

    def entries(self) -> tuple[Entry, ...]:
        """Return all charges, oldest first."""
        with self._turn:
            ledger = self.own_state.ledger  # first: another budget takes what was read away
            self._entries += ledger.chain.entries_after(len(self._entries))
            return self._entries

    def entry_of(self, release_id: str) -> Entry | None:
        """Return the charge of a release, if it is charged."""
        return next((entry for entry in self.entries() if entry.release_id == release_id), None)

    def check_audit(self) -> float:
        """Check that the audit log still has what was checked, and its chain from there on; return when it was.

        Raises:
            IntegrityError: the log was altered.
        """
        with self._turn:
            log = self.own_state.store.audit
            if log.head_at(self._audited.length) != self._audited:
                raise IntegrityError(
                    f"the audit log is not the one that was checked up to entry {self._audited.length}",
                    where="audit log",
                    remedy="It was altered or cut off; see docs/evidence.md.",
                )
            self._audited = chained(log.lines(self._audited.length), self._audited)
            return time.time()

    def bounds(self) -> tuple[Bound, ...]:
        """Return what each coalition faces of all charges together; worked out once for each last charge."""
        with self._turn:
            own_state = self.own_state
            head = own_state.ledger.chain.head
            if self._bounds is None or self._bounds[0] != head:
                self._bounds = head, bounds_of_charges(own_state.ledger)
            return self._bounds[1]

    def check_chain(self) -> float:
        """Check the ledger's chain if there are charges that no check has seen; return when it was checked.

        Raises:
            IntegrityError: the ledger was altered.
        """
        with self._turn:
            ledger = self.own_state.ledger
            if self._checked[0] != ledger.chain.head:
                ledger.chain.verify()
                self._checked = ledger.chain.head, time.time()
            return self._checked[1]
