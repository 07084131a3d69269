"""What a curator asks about a request, and what is answered: a plan, a charge, a card.

A process of its own answers; it starts the sooner the less these records need.
"""

from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING

from veiltab.common.core.texts.canonical import canonical_digest, canonical_text
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.cards.card import Bound
from veiltab.common.release.floors import Floors
from veiltab.common.release.guarantees import guaranteed_epsilon, release_pure_epsilon
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.table_spec import Column, requested_columns
from veiltab.curator.budget.allowance import Allowance, Charge

if TYPE_CHECKING:
    from veiltab.common.study.file import Study

SECONDS = 10
"""Seconds of processor time that a question about one table may take."""

SECONDS_A_TABLE = 0.5
"""What each table adds where there are several; the prices of a table take 50 to 150 ms."""


def seconds_for(tables: int) -> float:
    """Return how many seconds of processor time a question about a release may take; 0 tables stand for one table."""
    return SECONDS + SECONDS_A_TABLE * tables


class _Question:
    """A question, whose answer is kept by what it is about."""

    @cached_property
    def text(self) -> str:
        """The canonical text."""
        return canonical_text(self)

    def digest(self) -> bytes:
        """Return the SHA-256 of the question."""
        return canonical_digest(self.text)


@dataclass(frozen=True, kw_only=True)
class PlanInput(_Question):
    """What a plan follows from: the same question has the same plan at every curator.

    Args:
        columns: what is granted of it.
        population: n, rows of every table.
        alignment: digest of the curators' alignment.
        floors: what the study asks of every release.
        all_columns: columns of all that is asked for, where these are several tables.
    """

    request: ReleaseRequest
    columns: tuple[Column, ...]
    study_digest: str
    population: int
    alignment: str
    floors: Floors
    all_columns: tuple[Column, ...] = ()


def plan_question(
    request: ReleaseRequest, columns: tuple[Column, ...], study: "Study", *, population: int, alignment: str
) -> PlanInput:
    """Return the question of a study's release."""
    return PlanInput(
        request=request,
        columns=columns,
        study_digest=study.digest,
        population=population,
        alignment=alignment,
        floors=Floors.of(study),
        all_columns=requested_columns(request, study) if request.tables else (),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAnswer:
    """A plan, or why there is none.

    Args:
        spec: the release that is planned; None if it is refused.
        problem: why, if it is refused.
        where: the field concerned.
    """

    spec: ReleaseSpec | None = None
    problem: str = ""
    where: str = ""
    remedy: str = ""

    def planned(self) -> ReleaseSpec:
        """Return the plan.

        Raises:
            InvalidInputError: there is none.
        """
        if self.spec is None:
            raise InvalidInputError(self.problem, where=self.where, remedy=self.remedy)
        return self.spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The bounds of an epsilon card, one a coalition."""

    bounds: tuple[Bound, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ChargeQuestion(_Question):
    """What the charge of a release follows from.

    Args:
        epsilon: of the budget, nats.
        delta: of the budget; None adds up pure epsilons.
    """

    spec: ReleaseSpec
    epsilon: Decimal
    delta: Decimal | None = None

    def charge_at_once(self) -> Charge:
        """Return a charge that is never below it, without the work."""
        table = self.spec.only_table
        if table is None:
            epsilon = release_pure_epsilon(self.spec)
        else:
            epsilon = table.epsilon if table.delta is None else guaranteed_epsilon(table)
        return Allowance(epsilon=self.epsilon, delta=self.delta).charge_of_pure_epsilon(epsilon)


def charge_question(spec: ReleaseSpec, allowance: Allowance) -> ChargeQuestion:
    """Return the question what a release takes of a budget."""
    return ChargeQuestion(spec=spec, epsilon=allowance.epsilon, delta=allowance.delta)
