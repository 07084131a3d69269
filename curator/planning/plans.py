"""The plan of a release at one curator, and what it charges; pure functions.

A request is decided, planned and charged as one. The price of tables that run a second time is part of the charge.
"""

from collections.abc import Sequence
from decimal import Decimal
from math import prod
from statistics import median
from typing import cast

from veiltab.common.core.mechanism import TwoSidedNoise
from veiltab.common.errors import DeniedError
from veiltab.common.privacy.planning.noise_split import NoiseSharing
from veiltab.common.release.guarantees import (
    check_keeps_what_was_asked,
    guaranteed_epsilon,
    release_price,
    release_pure_epsilon,
)
from veiltab.common.release.spec import ReleaseSpec, TablePlan
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.schemes import Scheme, scheme_of
from veiltab.curator.budget.allowance import Allowance, Charge, priced
from veiltab.curator.planning.checks import PlanInput, canaries_of, foreseen_plan


def planned_release(question: PlanInput) -> ReleaseSpec:
    """Plan a release; every curator computes the same.

    Of several tables, those with a column that is not granted are left out.

    Raises:
        InvalidInputError: too few rows, too small an epsilon for so many tables, sizes out of range; see
            `foreseen_plan`; less than the study's floors.
        DeniedError: no table is left.
    """
    release = _several(question) if question.request.tables else _one(question)
    question.floors.check(release)
    return release


def _one(question: PlanInput) -> ReleaseSpec:
    cells = prod(column.size for column in question.columns)
    plan = foreseen_plan(question.request, population=question.population, cells=cells)
    table = _table(question, question.columns, question.columns, plan.scheme, plan.mechanism)
    release = _spec(question, question.columns, plan.sample, (table,))
    check_keeps_what_was_asked(release.table(0))
    return release


def _several(question: PlanInput) -> ReleaseSpec:
    from veiltab.common.privacy.planning.workload_prices import check_carries, workload_mechanisms, workload_prices  # noqa: PLC0415 - not for releases of one table

    request, population = question.request, question.population
    delta = cast("Decimal", request.delta)  # of several tables it is always given
    scheme = scheme_of(request.scheme, population=population, sample=request.sample or population)
    tables = [tuple(column for column in question.asked if column.attribute in table) for table in request.tables]
    cells = [prod(column.size for column in table) for table in tables]
    prices = workload_prices(cells, request.repeats, request.epsilon, delta)
    check_carries(scheme, cells, prices)
    kept = [number for number, table in enumerate(tables) if set(table) <= set(question.columns)]
    if not kept:
        raise DeniedError("every table has an attribute that is denied", where="tables")
    columns = tuple(column for column in question.asked if any(column in tables[number] for number in kept))
    sharing = NoiseSharing(
        split=request.noise_split, pair_delta=delta, is_sampled_by_server=request.sampling.is_by_server
    )
    first, again = (
        tuple(
            _table(question, columns, tables[number], scheme, sharing.of(mechanisms[number], scheme))
            for number in (kept if mechanisms else ())
        )
        for mechanisms in workload_mechanisms(scheme, cells, prices)
    )
    return _spec(question, columns, scheme.sample, first, again, min(request.repeats, len(kept)))


def _table(
    question: PlanInput, columns: Sequence[Column], table: tuple[Column, ...], scheme: Scheme, noise: TwoSidedNoise
) -> TablePlan:
    return TablePlan(
        columns=tuple(columns.index(column) for column in table),
        server_replacement=noise.server_replacement,
        curator_replacement=noise.curator_replacement,
        canaries=canaries_of(question.request, table, scheme, noise),
    )


def _spec(  # noqa: PLR0913, PLR0917 - one argument a quantity
    question: PlanInput,
    columns: tuple[Column, ...],
    sample: int,
    tables: tuple[TablePlan, ...],
    repeated: tuple[TablePlan, ...] = (),
    repeats: int = 0,
) -> ReleaseSpec:
    request = question.request
    return ReleaseSpec(
        release_id=request.release_id,
        study_digest=question.study_digest,
        researcher=request.researcher,
        columns=columns,
        population=question.population,
        sample=sample,
        epsilon=request.epsilon,
        delta=request.delta,
        scheme=request.scheme,
        stage=request.stage,
        sampling=request.sampling,
        pad=request.pad,
        alignment=question.alignment,
        deadline=request.deadline,
        several=bool(request.tables),
        tables=tables,
        repeated=repeated,
        repeats=repeats,
    )


def charge_of(release: ReleaseSpec, allowance: Allowance) -> Charge:
    """Return what a release takes of a budget: tables that may run a second time at the worst of them."""
    if release.only_table is not None:
        return allowance.charge(release.only_table.description, guaranteed_epsilon(release.only_table))
    budget = allowance.price
    price = None if budget is None else release_price(release, lambda kind: priced(kind, budget))
    return Charge(epsilon=release_pure_epsilon(release), price=price)


def table_error(table: TableSpec) -> float:
    """Return the expected total variation distance of a table's unbiased estimate from the truth."""
    from veiltab.common.privacy.planning.workload_prices import expected_distance  # noqa: PLC0415 - not for releases of one table

    gamma = float(table.mechanism.gamma)
    return expected_distance(population=table.population, sample=table.sample, cells=table.cells, gamma=gamma)


def typical_error(release: ReleaseSpec) -> float:
    """Return the median over the tables of `table_error`."""
    return median(map(table_error, release.each_table()))


def most_bytes(release: ReleaseSpec, curator: str) -> int:
    """Return how many bytes a curator sends to the server at most, whichever tables run a second time."""
    return release.most(lambda table: sum(c.byte_length(table.uploaded_rows) for c in table.columns_of(curator)))
