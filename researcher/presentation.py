"""A release's status and estimate, put together as a report."""

from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from common.errors import FailedReleaseError
from common.release import Pad, Sampling
from common.study import Study
from researcher.client import Status
from researcher.estimation import Estimate
from researcher.report import ReportInput, render

_SAMPLING = {
    Sampling.SEED: "without replacement, from a seed that the curators tossed",
    Sampling.INDICES: "without replacement, from row indices that one curator drew and shared",
}
_PAD = {Pad.CHACHA20: "ChaCha20, one key an attribute", Pad.OTP: "one-time pad"}


def report_page(study: Study, status: Status, estimate: Estimate, truth: NDArray[np.float64] | None = None) -> str:
    """Return the HTML report of a release that is ready.

    Raises:
        FailedReleaseError: it has no result.
    """
    spec = status.spec
    if spec is None:
        raise FailedReleaseError(status.failure or "there is no result", where=f"release {status.release_id}")
    return render(
        ReportInput(
            title=f"{study.title}: {', '.join(estimate.domain.names)}",
            release_id=status.release_id,
            estimate=estimate,
            owners=tuple((name, study.owner_of(name)) for name in estimate.domain.names),
            epsilon=str(spec.guaranteed_epsilon),
            scheme=_SAMPLING[spec.sampling],
            pad=_PAD[spec.pad],
            dates=(("report written", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"),),
            card=spec.card.rows(),
            truth=truth,
        )
    )
