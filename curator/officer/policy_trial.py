"""What a policy would make of a request that nobody has put yet."""

from decimal import Decimal

from veiltab.common.core.texts.nearest import known_names
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import BudgetExceededError, DeniedError, InvalidInputError, NotReadyError
from veiltab.common.privacy.cards.card import card_of
from veiltab.common.release.receipts.canary_plan import shown_by
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.table_spec import requested_columns
from veiltab.common.study.file import Study
from veiltab.curator.budget.entries import percent
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.budget.remaining import Kind, Rest
from veiltab.curator.officer.policy import Outlook, Policy
from veiltab.curator.planning.plans import canaries_of, foreseen_plan
from veiltab.curator.progress.progress import HELD


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What would become of a request at one curator.

    Args:
        population: n that it was planned for, rows of every table.
        verdicts: own attribute -> (verdict, number of the rule that decides; None if no rule does).
        refusal: why the whole request would be refused; else empty.
        charge: the part of the budget that it would take.
        over_budget: why the budget would not hold it now; else empty.
        rest: what one more release may have now.
        rest_after: what one more release of the same kind could have after it.
    """

    population: int
    verdicts: dict[str, tuple[str, int | None]]
    refusal: str
    charge: Decimal
    over_budget: str
    rest: Rest
    rest_after: Rest

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        verdicts = {name: {"verdict": verdict, "rule": rule} for name, (verdict, rule) in self.verdicts.items()}
        plain = {name: getattr(self, name) for name in self.__slots__ if not name.startswith("rest")}
        return plain | {"verdicts": verdicts} | self.rest.as_dict() | self.rest_after.as_dict("remaining_after")

    def as_text(self) -> str:
        """Return lines for people."""
        lines = [
            f"{name}: {verdict}, " + ("as no rule matches" if rule is None else f"by rule {rule}")
            for name, (verdict, rule) in self.verdicts.items()
        ]
        if self.refusal:
            lines.append(f"The request is refused: {self.refusal}")
        if not lines:
            lines.append("None of these attributes is this curator's.")
        lines.append(f"Charge: {percent(self.charge)} of the budget, for {self.population} respondents.")
        if self.over_budget:
            lines.append(f"The budget does not hold it: {self.over_budget}")
        else:
            lines.append(f"One more release may have {self.rest} now, {self.rest_after} after it.")
        return "\n".join(lines)


def hypothetical_request(
    researcher: str, attributes: tuple[str, ...], epsilon: Decimal, delta: Decimal | None
) -> ReleaseRequest:
    """Return a request with nothing special about it."""
    return ReleaseRequest(
        release_id="0" * 32, researcher=researcher, attributes=attributes, epsilon=epsilon, delta=delta, deadline=0
    )


def try_policy(  # noqa: PLR0913, PLR0917 - what a decision depends on
    policy: Policy, request: ReleaseRequest, study: Study, curator: str, ledger: Ledger, population: int
) -> Trial:
    """Return what would become of a request.

    Args:
        request: what would be asked for.
        ledger: what the curator has spent; nothing is charged.
        population: n, rows of every table.

    Raises:
        InvalidInputError: a researcher or attributes that the study does not have, or a request that cannot be planned.
    """
    researchers = [one.name for one in study.researchers]
    if request.researcher not in researchers:
        remedy = known_names("Researchers", researchers, request.researcher)
        raise InvalidInputError(f"no researcher {request.researcher[:60]!r}", where="researcher", remedy=remedy)
    plan = foreseen_plan(request, population=population, cells=study.domain(request.attributes).cells)
    charge = ledger.budget.allowance.charge(plan.description, plan.pure_epsilon)
    columns = requested_columns(request, study)
    canaries = canaries_of(request, columns, plan.scheme, plan.mechanism)
    test = shown_by(plan.mechanism.server, tuple(column.size for column in columns), canaries)
    outlook = Outlook(
        population=population,
        charge=ledger.budget.allowance.share(charge),
        bounds=card_of(plan.release, delta=plan.delta, pure=plan.pure_epsilon).bounds,
        tested=test.tested,
    )
    own = [rule.name for rule in study.attributes_of(curator) if rule.name in request.attributes]
    verdicts: dict[str, tuple[str, int | None]] = {}
    refusal = over_budget = ""
    try:
        for name in own:
            rule = policy.deciding_rule(request, name, outlook)
            verdicts[name] = (HELD if rule is None else policy.rules[rule - 1].verdict, rule)
    except DeniedError as error:
        verdicts, refusal = {}, str(error)
    try:
        if study.month_share is not None:
            ledger.check_month_share(request.release_id, charge, study.month_share)
        if not own:
            attributes = [rule.name for rule in study.attributes_of(curator)]
            ledger.check_others_share(request.release_id, charge, attributes, policy.others_share)
        ledger.check_budget(charge, plan.delta)
    except (BudgetExceededError, NotReadyError) as error:
        over_budget = str(error)
    budget, kind = ledger.budget, Kind(population=population, cells=plan.mechanism.cells)
    return Trial(
        population=population,
        verdicts=verdicts,
        refusal=refusal,
        charge=outlook.charge,
        over_budget=over_budget,
        rest=budget.rest,
        rest_after=budget.rest_after(charge, kind),
    )
