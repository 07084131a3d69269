"""Questions about a release before its request: any of n, the cells, epsilon, delta and the error from the others.

Answers come from `plan_release` and the exact expected error; floats decide nothing here, they only search. Numbers
that are searched for have a few significant digits: the answer reaches the error, and the next number does not.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from math import inf
from typing import Literal, TypeAlias

from veiltab.common.core.numbers.rounding import MAX_EPSILON
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.dataclass import dataclass, fields, replace
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.privacy.planning.noise_split import DEFAULT_SPLIT
from veiltab.common.privacy.planning.planning import Plan, plan_release
from veiltab.common.privacy.planning.round_numbers import RoundNumbers, Scale, WholeNumbers, excess_over
from veiltab.common.privacy.shuffle import MAX_CELLS, MAX_SAMPLE

MOST_PEOPLE = MAX_SAMPLE
"""Most respondents that are looked at."""

LARGEST_EPSILON = Decimal(20)
"""Largest epsilon that is looked at for an error with a delta."""

EPSILONS = RoundNumbers(digits=3, least=-6)
DELTAS = RoundNumbers(digits=2, least=-12)
WHOLE_NUMBERS = WholeNumbers()

_MISSING = (
    "enter the population and an epsilon to learn the error, or an error to aim at and all of population, cells and"
    " epsilon but one"
)

Check = Callable[[], None]
"""Called before each step of a search; it may raise, and so end a search that takes too long."""


def no_limit() -> None:
    """Let a search take as long as it needs."""


class Quantity(Enum):
    """What may be asked for."""

    POPULATION = "population"
    CELLS = "cells"
    EPSILON = "epsilon"
    DELTA = "delta"
    ERROR = "error"


Searched: TypeAlias = Literal[Quantity.POPULATION, Quantity.CELLS, Quantity.EPSILON, Quantity.DELTA]
"""What is searched for; an error is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanQuestion:
    """The fixed parameters of a release; the open one is computed.

    Args:
        cells: K, or None to ask how large a table may be.
        population: n, or None to ask how many.
        epsilon: nats, or None to ask how much.
        delta: None for a pure epsilon.
        error: target root-mean-square error of the joint distribution, or None.
        sample: m, or None for the best.
        max_local_epsilon: cap on ln gamma of the server's noise, or None.
        noise_split: the curators' part of the noise, in [0, 1).
        max_pair_epsilon: cap on what the desk with the server, and an analyst with curators face, or None.
        sum_of_squares: sum T^2 if known, or None for the worst case, 1/K.
        asks_delta: whether the least delta is asked for; `delta` is then None.
    """

    cells: int | None
    population: int | None
    epsilon: Decimal | None
    delta: Decimal | None = None
    error: float | None = None
    sample: int | None = None
    max_local_epsilon: Decimal | None = None
    sum_of_squares: Fraction | None = None
    noise_split: Decimal = DEFAULT_SPLIT
    max_pair_epsilon: Decimal | None = None
    asks_delta: bool = False

    @property
    def quantity(self) -> Quantity:
        """What is asked for.

        Raises:
            InvalidInputError: more than one parameter is open.
        """
        is_given = {
            Quantity.POPULATION: self.population is not None,
            Quantity.CELLS: self.cells is not None,
            Quantity.EPSILON: self.epsilon is not None,
            Quantity.DELTA: not self.asks_delta,
        }
        return open_quantity(is_given, has_aim=self.error is not None, missing=_MISSING)

    def plan(self) -> Plan:
        """Return the plan of a question in which only the error is open."""
        if self.population is None or self.epsilon is None or self.cells is None:
            raise InvalidInputError(_MISSING, where="plan")
        names = {one.name for one in fields(self)} - {"error", "asks_delta"}
        return plan_release(**same_fields(self, names))

    def root_mse(self, plan: Plan) -> float:
        """Return the expected error of a plan for this table."""
        same = plan.mechanism.cells == self.cells and self.sum_of_squares is not None
        return plan.root_mse(float(self.sum_of_squares) if same and self.sum_of_squares is not None else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAnswer:
    """The plan that answers a question.

    Args:
        plan: the release; the closest one if the target error cannot be met.
        feasible: whether it meets the target error (always true without one).
        advice: what is best, or what would make the target possible.
    """

    quantity: Quantity
    plan: Plan
    root_mse: float
    feasible: bool
    advice: str


def answer(question: PlanQuestion, check: Check = no_limit) -> PlanAnswer:
    """Answer a question.

    Args:
        question: with at most one open parameter besides the error.
        check: called before each plan.

    Raises:
        InvalidInputError: more than one parameter is open, or sizes are out of range.
    """
    quantity = question.quantity
    if question.error is not None and not 0 < question.error < 1:
        raise InvalidInputError("the error must lie between 0 and 1", where="error")
    if quantity is Quantity.ERROR:
        check()
        plan = question.plan()
        error = question.root_mse(plan)
        feasible = question.error is None or error <= question.error
        aim = "" if question.error is None else f"This reaches the error of {question.error:g}. "
        advice = f"{aim}{_praise(question, plan)}" if feasible else _remedies(question, check)
        return PlanAnswer(quantity=quantity, plan=plan, root_mse=error, feasible=feasible, advice=advice)
    if quantity is Quantity.DELTA:
        check()
        pure = replace(question, asks_delta=False)
        if _excess(pure, pure.plan()) <= 0:
            return _answered(question, pure, "A pure epsilon is enough: this error needs no delta.")
    return _searched(question, quantity, check)


def _searched(question: PlanQuestion, quantity: Searched, check: Check) -> PlanAnswer:
    steps = _steps(question, quantity)
    enough = _least(steps, check)
    if enough is None:
        closest = steps.at(steps.last)
        plan = closest.plan()
        advice = _remedies(closest, check, quantity)
        return PlanAnswer(quantity=quantity, plan=plan, root_mse=closest.root_mse(plan), feasible=False, advice=advice)
    return _answered(question, enough, _advice(quantity, enough))


def _answered(question: PlanQuestion, enough: PlanQuestion, advice: str) -> PlanAnswer:
    plan = enough.plan()
    return PlanAnswer(
        quantity=question.quantity,
        plan=plan,
        root_mse=enough.root_mse(plan),
        feasible=True,
        advice=advice or _praise(enough, plan),
    )


def _advice(quantity: Quantity, enough: PlanQuestion) -> str:
    match quantity:
        case Quantity.POPULATION:
            return f"{enough.population} respondents are enough."
        case Quantity.CELLS:
            return f"A table of {enough.cells} cells is the largest that reaches this error."
        case Quantity.DELTA:
            if enough.delta == DELTAS.at(0):
                return f"Delta {delta_text(enough.delta)} reaches this error; it is the least that is tried."
            return f"Delta {delta_text(enough.delta)} is the least that reaches this error."
        case Quantity.EPSILON | Quantity.ERROR:
            return ""


def _least(steps: Scale[PlanQuestion], check: Check) -> PlanQuestion | None:
    """Return the first question whose plan reaches its error, or None."""

    def excess(tried: PlanQuestion) -> float:
        check()
        try:
            return _excess(tried, tried.plan())
        except InvalidInputError:
            return inf

    return steps.least(excess)


def _excess(question: PlanQuestion, plan: Plan) -> float:
    """Return how far the logarithm of the error lies above its aim."""
    if question.error is None:
        raise InvalidInputError(_MISSING, where="plan")
    return excess_over(question.error, question.root_mse(plan))


def _steps(question: PlanQuestion, quantity: Searched) -> Scale[PlanQuestion]:
    """Return the questions that are looked at for one quantity, with nothing open but the error."""
    match quantity:
        case Quantity.POPULATION:
            return populations(question.population).of(lambda people: replace(question, population=people))
        case Quantity.CELLS:
            most = WHOLE_NUMBERS.index_below(MAX_CELLS)
            return Scale(
                # What is known of one table says nothing of another.
                at=lambda index: replace(question, cells=WHOLE_NUMBERS.at(most - index), sum_of_squares=None),
                start=most - WHOLE_NUMBERS.index_below(question.cells or 100),
                last=most - 2,
                rate=2e-3,
            )
        case Quantity.EPSILON:
            most_epsilon = MAX_EPSILON if question.delta is None else LARGEST_EPSILON
            return epsilons(most_epsilon).of(lambda epsilon: replace(question, epsilon=epsilon))
        case Quantity.DELTA:
            return deltas(question.population).of(lambda delta: replace(question, delta=delta, asks_delta=False))


def populations(around: int | None = None) -> Scale[int]:
    """Return the numbers of respondents that are looked at, from 1; the first near one of them."""
    return Scale(
        at=lambda index: WHOLE_NUMBERS.at(1 + index),
        start=WHOLE_NUMBERS.index_below(around or 20_000),
        last=WHOLE_NUMBERS.index_below(MOST_PEOPLE) - 1,
        rate=1e-3,
    )


def epsilons(most: Decimal) -> Scale[Decimal]:
    """Return the epsilons that are looked at."""
    return Scale(at=EPSILONS.at, start=EPSILONS.index_below(Decimal(1)), last=EPSILONS.index_below(most), rate=2.5e-3)


def deltas(population: int | None) -> Scale[Decimal]:
    """Return the deltas that are looked at, below 1/n: from there on, who publishes one row keeps the delta too."""
    people = population or 1
    last = DELTAS.index_below(Decimal(1) / people)
    if DELTAS.at(last) * people >= 1:
        last -= 1
    return Scale(at=DELTAS.at, start=DELTAS.index_below(Decimal("1e-6")), last=last, rate=1e-3)


def open_quantity(is_given: Mapping[Quantity, bool], *, has_aim: bool, missing: str) -> Quantity:
    """Return the quantity that is not given; the error where all are.

    Args:
        is_given: quantity -> whether it is given.
        has_aim: whether there is an error to aim at.
        missing: says what is missing otherwise.

    Raises:
        InvalidInputError: more than one is not given, or one without an error to aim at.
    """
    unknown = [quantity for quantity, has_value in is_given.items() if not has_value]
    if len(unknown) > 1 or (unknown and not has_aim):
        raise InvalidInputError(missing, where="plan")
    return unknown[0] if unknown else Quantity.ERROR


def _praise(question: PlanQuestion, plan: Plan) -> str:
    if question.sample is not None:
        return "The sample size is the one that was asked for."
    if plan.sample < plan.population:
        if plan.delta is None:
            return "This sample size has the least expected error at this pure epsilon."
        return "Here the secret sample protects more than the secret order of everyone."
    if plan.delta is None:
        return "Sampling everyone is best here."
    return "With delta above 0 the secret order protects, and sampling everyone is best."


def _remedies(question: PlanQuestion, check: Check, quantity: Quantity = Quantity.ERROR) -> str:
    """Return the changes that would each make the target possible.

    Args:
        question: with nothing open but the error.
        check: called before each plan.
        quantity: what was searched for without success; its value in the question is the most generous one.
    """
    remedies = []
    if quantity is not Quantity.POPULATION:
        more = _least(_steps(question, Quantity.POPULATION), check)
        if more is not None:
            remedies.append(f"{more.population} respondents")
        if quantity is not Quantity.CELLS:
            smaller = _least(_steps(question, Quantity.CELLS), check)
            if smaller is not None:
                remedies.append(f"a table of {smaller.cells} cells")
        if question.delta is None and question.sample is None:
            remedies.append("delta above 0 (try --delta 1e-6)")
    if question.max_local_epsilon is not None:
        remedies.append("a higher cap on the local epsilon")
    if question.max_pair_epsilon is not None:
        remedies.append("a higher cap on the epsilon of pairs")
    return "This error cannot be reached. It could be with: " + "; or ".join(remedies or ["a larger epsilon"]) + "."
