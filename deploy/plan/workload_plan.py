"""What a release of several tables would be, before anybody is asked: its price, its errors and its bytes.

It is what every curator would plan: the same functions, for a population that the asker names.
"""

from collections.abc import Sequence
from decimal import Decimal
from functools import cached_property

from veiltab.common.core.randomness import KEY_BYTES
from veiltab.common.dataclass import dataclass
from veiltab.common.privacy.planning.workload_questions import typical_pair_error
from veiltab.common.privacy.pricing.price import Price
from veiltab.common.release.guarantees import asked_price
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.request_limits import check_limits
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.table_spec import TableSpec, requested_columns
from veiltab.common.study.file import Study
from veiltab.curator.budget.allowance import Allowance
from veiltab.curator.planning.plan_questions import plan_question
from veiltab.curator.planning.plans import charge_of, most_bytes, planned_release, table_error

_NO_ALIGNMENT = "0" * 32


@dataclass(frozen=True, slots=True, kw_only=True)
class TableErrors:
    """The foreseen errors of one table: expected total variation distances of its unbiased estimate from the truth.

    Args:
        cells: K.
        once: when it runs once.
        twice: of both estimates together, when it runs a second time; None without repeats.
    """

    attributes: tuple[str, ...]
    cells: int
    once: float
    twice: float | None


@dataclass(frozen=True, kw_only=True)
class WorkloadPlan:
    """A release of several tables as it would be planned."""

    study: Study
    workload: ReleaseSpec

    @cached_property
    def price(self) -> Price:
        """The price of the requested epsilon and delta, which the tables divide."""
        return asked_price(self.workload)

    @cached_property
    def share(self) -> Decimal:
        """What part of every curator's budget is charged: of mu^2, or of the pure epsilon where that has no delta."""
        allowance = Allowance(epsilon=self.study.budget_epsilon, delta=self.study.budget_delta)
        return allowance.share(charge_of(self.workload, allowance))

    @cached_property
    def errors(self) -> tuple[TableErrors, ...]:
        """The foreseen errors of each table, in their order."""
        workload = self.workload
        second = list(map(table_error, workload.each_repeat()))
        values = []
        for number, table in enumerate(workload.each_table()):
            once, again = table_error(table), second[number] if second else None
            values.append(
                TableErrors(
                    attributes=workload.attributes(number),
                    cells=table.cells,
                    once=once,
                    # Estimates weighted by their precisions: precisions add up.
                    twice=None if again is None else (once**-2 + again**-2) ** -0.5,
                )
            )
        return tuple(values)

    @property
    def pair_error(self) -> float:
        """Foreseen error of a typical table of two attributes that runs once, or of all where there is no such one."""
        return self._typical([one.once for one in self.errors])

    @property
    def repeated_pair_error(self) -> float | None:
        """The same of one that runs twice; None without repeats."""
        twice = [one.twice for one in self.errors if one.twice is not None]
        return self._typical(twice) if twice else None

    def _typical(self, errors: Sequence[float]) -> float:
        return typical_pair_error([one.attributes for one in self.errors], errors)

    def bytes(self, researcher: str) -> dict[str, int]:
        """Return the bytes over each link at most, whichever tables run a second time."""
        server = f"server {self.study.server.name}"
        curators = [one.name for one in self.study.curators]
        uploads = {f"curator {name} -> {server}": most_bytes(self.workload, name) for name in curators}
        desk = f"researcher {researcher}"
        fetched = self.workload.most(lambda table: sum(c.byte_length(table.published_rows) for c in table.columns))
        keys = {
            f"curator {name} -> {desk}": self.workload.most(lambda table, name=name: _key_bytes(table, name))  # type: ignore[misc]
            for name in curators
        }
        return {link: count for link, count in (uploads | {f"{server} -> {desk}": fetched} | keys).items() if count}


def plan_workload(request: ReleaseRequest, study: Study, *, population: int) -> WorkloadPlan:
    """Return what every curator would plan if it granted everything.

    Args:
        population: n, rows of the hub.

    Raises:
        InvalidInputError: the study does not allow it, or the epsilon is too small for so many tables.
    """
    check_limits(request, study)
    columns = requested_columns(request, study)
    question = plan_question(request, columns, study, population=population, alignment=_NO_ALIGNMENT)
    return WorkloadPlan(study=study, workload=planned_release(question))


def _key_bytes(table: TableSpec, curator: str) -> int:
    columns = table.columns_of(curator)
    if table.pad.is_one_time:
        return sum(column.byte_length(table.uploaded_rows) for column in columns)
    return KEY_BYTES * len(columns)
