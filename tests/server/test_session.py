from collections.abc import Callable
from contextlib import nullcontext
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from veiltab.common.errors import (
    ConflictError,
    DeniedError,
    FailedReleaseError,
    NotReadyError,
    VeiltabError,
)
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.server.records.session import Session

Make = Callable[..., Any]
ATTRIBUTES = ("a", "b", "c")
SPEC = TableSpec(
    release_id="0" * 32,
    study_digest="0" * 64,
    researcher="rosa",
    columns=tuple(Column(attribute=name, owner="alice", size=2) for name in ATTRIBUTES),
    population=10,
    sample=5,
    server_replacement=2**64,
    curator_replacement=0,
    canaries=0,
    epsilon=Decimal(1),
    scheme="wor",
    sampling=Sampling.SEED,
    pad=Pad.CHACHA20,
    alignment="0" * 32,
    deadline=100,
)
ENDS = [ReleaseState.EXPIRED, ReleaseState.FAILED]


class AnySequence(RuleBasedStateMachine):
    """Whatever happens in whatever order, beside a model that only counts."""

    def __init__(self) -> None:
        super().__init__()
        self.session = Session(spec=SPEC)
        self.completed: set[str] = set()
        self.publications = 0
        self.end: tuple[ReleaseState, str] | None = None

    def attempt(self, step: Callable[[], Session]) -> bool:
        before = self.session
        try:
            self.session = step()
        except VeiltabError:
            assert self.session is before
            return False
        return True

    @rule()
    def upload(self) -> None:
        is_open = self.end is None and self.completed != set(ATTRIBUTES)
        with nullcontext() if is_open else pytest.raises((FailedReleaseError, ConflictError)):
            self.session.check_open()

    @rule(attribute=st.sampled_from(ATTRIBUTES))
    def complete(self, attribute: str) -> None:
        allowed = self.end is None and self.completed != set(ATTRIBUTES)
        assert self.attempt(lambda: self.session.with_complete(attribute)) is allowed
        self.completed |= {attribute} if allowed else set()

    @rule()
    def publish(self) -> None:
        allowed = self.end is None and self.completed == set(ATTRIBUTES) and self.publications == 0
        assert self.attempt(self.session.published) is allowed
        self.publications += allowed

    @rule(state=st.sampled_from(ENDS), reason=st.sampled_from(["one", "another"]))
    def finish(self, state: ReleaseState, reason: str) -> None:
        assert self.attempt(lambda: self.session.ended(state, reason))
        self.end = self.end or (state, reason)

    @rule(name=st.sampled_from(["rosa", "rita", "alice", "bob", ""]))
    def read(self, name: str) -> None:
        is_there, refused = (
            self.publications == 1 and self.end is None,
            (DeniedError, FailedReleaseError, NotReadyError),
        )
        for check, reader in ((self.session.check_readable, "rosa"), (self.session.check_testable, "alice")):
            with nullcontext() if is_there and name == reader else pytest.raises(refused):
                check(name)

    @invariant()
    def nothing_is_forgotten(self) -> None:
        assert self.publications <= 1
        assert self.session.complete == self.completed
        assert set(self.session.waiting_for) == set(ATTRIBUTES) - self.completed
        if self.end is not None:
            assert (self.session.state, self.session.failure) == self.end
        elif self.publications:
            assert self.session.state is ReleaseState.READY
        elif self.completed == set(ATTRIBUTES):
            assert self.session.state is ReleaseState.PERTURBING
        else:
            assert self.session.state is ReleaseState.UPLOADING


TestAnySequence = AnySequence.TestCase
TestAnySequence.settings = settings(max_examples=200, stateful_step_count=15, deadline=None)
