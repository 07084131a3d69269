"""The part of `veiltab plan` that is about releases of several tables."""

import functools
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import click

from veiltab.common.command.cli import PATH, emit
from veiltab.common.command.options import tables_options
from veiltab.common.core.domain import Domain
from veiltab.common.core.numbers.rounding import parse_delta, parse_epsilon, upward
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.dataclass import dataclass, fields, replace
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.privacy.planning.noise_split import parse_split
from veiltab.common.privacy.planning.questions import LARGEST_EPSILON, Quantity
from veiltab.common.privacy.planning.workload_questions import AIM, WorkloadAnswer, WorkloadQuestion, answer_workload
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.tables import Prospect, asked_tables
from veiltab.common.study.file import Study, load_study
from veiltab.curator.budget.entries import percent
from veiltab.deploy.plan.workload_plan import WorkloadPlan, plan_workload

_OPTIONS = (
    click.option("--study", type=PATH, metavar="STUDY.toml", help="Study file that names the attributes of tables."),
    click.option("--pair-error", type=float, help="Total variation distance of a typical pair to aim at."),
)
_DEADLINE = 2**31
_NO_RELEASE = "0" * 32
_SOME_DELTA = Decimal("1e-6")
"""Stands in a request whose delta is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """The options that name tables of a study; see those of the same names."""

    study: Path | None
    attributes: tuple[str, ...]
    workload: str | None
    tables: tuple[tuple[str, ...], ...]
    repeats: int
    pair_error: float | None

    @property
    def are_given(self) -> bool:
        """Whether any of them is."""
        return self.pair_error is not None or any(getattr(self, field.name) for field in fields(self))

    @property
    def are_of_one_table(self) -> bool:
        """Whether they name one table, by its attributes."""
        several = self.workload or self.tables or self.repeats or self.pair_error is not None
        return bool(self.attributes) and not several

    def cells(self) -> int:
        """Return how many cells the study gives the one table.

        Raises:
            InvalidInputError: there is no study, it does not have an attribute, or it allows no table as large.
        """
        study = self.load()
        cells = self.domain().cells
        if cells > study.maximum_cells:
            raise InvalidInputError(
                f"the table has {cells} cells; the study allows {study.maximum_cells}",
                where="--attributes",
                remedy="Plan fewer attributes.",
            )
        return cells

    def domain(self) -> Domain:
        """Return the attributes of the one table."""
        return self.load().domain(self.attributes)

    def lacks(self, tables: Sequence[Sequence[str]], question: str | None) -> tuple[str, ...]:
        """Return what a release of some tables lacks to answer a question, a sentence each; none without one."""
        if question is None:
            return ()
        from veiltab.deploy.plan.twins import proposals

        return proposals(self.load(), tables, question)

    def load(self) -> Study:
        """Load the study.

        Raises:
            InvalidInputError: no study file is named, or it is not valid.
        """
        if self.study is None:
            raise InvalidInputError(
                "tables were given without the study file that names their attributes", where="--study"
            )
        return load_study(self.study)


def workload_options(command: Callable[..., None]) -> Callable[..., None]:
    """Pass a command TableOptions as its argument `tables`."""
    own = [field.name for field in fields(TableOptions)]

    @functools.wraps(command)
    def with_options(**values: Any) -> None:  # noqa: ANN401 - whatever click read
        tables = TableOptions(**{name: values.pop(name) for name in own})
        command(tables=tables, **values)

    for option in reversed(_OPTIONS):
        with_options = option(with_options)
    return tables_options(with_options)


def show_workload(
    options: TableOptions,
    *,
    population: int | None,
    epsilon: str | None,
    delta: str | None,
    sample: int | None,
    noise_split: str,
    question: str | None,
) -> None:
    """Print what a release of several tables would be, or what a pair error needs: epsilon, delta or people.

    Raises:
        InvalidInputError: what is missing, or what the study does not allow.
    """
    aim = options.pair_error
    if epsilon is None and aim is None:
        raise InvalidInputError("give an epsilon, or a pair error to aim at", where="--epsilon")
    if delta is None and aim is None:
        raise InvalidInputError("no delta was given for several tables", where="--delta", remedy="1e-6 is usual.")
    if aim is not None and (population, epsilon, delta).count(None) != 1:
        raise InvalidInputError(
            "give an epsilon, or a pair error to aim at; with one, leave away what is asked for, and nothing else",
            where="--pair-error",
            remedy="Leave away --epsilon, --delta or --population.",
        )
    if not (options.tables or options.workload):
        raise InvalidInputError(
            "name one table of the study by its attributes, or several",
            where="--study",
            remedy="Add --attributes A,B, or --tables A,B A,C, or --workload pairs.",
        )
    study = options.load()
    nats = None if epsilon is None else parse_epsilon(epsilon)
    prospect = Prospect(rows=sample or population, epsilon=nats, delta=None if delta is None else parse_delta(delta))
    names, several = asked_tables(
        study, options.attributes, options.tables, options.workload, options.repeats, prospect
    )
    request = ReleaseRequest(
        release_id=_NO_RELEASE,
        researcher=study.researchers[0].name,
        attributes=names,
        epsilon=nats or LARGEST_EPSILON,
        deadline=_DEADLINE,
        sampling=Sampling(study.sampling),
        pad=Pad(study.pad),
        sample=sample,
        delta=prospect.delta or _SOME_DELTA,
        noise_split=parse_split(noise_split),
        canaries=study.canaries,
        tables=several.tables,
        repeats=several.repeats,
    )
    sizes = {rule.name: rule.attribute.size for rule in study.attributes}
    plan_question = WorkloadQuestion(
        tables=tuple(tuple(sizes[name] for name in table) for table in request.tables),
        repeats=request.repeats,
        population=population,
        epsilon=nats,
        delta=prospect.delta,
        pair_error=aim,
        sample=sample,
        scheme=request.scheme,
    )
    reply: WorkloadAnswer | None = None
    if aim is not None:
        reply, plan = _reached(request, study, plan_question, aim)
    elif population is not None:
        plan = plan_workload(request, study, population=population)
    else:
        raise InvalidInputError("several tables need the number of respondents", where="--population")
    twins = options.lacks(request.tables, question)
    emit(_as_dict(plan, reply) | {"twins": twins}, "\n".join((_text(plan, aim, reply), *twins)))


def _reached(
    request: ReleaseRequest, study: Study, question: WorkloadQuestion, pair_error: float
) -> tuple[WorkloadAnswer, WorkloadPlan]:
    """Return the answer whose plan, priced exactly, reaches a pair error; or the closest one."""
    aim = AIM
    while True:
        reply = answer_workload(question, aim=aim)
        best = reply.question
        new = replace(request, epsilon=cast("Decimal", best.epsilon), delta=best.delta)
        plan = plan_workload(new, study, population=cast("int", best.population))
        if not reply.feasible or plan.pair_error <= pair_error:
            return reply, plan
        # Few rows: the central limit promised too much.
        aim *= AIM * pair_error / plan.pair_error


def _as_dict(plan: WorkloadPlan, reply: WorkloadAnswer | None) -> dict[str, object]:
    workload = plan.workload
    return {
        "m": workload.sample,
        **same_fields(workload, ("epsilon", "delta", "population", "repeats")),
        "attributes": [column.attribute for column in workload.columns],
        "tables": len(workload.tables),
        "phases": 2 if workload.repeats else 1,
        "mu": plan.price.mu,
        "share_of_budget": plan.share,
        "pair_error": plan.pair_error,
        "repeated_pair_error": plan.repeated_pair_error,
        "feasible": reply is None or reply.feasible,
        "bytes": plan.bytes(workload.researcher),
        "each": [
            {"attributes": list(one.attributes), "cells": one.cells, "error": one.once, "repeated_error": one.twice}
            for one in plan.errors
        ],
    }


def _text(plan: WorkloadPlan, aim: float | None, reply: WorkloadAnswer | None) -> str:
    workload = plan.workload
    again = f", and {workload.repeats} of them a second time" if workload.repeats else ""
    triples = sum(len(table.columns) == 3 for table in workload.tables)
    of_three = f", {triples} of them of three" if triples else ""
    shape = f"{len(workload.tables)} tables of {len(workload.columns)} attributes{of_three}{again}"
    twice = "" if plan.repeated_pair_error is None else f"; {plan.repeated_pair_error:.4f} if it runs twice"
    delta = delta_text(workload.delta)
    lines = [
        f"For epsilon {workload.epsilon.normalize():f}, delta {delta}, n = {workload.population:,}: {shape}.",
        f"Price: mu = {upward(plan.price.mu)}, which is {percent(plan.share)} of the budget of every curator.",
        f"Foreseen error of a typical pair, as a total variation distance: {plan.pair_error:.4f}{twice}.",
        "That is of each table by itself, without bias; a model fitted to all of them is usually nearer to the truth.",
    ]
    if plan.share > 1:
        lines.append("No curator can grant it: it is more than the whole budget of the study.")
    if reply is not None and not reply.feasible:
        lines.append(f"A pair error of {aim} cannot be reached with {_most(reply)}.")
        lines.append("It could be with fewer tables, coarser attributes, or more respondents.")
    worst = max(plan.errors, key=lambda one: one.once)
    lines.append(f"Largest: {', '.join(worst.attributes)} ({worst.cells:,} cells) with {worst.once:.4f}.")
    lines.extend(f"  {link}: {count:,} bytes" for link, count in plan.bytes(workload.researcher).items())
    return "\n".join(lines)


def _most(reply: WorkloadAnswer) -> str:
    """Say how far was looked."""
    most = {
        Quantity.EPSILON: f"an epsilon up to {LARGEST_EPSILON}",
        Quantity.DELTA: f"a delta up to {delta_text(reply.question.delta)}, the largest below 1/n",
        Quantity.POPULATION: f"up to {reply.question.population or 0:,} respondents",
    }
    return most[reply.quantity]
