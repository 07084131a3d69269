"""What a release would cost and how near to the truth it would come, before anybody is asked."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any, cast

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.planning.planning import Plan
from veiltab.common.privacy.planning.questions import Check, PlanAnswer, PlanQuestion, Quantity, answer
from veiltab.common.privacy.planning.workload_questions import WorkloadAnswer, WorkloadQuestion, answer_workload
from veiltab.common.privacy.pricing.price import Price, price_budget, price_within, share
from veiltab.common.release.tables import Prospect, Workload, asked_tables
from veiltab.common.study.file import Study

SHAPES = ("table", *(one.value for one in Workload))
"""What may be released of some attributes: one table, or a workload."""

_UP = Context(prec=12, rounding=ROUND_CEILING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What somebody would like to release; what is None is asked for.

    Args:
        shape: "table", "pairs" of the attributes, or "linked": pairs, strongest twice, or all triples.
        attributes: of the study, in its order; may be empty where `cells` says how large a table is.
        cells: K of one table without attributes.
        asked: what is to be computed from the others.
        population: n.
        epsilon: nats.
        delta: None for a pure epsilon.
        error: to aim at: the root-mean-square error of one table, or the total variation distance of a typical pair.
    """

    shape: str = "table"
    attributes: tuple[str, ...] = ()
    cells: int | None = None
    asked: Quantity = Quantity.ERROR
    population: int | None = None
    epsilon: Decimal | None = None
    delta: Decimal | None = None
    error: float | None = None

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise InvalidInputError("there is no such shape", where="shape", remedy=f"Known: {', '.join(SHAPES)}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a release would be.

    Args:
        population: n.
        cells: K of one table; of several, of all of them together.
        tables: how many.
        epsilon: nats.
        delta: None for a pure epsilon.
        error: expected; as `Wish.error`, rounded up to three digits.
        cell_error: of one table, expected root-mean-square error of one cell, rounded up likewise; None of several.
        feasible: whether it reaches the error that was aimed at.
        advice: what is best, or what would make it possible.
        share: about what part of a curator's whole budget it takes; None if the study's budget cannot price it.
        errors: of several tables, (attributes, foreseen error) of each.
    """

    asked: Quantity
    population: int
    cells: int
    tables: int
    epsilon: Decimal
    delta: Decimal | None
    error: Decimal
    cell_error: Decimal | None
    feasible: bool
    advice: str
    share: Decimal | None
    errors: Sequence[tuple[tuple[str, ...], float]]


def cost_of(wish: Wish, study: Study, check: Check) -> Cost:
    """Return what a wish would be and cost.

    Args:
        wish: with one quantity to compute.
        check: called between the steps of a search; may raise.

    Raises:
        InvalidInputError: something is missing or out of range.
    """
    try:
        return _of_one(wish, study, check) if wish.shape == "table" else _of_several(wish, study, check)
    except ArithmeticError:  # of a decimal that has no exponential, or of a division by next to nothing
        raise InvalidInputError("no plan has these numbers", where="plan", remedy="Give nearer ones.") from None


def _of_one(wish: Wish, study: Study, check: Check) -> Cost:
    question = PlanQuestion(
        cells=_cells(wish, study),
        population=_require(wish, Quantity.POPULATION),
        epsilon=_require(wish, Quantity.EPSILON),
        delta=wish.delta if wish.asked is not Quantity.DELTA else None,
        error=wish.error if wish.asked is not Quantity.ERROR else None,
        asks_delta=wish.asked is Quantity.DELTA,
    )
    reply: PlanAnswer = answer(question, check)
    plan = reply.plan
    check()
    return Cost(
        asked=reply.quantity,
        population=plan.population,
        cells=plan.mechanism.cells,
        tables=1,
        epsilon=plan.epsilon,
        delta=plan.delta,
        error=_rounded_up(reply.root_mse),
        cell_error=_rounded_up(plan.cell_root_mse()),
        feasible=reply.feasible,
        advice=" ".join((reply.advice, *plan.warnings)),
        share=_share_of_table(plan, study),
        errors=(),
    )


def _of_several(wish: Wish, study: Study, check: Check) -> Cost:
    if wish.asked is Quantity.CELLS:
        raise InvalidInputError(
            "the cells of several tables are those of their attributes",
            where="asked",
            remedy="Ask for another quantity, or plan one table.",
        )
    if wish.asked is not Quantity.DELTA and wish.delta is None:
        raise InvalidInputError("no delta was given for several tables", where="delta", remedy="1e-6 is usual.")
    prospect = Prospect(rows=wish.population, epsilon=wish.epsilon, delta=wish.delta)
    tables = asked_tables(study, wish.attributes, (), Workload(wish.shape), 0, prospect)[1]
    sizes = {rule.name: rule.attribute.size for rule in study.attributes}
    reply: WorkloadAnswer = answer_workload(
        WorkloadQuestion(
            tables=tuple(tuple(sizes[name] for name in table) for table in tables.tables),
            repeats=tables.repeats,
            population=_require(wish, Quantity.POPULATION),
            epsilon=_require(wish, Quantity.EPSILON),
            delta=wish.delta if wish.asked is not Quantity.DELTA else None,
            pair_error=wish.error if wish.asked is not Quantity.ERROR else None,
        ),
        check,
    )
    question = reply.question
    epsilon, delta = cast("Decimal", question.epsilon), cast("Decimal", question.delta)  # an answer has everything
    return Cost(
        asked=reply.quantity,
        population=cast("int", question.population),
        cells=sum(question.cells),
        tables=len(question.tables),
        epsilon=epsilon,
        delta=delta,
        error=_rounded_up(reply.pair_error),
        cell_error=None,
        feasible=reply.feasible,
        advice=_advice(reply),
        share=_share_of_budget(price_budget(epsilon, delta), study),
        errors=tuple(zip(tables.tables, reply.errors, strict=True)),
    )


def _rounded_up(value: float) -> Decimal:
    """Return a number with three significant digits, upward: no error is shown smaller than it is."""
    return Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(value)


def _cells(wish: Wish, study: Study) -> int | None:
    if wish.asked is Quantity.CELLS:
        return None
    if wish.attributes:
        return study.domain(wish.attributes).cells
    if wish.cells is None:
        raise InvalidInputError("choose attributes, or say how many cells the table has", where="cells")
    return wish.cells


def _require(wish: Wish, quantity: Quantity) -> Any:  # noqa: ANN401 - the type of the field
    """Return a quantity that is needed unless it is asked for."""
    if wish.asked is quantity:
        return None
    value = getattr(wish, quantity.value)
    if value is None:
        raise InvalidInputError("this is missing", where=quantity.value, remedy="Give a number.")
    return value


def _advice(reply: WorkloadAnswer) -> str:
    if reply.feasible:
        return (
            "Errors are foreseen by the central limit; where rows are few, what runs may be some per cent worse."
            " A model fitted to all tables is usually nearer to the truth than each of them."
        )
    other = "a larger epsilon" if reply.quantity is Quantity.POPULATION else "more respondents"
    return f"This error cannot be reached. It could be with fewer tables, coarser attributes or {other}."


def _share_of_table(plan: Plan, study: Study) -> Decimal | None:
    """Return what part of a budget one table takes; the larger of its parts of mu^2 and of the slack where priced."""
    if study.budget_delta is None:
        pure = plan.delta is None and study.budget_epsilon > 0
        return _UP.divide(plan.pure_epsilon, study.budget_epsilon) if pure else None
    budget = price_budget(study.budget_epsilon, study.budget_delta)
    return share(price_within(plan.description, budget), budget)


def _share_of_budget(price: Price, study: Study) -> Decimal | None:
    """Return about what part of a budget several tables take, which divide a price: that of mu^2.

    Their slacks divide the budget's in the same proportion, so that mu^2 decides.
    """
    if study.budget_delta is None:
        return None
    budget = price_budget(study.budget_epsilon, study.budget_delta)
    return _UP.divide(_UP.multiply(price.mu, price.mu), budget.mu * budget.mu)
