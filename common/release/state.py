"""The state of a release at one party."""

from enum import Enum

from veiltab.common.errors import DeniedError, ExpiredReleaseError, FailedReleaseError, NotReadyError, VeiltabError


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
        return self is ReleaseState.FAILED or self is ReleaseState.DENIED or self is ReleaseState.EXPIRED


def ended_without_result(state: ReleaseState, failure: str, *, where: str = "") -> FailedReleaseError:
    """Return what says of a release that expired or failed how it ended; of its end, if nothing is said of the cause.

    Args:
        failure: why; may be empty.
        where: the party or release concerned.
    """
    kind = ExpiredReleaseError if state is ReleaseState.EXPIRED else FailedReleaseError
    return kind(failure or f"the release is {state.value}", where=where)


def not_ready(state: ReleaseState, reason: str, *, where: str, remedy: str = "") -> VeiltabError:
    """Return what says why a release that is not ready has no result: it was denied, it ended, or it is under way.

    Args:
        reason: why it ended, or what it waits for; may be empty.
    """
    if state is ReleaseState.DENIED:
        return DeniedError(reason.rstrip(".") or f"the release is {state.value}", where=where, remedy=remedy)
    if state.unsuccessful:
        ended = ended_without_result(state, reason.rstrip("."))
        return type(ended)(ended.problem, where=where, remedy=remedy)
    reasons = filter(None, (f"the release is {state.value}", reason.rstrip(".")))
    remedy = remedy or "It goes on by itself; `veiltab researcher status` shows what it waits for."
    return NotReadyError("; ".join(reasons), where=where, remedy=remedy)
