"""What hub and spoke agree about before a linkage: which passes run, decided from the hub's table alone, and sizes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from veiltab.common.core.texts.canonical import canonical_digest, canonical_text, read_canonical
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
        dated: of them those with a birth date, where pairs are compared; else 0.
    """

    identity: str
    rows: int
    dated: int
    passes: tuple[PassLine, ...]

    @property
    def text(self) -> str:
        """The canonical text."""
        return canonical_text(self)

    @property
    def digest(self) -> str:
        """SHA-256 of the text, in hexadecimal."""
        return canonical_digest(self.text).hex()

    def share(self, number: int) -> Fraction:
        """Return the self-match share of a pass by its number."""
        return Fraction(self.passes[number - 1].matches, self.rows)

    def running(self, identity: IdentityRule) -> tuple[Pass, ...]:
        """Return the passes that run."""
        return tuple(step for step, line in zip(identity.ladder, self.passes, strict=True) if line.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokeLine:
    """What a spoke states to the hub.

    Args:
        rows: of the spoke: what it may ask follows from that.
        agreed: digest of the hub's line.
    """

    rows: int
    agreed: str


Line = TypeVar("Line", HubLine, SpokeLine)


def stated(identity: IdentityRule, rows: int, dated: int, matching: Callable[[Pass], set[int]]) -> HubLine:
    """Return what the hub states.

    Args:
        dated: of them those with a birth date.
        matching: the rows that agree with exactly one other row in a pass.

    Raises:
        InvalidInputError: no pass runs.
    """
    seen, total, lines = set[int](), Fraction(0), list[PassLine]()
    for step in identity.ladder:
        matches = matching(step) - seen
        share = Fraction(len(matches), max(rows, 1))
        runs = _does_run(identity, total, share)
        lines.append(PassLine(key=step.name, matches=len(matches), runs=runs))
        if runs:
            total += share
            seen |= matches
    _check_any(lines)
    return HubLine(identity=identity.description(), rows=rows, dated=dated, passes=tuple(lines))


def read_hub_line(data: bytes, identity: IdentityRule, hub: str) -> HubLine:
    """Return what the hub states, checked against one's own study file.

    Raises:
        IntegrityError: the hub has another identity or ladder, or lets a pass run that the rule does not.
    """
    line = _read(HubLine, data, hub)
    keys = tuple(one.key for one in line.passes)
    if line.identity != identity.description() or keys != tuple(step.name for step in identity.ladder):
        raise IntegrityError("links by other fields or keys", where=f"curator {hub}")
    total = Fraction(0)
    for one in line.passes:
        if not 0 <= one.matches <= line.rows or not 0 <= line.dated <= line.rows or line.rows < 1:
            raise IntegrityError("states more self-matches than rows", where=f"curator {hub}")
        share = Fraction(one.matches, line.rows)
        if one.runs != _does_run(identity, total, share):
            raise IntegrityError("does not decide by the rule which passes run", where=f"curator {hub}")
        total += share if one.runs else 0
    _check_any(line.passes)
    return line


def read_spoke_line(data: bytes, agreed: HubLine, most: int, spoke: str) -> SpokeLine:
    """Return what a spoke states.

    Raises:
        InvalidInputError: it has more rows than it may.
        IntegrityError: it agreed to something else.
    """
    line = _read(SpokeLine, data, spoke)
    if line.agreed != agreed.digest:
        raise IntegrityError("agreed to another linkage", where=f"curator {spoke}")
    check_rows(line.rows, most, spoke)
    return line


def check_rows(rows: int, most: int, curator: str) -> None:
    """Refuse more rows than a curator may have: each may be a guess."""
    if not 1 <= rows <= most:
        raise InvalidInputError(
            f"states {rows:,} rows; it may have {most:,} here",
            where=f"curator {curator}",
            remedy=f"If its table is as large as that, say so by `most_ids` of {curator} in the study file, at every"
            " party.",
        )


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


def _read(kind: type[Line], data: bytes, curator: str) -> Line:
    try:
        line = read_canonical(kind, data.decode("ascii"))
        if canonical_text(line).encode() == data:
            return line
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise IntegrityError("states what cannot be read", where=f"curator {curator}")
