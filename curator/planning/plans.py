"""The plan of a release at one curator, and what it charges; pure functions.

A request is decided, planned and charged as one. The price of tables that run a second time is part of the charge.
"""

import hashlib
import os
import signal
import sys
from collections.abc import Sequence
from decimal import Decimal
from math import prod
from statistics import median
from typing import assert_never, cast

from veiltab.common.core.block_order import MAX_ROWS
from veiltab.common.core.mechanism import TwoSidedNoise
from veiltab.common.core.texts.canonical import canonical_text, read_canonical
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.errors import DeniedError, InvalidInputError, VeiltabError
from veiltab.common.privacy.planning.noise_split import NoiseSharing
from veiltab.common.privacy.planning.planning import Plan, plan_release
from veiltab.common.release.guarantees import (
    check_keeps_what_was_asked,
    guaranteed_epsilon,
    release_card,
    release_price,
    release_pure_epsilon,
)
from veiltab.common.release.receipts.canary_changes import most_canaries
from veiltab.common.release.receipts.canary_plan import canaries_to_sample, most_planned, planned_canaries
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.request_limits import check_draws
from veiltab.common.release.spec import ReleaseSpec, TablePlan
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.schemes import Scheme, SizeLaw, scheme_class, scheme_of
from veiltab.curator.budget.allowance import Allowance, Charge, priced
from veiltab.curator.planning.plan_questions import Card, ChargeQuestion, PlanAnswer, PlanInput, seconds_for

_AS_ASKED = ("release_id", "researcher", "epsilon", "delta", "scheme", "stage", "sampling", "pad", "deadline")
"""Fields of a request that its plan has as well."""

_PLANNED_BY = ("epsilon", "delta", "max_local_epsilon", "scheme", "stage", "noise_split", "max_pair_epsilon")
"""Fields of a request that the sizes and the noise of its plan follow from."""

_MOST_DRAWS_EACH = 64
"""Largest ratio of the rows of a sample or a first stage to the population, and of canaries to it."""


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
    tables = [tuple(column for column in question.all_columns if column.attribute in table) for table in request.tables]
    cells = [prod(column.size for column in table) for table in tables]
    prices = workload_prices(cells, request.repeats, request.epsilon, delta)
    check_carries(scheme, cells, prices)
    numbers = [number for number, table in enumerate(tables) if set(table) <= set(question.columns)]
    if not numbers:
        raise DeniedError("every table has an attribute that is denied", where="tables")
    columns = tuple(column for column in question.all_columns if any(column in tables[number] for number in numbers))
    sharing = NoiseSharing(
        split=request.noise_split, pair_delta=delta, is_sampled_by_server=request.sampling.is_by_server
    )
    first, again = (
        tuple(
            _table(question, columns, tables[number], scheme, sharing.of(mechanisms[number], scheme))
            for number in (numbers if mechanisms else ())
        )
        for mechanisms in workload_mechanisms(scheme, cells, prices)
    )
    return _spec(question, columns, scheme.sample, first, again, min(request.repeats, len(numbers)))


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
        **same_fields(request, _AS_ASKED),
        **same_fields(question, ("study_digest", "population", "alignment")),
        columns=columns,
        sample=sample,
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


def canaries_of(request: ReleaseRequest, columns: tuple[Column, ...], scheme: Scheme, noise: TwoSidedNoise) -> int:
    """Return the canaries of a table: what was asked for, or as many as test the server enough.

    Raises:
        InvalidInputError: many times more are asked for than there are respondents, which every curator would store, or
            so many that the list of changed ones exceeds a message.
    """
    if request.canaries is not None:
        most = max(most_planned(scheme.sample), _MOST_DRAWS_EACH * scheme.population)
        most = min(most, most_canaries(columns, 1 - noise.server.retention))
        if request.canaries > most:
            raise InvalidInputError(f"at most {most} canaries can be hidden, not {request.canaries}", where="canaries")
        return request.canaries
    planned = planned_canaries(noise.server, tuple(column.size for column in columns), scheme.sample)
    if request.sampling.is_by_server:
        return canaries_to_sample(planned, population=scheme.population, sample=scheme.sample)
    return planned


def plan_of(spec: TableSpec) -> Plan:
    """Return the plan that a spec was made of."""
    return Plan(
        scheme=spec.description.scheme,
        mechanism=spec.mechanism,
        epsilon=spec.epsilon,
        delta=spec.delta,
        is_sampled_by_server=spec.sampling.is_by_server,
    )


def foreseen_plan(request: ReleaseRequest, *, population: int, cells: int) -> Plan:
    """Plan a request, before or after it is granted.

    A Poisson sample's size is drawn here, from the release id: it is public, and given it the sample is one without
    replacement.

    Raises:
        InvalidInputError: sizes out of range, or an epsilon too small for them.
    """
    check_draws(request, min(MAX_ROWS, _MOST_DRAWS_EACH * population))
    match scheme_class(request.scheme).size_law:
        case SizeLaw.FIXED:
            size = request.sample
        case SizeLaw.BINOMIAL:
            expected = request.sample
            if expected is None:
                expected = plan_release(population=population, cells=cells, epsilon=request.epsilon).sample
            from veiltab.common.schemes.poisson import poisson_size  # noqa: PLC0415 - not for samples of a given size

            coin = hashlib.sha256(b"veiltab poisson size" + bytes.fromhex(request.release_id)).digest()
            size = poisson_size(population, expected, coin)
        case law:
            assert_never(law)
    return plan_release(
        population=population,
        cells=cells,
        **same_fields(request, _PLANNED_BY),
        sample=size,
        is_sampled_by_server=request.sampling.is_by_server,
    )


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


def answer_plan(question: str) -> str:
    """Return the canonical text of the answer to a question's."""
    try:
        answer = PlanAnswer(spec=planned_release(read_canonical(PlanInput, question)))
    except VeiltabError as error:
        answer = PlanAnswer(problem=error.problem, where=error.where, remedy=error.remedy)
    return canonical_text(answer)


def answer_card(spec: str) -> str:
    """Return the canonical text of the card of a spec's."""
    return canonical_text(Card(bounds=release_card(ReleaseSpec.from_json(spec)).bounds))


def answer_charge(question: str) -> str:
    """Return the canonical text of the charge that answers a question's."""
    record = read_canonical(ChargeQuestion, question)
    return canonical_text(charge_of(record.spec, Allowance(epsilon=record.epsilon, delta=record.delta)))


ANSWERS = {"plan": answer_plan, "card": answer_card, "charge": answer_charge}
"""What each kind of question is answered with."""


def serve_questions() -> None:
    """Answer each line of standard input with one of standard output, until it ends; a process of its own."""
    for line in sys.stdin:
        kind, tables, text = line.rstrip("\n").split(" ", 2)
        # When it has run out, the kernel ends the process, whatever it does.
        signal.setitimer(signal.ITIMER_PROF, seconds_for(int(tables)))
        answer = ANSWERS[kind](text)
        signal.setitimer(signal.ITIMER_PROF, 0)
        try:
            sys.stdout.write(answer + "\n")
            sys.stdout.flush()
        except BrokenPipeError:  # who asked was killed; nothing is left to flush at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return


if __name__ == "__main__":
    serve_questions()
