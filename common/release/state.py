"""Where a release stands at one party."""

from enum import Enum


class ReleaseState(Enum):
    """Where a release stands at one party; the order of the first six is the order of the steps."""

    REQUESTED = "requested"
    APPROVED = "approved"
    PLANNED = "planned"
    CHARGED = "charged"
    UPLOADING = "uploading"
    PERTURBING = "perturbing"
    READY = "ready"
    EXPIRED = "expired"
    DENIED = "denied"
    FAILED = "failed"

    @property
    def finished(self) -> bool:
        """Whether nothing more will happen by itself."""
        return self in {ReleaseState.READY, ReleaseState.EXPIRED, ReleaseState.DENIED, ReleaseState.FAILED}

    @property
    def unsuccessful(self) -> bool:
        """Whether the release ended without a result here."""
        return self in {ReleaseState.EXPIRED, ReleaseState.DENIED, ReleaseState.FAILED}
