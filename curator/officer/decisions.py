"""What a curator decides alone about requests: by its policy, by a person, and by what can be foreseen of the plan.

A request is planned before a person is asked: one that cannot be planned, or that the budget does not hold, needs no
decision.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING

from veiltab.common.dataclass import dataclass, replace
from veiltab.common.errors import BudgetExceededError, DeniedError, InvalidInputError, NotReadyError
from veiltab.common.release.floors import USUAL
from veiltab.common.release.guarantees import release_test
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import requested_columns
from veiltab.common.study.file import Study
from veiltab.curator.budget.allowance import Charge
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.officer.policy import Outlook
from veiltab.curator.planning.plan_questions import plan_question
from veiltab.curator.planning.planner import Planner, stored_card
from veiltab.curator.progress.progress import APPROVED, DENIED, HELD, denial_of
from veiltab.curator.progress.release_record import CuratorRelease, Review
from veiltab.curator.records.store import CuratorStore

if TYPE_CHECKING:
    from veiltab.curator.officer.policy import Outlook, Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnVerdicts:
    """What a curator has decided about its own attributes of a request.

    Args:
        are_all: whether there are no others.
    """

    granted: frozenset[str]
    denied: frozenset[str]
    are_all: bool


class Decider:
    """The decisions of one curator.

    Args:
        planner: plans requests, also those that nobody has granted yet.
        aligned: returns the number n of rows and the digest of the alignment, or raises why there is none.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what a decision depends on
        self,
        name: str,
        study: Study,
        store: CuratorStore,
        ledger: Ledger,
        planner: Planner,
        policy: "Policy",
        aligned: Callable[[], tuple[int, str]],
    ) -> None:
        self.own_attributes = frozenset(rule.name for rule in study.attributes_of(name))
        self.policy = policy
        self._name = name
        self._study = study
        self._store = store
        self._ledger = ledger
        self._planner = planner
        self._aligned = aligned
        # Releases about which this process has decided by its policy.
        self._decided: set[str] = set()
        # Verdicts about releases under way that have all of them: each is final.
        self._verdicts: dict[str, OwnVerdicts] = {}
        self._refusals: dict[str, str] = {}
        # Charge and delta of each request that waits for a person.
        self._charges: dict[str, tuple[Charge, Decimal | None]] = {}
        # The ledger as it was when the requests that wait were last compared with it.
        self._seen_head = self._ledger.chain.head

    def review(self, release: CuratorRelease) -> Review:
        """Return how far this curator is with what it decides alone about a release."""
        release_id = release.request.release_id
        if release.state is not ReleaseState.REQUESTED:
            is_reserved, is_charged = self._ledger.chain.standing(release_id)
            return Review(curator=self._name, is_reserved=is_reserved, is_charged=is_charged)
        verdicts = {d.attribute: d.verdict for d in self._store.decisions.decisions(release_id)}
        waiting = tuple(sorted(name for name, verdict in verdicts.items() if verdict == HELD))
        return Review(
            curator=self._name,
            # What an earlier process held may be decided by the policy of this one.
            is_considered=release_id in self._decided,
            waiting_attributes=waiting,
            denied=frozenset(name for name, verdict in verdicts.items() if verdict == DENIED),
            refusal=self._refusals.get(release_id, ""),
        )

    def verdicts(self, release: CuratorRelease) -> OwnVerdicts:
        """Return what is decided about own attributes of a release."""
        release_id = release.request.release_id
        if release_id in self._verdicts:
            return self._verdicts[release_id]
        own = self.own_attributes & set(release.request.attributes)
        verdicts = {d.attribute: d.verdict for d in self._store.decisions.decisions(release_id)}
        granted = frozenset(name for name in own if verdicts.get(name) == APPROVED)
        denied = frozenset(name for name in own if verdicts.get(name) == DENIED)
        own_verdicts = OwnVerdicts(granted=granted, denied=denied, are_all=own == granted | denied)
        if own_verdicts.are_all and not release.state.finished:
            self._verdicts[release_id] = own_verdicts
        return own_verdicts

    async def apply_policy(self, request: ReleaseRequest) -> None:
        """Decide by the policy about own attributes that are not decided about for good.

        Raises:
            NotReadyError: the tables are not aligned yet.
            InvalidInputError, DeniedError: the request cannot be planned, or the policy refuses the whole of it.
            BudgetExceededError: the budget does not hold it.
        """
        needs_outlook = self.policy.needs_outlook(request)
        outlook = await self._outlook(await self._foreseen_spec(request)) if needs_outlook else None
        final = {
            d.attribute: d.verdict for d in self._store.decisions.decisions(request.release_id) if d.verdict != HELD
        }
        decisions = self.policy.decide(request, self.own_attributes - final.keys(), int(time.time()), outlook)
        verdicts = {*final.values(), *(decision.verdict for decision in decisions)}
        denied = {one.attribute for one in decisions if one.verdict == DENIED}
        # A part may be granted that the budget holds, so what others deny is waited for.
        if denial_of(request, {self._name: denied}) is None and (HELD in verdicts or not request.partial):
            await self._foresee(request)
        self._store.decisions.decide(request.release_id, decisions)
        self._decided.add(request.release_id)

    def is_considered(self, release: CuratorRelease) -> bool:
        """Whether the policy of this process has considered a request, or it is decided about."""
        return release.state is not ReleaseState.REQUESTED or release.request.release_id in self._decided

    def check_shares(self, spec: ReleaseSpec, charge: Charge) -> None:
        """Refuse a release that, with others of its month or without own attributes, takes too much; see `Ledger`."""
        try:
            if self._study.month_share is not None:
                self._ledger.check_month_share(spec.release_id, charge, self._study.month_share)
            if self._name not in spec.owners:
                most = self.policy.others_share
                self._ledger.check_others_share(spec.release_id, charge, self.own_attributes, most)
        except (NotReadyError, BudgetExceededError) as error:
            raise type(error)(error.problem, where=f"curator {self._name}", remedy=error.remedy) from None

    async def check_rest(self, request: ReleaseRequest, spec: ReleaseSpec) -> None:
        """Refuse a release that is not what was approved here: parts were denied, or other people are common.

        Fewer cells have less noise: pairs face more, and canaries that a request counts test the server less.

        Raises:
            DeniedError: no rule approves it any more; or a person approved more of it, and the rest alone is unusual.
        """
        approved = [one for one in self._store.decisions.decisions(request.release_id) if one.verdict == APPROVED]
        by_rule = {one.attribute for one in approved if one.rule is not None}
        rest = self.policy.decide(request, by_rule, int(time.time()), await self._outlook(spec)) if by_rule else ()
        is_approved = all(one.verdict == APPROVED for one in rest)
        is_part = {column.attribute for column in spec.columns} != set(request.attributes)
        if is_part and len(by_rule) < len(approved) and any(USUAL.lacks(spec)):
            is_approved = is_approved and any(USUAL.lacks(await self._foreseen_spec(request)))
        if not is_approved:
            raise DeniedError(
                "this is not what was approved: parts were denied, other people are common, or the rules are others",
                where=f"curator {self._name}",
                remedy="Ask again, for the rest by itself.",
            )

    async def waits_for_a_person(self, release: CuratorRelease) -> bool:
        """Whether only a person here can move a request on; its card is made by then."""
        if release.state is not ReleaseState.REQUESTED or not self.review(release).waiting_attributes:
            return False
        await self._planner.make_card(await self._foreseen_spec(release.request))
        return True

    def refused_of(self, release_ids: Iterable[str]) -> set[str]:
        """Refuse requests that wait for a person once the budget, as it is charged now, does not hold them any more.

        Returns:
            Those that are refused.
        """
        refused = set[str]()
        if self._seen_head == (head := self._ledger.chain.head):
            return refused
        self._seen_head = head
        for release_id in self._charges.keys() & set(release_ids):
            if refusal := self._budget_refusal(release_id):
                self._refusals[release_id] = str(refusal)
                refused.add(release_id)
        return refused

    def forget(self, release_id: str) -> None:
        """Forget what is known of a release that is over."""
        self._charges.pop(release_id, None)
        self._decided.discard(release_id)
        self._verdicts.pop(release_id, None)
        self._refusals.pop(release_id, None)

    async def _outlook(self, spec: ReleaseSpec) -> "Outlook":
        charge = await self._planner.charge(spec, self._ledger.budget.allowance)
        outlook = Outlook(population=spec.population, charge=self._ledger.budget.allowance.share(charge))
        if not self.policy.needs_card:
            return outlook
        await self._planner.make_card(spec)
        bounds = stored_card(self._store, spec) or ()
        return replace(outlook, bounds=bounds, tested=release_test(spec).tested)

    async def _foreseen_spec(self, request: ReleaseRequest) -> ReleaseSpec:
        """Return the plan of a request if all of it were granted.

        Raises:
            VeiltabError: the tables are not aligned yet, or there is no plan.
        """
        population, digest = self._aligned()
        columns = requested_columns(request, self._study)
        question = plan_question(request, columns, self._study, population=population, alignment=digest)
        return await self._planner.spec(question)

    async def _foresee(self, request: ReleaseRequest) -> None:
        """Refuse a request that cannot be planned or paid for, before a person is asked.

        Raises:
            VeiltabError: the tables are not aligned yet.
            DeniedError: there is no plan.
            BudgetExceededError: the budget does not hold it.
        """
        self._aligned()
        try:
            spec = await self._foreseen_spec(request)
        except InvalidInputError as error:
            raise DeniedError(error.problem, where=error.where, remedy=error.remedy) from None
        charge = await self._planner.charge(spec, self._ledger.budget.allowance)
        self._charges[request.release_id] = charge, spec.delta
        if refusal := self._budget_refusal(request.release_id):
            raise refusal
        with suppress(NotReadyError):  # what is reserved may be given back
            self.check_shares(spec, charge)

    def _budget_refusal(self, release_id: str) -> BudgetExceededError | None:
        """Return why the budget, as it is charged now, does not hold a request; None if it does."""
        charge, delta = self._charges[release_id]
        try:
            if not self._ledger.budget.fits_what_is_charged(release_id, charge):
                self._ledger.check_budget(charge, delta)
        except BudgetExceededError as error:
            return error
        return None
