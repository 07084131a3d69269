"""Every refusal of veiltab: one root, one class a kind, each with its cause, its place and the next step.

Messages reach logs, terminals and other parties, so they never hold data, ids, keys or ciphertext.
"""

from typing import ClassVar


class VeiltabError(Exception):
    """A refusal that a person can act on.

    Args:
        problem: what was wrong, as one sentence without a full stop.
        where: the file, field, RPC or peer concerned; empty if there is none to name.
        remedy: what to do next; empty if there is nothing to do.
    """

    reason: ClassVar[str] = "INTERNAL"
    exit_code: ClassVar[int] = 1

    def __init__(self, problem: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        """Say where, what and what next, on one line."""
        place = f"{self.where}: " if self.where else ""
        step = f". {self.remedy}" if self.remedy else ""
        return f"{place}{self.problem}{step}"


class InvalidInputError(VeiltabError):
    """A value, file or message that cannot be accepted as it is."""

    reason = "INVALID_INPUT"
    exit_code = 2


class NotFoundError(VeiltabError):
    """A release, request or file that is not here."""

    reason = "NOT_FOUND"
    exit_code = 2


class DeniedError(VeiltabError):
    """A curator or a role rule said no."""

    reason = "DENIED"
    exit_code = 3


class BudgetExceededError(VeiltabError):
    """The privacy budget does not hold the charge."""

    reason = "BUDGET_EXCEEDED"
    exit_code = 3


class UnavailableError(VeiltabError):
    """A peer did not answer before the deadline."""

    reason = "UNAVAILABLE"
    exit_code = 4


class NotReadyError(VeiltabError):
    """A step whose condition another party has not met yet; asking again later may succeed."""

    reason = "NOT_READY"
    exit_code = 4


class ConflictError(VeiltabError):
    """Something else is already recorded under the same key."""

    reason = "CONFLICT"
    exit_code = 5


class SpentTokenError(VeiltabError):
    """A report whose token was spent before: by this node, if its answer was lost, or by another."""

    reason = "TOKEN_SPENT"
    exit_code = 5


class ClosedRoundError(VeiltabError):
    """A report, or a token, that comes after its round was closed."""

    reason = "ROUND_CLOSED"
    exit_code = 5


class IntegrityError(VeiltabError):
    """Stored or received bytes that fail a check."""

    reason = "INTEGRITY"
    exit_code = 5


class TransferError(IntegrityError):
    """Bytes that were damaged on their way, or cut short; sent again, they may be what they must be."""

    reason = "TRANSFER"


class FailedReleaseError(VeiltabError):
    """A release that ended without a result, and why."""

    reason = "RELEASE_FAILED"
    exit_code = 6


class ExpiredReleaseError(FailedReleaseError):
    """A release that ended because time ran out at a party."""

    reason = "RELEASE_EXPIRED"


def error_class(reason: str) -> type[VeiltabError]:
    """Return the class of a reason, so that a peer's refusal is raised here as the same class."""
    return next((cls for cls in kinds() if cls.reason == reason), VeiltabError)


def kinds() -> tuple[type[VeiltabError], ...]:
    """Return every class of refusal, the root first."""
    classes: list[type[VeiltabError]] = [VeiltabError]
    for cls in classes:
        classes += cls.__subclasses__()
    return tuple(classes)
