"""Compares the ledger in one curator's evidence with what another party's evidence holds of it."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from veiltab.common.dataclass import dataclass
from veiltab.common.rpc.certificates.checkpoint import Witnessed
from veiltab.common.rpc.certificates.release_verification import Finding
from veiltab.common.rpc.certificates.statement import LedgerHead, Statement

_CLOCKS_APART = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A ledger as its curator signed it once.

    Args:
        party: URI of the curator.
        head: entries, and the digest of the last.
        at: when it was signed, or cosigned.
        release: whose charge is the last entry; empty if that is not signed.
    """

    party: str
    head: LedgerHead
    at: datetime
    release: str = ""

    @classmethod
    def of(cls, witnessed: Witnessed) -> "View":
        """Return what a cosigned checkpoint shows."""
        checkpoint = witnessed.checkpoint
        return cls(party=checkpoint.party.uri, head=checkpoint.head, at=witnessed.at, release=checkpoint.release)


def view_in_statement(statement: Statement) -> View | None:
    """Return what a curator's signed statement shows of its ledger; None of the server's."""
    at = datetime.fromtimestamp(statement.signed_at, UTC)
    return None if statement.ledger is None else View(party=statement.party, head=statement.ledger, at=at)


def split_views(views: Iterable[tuple[str, View]]) -> Iterator[Finding]:
    """Yield a line for each curator that signed two ledgers of one length, or one release at two lengths.

    Args:
        views: what all files show, each with the party whose evidence shows it.
    """
    firsts = dict[tuple[str, str], tuple[str, View]]()
    culprits = set[str]()
    for file, one in views:
        for place in (f"{one.head.length} entries", f"release {one.release}" if one.release else ""):
            other_file, other = firsts.setdefault((one.party, place), (file, one))
            if place and one.party not in culprits and other.head != one.head:
                culprits.add(one.party)
                detail = (
                    f"signed two ledgers at {place}, as evidence of {other_file} and of {file} shows: this is proof"
                )
                yield Finding(what=f"ledgers of {one.party}", detail=f"{detail} against that curator", holds=False)


def compared(  # noqa: PLR0913, PLR0917 - two ledgers, and when
    party: str, at: int, ledger: Mapping[int, str], releases: Mapping[int, str], witness: str, views: Iterable[View]
) -> Finding:
    """Return whether the ledger of one curator is what it once signed, as another party's evidence shows.

    Args:
        party: URI of the curator whose ledger it is.
        at: Unix seconds of its evidence; what was signed later may be of a longer ledger.
        ledger: digest of each entry by its number, as its evidence has them.
        releases: id of the release of each entry by its number; not of tables that the curator released alone.
        witness: whose evidence shows what was signed.
        views: what that holds, of all ledgers.
    """
    name = f"ledger of {party} beside evidence of {witness}"
    exported = datetime.fromtimestamp(at, UTC) + _CLOCKS_APART
    of_party = sorted((one for one in views if one.party == party and one.head.length), key=lambda one: one.head.length)
    later = sum(one.head.length > len(ledger) and one.at > exported for one in of_party)
    fits = 0
    for one in of_party:
        length = one.head.length
        if length > len(ledger) and one.at > exported:
            continue
        if ledger.get(length) != one.head.digest or one.release not in {"", releases.get(length)}:
            signed = f"the curator signed a ledger of {length} entries by {one.at:%Y-%m-%d %H:%M:%S} UTC, and"
            lacks = f"its evidence has {len(ledger)} entries: the rest was cut off"
            differs = f"its evidence has another: of entries {fits + 1} to {length} one differs at least"
            return Finding(what=name, detail=f"{signed} {lacks if length > len(ledger) else differs}", holds=False)
        fits = length
    if not fits:
        return Finding(what=name, detail="that evidence holds nothing of this ledger to compare", holds=None)
    more = f"; {later} of later ledgers are not compared" if later else ""
    detail = f"{len(of_party) - later} ledgers that the curator signed, of up to {fits} entries, are in it{more}"
    if missing := len(releases.keys() - {one.head.length for one in of_party if one.release}):
        return Finding(what=name, detail=f"{detail}; for {missing} of {len(releases)} releases it has none", holds=None)
    return Finding(what=name, detail=detail, holds=True)
