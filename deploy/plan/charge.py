"""What a planned release takes of a budget: at the delta asked for, and at a tenth of it, which costs less."""

from decimal import Decimal

from veiltab.common.core.numbers.rounding import MIN_PARAMETER, parse_delta, parse_epsilon
from veiltab.common.core.texts.record_fields import shown_as
from veiltab.common.dataclass import dataclass, replace
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.privacy.planning.planning import Plan
from veiltab.common.privacy.planning.questions import PlanAnswer, PlanQuestion
from veiltab.common.study.file import Study
from veiltab.curator.budget.allowance import Allowance, Sums
from veiltab.curator.budget.entries import percent


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCharge:
    """What a release takes of a budget.

    Args:
        delta: of the release; None for a pure one.
        share: of the whole budget, rounded up.
        is_held: whether a budget of which nothing is spent holds it.
        replacement: probability with which a row is replaced.
        root_mse: expected error of the joint distribution.
    """

    delta: Decimal | None
    share: Decimal
    is_held: bool = shown_as("held")
    replacement: float = shown_as("replacement_probability")
    root_mse: float

    def __str__(self) -> str:
        """Return it in words."""
        at = "pure" if self.delta is None else f"at delta {delta_text(self.delta)}"
        return (
            f"{at}: {percent(self.share)}{self._remark()}; a row is replaced with probability {self.replacement:.6f},"
            f" error {self.root_mse:.3g}"
        )

    def _remark(self) -> str:
        if not self.is_held:
            return ", which is refused"
        return ", which is held only while nothing else is charged" if self.share > 1 else ""


def allowance_of(epsilon: str | None, delta: str | None, study: Study | None) -> Allowance | None:
    """Return the budget of the options or else of the study; None where nobody says it.

    Raises:
        InvalidInputError: a delta without an epsilon, or a number that no budget has.
    """
    if epsilon is not None:
        return Allowance(epsilon=parse_epsilon(epsilon), delta=None if delta is None else parse_delta(delta))
    if delta is not None:
        raise InvalidInputError(
            "a budget was given without its epsilon", where="--advanced budget-delta", remedy="Give budget=EPSILON too."
        )
    if study is None or study.budget_epsilon == 0:
        return None
    return Allowance(epsilon=study.budget_epsilon, delta=study.budget_delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCharges:
    """What a planned release takes of a budget, if there is one.

    Args:
        allowance: the whole budget; None where nobody says it.
        charges: of the plan, and of the same release at a tenth of its delta; none without a budget.
    """

    allowance: Allowance | None = None
    charges: tuple[PlanCharge, ...] = ()

    @classmethod
    def of(cls, question: PlanQuestion, reply: PlanAnswer, allowance: Allowance | None) -> "PlanCharges":
        """Return what the answer to a question takes of a budget."""
        if allowance is None:
            return cls()
        best = reply.plan
        plans = [best]
        if best.delta is not None and allowance.delta is not None and best.delta / 10 >= MIN_PARAMETER:
            plans.append(_at(best.delta / 10, question, best))
        return cls(allowance=allowance, charges=tuple(_charge(question, plan, allowance) for plan in plans))

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        if self.allowance is None:
            return {}
        budget = {"epsilon": self.allowance.epsilon, "delta": self.allowance.delta}
        return {"budget": budget, "charges": self.charges}

    def __str__(self) -> str:
        """Return it in lines, each after a line break."""
        if self.allowance is None:
            return ""
        delta = "" if self.allowance.delta is None else f" at delta {delta_text(self.allowance.delta)}"
        pure = self.allowance.delta is None and self.charges[0].delta is not None
        note = " The budget has no delta, so the pure epsilon counts: ask without delta." if pure else ""
        lines = "".join(f"\n  {charge}" for charge in self.charges)
        return f"\nCharge, of a budget of epsilon {self.allowance.epsilon}{delta}:{note}{lines}"


def _at(delta: Decimal, question: PlanQuestion, best: Plan) -> Plan:
    """Return the plan of the same release at another delta."""
    return replace(
        question,
        population=best.population,
        cells=best.mechanism.cells,
        epsilon=best.epsilon,
        delta=delta,
        error=None,
        asks_delta=False,
    ).plan()


def _charge(question: PlanQuestion, plan: Plan, allowance: Allowance) -> PlanCharge:
    charge = allowance.charge(plan.description, plan.pure_epsilon)
    return PlanCharge(
        delta=plan.delta,
        share=allowance.share(charge),
        is_held=allowance.holds(charge, others=Sums()),
        replacement=float(1 - plan.mechanism.retention),
        root_mse=question.root_mse(plan),
    )
