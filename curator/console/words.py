"""What the pages call things: states, verdicts and numbers in the words of the persons who decide."""

from collections.abc import Mapping
from decimal import Decimal

from veiltab.common.core.numbers.rounding import upward
from veiltab.common.dataclass import dataclass
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.state import ReleaseState
from veiltab.curator.budget.entries import Entry
from veiltab.curator.progress.progress import APPROVED, DENIED, HELD


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """A word, and how it is coloured: "good", "bad", "wait" or plain."""

    text: str
    kind: str = ""


_BADGES: Mapping[ReleaseState, Badge] = {
    ReleaseState.REQUESTED: Badge(text="requested", kind="wait"),
    ReleaseState.APPROVED: Badge(text="approved here"),
    ReleaseState.PLANNED: Badge(text="planned"),
    ReleaseState.CHARGED: Badge(text="charged"),
    ReleaseState.UPLOADING: Badge(text="sending columns"),
    ReleaseState.PERTURBING: Badge(text="server adds noise"),
    ReleaseState.READY: Badge(text="released", kind="good"),
    ReleaseState.EXPIRED: Badge(text="expired", kind="bad"),
    ReleaseState.DENIED: Badge(text="refused", kind="bad"),
    ReleaseState.FAILED: Badge(text="failed", kind="bad"),
}
_VERDICTS: Mapping[str, Badge] = {
    APPROVED: Badge(text="approved", kind="good"),
    DENIED: Badge(text="refused", kind="bad"),
    HELD: Badge(text="waits for a person", kind="wait"),
}


def badge_of_state(state: ReleaseState, *, is_held: bool = False) -> Badge:
    """Return how a release stands here; whether it is held, only the decisions say."""
    return _VERDICTS[HELD] if is_held else _BADGES[state]


def badge_of_verdict(verdict: str) -> Badge:
    """Return how the decision about an attribute stands."""
    return _VERDICTS[verdict]


def nats(epsilon: Decimal) -> str:
    """Return an epsilon, rounded up to six digits after the point, without zeros at its end."""
    text = upward(epsilon)
    return text.rstrip("0").rstrip(".") if "." in text else text


def guarantee(epsilon: object, delta: object) -> str:
    """Return an epsilon with every digit, and its delta if it has one."""
    return f"epsilon {epsilon}" + ("" if delta is None else f" at delta {delta_text(Decimal(str(delta)))}")


def tables_text(request: ReleaseRequest) -> str:
    """Return how many tables a request is about, in words."""
    repeats = f", {request.repeats} of them twice" if request.repeats else ""
    return f"{len(request.tables)} tables{repeats}" if request.tables else "one table"


def asked_of(entry: Entry) -> str:
    """Return the guarantee that a charge was asked for with."""
    fields = entry.facts
    epsilon = fields.get("epsilon") if fields.get("delta") else None
    return guarantee(epsilon or nats(entry.epsilon), fields.get("delta"))
