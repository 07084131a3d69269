"""The status of a release, as a desk tells it."""

from typing import Any

from tests.conftest import STUDY
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.state import ReleaseState
from veiltab.common.study.file import study_from_bytes
from veiltab.researcher.status.release_status import Status, TestResult


def made_status(**changes: Any) -> Status:  # noqa: ANN401 - any field
    """Return the status of a release of sex and salary that is ready, without a description, unless changed."""
    fields: dict[str, Any] = {
        "release_id": "0" * 31 + "1",
        "label": "wages",
        "state": ReleaseState.READY,
        "study_digest": study_from_bytes(STUDY, "study.toml").digest,
        "attributes": ("sex", "salary"),
        "epsilon": "1",
        "failure": "",
        "parties": {},
        "spec": None,
        "granted": (),
        "receipts": (),
        "seconds": {},
        "bytes": {},
    }
    return Status(**(fields | changes))


def result_of(receipt: Receipt, *, with_counts: bool = True) -> TestResult:
    """Return a receipt as a desk tells it, to an analyst without counts."""
    return TestResult(
        curator=receipt.tester,
        canaries=receipt.canaries,
        expected=str(receipt.expected),
        sd=str(receipt.sd),
        passed=receipt.passed,
        receipt=receipt if with_counts else None,
    )
