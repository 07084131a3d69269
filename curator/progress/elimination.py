"""Against whom one curator counts a charged release that ended without a result: by elimination; pure functions.

There is no list of causes. A release that is charged is paid for, so somebody ended it, refused what was right, or had
all that the next step needs and did not take it. That party is counted, no matter why. What nobody here can tell apart
counts against all whom it may be, and a person decides. A curator that says that the server failed a test that nobody
else can make is counted by itself.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import replace

from veiltab.common.errors import VeiltabError
from veiltab.common.release.state import ReleaseState
from veiltab.curator.progress.release_record import CuratorRelease, End, Progress, Review, Step, Wait

_PARTY = re.compile(r"\b(?:curator|server) [a-z0-9-]+")
_PART = re.compile(r"\battribute ([a-z0-9_+-]+)")
_TABLE = re.compile(r"table [^:]*: ")
_CLOCKS_DIFFER = 300
"""Seconds before the deadline from which a release may be over at a curator whose clock is ahead."""


def named_in(refusal: str, release: CuratorRelease, curator: str) -> frozenset[str]:
    """Return the other parties that a refusal is about: owners of attributes that the server refuses, or who refused.

    Args:
        refusal: where, a colon, and what is wrong.
        curator: this one; it is not among them.
    """
    where, _, problem = refusal.partition(": ")
    parties, own = set(_PARTY.findall(where)), {f"curator {curator}"}
    if where.startswith("server ") and release.spec is not None:
        named = set(_PART.findall(f"{where} {problem}"))
        holders = ((one, holder) for one in release.spec.columns for holder in one.holders)
        owners = {f"curator {holder}" for one, holder in holders if one.part_of(holder) in named} - own
        parties = owners or parties
    return frozenset(parties - own)


def counted(  # noqa: PLR0913, PLR0917 - what a count depends on
    end: End,
    release: CuratorRelease,
    own: Review,
    peers: tuple[Progress, ...] | VeiltabError,
    step_of: Callable[[tuple[Progress, ...]], Step | Wait | End],
    now: float,
) -> End:
    """Return the end of a charged release with the parties that it is counted against.

    Args:
        step_of: returns the next step, given the others' progress.
    """
    if end.by:
        return end
    if isinstance(peers, VeiltabError):
        late = now > release.request.deadline and not own.is_present
        return replace(end, by=own.withheld or (frozenset() if late else named_in(str(peers), release, own.curator)))
    by, claimed_by = _enders(tuple(peer for peer in peers if peer.state.unsuccessful), release, own, now)
    if not (by or claimed_by):
        by = _behind(release, own, step_of(peers))
    return replace(end, by=by, claimed_by=claimed_by)


def _enders(
    ended: tuple[Progress, ...], release: CuratorRelease, own: Review, now: float
) -> tuple[frozenset[str], frozenset[str]]:
    """Return who ended a release, and who says that the server failed: those who name no other one that ended it."""
    names = {f"curator {peer.curator}" for peer in ended}
    is_early = now < release.request.deadline - _CLOCKS_DIFFER
    began = [peer for peer in ended if not _names_one_of(names - {f"curator {peer.curator}"}, peer.failure)]
    by, claimed_by = set[str](), set[str]()
    for peer in began or ended:
        name = f"curator {peer.curator}"
        if peer.state is ReleaseState.EXPIRED and not is_early:
            continue
        failure = _TABLE.sub("", peer.failure)
        if not failure.startswith("server "):
            by.add(name)
            continue
        owners = {one for one in named_in(failure, release, own.curator) if one.startswith("curator ")}
        by |= owners
        if name not in owners:
            claimed_by.add(name)
    return frozenset(by), frozenset(claimed_by)


def _behind(release: CuratorRelease, own: Review, outcome: Step | Wait | End) -> frozenset[str]:
    """Return whose next step is missing, though that party had all that it needed.

    Where this curator was away itself until the end, only who has its share of the coin surely had that.
    """
    named = named_in(release.waiting_for, release, own.curator) if own.is_present else frozenset[str]()
    match outcome:
        case End():
            return outcome.by
        case Step.DRAW:  # it waits for all parts of the coin, and names one
            return own.withheld or (own.owing if named else frozenset())
        case Wait() if outcome.curators and own.is_present:
            return frozenset(f"curator {name}" for name in outcome.curators)
        case _:
            return named


def _names_one_of(parties: Collection[str], failure: str) -> bool:
    named = _PARTY.match(failure)
    return named is not None and named[0] in parties
