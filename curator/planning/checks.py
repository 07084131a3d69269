"""A curator's checks of a request, its granted columns, and its plan; pure functions."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime

from veiltab.common.errors import DeniedError, InvalidInputError
from veiltab.common.release.messages.witness import Witnessed, check_head
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.request_limits import check_limits
from veiltab.common.release.table_spec import Column, requested_columns
from veiltab.common.study.file import Study
from veiltab.curator.progress.progress import denial_of
from veiltab.curator.progress.release_record import CuratorRelease, Progress
from veiltab.curator.records.coin_shares import CoinShares

MOST_OPEN_EACH = 32
"""Most requests of one researcher that are open at a curator."""

MOST_OPEN = 256
"""Most requests that are open at a curator."""

MOST_ABORTED = 3
"""Charged releases that may end by a curator before no more are paid for with it, until a person clears it."""

_LONGEST_SECONDS = 366 * 86_400


def check_request(request: ReleaseRequest, study: Study, now: int) -> None:
    """Refuse a request that no curator of this study could fulfil.

    Raises:
        InvalidInputError: as `check_limits`, or a deadline that is over or too far away.
    """
    check_limits(request, study)
    if not now < request.deadline <= now + _LONGEST_SECONDS:
        raise InvalidInputError(
            f"the deadline must lie ahead, at most a year: this curator's clock says {_moment(now)}, the deadline is"
            f" {_moment(request.deadline)}",
            where="deadline",
            remedy="Compare the clocks of this curator and of the researcher.",
        )


def check_asked_under(release: CuratorRelease, study: Study) -> None:
    """Refuse to go on with a request that was made under another study file; its results could not be read.

    Raises:
        InvalidInputError: the study file was exchanged since.
    """
    if release.study_digest not in {"", study.digest}:
        raise InvalidInputError(
            "the request was made under another study file than the one here now; nothing was charged",
            where=f"release {release.request.release_id}",
            remedy="Ask again.",
        )


def check_open_requests(researcher: str, opened: Counter[str]) -> None:
    """Refuse a researcher another request while too many are open.

    Raises:
        DeniedError: with the number.
    """
    if opened[researcher] >= MOST_OPEN_EACH:
        raise DeniedError(
            f"{opened[researcher]} requests of researcher {researcher} are open here, and no more are taken",
            where="request",
            remedy="Wait until some end, or ask the curators to decide about those that wait for a person.",
        )
    if opened.total() >= MOST_OPEN:
        raise DeniedError(
            f"{opened.total()} requests are open here, and no more are taken",
            where="request",
            remedy="Ask again later, or ask the curators to decide about those that wait for a person.",
        )


def check_shown_ledger(head: Witnessed, peer: str, planned: int) -> None:
    """Refuse a ledger that a peer shows and cannot have: every charge of any curator was planned here.

    Else anyone who has another curator's certificate could have an invented ledger remembered, and hold that curator to
    it.

    Args:
        planned: how many releases were ever planned here.

    Raises:
        InvalidInputError: it has no head of 32 bytes, or more entries than that.
    """
    check_head(head, f"curator {peer}")
    if head[0] > planned:
        raise InvalidInputError(
            f"shows a ledger of {head[0]} entries, and {planned} releases were ever planned here",
            where=f"curator {peer}",
            remedy="Perhaps the state of one of the two was restored from an old backup, or"
            " somebody else has the certificate.",
        )


def check_aborted(coins: CoinShares) -> None:
    """Refuse to pay for a release with a party against which too many charged ones are counted.

    Raises:
        DeniedError: names the party.
    """
    for is_claim, how in ((False, "by it"), (True, "because it says that the server failed")):
        for party, number in sorted(coins.aborted(claims=is_claim).items()):
            if number >= MOST_ABORTED:
                name = party.partition(" ")[2]
                raise DeniedError(
                    f"{number} releases that were charged ended without a result {how}; the last one:"
                    f" {coins.why_aborted(party)}",
                    where=party,
                    remedy=f"Find out why; then `veiltab curator repair tosses {name}` takes part with it again.",
                )


def _moment(seconds: int) -> str:
    """Return a moment as text, even outside the calendar's range."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return f"{seconds} s after 1970"


def agreed_columns(
    request: ReleaseRequest, study: Study, granted: frozenset[str], denied: frozenset[str]
) -> tuple[Column, ...]:
    """Return the columns to release, in study order, from everyone's decisions.

    Raises:
        DeniedError: an attribute is denied and the request does not go on without it, or nothing is granted.
    """
    owned = {curator.name: [rule.name for rule in study.attributes_of(curator.name)] for curator in study.curators}
    if refusal := denial_of(request, {owner: denied.intersection(names) for owner, names in owned.items()}):
        raise refusal
    return tuple(column for column in requested_columns(request, study) if column.attribute in granted)


def joint_decision(everyone: Iterable[Progress], study: Study) -> tuple[frozenset[str], frozenset[str]]:
    """Return the granted and the denied attributes, from every curator's progress.

    A curator decides about its own attributes only, whatever it says about others'; what it both grants and denies is
    denied. An attribute of several holders is granted by all of them, and denied by any.
    """
    verdicts = tuple(everyone)
    granting = {(one.curator, name) for one in verdicts for name in one.granted}
    denying = {(one.curator, name) for one in verdicts for name in one.denied}
    pairs = {rule.name: {(holder, rule.name) for holder in rule.holders} for rule in study.attributes}
    denied = frozenset(name for name, of in pairs.items() if of & denying)
    return frozenset(name for name, of in pairs.items() if of <= granting) - denied, denied
