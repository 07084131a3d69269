"""Releases of several tables, as a curator plans them."""

from decimal import Decimal
from itertools import combinations
from typing import Any

import pytest

from tests.conftest import request_with
from tests.curator.made_records import recorded, shown
from veiltab.common.release.floors import Floors
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import Column
from veiltab.curator.planning.plan_questions import PlanInput
from veiltab.curator.planning.plans import planned_release
from veiltab.curator.progress.release_record import CuratorRelease, Progress, Review
from veiltab.curator.progress.table_steps import TableState

DEADLINE = 100


SIZES = {"age": 3, "sex": 2, "job": 3, "wage": 3}


ASKED = tuple(
    Column(attribute=name, owner="alice" if name in {"age", "sex"} else "bob", size=size)
    for name, size in SIZES.items()
)


REQUEST = request_with(
    deadline=DEADLINE,
    attributes=tuple(SIZES),
    tables=tuple(combinations(SIZES, 2)),
    repeats=2,
    epsilon=Decimal(1),
    delta=Decimal("1e-6"),
)


QUESTION = PlanInput(
    request=REQUEST,
    columns=ASKED,
    study_digest="0" * 64,
    floors=Floors(population=10),
    population=20_000,
    alignment="1" * 32,
    all_columns=ASKED,
)


@pytest.fixture(scope="module", name="workload")
def workload_fixture() -> ReleaseSpec:
    return planned_release(QUESTION)


def progress(**changes: Any) -> Progress:  # noqa: ANN401 - any field
    return shown(**({"state": ReleaseState.UPLOADING, "charged": True} | changes))


def release(workload: ReleaseSpec, **changes: Any) -> CuratorRelease:  # noqa: ANN401 - any field
    return recorded(**({"request": REQUEST, "state": ReleaseState.UPLOADING, "planned": workload} | changes))


OWN = Review(curator="alice", is_charged=True)


def at(state: ReleaseState, failure: str = "") -> TableState:
    return TableState(state=state, failure=failure)
