"""The part of `veiltab plan` that is about releases of several tables."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import click

from veiltab.common.command.cli import PATH, emit
from veiltab.common.command.options import tables_options
from veiltab.common.core.rounding import parse_delta, parse_epsilon
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.noise_split import parse_split
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.tables import asked_tables
from veiltab.common.study.file import load_study
from veiltab.deploy.workload_plan import LARGEST_EPSILON, WorkloadPlan, epsilon_for, plan_workload

_OPTIONS = (
    click.option("--study", type=PATH, metavar="STUDY.toml", help="Study file that names the attributes of tables."),
    click.option("--pair-error", type=float, help="Total variation distance of a typical pair to aim at."),
)
_DEADLINE = 2**31
_NO_RELEASE = "0" * 32


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """The options that name several tables; see those of the same names."""

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
    as_json: bool,
) -> None:
    """Print what a release of several tables would be, or which epsilon a pair error needs.

    Raises:
        InvalidInputError: what is missing, or what the study does not allow.
    """
    if options.study is None:
        raise InvalidInputError("tables need the study file that names their attributes", where="--study")
    if population is None:
        raise InvalidInputError("several tables need the number of respondents", where="--population")
    if (epsilon is None) == (options.pair_error is None):
        raise InvalidInputError("give an epsilon, or a pair error to aim at", where="--epsilon")
    if delta is None:
        raise InvalidInputError("several tables need a delta", where="--delta", remedy="1e-6 is usual.")
    if not (options.tables or options.workload):
        raise InvalidInputError("name the tables, or a workload of the attributes", where="--workload")
    study = load_study(options.study)
    names, several = asked_tables(study, options.attributes, options.tables, options.workload, options.repeats)
    request = ReleaseRequest(
        release_id=_NO_RELEASE,
        researcher=study.researchers[0].name,
        attributes=names,
        epsilon=LARGEST_EPSILON if epsilon is None else parse_epsilon(epsilon),
        purpose="",
        deadline=_DEADLINE,
        partial=False,
        sampling=Sampling(study.sampling),
        pad=Pad(study.pad),
        sample=sample,
        delta=parse_delta(delta),
        noise_split=parse_split(noise_split),
        canaries=study.canaries,
        tables=several.tables,
        repeats=several.repeats,
    )
    needed = None
    if options.pair_error is not None:
        needed = epsilon_for(request, study, population=population, pair_error=options.pair_error)
        request = replace(request, epsilon=needed or LARGEST_EPSILON)
    plan = plan_workload(request, study, population=population)
    is_feasible = options.pair_error is None or needed is not None
    emit(as_json, _as_dict(plan, is_feasible=is_feasible), _text(plan, options.pair_error, is_feasible=is_feasible))


def _as_dict(plan: WorkloadPlan, *, is_feasible: bool) -> dict[str, object]:
    workload = plan.workload
    return {
        "population": workload.population,
        "m": workload.sample,
        "epsilon": workload.epsilon,
        "delta": workload.delta,
        "attributes": [column.attribute for column in workload.columns],
        "tables": len(workload.tables),
        "repeats": workload.repeats,
        "phases": 2 if workload.repeats else 1,
        "mu": plan.price.mu,
        "share_of_budget": plan.share,
        "pair_error": plan.pair_error,
        "repeated_pair_error": plan.repeated_pair_error,
        "feasible": is_feasible,
        "bytes": plan.bytes(workload.researcher),
        "each": [
            {"attributes": list(one.attributes), "cells": one.cells, "error": one.once, "repeated_error": one.twice}
            for one in plan.errors
        ],
    }


def _text(plan: WorkloadPlan, aim: float | None, *, is_feasible: bool) -> str:
    workload = plan.workload
    again = f", and {workload.repeats} of them a second time" if workload.repeats else ""
    what = f"{len(workload.tables)} tables of {len(workload.columns)} attributes{again}"
    twice = "" if plan.repeated_pair_error is None else f"; {plan.repeated_pair_error:.4f} if it runs twice"
    lines = [
        f"For epsilon {workload.epsilon.normalize():f}, delta {workload.delta}, n = {workload.population:,}: {what}.",
        f"Price: mu = {plan.price.mu:.5f}, which is {float(plan.share):.1%} of the budget of every curator.",
        f"Foreseen error of a typical pair, as a total variation distance: {plan.pair_error:.4f}{twice}.",
        "That is of each table by itself, without bias; a model fitted to all of them is usually nearer to the truth.",
    ]
    if plan.share > 1:
        lines.append("No curator can grant it: it is more than the whole budget of the study.")
    if not is_feasible:
        lines.append(f"A pair error of {aim} cannot be reached with an epsilon up to {LARGEST_EPSILON}.")
        lines.append("It could be with fewer tables, coarser attributes, or more respondents.")
    worst = max(plan.errors, key=lambda one: one.once)
    lines.append(f"Largest: {', '.join(worst.attributes)} ({worst.cells:,} cells) with {worst.once:.4f}.")
    lines.extend(f"  {link}: {count:,} bytes" for link, count in plan.bytes(workload.researcher).items())
    return "\n".join(lines)
