"""Questions about several tables before their request: n, epsilon, delta or a typical error from the others.

All of it is by the central limit, at once. The mechanisms that run are priced exactly, and cost up to some per cent
more where rows are few; so an error is aimed at with something to spare. Numbers that are searched for are round, as in
`veiltab.common.privacy.planning.questions`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from math import inf, prod
from statistics import median

from veiltab.common.dataclass import dataclass, replace
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.planning.questions import (
    LARGEST_EPSILON,
    Check,
    Quantity,
    deltas,
    epsilons,
    no_limit,
    open_quantity,
    populations,
)
from veiltab.common.privacy.planning.round_numbers import Scale, excess_over
from veiltab.common.privacy.planning.workload_prices import foreseen_errors, workload_prices
from veiltab.common.schemes import scheme_of

AIM = 0.995
"""Part of an error that is aimed at by the central limit: enough for mechanisms of many rows to keep to all of it."""

_MISSING = "give all but one of the population, epsilon and delta, and an error to aim at for the other"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadQuestion:
    """The fixed parameters of a release of several tables; the open one is computed.

    Args:
        tables: the numbers of categories of the attributes of each table.
        repeats: so many of the tables may run a second time.
        population: n, or None to ask how many.
        epsilon: of all tables together, nats, or None to ask how much.
        delta: likewise, or None to ask for the least.
        pair_error: expected total variation distance of a typical pair that runs once, in (0, 1); None to ask for it.
        sample: m, or None for everyone.
        scheme: how rows are sampled.
    """

    tables: tuple[tuple[int, ...], ...]
    repeats: int = 0
    population: int | None
    epsilon: Decimal | None
    delta: Decimal | None
    pair_error: float | None = None
    sample: int | None = None
    scheme: str = "wor"

    @property
    def cells(self) -> tuple[int, ...]:
        """K of each table."""
        return tuple(map(prod, self.tables))

    @property
    def quantity(self) -> Quantity:
        """What is asked for.

        Raises:
            InvalidInputError: more than one parameter is open.
        """
        is_given = {
            Quantity.POPULATION: self.population is not None,
            Quantity.EPSILON: self.epsilon is not None,
            Quantity.DELTA: self.delta is not None,
        }
        return open_quantity(is_given, has_aim=self.pair_error is not None, missing=_MISSING)

    def errors(self) -> tuple[float, ...]:
        """Return the foreseen error of each table that runs once, of a question in which only these are open.

        Raises:
            InvalidInputError: nothing is left of so small an epsilon and delta.
        """
        if self.population is None or self.epsilon is None or self.delta is None:
            raise InvalidInputError(_MISSING, where="plan")
        scheme = scheme_of(self.scheme, population=self.population, sample=self.sample or self.population)
        prices = workload_prices(self.cells, self.repeats, self.epsilon, self.delta)
        if any(price.mu == 0 for price in prices.first):
            raise InvalidInputError("the epsilon leaves nothing for so many tables", where="epsilon")
        return foreseen_errors(scheme, self.cells, prices)

    def typical(self, errors: Sequence[float]) -> float:
        """Return the error of a typical pair."""
        return typical_pair_error(self.tables, errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadAnswer:
    """The parameters that answer a question.

    Args:
        question: with the answer in its place, or the closest value if the error cannot be reached.
        errors: foreseen, of each table that runs once.
        feasible: whether a typical pair reaches the error (always true without one).
    """

    quantity: Quantity
    question: WorkloadQuestion
    errors: tuple[float, ...]
    feasible: bool

    @property
    def pair_error(self) -> float:
        """Foreseen error of a typical pair."""
        return self.question.typical(self.errors)


def typical_pair_error(tables: Iterable[Sequence[object]], errors: Sequence[float]) -> float:
    """Return the median error of the tables of two attributes, or of all where there is no such one.

    Args:
        tables: what there is of each attribute of each table.
    """
    pairs = [error for table, error in zip(tables, errors, strict=True) if len(table) == 2]
    return median(pairs or errors)


def answer_workload(question: WorkloadQuestion, check: Check = no_limit, *, aim: float = AIM) -> WorkloadAnswer:
    """Answer a question about several tables.

    Args:
        question: with at most one open parameter besides the error.
        check: called before each step.
        aim: part of the error that is aimed at.

    Raises:
        InvalidInputError: more than one parameter is open, or an error is out of range.
    """
    quantity = question.quantity
    if question.pair_error is not None and not 0 < question.pair_error < 1:
        raise InvalidInputError("the error must lie between 0 and 1", where="pair error")
    if quantity is Quantity.ERROR:
        check()
        errors = question.errors()
        feasible = question.pair_error is None or question.typical(errors) <= question.pair_error
        return WorkloadAnswer(quantity=quantity, question=question, errors=errors, feasible=feasible)
    steps = _steps(question, quantity)

    def excess(tried: WorkloadQuestion) -> float:
        check()
        return _excess(tried, aim)

    enough = steps.least(excess)
    answered = steps.at(steps.last) if enough is None else enough
    return WorkloadAnswer(quantity=quantity, question=answered, errors=answered.errors(), feasible=enough is not None)


def _excess(question: WorkloadQuestion, part: float) -> float:
    """Return how far the logarithm of the typical error lies above a part of its aim."""
    if question.pair_error is None:
        raise InvalidInputError(_MISSING, where="plan")
    try:
        return excess_over(question.pair_error * part, question.typical(question.errors()))
    except InvalidInputError:
        return inf


def _steps(question: WorkloadQuestion, quantity: Quantity) -> Scale[WorkloadQuestion]:
    """Return the questions that are looked at for one quantity, with nothing open but the error."""
    scales: Mapping[Quantity, Callable[[], Scale[WorkloadQuestion]]] = {
        Quantity.POPULATION: lambda: populations().of(lambda people: replace(question, population=people)),
        Quantity.EPSILON: lambda: epsilons(LARGEST_EPSILON).of(lambda epsilon: replace(question, epsilon=epsilon)),
        Quantity.DELTA: lambda: deltas(question.population).of(lambda delta: replace(question, delta=delta)),
    }
    return scales[quantity]()
