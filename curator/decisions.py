"""What a curator decides alone about requests: by its policy, by a person, and by what can be foreseen of the plan.

A request that waits for a person is planned before anybody decides about it: one that cannot be planned, or that the
budget does not hold, needs no decision.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from veiltab.common.errors import BudgetExceededError, InvalidInputError, NotReadyError
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import ReleaseSpec, requested_columns
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.workload import WorkloadSpec
from veiltab.common.study.file import Study
from veiltab.curator.allowance import Charge
from veiltab.curator.ledger import Ledger
from veiltab.curator.planning import Planner
from veiltab.curator.policy import Outlook, Policy
from veiltab.curator.progress import APPROVED, DENIED, HELD, CuratorRelease, Review
from veiltab.curator.release import plan_question
from veiltab.curator.store import CuratorStore


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnVerdicts:
    """What a curator has decided about its own attributes of a request.

    Args:
        granted: those that it granted.
        denied: those that it denied.
        are_all: whether there are no others.
    """

    granted: frozenset[str]
    denied: frozenset[str]
    are_all: bool


class Decisions:
    """The decisions of one curator.

    Args:
        name: the curator.
        study: the study file.
        store: keeps every decision.
        ledger: what was spent.
        planner: plans requests, also those that nobody has granted yet.
        policy: who may have what.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what a decision depends on
        self, name: str, study: Study, store: CuratorStore, ledger: Ledger, planner: Planner, policy: Policy
    ) -> None:
        self.own_attributes = frozenset(rule.name for rule in study.attributes_of(name))
        self.policy = policy
        self._name = name
        self._study = study
        self._store = store
        self._ledger = ledger
        self._planner = planner
        # Releases about which this process has decided by its policy.
        self._decided: set[str] = set()
        # Verdicts about releases under way that have all of them: each is final.
        self._verdicts: dict[str, OwnVerdicts] = {}
        self._refusals: dict[str, str] = {}
        # Charge and delta of each request that waits for a person.
        self._charges: dict[str, tuple[Charge, Decimal | None]] = {}
        # Those that came before the tables were aligned, and so were not planned.
        self._unforeseen: set[str] = set()

    def review(self, stored: CuratorRelease) -> Review:
        """Return how far this curator is with what it decides alone about a release."""
        release_id = stored.request.release_id
        if stored.state is not ReleaseState.REQUESTED:
            return Review(
                curator=self._name,
                is_reserved=self._ledger.is_reserved(release_id),
                is_charged=self._ledger.is_charged(release_id),
            )
        verdicts = {d.attribute: d.verdict for d in self._store.decisions(release_id)}
        held = tuple(sorted(name for name, verdict in verdicts.items() if verdict == HELD))
        # What an earlier process held may be decided by the policy of this one.
        decided = set(verdicts) - set(() if release_id in self._decided else held)
        return Review(
            curator=self._name,
            undecided=tuple(sorted(self.own_attributes & set(stored.request.attributes) - decided)),
            held=held,
            refusal=self._refusals.get(release_id, ""),
        )

    def verdicts(self, stored: CuratorRelease) -> OwnVerdicts:
        """Return what is decided about own attributes of a release."""
        release_id = stored.request.release_id
        if release_id in self._verdicts:
            return self._verdicts[release_id]
        own = self.own_attributes & set(stored.request.attributes)
        verdicts = {d.attribute: d.verdict for d in self._store.decisions(release_id)}
        granted = frozenset(name for name in own if verdicts.get(name) == APPROVED)
        denied = frozenset(name for name in own if verdicts.get(name) == DENIED)
        found = OwnVerdicts(granted=granted, denied=denied, are_all=own == granted | denied)
        if found.are_all and not stored.state.finished:
            self._verdicts[release_id] = found
        return found

    async def apply_policy(self, request: ReleaseRequest) -> None:
        """Decide by the policy about own attributes that are not decided about for good.

        Raises:
            NotReadyError: the policy depends on how many respondents the tables share, and they are not aligned yet.
            InvalidInputError: it depends on the plan, and there is none.
            DeniedError: the policy refuses the whole request.
        """
        outlook = await self._outlook(request) if self.policy.needs_outlook(request) else None
        final = {d.attribute for d in self._store.decisions(request.release_id) if d.verdict != HELD}
        decisions = self.policy.decide(request, self.own_attributes - final, int(time.time()), outlook)
        self._store.decide(request.release_id, decisions)
        self._decided.add(request.release_id)

    def check_others_share(self, release_id: str, charge: Charge) -> None:
        """Refuse a release without own attributes that would take too much of the budget; see `Ledger`."""
        try:
            self._ledger.check_others_share(release_id, charge, self.own_attributes, self.policy.others_share)
        except (NotReadyError, BudgetExceededError) as error:
            raise type(error)(error.problem, where=f"curator {self._name}", remedy=error.remedy) from None

    async def waits_for_a_person(self, stored: CuratorRelease) -> bool:
        """Whether only a person can move a request on; one that cannot be fulfilled anyhow is found here."""
        if stored.state is not ReleaseState.REQUESTED or (own := self.review(stored)).undecided or not own.held:
            return False
        refusal = self._refusals[stored.request.release_id] = await self._foreseen_refusal(stored.request)
        return not refusal

    def refused_of(self, held: Iterable[str]) -> set[str]:
        """Refuse requests that wait for a person once the budget, as it is charged now, does not hold them any more.

        Args:
            held: ids of such requests.

        Returns:
            Those that are refused.
        """
        refused = set()
        for release_id in self._charges.keys() & set(held):
            charge, delta = self._charges[release_id]
            if not self._ledger.fits_what_is_charged(release_id, charge):
                self._refusals[release_id] = self._ledger_refusal(charge, delta)
                refused.add(release_id)
        return refused

    def foreseeable_of(self, held: Iterable[str]) -> set[str]:
        """Return which requests that wait for a person can be planned by now, and could not when they came.

        Args:
            held: ids of such requests.
        """
        if not self._unforeseen or self._store.latest_alignment() is None:
            return set()
        found = self._unforeseen & set(held)
        self._unforeseen -= found
        return found

    def forget(self, release_id: str) -> None:
        """Forget what is known of a release that is over."""
        self._unforeseen.discard(release_id)
        self._charges.pop(release_id, None)
        self._decided.discard(release_id)
        self._verdicts.pop(release_id, None)
        self._refusals.pop(release_id, None)

    async def _outlook(self, request: ReleaseRequest) -> Outlook:
        spec = await self._foreseen_spec(request)
        if spec is None:
            raise NotReadyError(
                "the tables are not aligned yet, and the policy depends on how many respondents they share",
                where=f"curator {self._name}",
            )
        charge = await self._planner.charge(spec, self._ledger.allowance)
        return Outlook(population=spec.population, charge=self._ledger.allowance.share(charge))

    async def _foreseen_spec(self, request: ReleaseRequest) -> ReleaseSpec | WorkloadSpec | None:
        """Return the plan of a request if all of it were granted; None before the tables are aligned."""
        latest = self._store.latest_alignment()
        if latest is None:
            return None
        population, digest = latest
        columns = requested_columns(request, self._study)
        question = plan_question(request, columns, self._study, population=population, alignment=digest)
        return await self._planner.spec(question)

    async def _foreseen_refusal(self, request: ReleaseRequest) -> str:
        """Return why a request cannot be planned or paid for, before a person decides about it; empty if it can."""
        try:
            spec = await self._foreseen_spec(request)
            if spec is None:
                self._unforeseen.add(request.release_id)
            else:
                charge = await self._planner.charge(spec, self._ledger.allowance)
                self._charges[request.release_id] = charge, spec.delta
                if refusal := self._ledger_refusal(charge, spec.delta):
                    return refusal
                await self._planner.make_card(spec)
        except InvalidInputError as error:
            return str(error)
        return ""

    def _ledger_refusal(self, charge: Charge, delta: Decimal | None) -> str:
        try:
            self._ledger.check(charge, delta)
        except BudgetExceededError as error:
            return str(error)
        return ""
