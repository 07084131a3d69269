"""The decisions of nodes, on disk: a node that is asked again repeats its answer and never draws a second time.

Two independent randomisations of one value would cost the node epsilon twice.
"""

import hashlib
from collections.abc import Iterable
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import assert_never

from veiltab.common.collection.round import Round
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import BudgetExceededError, ConflictError
from veiltab.common.storage.database import erase_traces, open_database, transaction
from veiltab.common.study.file import Study

_SCHEMA = """
CREATE TABLE decision (
    round_id TEXT NOT NULL, node INTEGER NOT NULL, state TEXT NOT NULL, request BLOB, size INTEGER NOT NULL,
    PRIMARY KEY (round_id, node)) WITHOUT ROWID;
CREATE TABLE origin (
    round_id TEXT PRIMARY KEY, digest BLOB NOT NULL, epsilon TEXT NOT NULL, researcher TEXT NOT NULL,
    signed TEXT NOT NULL);
"""


class State(Enum):
    """The state of a node's answer to a round."""

    SILENT = "silent"
    WAITING = "waiting"
    COUNTED = "counted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDecision:
    """One node's decision in one round.

    Args:
        node: number of the node within this journal.
        request: the encoded report until it is counted; empty otherwise.
        size: bytes of the report, whether sent or not.
    """

    node: int
    state: State
    request: bytes
    size: int


class Journal:
    """Decisions in SQLite."""

    def __init__(self, folder: Path) -> None:
        self._connection = open_database(folder / "node.sqlite", (_SCHEMA,))

    def close(self) -> None:
        """Erase counted reports from the database's log too, and close."""
        erase_traces(self._connection)
        self._connection.close()

    def begin(self, spec: Round, origin: bytes, study: Study, signed: str) -> None:
        """Record a round before any node decides: its description, the origin of its values, its epsilon.

        The nodes add up their epsilons themselves instead of trusting the server to, over all rounds and over those of
        each researcher.

        Args:
            origin: digest of where the values come from; empty if a later call may bring another value.
            study: has the budget of a node, and the share of each researcher.
            signed: what the researcher signed of the round.

        Raises:
            ConflictError: the round had another description before, or was answered from other values, which would be
                matched to the wrong nodes.
            BudgetExceededError: with the other rounds of this folder it would exceed a node's budget, or the
                researcher's share of it.
        """
        digest = hashlib.sha256(origin + spec.to_json().encode()).digest()
        with transaction(self._connection) as db:
            db.execute(
                "INSERT INTO origin VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                [spec.round_id, digest, str(spec.epsilon), spec.researcher, signed],
            )
            (kept_digest,) = db.execute("SELECT digest FROM origin WHERE round_id = ?", [spec.round_id]).fetchone()
            if bytes(kept_digest) != digest:
                raise ConflictError(
                    "this folder has answered the round from other values or tokens, or it was another round then",
                    where=f"round {spec.round_id}",
                    remedy="Give the same files again, or another --state folder with tokens of its own.",
                )
            budget = Fraction(0) if study.nodes is None else Fraction(study.nodes.budget_epsilon)
            self._check_budget(budget, "")
            self._check_budget(study.share_of(spec.researcher), spec.researcher)

    def _check_budget(self, budget: Fraction, researcher: str) -> None:
        """Refuse rounds above a budget: those of a researcher, or all where none is named."""
        sql = "SELECT epsilon FROM origin WHERE ? IN ('', researcher)"
        rows = self._connection.execute(sql, [researcher]).fetchall()
        rounds = f"the rounds of researcher {researcher}" if researcher else "all rounds"
        # Fractions add up exactly; sums of decimals are rounded.
        if sum((Fraction(row["epsilon"]) for row in rows), Fraction(0)) > budget:
            raise BudgetExceededError(
                f"the study allows a node epsilon {float(budget):g} over {rounds}, and those of this folder would cost"
                " more",
                where="epsilon",
                remedy="Nothing was decided or sent.",
            )

    def decisions(self, round_id: str) -> dict[int, ReportDecision]:
        """Return the decisions of a round by node."""
        rows = self._connection.execute("SELECT * FROM decision WHERE round_id = ?", [round_id]).fetchall()
        return {
            row["node"]: ReportDecision(
                node=row["node"], state=State(row["state"]), request=bytes(row["request"] or b""), size=row["size"]
            )
            for row in rows
        }

    def decide(self, round_id: str, decisions: Iterable[ReportDecision]) -> None:
        """Record decisions durably, before any of them is sent."""
        with transaction(self._connection) as db:
            for decision in decisions:
                db.execute(
                    "INSERT INTO decision VALUES (?, ?, ?, ?, ?)",
                    [round_id, decision.node, decision.state.value, decision.request or None, decision.size],
                )

    def finish(self, round_id: str, nodes: Iterable[int], state: State) -> None:
        """Record the state of reports; forget the content of counted ones and keep the others."""
        match state:
            case State.COUNTED:
                columns = "NULL"
            case State.SILENT | State.WAITING | State.REFUSED:
                columns = "request"
            case _:
                assert_never(state)
        with transaction(self._connection) as db:
            for node in nodes:
                db.execute(
                    f"UPDATE decision SET state = ?, request = {columns} WHERE round_id = ? AND node = ?",  # noqa: S608 - one of two words
                    [state.value, round_id, node],
                )

    def give_token(self, round_id: str, node: int, request: bytes) -> None:
        """Record durably, before sending, that a refused report gets another token."""
        with transaction(self._connection) as db:
            db.execute(
                "UPDATE decision SET state = ?, request = ? WHERE round_id = ? AND node = ?",
                [State.WAITING.value, request, round_id, node],
            )
