"""A release at one curator, as a pure state machine: its next step, what it waits for, how it ends, who gets its keys.

The order of the steps is the privacy argument: decide, plan, compare and reserve, charge, draw, compare, encrypt, send,
test the server, let keys leave.

Invariants: nothing is charged unless every curator has reserved the same spec; no seed exists before every curator has
charged; no byte leaves before every curator with columns has drawn the same sample; the server learns the canaries'
places once what it published is recorded here; a release that ended never moves again; no key leaves before the server
has passed every curator's test and stated the same to each, nor without a grant that has not expired, nor for another
column than the one that was tested.

The curators reserve one after the other, in order of their names, and a release waits while what it needs is reserved
for another. So no two releases wait for each other, and of two that ask for the last of a budget exactly one has it.
Once a release is charged, what any party refuses or fails at is asked again until the deadline; what shows that the
release can never be right ends it. Every curator charges and tosses; once the sample is drawn here, nobody waits for a
curator without columns any more, which has nothing left to do that another one needs.

What another curator has done stays done unless the release ends there, so a step that its progress allows may be taken
however old that progress is by then. Every step may be repeated after a crash.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from math import inf

from veiltab.common.errors import (
    BudgetExceededError,
    ConflictError,
    DeniedError,
    ExpiredReleaseError,
    FailedReleaseError,
    IntegrityError,
    NotReadyError,
    TransferError,
    UnavailableError,
    VeiltabError,
)
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.state import ReleaseState, ended_without_result
from veiltab.curator.progress.release_record import (
    KEYS_LAST,
    ColumnDigests,
    CuratorRelease,
    End,
    GrantDecision,
    Progress,
    Review,
    Step,
    Wait,
)

APPROVED, HELD, DENIED = "approved", "held", "denied"


def next_step(
    release: CuratorRelease, own: Review, peers: tuple[Progress, ...] | VeiltabError, now: float
) -> Step | Wait | End:
    """Return a curator's next step for a release.

    Args:
        release: the release as this curator has recorded it.
        own: its progress with the decisions.
        peers: every other curator's progress, or why it is unknown; that of curators that are not `awaited` may lack.
        now: Unix seconds.

    Raises:
        IntegrityError: the record is impossible at a curator.
    """
    if release.state.finished:
        return End(release.state, release.failure)
    outcome = _outcome(release, own, peers, now)
    if not isinstance(outcome, End):
        return outcome
    if not own.is_charged:
        return replace(outcome, by=frozenset())
    from veiltab.curator.progress.elimination import counted  # noqa: PLC0415 - not for a release with a result

    return counted(outcome, release, own, peers, lambda progress: _step_of(release, own, progress), now)


def _outcome(
    release: CuratorRelease, own: Review, peers: tuple[Progress, ...] | VeiltabError, now: float
) -> Step | Wait | End:
    if now > release.request.deadline:
        return End(ReleaseState.EXPIRED, f"the deadline passed; {release.waiting_for}")
    if isinstance(peers, VeiltabError):
        return outcome_of(peers, is_charged=own.is_charged)
    ended = next((peer for peer in peers if peer.state.unsuccessful), None)
    return _step_of(release, own, peers) if ended is None else _end_with(ended, own)


def awaited(release: CuratorRelease) -> frozenset[str] | None:
    """Return the curators of whom a release needs anything more: those with columns once the sample is drawn here.

    None if it needs every one of them.
    """
    if release.spec is None or not release.sample_check:
        return None
    return release.spec.owners


def decides_alone(release: CuratorRelease, own: Review) -> bool:
    """Whether the next step is this curator's decision about its own attributes, whatever the others say."""
    if release.state is not ReleaseState.REQUESTED:
        return False
    return not own.is_considered or denial_of(release.request, {own.curator: own.denied}) is not None


def denial_of(request: ReleaseRequest, denied: Mapping[str, Collection[str]]) -> DeniedError | None:
    """Return why what curators denied of a request ends it; None if it goes on, or nothing is denied.

    Args:
        denied: curator -> what it denied of its own attributes.
    """
    refused = [name for name in request.attributes if any(name in names for names in denied.values())]
    tables = request.tables or tuple((name,) for name in request.attributes)
    is_left = any(not set(table) & set(refused) for table in tables)
    if not refused or (request.partial and is_left):
        return None
    owners = sorted(name for name, names in denied.items() if set(names) & set(refused))
    return DeniedError(
        f"denied: {', '.join(refused)} (by {', '.join(owners)})",
        where="attributes",
        remedy="Ask without them, or ask with --partial to have the rest." if is_left else "",
    )


def outcome_of(  # noqa: PLR0911 - one for each outcome
    error: VeiltabError | OSError, *, is_charged: bool
) -> Wait | End:
    """Return the outcome of a refused step: wait after a temporary refusal, else end the release.

    Before the charge an end costs nothing, and tells the researcher at once. After it, only what shows that the release
    can never be right is an end: another sample, a share that was not committed to, a pad that is spent, a table that
    was replaced, a server that has ended the release or fails the test. Certificates, versions and study files can be
    mended, and bytes be sent again.

    Args:
        is_charged: whether this curator has charged the release.
    """
    match error:
        case NotReadyError() | UnavailableError() | TransferError():
            return Wait(str(error))
        case OSError():
            return Wait(f"this curator's disk: {type(error).__name__} ({error.strerror})")
        case ExpiredReleaseError():
            return End(ReleaseState.EXPIRED, str(error))
        case IntegrityError() | ConflictError() | FailedReleaseError():
            return End(ReleaseState.FAILED, str(error))
        case VeiltabError() if is_charged:
            return Wait(str(error))
        case DeniedError() | BudgetExceededError():
            return End(ReleaseState.DENIED, str(error))
        case VeiltabError():
            return End(ReleaseState.FAILED, str(error))


def check_asker(release: CuratorRelease, researcher: str) -> None:
    """Refuse any information about a release to anyone but its researcher.

    Raises:
        DeniedError: it is another researcher's.
    """
    if researcher != release.request.researcher:
        raise DeniedError("this request is another researcher's", where="release")


def check_key_may_leave(release: CuratorRelease, decision: GrantDecision | None, attribute: str, now: float) -> None:
    """Refuse the key of a column unless its attribute is granted and the server has passed every curator's test.

    Args:
        release: the release as this curator has recorded it.
        decision: about the attribute, if there is one.
        attribute: whose key is asked for.
        now: Unix seconds.

    Raises:
        DeniedError: it was not granted, the grant has expired, or the release was denied.
        FailedReleaseError: the release ended without a result, as it says.
        NotReadyError: a curator has not tested the server yet.
    """
    if decision is None or decision.attribute != attribute or decision.verdict != APPROVED:
        raise DeniedError("this attribute was not granted", where=f"attribute {attribute}")
    lasts = release.since + KEYS_LAST if release.state is ReleaseState.READY else inf
    if now >= (lasts if decision.expires is None else decision.expires):
        raise DeniedError("the grant has expired", where=f"attribute {attribute}", remedy="Ask for a new release.")
    if release.state is ReleaseState.DENIED:
        raise DeniedError("the release is denied", where=f"release {release.request.release_id}")
    if release.state.unsuccessful:
        raise ended_without_result(release.state, release.failure)
    if release.state is not ReleaseState.READY or release.spec is None:
        raise NotReadyError("not every curator has tested the server yet", where=f"attribute {attribute}")


def check_receipt_may_leave(release: CuratorRelease, decisions: Iterable[GrantDecision], now: float) -> None:
    """Refuse the receipt of a release to whom no key of this curator's may be given.

    Raises:
        DeniedError: as `check_key_may_leave` refuses the last of its attributes.
        FailedReleaseError, NotReadyError: as `check_key_may_leave`, of any attribute that is granted.
    """
    refusal = DeniedError("no attribute of this curator's was granted", where=f"release {release.request.release_id}")
    for decision in decisions:
        try:
            return check_key_may_leave(release, decision, decision.attribute, now)
        except DeniedError as error:
            refusal = error
    raise refusal


def check_same_column(tested: ColumnDigests, claimed: ColumnDigests, attribute: str) -> None:
    """Refuse the key of a column to a desk that holds another one than this curator tested.

    Raises:
        FailedReleaseError: it does; the server may have served two of them.
    """
    if claimed != tested:
        raise FailedReleaseError(
            "the desk holds another column than this curator tested", where=f"attribute {attribute}"
        )


def _step_of(  # noqa: PLR0911 - one for each state
    release: CuratorRelease, own: Review, peers: tuple[Progress, ...]
) -> Step | Wait | End:
    match release.state:
        case ReleaseState.REQUESTED:
            return _when_requested(release, own, peers)
        case ReleaseState.APPROVED:
            return (
                _denied(release, own, peers)
                or _lacking(peers, lambda peer: peer.decided, "has not decided about the request yet")
                or Step.PLAN
            )
        case ReleaseState.PLANNED:
            return _when_planned(release, own, peers)
        case ReleaseState.CHARGED:
            return _when_charged(release, own, peers)
        case ReleaseState.UPLOADING:
            return Step.UPLOAD
        case ReleaseState.PERTURBING:
            return _when_perturbing(own, _awaited_among(release, peers))
        case ReleaseState.READY | ReleaseState.EXPIRED | ReleaseState.DENIED | ReleaseState.FAILED:
            return End(release.state, release.failure)


def other_request(release: CuratorRelease, peers: Iterable[Progress]) -> str | None:
    """Return the curator that received another request under this id, if one did."""
    digests = ((peer.curator, peer.request_digest) for peer in peers)
    return next((name for name, digest in digests if digest and digest != release.request_digest), None)


def _when_requested(release: CuratorRelease, own: Review, peers: tuple[Progress, ...]) -> Step | Wait | End:
    if (other := other_request(release, peers)) is not None:
        return End(
            ReleaseState.FAILED,
            f"researcher {release.request.researcher}: asked {_both(own, other)} for different things under one id, or"
            " gave different purposes. Nothing was charged. Ask again.",
        )
    if not own.is_considered:
        return Step.DECIDE
    if end := _denied(release, own, peers):
        return end
    if not own.waiting_attributes:
        return _lacking(peers, lambda peer: bool(peer.request_digest), "has not shown its request yet") or Step.APPROVE
    if own.refusal:
        return End(ReleaseState.DENIED, own.refusal)
    # A person is asked once no policy and no budget stands in the way, here or elsewhere.
    return _lacking(peers, lambda peer: peer.considered, "has not considered the request yet") or Wait(
        f"curator {own.curator}: a person decides about {', '.join(own.waiting_attributes)}. Run"
        f" `veiltab curator approve` or `deny` for {release.request.release_id}."
    )


def _denied(release: CuratorRelease, own: Review, peers: tuple[Progress, ...]) -> End | None:
    """End a release that cannot go on with what is denied of it so far, whatever is left to decide."""
    refusal = denial_of(release.request, {own.curator: own.denied, **{peer.curator: peer.denied for peer in peers}})
    return None if refusal is None else End(ReleaseState.DENIED, str(refusal))


def _when_planned(release: CuratorRelease, own: Review, peers: tuple[Progress, ...]) -> Step | Wait | End:
    digest = (release.spec or release.planned_release).digest()
    for peer in peers:
        if peer.spec_digest and peer.spec_digest != digest:
            return End(
                ReleaseState.FAILED,
                f"{_both(own, peer.curator)} planned different releases from the same request. Compare study files,"
                " table versions and veiltab versions. Nothing was charged.",
            )
    if not (own.is_reserved or own.is_charged):
        first = tuple(peer for peer in peers if peer.curator < own.curator)
        return _lacking_reservation(first) or Step.RESERVE
    return (
        _lacking(peers, lambda peer: bool(peer.spec_digest), "has not planned the release yet")
        or _lacking_reservation(peers)
        or Step.CHARGE
    )


def _lacking_reservation(peers: tuple[Progress, ...]) -> Wait | None:
    return _lacking(peers, lambda peer: peer.reserved or peer.charged, "has not reserved the budget yet")


def _when_charged(release: CuratorRelease, own: Review, peers: tuple[Progress, ...]) -> Step | Wait | End:
    wait = lacking_charge(peers)
    if wait:
        return wait
    if not release.sample_check:
        return Step.DRAW
    for peer in peers:
        if peer.sample_check and peer.sample_check != release.sample_check:
            reason = f"{_both(own, peer.curator)} drew different samples. No data was sent."
            return End(ReleaseState.FAILED, reason, by=frozenset({f"curator {peer.curator}"}))
    drawing = _awaited_among(release, peers)
    return _lacking(drawing, lambda peer: bool(peer.sample_check), "has not drawn the sample yet") or Step.ENCRYPT


def lacking_charge(peers: tuple[Progress, ...]) -> Wait | None:
    """Wait for the first curator that has not charged a release."""
    return _lacking(peers, lambda peer: peer.charged, "has not charged the release yet")


def _when_perturbing(own: Review, peers: tuple[Progress, ...]) -> Step | Wait | End:
    if not own.is_tested:
        wait = None if own.is_published else _lacking(peers, _has_uploaded, "has not sent its columns yet")
        return wait or Step.TEST
    if wait := _lacking(peers, _has_tested, "has not tested the server yet"):
        return wait
    for peer in peers:
        # One key gives all curators' places: told by one of them, the server could leave out its noise at the others'.
        if peer.publication and own.publication and peer.publication != own.publication:
            reason = f"{_both(own, peer.curator)} heard of different publications from the server; no key leaves."
            return End(ReleaseState.FAILED, reason, by=frozenset({f"curator {peer.curator}"}))
    return Step.FINISH


def _awaited_among(release: CuratorRelease, peers: tuple[Progress, ...]) -> tuple[Progress, ...]:
    names = awaited(release)
    return tuple(peer for peer in peers if names is None or peer.curator in names)


def _has_tested(peer: Progress) -> bool:
    return peer.tested or peer.state is ReleaseState.READY


def _has_uploaded(peer: Progress) -> bool:
    return peer.uploaded or peer.state in {ReleaseState.PERTURBING, ReleaseState.READY}


def _both(own: Review, other: str) -> str:
    """Name two curators that differ, as each of them does: nobody knows which of them is right."""
    return f"curators {' and '.join(sorted((own.curator, other)))}"


def _end_with(first: Progress, own: Review) -> End:
    tested = f"; the test of curator {own.curator} passed" if own.is_tested else ""
    why = first.failure or f"the release is {first.state.value}"
    return End(first.state, f"curator {first.curator}: {why}{tested}")


def _lacking(peers: tuple[Progress, ...], has: Callable[[Progress], bool], what: str) -> Wait | None:
    """Wait for the curators that have not reached a step; the first of them is named."""
    names = tuple(peer.curator for peer in peers if not has(peer))
    return Wait(f"curator {names[0]}: {what}", names) if names else None
