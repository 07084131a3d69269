"""A release's status and estimate, put together as a report."""

from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from veiltab.common.errors import FailedReleaseError
from veiltab.common.release.guarantees import epsilon_card, guaranteed_epsilon
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.study.file import Study
from veiltab.researcher.client import Status
from veiltab.researcher.estimation import Estimate
from veiltab.researcher.report import ReportInput, render

_SAMPLING = {
    Sampling.SEED: "from a seed that the curators tossed",
    Sampling.INDICES: "from row indices that one curator drew and shared",
    Sampling.SERVER: "by the server, of rows in an order that only the curators know",
}
_SCHEMES = {
    "wor": "without replacement",
    "poisson": "Poisson",
    "wr": "with replacement",
    "must.ow": "MUST.OW (two stages)",
    "must.wo": "MUST.WO (two stages)",
    "must.ww": "MUST.WW (two stages)",
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
            epsilon=_epsilon(spec),
            scheme=f"{_SCHEMES[spec.scheme]}, {_SAMPLING[spec.sampling]}",
            pad=_PAD[spec.pad],
            dates=(("report written", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"),),
            card=epsilon_card(spec).rows(),
            truth=truth,
        )
    )


def _epsilon(spec: ReleaseSpec) -> str:
    if spec.delta is None:
        return f"{guaranteed_epsilon(spec).normalize():f} (pure)"
    return f"{spec.epsilon.normalize():f} at delta {spec.delta}"
