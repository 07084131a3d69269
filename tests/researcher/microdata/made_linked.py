"""A release of several tables whose truth is known: four attributes in a chain, every pair measured."""

from decimal import Decimal
from fractions import Fraction
from itertools import combinations

import numpy as np

from tests.researcher.made_status import made_status
from tests.worlds.domains import domain_of
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.spec import ReleaseSpec, TablePlan
from veiltab.common.release.table_spec import Column
from veiltab.researcher.estimates.estimation import ReleaseDesign
from veiltab.researcher.estimates.table_result import TableResult
from veiltab.researcher.microdata.comparison import fractions_of
from veiltab.researcher.microdata.redrawing import redrawn
from veiltab.researcher.model.row_drawing import Rows
from veiltab.researcher.status.release_status import Status

PEOPLE = 4000
RELEASE_ID = "ab" * 16
DOMAIN = domain_of(
    age=("young", "old"),
    job=("none", "<b>clerk", "=smith"),
    wage=("low", "middle", "high"),
    town=("north", "south"),
)
PAIRS = tuple(combinations(range(4), 2))
MECHANISMS = {
    axes: GammaDiagonal.from_gamma(DOMAIN.shape[axes[0]] * DOMAIN.shape[axes[1]], Fraction(3)) for axes in PAIRS
}


def people(seed: int = 3) -> Rows:
    """Return rows in which each attribute depends on the one before it."""
    rng = np.random.default_rng(seed)
    rows = np.empty((PEOPLE, 4), np.int64)
    rows[:, 0] = rng.random(PEOPLE) < 0.4
    for axis in (1, 2, 3):
        size = DOMAIN.shape[axis]
        copied = rows[:, axis - 1] % size
        rows[:, axis] = np.where(rng.random(PEOPLE) < 0.6, copied, rng.integers(0, size, PEOPLE))
    return rows


def measured(rows: Rows, seed: int) -> tuple[TableResult, ...]:
    """Return every pair as a release measures it."""
    return tuple(
        TableResult(
            number=number,
            names=tuple(DOMAIN.names[axis] for axis in axes),
            counts=redrawn(
                fractions_of(rows, DOMAIN.shape, axes),
                DOMAIN.subset([DOMAIN.names[axis] for axis in axes]),
                design_of(axes),
                np.random.default_rng([seed, number]).bytes(32),
            ),
            design=design_of(axes),
        )
        for number, axes in enumerate(PAIRS)
    )


def design_of(axes: tuple[int, ...]) -> ReleaseDesign:
    """Return the design of the table of a pair."""
    return ReleaseDesign(population=PEOPLE, sample=PEOPLE, mechanism=MECHANISMS[axes[0], axes[1]])


def workload() -> ReleaseSpec:
    return ReleaseSpec(
        release_id=RELEASE_ID,
        study_digest="cd" * 32,
        researcher="rosa",
        columns=tuple(
            Column(attribute=a.name, owner="alice" if i < 2 else "bob", size=a.size)
            for i, a in enumerate(DOMAIN.attributes)
        ),
        population=PEOPLE,
        sample=PEOPLE,
        epsilon=Decimal(1),
        delta=Decimal("1e-6"),
        scheme="wor",
        stage=None,
        several=True,
        sampling=Sampling.SEED,
        pad=Pad.CHACHA20,
        alignment="ef" * 16,
        deadline=2_000_000_000,
        tables=tuple(
            TablePlan(columns=axes, server_replacement=MECHANISMS[axes].replacement, curator_replacement=0, canaries=0)
            for axes in PAIRS
        ),
    )


def status() -> Status:
    """Return how a desk says that the release stands."""
    return made_status(
        release_id=RELEASE_ID, label="linked", study_digest="cd" * 32, attributes=DOMAIN.names, spec=workload()
    )
