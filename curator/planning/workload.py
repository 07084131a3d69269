"""A release of several tables at one curator: its plan and its charge; pure functions.

The request is decided, planned and charged as one. The price of tables that run a second time is part of the charge.
"""

from collections.abc import Sequence
from math import prod
from statistics import median

from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.errors import DeniedError
from veiltab.common.privacy.planning.noise_split import NoiseSharing
from veiltab.common.privacy.planning.workload_plan import (
    check_carries,
    expected_distance,
    workload_mechanisms,
    workload_prices,
)
from veiltab.common.release.guarantees.workload_guarantees import workload_price, workload_pure_epsilon
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.workload import TablePlan, WorkloadSpec
from veiltab.common.schemes import scheme_of
from veiltab.curator.budget.allowance import Allowance, Charge, priced
from veiltab.curator.planning.checks import PlanQuestion, canaries_of


def planned_workload(question: PlanQuestion) -> WorkloadSpec:
    """Plan the tables as they were asked for, and leave out those with a column that is not granted.

    Raises:
        InvalidInputError: too few common respondents, too small an epsilon for so many tables, sizes out of range.
        DeniedError: no table is left.
    """
    question.check_population()
    request, population = question.request, question.population
    if request.delta is None:
        raise AssertionError("a request for several tables has a delta")
    scheme = scheme_of(request.scheme, population=population, sample=request.sample or population)
    tables = [tuple(column for column in question.asked if column.attribute in table) for table in request.tables]
    cells = [prod(column.size for column in table) for table in tables]
    prices = workload_prices(cells, request.repeats, request.epsilon, request.delta)
    check_carries(scheme, cells, prices)
    kept = [number for number, table in enumerate(tables) if set(table) <= set(question.columns)]
    if not kept:
        raise DeniedError("every table has an attribute that is denied", where="tables")
    columns = tuple(column for column in question.asked if any(column in tables[number] for number in kept))
    sharing = NoiseSharing(
        split=request.noise_split, pair_delta=request.delta, is_sampled_by_server=request.sampling.is_by_server
    )

    def plans(mechanisms: Sequence[GammaDiagonal]) -> tuple[TablePlan, ...]:
        planned = []
        for number in kept if mechanisms else ():
            noise = sharing.of(mechanisms[number], scheme)
            plan = TablePlan(
                columns=tuple(columns.index(column) for column in tables[number]),
                server_replacement=noise.server_replacement,
                curator_replacement=noise.curator_replacement,
                canaries=canaries_of(request, tables[number], scheme, noise),
            )
            planned.append(plan)
        return tuple(planned)

    first, again = workload_mechanisms(scheme, cells, prices)
    return WorkloadSpec(
        release_id=request.release_id,
        study_digest=question.study_digest,
        researcher=request.researcher,
        columns=columns,
        population=population,
        sample=scheme.sample,
        epsilon=request.epsilon,
        delta=request.delta,
        scheme=request.scheme,
        sampling=request.sampling,
        pad=request.pad,
        alignment=question.alignment,
        deadline=request.deadline,
        tables=plans(first),
        repeated=plans(again),
        repeats=min(request.repeats, len(kept)),
    )


def charge_of(workload: WorkloadSpec, allowance: Allowance) -> Charge:
    """Return what all tables together take of a budget: those that may run a second time at the worst of them."""
    budget = allowance.price
    price = None if budget is None else workload_price(workload, lambda release: priced(release, budget))
    return Charge(epsilon=workload_pure_epsilon(workload), price=price)


def table_error(table: ReleaseSpec) -> float:
    """Return the expected total variation distance of a table's unbiased estimate from the truth."""
    gamma = float(table.mechanism.gamma)
    return expected_distance(population=table.population, sample=table.sample, cells=table.cells, gamma=gamma)


def typical_error(workload: WorkloadSpec) -> float:
    """Return the median over the tables of `table_error`."""
    return median(map(table_error, workload.each_table()))


def most_bytes(workload: WorkloadSpec, curator: str) -> int:
    """Return how many bytes a curator sends to the server at the most, whichever tables run a second time."""
    return workload.most(lambda table: sum(c.byte_length(table.uploaded_rows) for c in table.columns_of(curator)))
