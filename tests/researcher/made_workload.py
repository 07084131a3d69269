"""A release of several tables of the study that many tests use, as its curators would plan it."""

from decimal import Decimal
from typing import Any

from tests.conftest import request_with, spec_with
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.spec import ReleaseSpec, TablePlan
from veiltab.common.release.table_spec import Column

ATTRIBUTES = ("sex", "age", "salary")
PAIRS = (("sex", "age"), ("sex", "salary"), ("age", "salary"))
COLUMNS = (
    Column(attribute="sex", owner="alice", size=2),
    Column(attribute="age", owner="alice", size=3),
    Column(attribute="salary", owner="bob", size=2),
)
ROWS = 1000


def request_for_pairs(**changes: Any) -> ReleaseRequest:  # noqa: ANN401 - any field of a request
    """Return a request for all pairs, two of which may run again."""
    fields = {"attributes": ATTRIBUTES, "tables": PAIRS, "repeats": 2, "delta": Decimal("1e-6"), "canaries": 8}
    return request_with(**fields | changes)


def workload_with(**changes: Any) -> ReleaseSpec:  # noqa: ANN401 - any field of a workload
    """Return what curators plan for that request."""
    spec = spec_with()
    plans = tuple(
        TablePlan(columns=places, server_replacement=2**62, curator_replacement=2**61, canaries=8)
        for places in ((0, 1), (0, 2), (1, 2))
    )
    fields: dict[str, Any] = {
        "release_id": spec.release_id,
        "study_digest": spec.study_digest,
        "researcher": spec.researcher,
        "columns": COLUMNS,
        "population": ROWS,
        "sample": ROWS,
        "epsilon": spec.epsilon,
        "delta": Decimal("1e-6"),
        "scheme": spec.scheme,
        "sampling": spec.sampling,
        "pad": spec.pad,
        "alignment": spec.alignment,
        "deadline": spec.deadline,
        "several": True,
        "tables": plans,
        "repeated": plans,
        "repeats": 2,
    }
    return ReleaseSpec(**fields | changes)
