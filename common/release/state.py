"""The state of a release at one party."""

from enum import Enum
from typing import assert_never


class ReleaseState(Enum):
    """The state of a release at one party; the order of the first six is the order of the steps."""

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
        """Whether the release has come to an end here."""
        return self is ReleaseState.READY or self.unsuccessful

    @property
    def unsuccessful(self) -> bool:
        """Whether the release ended without a result here."""
        match self:
            case ReleaseState.EXPIRED | ReleaseState.DENIED | ReleaseState.FAILED:
                return True
            case (
                ReleaseState.REQUESTED
                | ReleaseState.APPROVED
                | ReleaseState.PLANNED
                | ReleaseState.CHARGED
                | ReleaseState.UPLOADING
                | ReleaseState.PERTURBING
                | ReleaseState.READY
            ):
                return False
            case _:
                assert_never(self)
