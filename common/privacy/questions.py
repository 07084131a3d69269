"""Questions about a release before its request: which error, which epsilon, how many people, and why not.

Answers come from `plan_release` and the exact expected error; floats decide nothing here, they only search.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from veiltab.common.core.rounding import MAX_EPSILON
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.noise_split import DEFAULT_SPLIT
from veiltab.common.privacy.planning import Plan, plan_release

_MOST_PEOPLE = 10**8


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanQuestion:
    """The fixed parameters of a release; the open ones are computed.

    Args:
        cells: K.
        population: n, or None to ask how many.
        epsilon: nats, or None to ask how much.
        delta: None for a pure epsilon.
        error: target root-mean-square error of the joint distribution, or None.
        sample: m, or None for the best.
        max_local_epsilon: cap on ln gamma of the server's noise, or None.
        noise_split: the curators' part of the noise, in [0, 1).
        max_pair_epsilon: cap on what the desk with the server, and an analyst with curators face, or None.
        sum_of_squares: sum T^2 if known, or None for the worst case, 1/K.
    """

    cells: int
    population: int | None
    epsilon: Decimal | None
    delta: Decimal | None = None
    error: float | None = None
    sample: int | None = None
    max_local_epsilon: Decimal | None = None
    sum_of_squares: Fraction | None = None
    noise_split: Decimal = DEFAULT_SPLIT
    max_pair_epsilon: Decimal | None = None

    def plan(self, *, population: int | None = None, epsilon: Decimal | None = None, cells: int | None = None) -> Plan:
        """Return the plan with some of the parameters replaced."""
        people, nats = population or self.population, epsilon or self.epsilon
        if people is None or nats is None:
            raise InvalidInputError("give the population and epsilon, or an error to aim at", where="plan")
        return plan_release(
            population=people,
            cells=cells or self.cells,
            epsilon=nats,
            delta=self.delta,
            max_local_epsilon=self.max_local_epsilon,
            sample=self.sample,
            sum_of_squares=None if cells else self.sum_of_squares,
            noise_split=self.noise_split,
            max_pair_epsilon=self.max_pair_epsilon,
        )

    def root_mse(self, plan: Plan) -> float:
        """Return the expected error of a plan for this table."""
        same = plan.mechanism.cells == self.cells and self.sum_of_squares is not None
        return plan.root_mse(float(self.sum_of_squares) if same and self.sum_of_squares is not None else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAnswer:
    """The plan that answers a question.

    Args:
        plan: the release; the closest one if the target error cannot be met.
        root_mse: its expected error.
        feasible: whether it meets the target error (always true without one).
        advice: what is best, or what would make the target possible.
    """

    plan: Plan
    root_mse: float
    feasible: bool
    advice: str


def answer(question: PlanQuestion) -> PlanAnswer:
    """PlanAnswer a question.

    Raises:
        InvalidInputError: more than one parameter is open, or sizes are out of range.
    """
    if question.error is not None and not 0 < question.error < 1:
        raise InvalidInputError("the error must lie between 0 and 1", where="error")
    if question.population is None:
        return _how_many(question)
    if question.epsilon is None:
        return _how_much(question)
    plan = question.plan()
    error = question.root_mse(plan)
    if question.error is None or error <= question.error:
        return PlanAnswer(plan=plan, root_mse=error, feasible=True, advice=_praise(question, plan))
    return PlanAnswer(plan=plan, root_mse=error, feasible=False, advice=_remedies(question, question.epsilon))


def _how_much(question: PlanQuestion) -> PlanAnswer:
    """Find the least epsilon for the error, to three digits."""
    aim = _aim(question)
    most = MAX_EPSILON if question.delta is None else Decimal(20)
    best = question.plan(epsilon=most)
    if question.root_mse(best) > aim:
        return PlanAnswer(plan=best, root_mse=question.root_mse(best), feasible=False, advice=_remedies(question, most))
    low, high = Decimal("1e-6"), most
    while high / low > Decimal("1.002"):
        middle = (low * high).sqrt()
        try:
            enough = question.root_mse(question.plan(epsilon=middle)) <= aim
        except InvalidInputError:
            enough = False
        low, high = (low, middle) if enough else (middle, high)
    plan = question.plan(epsilon=max(Decimal(f"{high:.3g}"), high))
    return PlanAnswer(plan=plan, root_mse=question.root_mse(plan), feasible=True, advice=_praise(question, plan))


def _how_many(question: PlanQuestion) -> PlanAnswer:
    """Find the least population for the error."""
    aim = _aim(question)
    people = _least_whole(lambda n: question.root_mse(question.plan(population=n)) <= aim, _MOST_PEOPLE)
    plan = question.plan(population=people or _MOST_PEOPLE)
    feasible = people is not None
    advice = f"{people} respondents are enough." if feasible else _remedies(question, plan.epsilon)
    return PlanAnswer(plan=plan, root_mse=question.root_mse(plan), feasible=feasible, advice=advice)


def _aim(question: PlanQuestion) -> float:
    if question.error is None:
        raise InvalidInputError("give the population and epsilon, or an error to aim at", where="plan")
    return question.error


def _least_whole(enough: Callable[[int], bool], most: int) -> int | None:
    """Return the least sufficient number, by doubling and bisection; None if the largest is not sufficient."""
    high = 16
    while not enough(high):
        if high >= most:
            return None
        high = min(2 * high, most)
    low = high // 2
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


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


def _remedies(question: PlanQuestion, epsilon: Decimal) -> str:
    """Return the changes that would each make the target possible."""
    aim = _aim(question)
    found = []
    if question.population is not None:
        people = _least_whole(
            lambda n: question.root_mse(question.plan(population=n, epsilon=epsilon)) <= aim, _MOST_PEOPLE
        )
        if people is not None:
            found.append(f"{people} respondents")
        cells = question.cells
        while cells > 2 and question.plan(cells=cells, epsilon=epsilon).root_mse() > aim:
            cells -= max(1, cells // 10)
        if question.plan(cells=cells, epsilon=epsilon).root_mse() <= aim:
            found.append(f"a table of {cells} cells")
        if question.delta is None and question.sample is None:
            found.append("delta above 0 (try --delta 1e-6)")
    if question.max_local_epsilon is not None:
        found.append("a higher cap on the local epsilon")
    if question.max_pair_epsilon is not None:
        found.append("a higher cap on the epsilon of pairs")
    return "This error cannot be reached. It could be with: " + "; or ".join(found or ["a larger epsilon"]) + "."
