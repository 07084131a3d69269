"""The durable state of rounds: tokens by their digests, and counts; one transaction spends and counts.

No row links a token to a report: a token is spent or not, and a report is only an increment of the counts.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veiltab.common.collection.oracles import Report
from veiltab.common.collection.round import Round, RoundState, RoundStatus
from veiltab.common.collection.tokens import DIGEST_BYTES
from veiltab.common.core.numbers.rounding import bound_text
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import (
    BudgetExceededError,
    ClosedRoundError,
    ConflictError,
    DeniedError,
    InvalidInputError,
    NotFoundError,
    SpentTokenError,
    VeiltabError,
)
from veiltab.common.storage.database import Connection, erase_traces, transaction
from veiltab.server.records.databases import open_state

BLOCK = 512
"""Counters of one row of the table of counts: a report touches few rows, whatever the domain."""

_AT_ONCE = 500
"""Most tokens of one query."""

_SCHEMA = """
    CREATE TABLE round (
        id TEXT PRIMARY KEY, spec TEXT NOT NULL, state TEXT NOT NULL, closed INTEGER NOT NULL,
        epsilon TEXT NOT NULL, created INTEGER NOT NULL, signed TEXT NOT NULL);
    CREATE TABLE token (
        round_id TEXT NOT NULL, digest BLOB NOT NULL, stratum INTEGER NOT NULL, spent INTEGER NOT NULL,
        PRIMARY KEY (round_id, digest)) WITHOUT ROWID;
    CREATE TABLE tally (
        round_id TEXT NOT NULL, stratum INTEGER NOT NULL, enrolled INTEGER NOT NULL, reports INTEGER NOT NULL,
        PRIMARY KEY (round_id, stratum)) WITHOUT ROWID;
    CREATE TABLE block (
        round_id TEXT NOT NULL, stratum INTEGER NOT NULL, number INTEGER NOT NULL, counts BLOB NOT NULL,
        PRIMARY KEY (round_id, stratum, number)) WITHOUT ROWID
"""

# A description never changes, and every report needs its own.
_described = lru_cache(maxsize=256)(Round.from_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A checked report: its round, its token's digest, the position of its stratum, its payload."""

    round_id: str
    digest: bytes
    stratum: int
    report: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    """An enrolled token."""

    stratum: int
    is_spent: bool


class CollectionStore:
    """Rounds in a database.

    Args:
        database: URL of the PostgreSQL that several processes share; empty for SQLite in the folder.
    """

    def __init__(self, folder: Path, database: str = "") -> None:
        self.connection: Connection = open_state(folder / "collection.sqlite", (_SCHEMA,), database)
        # An earlier process may have left traces.
        self._traces = True

    def close(self) -> None:
        """Close the database."""
        self.erase_traces()
        self.connection.close()

    def open_round(self, spec: Round, budget: Decimal, share: Fraction | None = None, signed: str = "") -> RoundState:
        """Record a round, or find it.

        Args:
            budget: what all rounds together may cost one node (nats).
            share: what those of this researcher may; None for the whole budget.
            signed: what its researcher signed of it.

        Raises:
            ConflictError: another round has this id.
            BudgetExceededError: the nodes' budget, or the researcher's share of it, does not hold the round.
        """
        with transaction(self.connection) as db:
            row = db.execute("SELECT spec, state FROM round WHERE id = ?", [spec.round_id]).fetchone()
            if row is not None:
                if row["spec"] != spec.to_json():
                    raise ConflictError("another round was opened under this id", where=f"round {spec.round_id}")
                return RoundState(row["state"])
            self._check_budget(spec, budget, share)
            db.execute(
                "INSERT INTO round VALUES (?, ?, ?, 0, ?, ?, ?)",
                [spec.round_id, spec.to_json(), RoundState.OPEN.value, str(spec.epsilon), int(time.time()), signed],
            )
            for place in range(len(spec.strata)):
                db.execute("INSERT INTO tally VALUES (?, ?, 0, 0)", [spec.round_id, place])
        return RoundState.OPEN

    def _check_budget(self, spec: Round, budget: Decimal, share: Fraction | None) -> None:
        rounds = self.rounds()
        _check_holds(
            spec,
            rounds,
            Fraction(budget),
            f"the study allows a node epsilon {budget} over all rounds",
            "Lower epsilon; a new study file with a larger budget needs the nodes' consent.",
        )
        if share is not None:
            _check_holds(
                spec,
                [one for one in rounds if one.researcher == spec.researcher],
                share,
                f"this researcher's share of a node's budget is epsilon {float(share):g}",
                "Lower epsilon; `shares` under [nodes] in the study file gives each researcher its own.",
            )

    def round(self, round_id: str) -> Round:
        """Return a round's description."""
        return _described(self._row(round_id)["spec"])

    def signed(self, round_id: str) -> str:
        """Return what the researcher of a round signed of it."""
        return str(self._row(round_id)["signed"])

    def status(self, round_id: str) -> RoundStatus:
        """Return a round's status; a round past its deadline is closed."""
        row = self._row(round_id)
        spec = _described(row["spec"])
        if row["state"] == RoundState.OPEN.value and time.time() > spec.deadline:
            self.close_round(round_id, int(time.time()))
            row = self._row(round_id)
        tallies = self.connection.execute(
            "SELECT enrolled, reports FROM tally WHERE round_id = ? ORDER BY stratum", [round_id]
        ).fetchall()
        return RoundStatus(
            round=spec,
            state=RoundState(row["state"]),
            closed=row["closed"],
            enrolled=tuple(tally["enrolled"] for tally in tallies),
            reports=tuple(tally["reports"] for tally in tallies),
        )

    def rounds(self) -> tuple[Round, ...]:
        """Return all rounds, oldest first."""
        rows = self.connection.execute("SELECT spec FROM round ORDER BY created, id").fetchall()
        return tuple(_described(row["spec"]) for row in rows)

    def _row(self, round_id: str) -> dict[str, Any]:
        row = self.connection.execute("SELECT * FROM round WHERE id = ?", [round_id]).fetchone()
        if row is None:
            raise NotFoundError("no such round here", where=f"round {round_id[:32]}")
        return dict(row)

    def close_round(self, round_id: str, now: int) -> tuple[int, bool]:
        """Close a round for good; return when it was closed, and whether it was before this."""
        with transaction(self.connection) as db:
            row = self._row(round_id)
            if row["state"] == RoundState.CLOSED.value:
                return int(row["closed"]), True
            db.execute("UPDATE round SET state = ?, closed = ? WHERE id = ?", [RoundState.CLOSED.value, now, round_id])
            if db.shared:
                self._disjoin(round_id)
        self._traces = True
        self.erase_traces()
        return now, False

    def _disjoin(self, round_id: str) -> None:
        """Rewrite all rows of a round, so that PostgreSQL marks all of them with the same transaction."""
        for table in ("token", "block", "tally"):
            self.connection.execute(f"UPDATE {table} SET round_id = round_id WHERE round_id = ?", [round_id])  # noqa: S608 - the program's own words

    def enrol(self, round_id: str, stratum: int, digests: Sequence[bytes], population: int) -> int:
        """Add tokens to an open round; return how many its stratum has."""
        with transaction(self.connection) as db:
            if not _is_open(self._row(round_id)):
                raise _closed(round_id)
            self._add_tokens(round_id, stratum, sorted(digests))
            tally = db.execute(
                "SELECT enrolled FROM tally WHERE round_id = ? AND stratum = ?", [round_id, stratum]
            ).fetchone()
            enrolled = int(tally["enrolled"])
            if enrolled > population:
                raise InvalidInputError(
                    f"{enrolled} tokens would be more than the stratum's population of {population}",
                    remedy="Enrol no more tokens than there are nodes.",
                )
        return enrolled

    def _add_tokens(self, round_id: str, stratum: int, digests: Sequence[bytes]) -> None:
        added = self.connection.executemany(
            "INSERT INTO token VALUES (?, ?, ?, 0) ON CONFLICT DO NOTHING",
            [(round_id, digest, stratum) for digest in digests],
        ).rowcount
        self.connection.execute(
            "UPDATE tally SET enrolled = enrolled + ? WHERE round_id = ? AND stratum = ?", [added, round_id, stratum]
        )
        if added < len(digests):
            for some in _parts(digests):
                self._check_stratum(round_id, stratum, some)

    def _check_stratum(self, round_id: str, stratum: int, digests: Sequence[bytes]) -> None:
        """Refuse tokens if some are in another stratum."""
        elsewhere = self.connection.execute(
            "SELECT 1 FROM token WHERE round_id = ? AND stratum <> ?"  # noqa: S608 - question marks
            f" AND digest IN ({_marks(digests)}) LIMIT 1",
            [round_id, stratum, *digests],
        ).fetchone()
        if elsewhere is not None:
            raise ConflictError("a token was enrolled in another stratum", where=f"round {round_id}")

    def record(self, arrivals: Sequence[Arrival]) -> list[VeiltabError | None]:
        """Spend the tokens of some reports and count them, all in one transaction.

        Args:
            arrivals: checked reports; they are counted in the order of their digests, not of their arrival.

        Returns:
            For each arrival, None if it was counted, or why it was not.
        """
        answers: list[VeiltabError | None] = [None] * len(arrivals)
        rounds: dict[str, list[int]] = {}
        for place in sorted(range(len(arrivals)), key=lambda place: arrivals[place].digest):
            rounds.setdefault(arrivals[place].round_id, []).append(place)
        with transaction(self.connection):
            for round_id, places in rounds.items():
                outcomes = self._record(round_id, [arrivals[place] for place in places])
                for place, answer in zip(places, outcomes, strict=True):
                    answers[place] = answer
        return answers

    def _record(self, round_id: str, arrivals: Sequence[Arrival]) -> list[VeiltabError | None]:
        """Spend the tokens of some reports of one round and count them; of two with one token the first counts."""
        tokens = self._tokens(round_id, [arrival.digest for arrival in arrivals])
        is_open = bool(tokens) and _is_open(self._row(round_id))
        answers: list[VeiltabError | None] = []
        spent: list[bytes] = []
        by_stratum: dict[int, list[Report]] = {}
        for arrival in arrivals:
            answer = _refusal(arrival, tokens.get(arrival.digest), is_open=is_open)
            answers.append(answer)
            if answer is None:
                tokens[arrival.digest] = _Token(stratum=arrival.stratum, is_spent=True)
                spent.append(arrival.digest)
                by_stratum.setdefault(arrival.stratum, []).append(arrival.report)
        self._spend(round_id, spent)
        for stratum, reports in by_stratum.items():
            self._count(round_id, stratum, reports)
        return answers

    def _tokens(self, round_id: str, digests: Sequence[bytes]) -> dict[bytes, _Token]:
        """Return those of some tokens that a round has."""
        tokens: dict[bytes, _Token] = {}
        for some in _parts(digests):
            rows = self.connection.execute(
                f"SELECT digest, stratum, spent FROM token WHERE round_id = ? AND digest IN ({_marks(some)})",  # noqa: S608 - question marks
                [round_id, *some],
            )
            tokens |= {row["digest"]: _Token(stratum=row["stratum"], is_spent=bool(row["spent"])) for row in rows}
        return tokens

    def _spend(self, round_id: str, digests: Sequence[bytes]) -> None:
        for some in _parts(digests):
            self.connection.execute(
                f"UPDATE token SET spent = 1 WHERE round_id = ? AND digest IN ({_marks(some)})",  # noqa: S608 - question marks
                [round_id, *some],
            )

    def _count(self, round_id: str, stratum: int, reports: Sequence[Report]) -> None:
        """Add reports to the counts of a stratum, in the blocks that change."""
        spec = self.round(round_id)
        added = np.zeros(spec.size, np.int64)
        spec.randomiser.aggregate(reports, added)
        for number in np.unique(np.flatnonzero(added) // BLOCK).tolist():
            key = [round_id, stratum, number]
            part = added[number * BLOCK : (number + 1) * BLOCK]
            row = self.connection.execute(
                "SELECT counts FROM block WHERE round_id = ? AND stratum = ? AND number = ?", key
            ).fetchone()
            if row is not None:
                part = part + np.frombuffer(row["counts"], "<i8")
            self.connection.execute(
                "INSERT INTO block VALUES (?, ?, ?, ?)"
                " ON CONFLICT (round_id, stratum, number) DO UPDATE SET counts = excluded.counts",
                [*key, part.tobytes()],
            )
        self.connection.execute(
            "UPDATE tally SET reports = reports + ? WHERE round_id = ? AND stratum = ?",
            [len(reports), round_id, stratum],
        )

    def counts(self, round_id: str) -> NDArray[np.int64]:
        """Return the counts of a round, shape (strata, d); an erased round has none."""
        spec = self.round(round_id)
        self._check_kept(round_id)
        counts = np.zeros((len(spec.strata), spec.size), "<i8")
        rows = self.connection.execute("SELECT stratum, number, counts FROM block WHERE round_id = ?", [round_id])
        for row in rows.fetchall():
            part = np.frombuffer(row["counts"], "<i8")
            counts[row["stratum"], row["number"] * BLOCK : row["number"] * BLOCK + part.size] = part
        return counts

    def _check_kept(self, round_id: str) -> None:
        """Refuse a round whose reports were counted and whose tokens are erased, whatever the time is now."""
        query = "SELECT SUM(reports) AS reports FROM tally WHERE round_id = ?"
        reports = self.connection.execute(query, [round_id]).fetchone()["reports"]
        token = self.connection.execute("SELECT 1 FROM token WHERE round_id = ? LIMIT 1", [round_id]).fetchone()
        if reports and token is None:
            raise ClosedRoundError("the round is no longer kept", where=f"round {round_id}")

    def forget(self, closed_before: int) -> None:
        """Erase tokens and counts of rounds closed before an instant; their epsilon stays on record."""
        with transaction(self.connection) as db:
            rows = db.execute(
                "SELECT id FROM round WHERE state = ? AND closed < ?", [RoundState.CLOSED.value, closed_before]
            ).fetchall()
            for row in rows:
                for table in ("token", "block"):
                    deleted = db.execute(f"DELETE FROM {table} WHERE round_id = ?", [row["id"]])  # noqa: S608 - the program's own words
                    self._traces = self._traces or deleted.rowcount > 0

    def erase_traces(self) -> None:
        """Erase the order of arrivals, and deleted rows, from the database's log and old row versions too."""
        if self._traces and erase_traces(self.connection):
            # SQLite's log has traces of every report, and emptying it is fast.
            self._traces = not self.connection.shared


def _is_open(row: dict[str, Any]) -> bool:
    """Return whether a round takes reports now."""
    return row["state"] == RoundState.OPEN.value and time.time() <= _described(row["spec"]).deadline


def _closed(round_id: str) -> ClosedRoundError:
    return ClosedRoundError("the round is closed", where=f"round {round_id}", remedy="Nothing more is taken.")


def _refusal(arrival: Arrival, token: _Token | None, *, is_open: bool) -> VeiltabError | None:
    """Return why a report does not count, or None if it does."""
    if token is None:
        return DeniedError("this is not a token of this round", remedy="Ask the study's organiser for a token.")
    if token.is_spent:
        # Check this before the round's state: a node that lost the answer learns that its report was counted.
        return SpentTokenError("this token is spent", remedy="A node reports once; there is nothing to repeat.")
    if not is_open:
        return _closed(arrival.round_id)
    if token.stratum != arrival.stratum:
        return DeniedError("this token is of another stratum", where="stratum")
    return None


def _parts(digests: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Yield some tokens, so many at a time as one query takes."""
    return (digests[first : first + _AT_ONCE] for first in range(0, len(digests), _AT_ONCE))


def _marks(values: Sequence[bytes]) -> str:
    """Return a question mark for each value."""
    return ", ".join("?" * len(values))


def _check_holds(spec: Round, rounds: Iterable[Round], allowed: Fraction, rule: str, remedy: str) -> None:
    """Refuse a round whose epsilon exceeds the remaining budget."""
    # Fractions add up exactly; sums of decimals are rounded.
    spent = sum((Fraction(one.epsilon) for one in rounds), Fraction(0))
    if spent + Fraction(spec.epsilon) > allowed:
        used = bound_text(Decimal(spent.numerator) / spent.denominator, 6)
        raise BudgetExceededError(f"{rule}, and {used} of it is spent", where="epsilon", remedy=remedy)


def split_digests(joined: bytes) -> Iterable[bytes]:
    """Split a message of concatenated digests."""
    if not joined or len(joined) % DIGEST_BYTES:
        raise InvalidInputError(f"digests of {DIGEST_BYTES} bytes each do not make {len(joined)} bytes")
    return [joined[at : at + DIGEST_BYTES] for at in range(0, len(joined), DIGEST_BYTES)]
