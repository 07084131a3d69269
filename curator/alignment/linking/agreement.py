"""What a hub states before a linkage: which passes run, decided from its own table alone, and its sizes."""

from collections.abc import Callable, Iterable
from fractions import Fraction

from veiltab.common.core.texts.canonical import canonical_text, read_canonical
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.linkage.identity_rule import IdentityRule
from veiltab.common.linkage.ladder import Pass
from veiltab.common.linkage.self_match import MOST_SHARE

MOST_LINE = 2**16
"""Bytes of a line, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassLine:
    """One pass of the ladder.

    Args:
        key: the pass as in the study file.
        matches: rows of the hub, without a self-match in an earlier pass that runs, that agree with exactly one other.
    """

    key: str
    matches: int
    runs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HubLine:
    """What the hub states.

    Args:
        identity: the canonical text of the study's identity.
        complete: rows that miss no value of an attribute: those of every table.
        dated: rows with a birth date, where pairs are compared; else 0.
    """

    identity: str
    rows: int
    complete: int
    dated: int
    passes: tuple[PassLine, ...]

    @property
    def text(self) -> str:
        """The canonical text."""
        return canonical_text(self)

    def running(self, identity: IdentityRule) -> tuple[Pass, ...]:
        """Return the passes that run."""
        return tuple(step for step, line in zip(identity.ladder, self.passes, strict=True) if line.runs)


def state_line(
    identity: IdentityRule, rows: int, complete: int, dated: int, matching: Callable[[Pass], set[int]]
) -> HubLine:
    """Return what the hub states; see `HubLine`.

    Args:
        matching: the rows that agree with exactly one other row in a pass.

    Raises:
        InvalidInputError: no pass runs.
    """
    earlier, total, lines = set[int](), Fraction(0), list[PassLine]()
    for step in identity.ladder:
        matches = matching(step) - earlier
        share = Fraction(len(matches), max(rows, 1))
        runs = _does_run(identity, total, share)
        lines.append(PassLine(key=step.name, matches=len(matches), runs=runs))
        if runs:
            total += share
            earlier |= matches
    _check_any(lines)
    return HubLine(identity=identity.description(), rows=rows, complete=complete, dated=dated, passes=tuple(lines))


def read_hub_line(data: bytes, identity: IdentityRule, rows: int, hub: str) -> HubLine:
    """Return what the hub states, checked against one's own study file.

    Args:
        rows: that the hub takes part with.

    Raises:
        IntegrityError: the hub has another identity or ladder, or lets a pass run that the rule does not.
    """
    line = _read(data, hub)
    if line.rows != rows or not 0 <= line.complete <= rows or not 0 <= line.dated <= rows:
        raise IntegrityError("states more or fewer rows than it takes part with", where=f"curator {hub}")
    keys = tuple(one.key for one in line.passes)
    if line.identity != identity.description() or keys != tuple(step.name for step in identity.ladder):
        raise IntegrityError("links by other fields or keys", where=f"curator {hub}")
    total = Fraction(0)
    for one in line.passes:
        if not 0 <= one.matches <= line.rows:
            raise IntegrityError("states more self-matches than rows", where=f"curator {hub}")
        share = Fraction(one.matches, max(line.rows, 1))
        if one.runs != _does_run(identity, total, share):
            raise IntegrityError("does not decide by the rule which passes run", where=f"curator {hub}")
        total += share if one.runs else 0
    _check_any(line.passes)
    return line


def _does_run(identity: IdentityRule, total: Fraction, share: Fraction) -> bool:
    """Whether a pass runs after others with this sum of shares; see veiltab.common.linkage.self_match."""
    return share <= MOST_SHARE and identity.wrong_a_match * (total + share) <= Fraction(identity.cap)


def _check_any(lines: Iterable[PassLine]) -> None:
    if not any(one.runs for one in lines):
        raise InvalidInputError(
            "no pass runs: by every key too many rows of the hub agree with another one",
            where="linkage",
            remedy="Take more fields into the keys of the ladder; `veiltab curator check` at the hub shows each share.",
        )


def _read(data: bytes, curator: str) -> HubLine:
    try:
        line = read_canonical(HubLine, data.decode("ascii"))
        if canonical_text(line).encode() == data:
            return line
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise IntegrityError("states what cannot be read", where=f"curator {curator}")
