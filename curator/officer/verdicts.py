"""What persons decide about requests: approve attributes that are held, or refuse them.

The policy says how many different persons must approve what is held (`persons`); one refusal refuses. Approvals count
attribute by attribute, for the request as it stands. The read and the write are one transaction, so that of two persons
who decide at once the second sees what the first did.
"""

import time
from collections.abc import Iterable

from veiltab.common.core.texts.spelling import same_person_key
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import ConflictError, InvalidInputError
from veiltab.common.release.state import ReleaseState
from veiltab.common.storage.database import transaction
from veiltab.curator.officer.open_state import OpenedState
from veiltab.curator.officer.persons import person_name, reason_text
from veiltab.curator.progress.progress import APPROVED, DENIED, HELD
from veiltab.curator.progress.release_record import Approval, GrantDecision
from veiltab.curator.records.store import CuratorStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a person's word led to.

    Args:
        approved: attributes that are approved now.
        denied: attributes that are denied now.
        missing: attribute -> how many other persons must still approve it.
        is_whole: whether the request was refused as a whole, as nothing of it was held any more.
    """

    release_id: str
    approved: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    missing: dict[str, int] = field(default_factory=dict)
    is_whole: bool = False


def approve(  # noqa: PLR0913 - what a person says, one by one
    own_state: OpenedState,
    release_id: str,
    attributes: Iterable[str] = (),
    *,
    person: str,
    reason: str = "",
    expires: int | None = None,
) -> Outcome:
    """Approve attributes of a request that are held; the running service continues by itself.

    Args:
        attributes: some that are held; none for all that are, and that this person has not approved yet.
        reason: why; may be empty.
        expires: Unix seconds until which the keys are given out; of several persons' times the earliest counts.

    Raises:
        InvalidInputError: an attribute is not held, the deadline passed, or the person has no name.
        ConflictError: the person has approved them before.
    """
    name, why, now, store = person_name(person), reason_text(reason), int(time.time()), own_state.store
    with transaction(store.connection):
        waiting = held_attributes(store, release_id, now)
        earlier = approvals_by_attribute(store, release_id)
        mine = {attribute for attribute in waiting if has_approved(name, earlier.get(attribute, ()))}
        names = _names(store, release_id, attributes, waiting, now) or [one for one in waiting if one not in mine]
        if not names or mine.intersection(names):
            raise ConflictError(
                f"{name} has approved {', '.join(sorted(mine))} before",
                where=f"release {release_id}",
                remedy="Another person must approve it as well.",
            )
        digest = store.releases.release(release_id).request_digest
        fresh = [
            Approval(attribute=one, person=name, time=now, reason=why, expires=expires, request_digest=digest)
            for one in names
        ]
        store.decisions.record_approvals(release_id, fresh)
        missing = {one: own_state.persons - len(earlier.get(one, ())) - 1 for one in names}
        complete = [one for one in fresh if missing[one.attribute] <= 0]
        decisions = [_decision(one, (*earlier.get(one.attribute, ()), one)) for one in complete]
        store.decisions.record_decisions(release_id, tuple(decisions))
    return Outcome(
        release_id=release_id,
        approved=tuple(one.attribute for one in complete),
        missing={attribute: number for attribute, number in missing.items() if number > 0},
    )


def deny(
    own_state: OpenedState, release_id: str, attributes: Iterable[str] = (), *, person: str, reason: str
) -> Outcome:
    """Refuse attributes of a request that are held, or the whole of one that is not charged yet; it costs nothing.

    Args:
        attributes: some that are held; none for all that are, or for the whole request where none is.
        person: who refuses; also somebody who approved before.

    Raises:
        InvalidInputError: an attribute is not held, the deadline passed, the release is charged or over, the person
            has no name, or there is no reason.
    """
    name, why, now, store = person_name(person), reason_text(reason), int(time.time()), own_state.store
    if not why:
        raise InvalidInputError(
            "no reason was given for the refusal", where="reason", remedy="Write why, in a terminal by --reason."
        )
    named = list(attributes)
    with transaction(store.connection):
        if not named and not any(one.verdict == HELD for one in store.decisions.decisions(release_id)):
            store.releases.record_denial(release_id, "a person denied the request", person=name, reason=why)
            return Outcome(release_id=release_id, is_whole=True)
        waiting = held_attributes(store, release_id, now)
        names = _names(store, release_id, named, waiting, now) or waiting
        decisions = [
            GrantDecision(
                attribute=one, verdict=DENIED, expires=None, decided_by="person", time=now, person=name, reason=why
            )
            for one in names
        ]
        store.decisions.record_decisions(release_id, tuple(decisions))
    return Outcome(release_id=release_id, denied=tuple(names))


def approvals_by_attribute(store: CuratorStore, release_id: str) -> dict[str, tuple[Approval, ...]]:
    """Return attribute -> what different persons approved of a request as it stands, oldest first."""
    approvals: dict[str, tuple[Approval, ...]] = {}
    for approval in store.decisions.approvals(release_id):
        earlier = approvals.get(approval.attribute, ())
        if not has_approved(approval.person, earlier):
            approvals[approval.attribute] = (*earlier, approval)
    return approvals


def waits_for(own_state: OpenedState, release_id: str, person: str) -> bool:
    """Whether a request that is held has attributes that this person has not approved."""
    waiting = held_attributes(own_state.store, release_id, int(time.time()))
    earlier = approvals_by_attribute(own_state.store, release_id)
    return any(not has_approved(person, earlier.get(attribute, ())) for attribute in waiting)


def has_approved(person: str, approvals: Iterable[Approval]) -> bool:
    """Whether one of some approvals is this person's, however the name is spelled."""
    return same_person_key(person) in {same_person_key(one.person) for one in approvals}


def held_attributes(store: CuratorStore, release_id: str, now: int) -> list[str]:
    """Return the attributes of a request that wait for a person; none once its deadline passed.

    Raises:
        NotFoundError: there is no such release.
    """
    release = store.releases.release(release_id)
    if release.state is not ReleaseState.REQUESTED or now > release.request.deadline:
        return []
    return [one.attribute for one in store.decisions.decisions(release_id) if one.verdict == HELD]


def _names(store: CuratorStore, release_id: str, attributes: Iterable[str], waiting: list[str], now: int) -> list[str]:
    """Return the attributes that were named, each once.

    Raises:
        InvalidInputError: one of them is not held, or nothing at all is.
    """
    names = list(dict.fromkeys(attributes))
    if waiting and set(names) <= set(waiting):
        return names
    over = now > store.releases.release(release_id).request.deadline
    verdicts = {one.attribute: one.verdict for one in store.decisions.decisions(release_id) if one.verdict != HELD}
    each = ", ".join(f"{name} is {verdict}" for name, verdict in verdicts.items())
    raise InvalidInputError(
        "these attributes are not held" + (f" ({each})" if each else "") + ("; the deadline passed" if over else ""),
        where=f"release {release_id}",
        remedy=f"Held: {', '.join(waiting) or 'none'}. `veiltab curator requests` shows what waits.",
    )


def _decision(last: Approval, approvals: tuple[Approval, ...]) -> GrantDecision:
    """Return the decision that the approvals of enough persons make together."""
    return GrantDecision(
        attribute=last.attribute,
        verdict=APPROVED,
        expires=min((one.expires for one in approvals if one.expires is not None), default=None),
        decided_by="person",
        time=last.time,
        person=last.person,
        reason=last.reason,
    )
