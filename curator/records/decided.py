"""What was decided about the attributes of requests, by the policy or by persons."""

from collections.abc import Iterable
from dataclasses import astuple, fields

from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.release.state import ReleaseState
from veiltab.common.storage.database import Database, transaction, value_of
from veiltab.curator.audit.log import AuditLog, Event
from veiltab.curator.progress.progress import DENIED, HELD
from veiltab.curator.progress.release_record import Approval, GrantDecision
from veiltab.curator.records.releases import Releases

_FACTS = [field.name for field in fields(GrantDecision)]
_DECISION = ", ".join(_FACTS)
_APPROVAL = ", ".join(field.name for field in fields(Approval))


class Decisions:
    """Decisions and approvals."""

    def __init__(self, connection: Database, audit: AuditLog, releases: Releases) -> None:
        self._connection = connection
        self._audit = audit
        self._releases = releases

    def decide(self, release_id: str, decisions: tuple[GrantDecision, ...]) -> None:
        """Record decisions of the policy; a final one stays.

        They follow from the policy and the request, and are durable before the budget is reserved.
        """
        with transaction(self._connection, is_synced=False):
            self.record_decisions(release_id, decisions)

    def record_decisions(self, release_id: str, decisions: tuple[GrantDecision, ...]) -> None:
        """Record decisions in the transaction of the caller; a final one stays."""
        assignments = ", ".join(f"{name} = excluded.{name}" for name in _FACTS)
        for decision in decisions:
            facts = same_fields(decision, _FACTS)
            cursor = self._connection.execute(
                f"INSERT INTO decision (release_id, {_DECISION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - the program's own words
                f" ON CONFLICT (release_id, attribute) DO UPDATE SET {assignments} WHERE decision.verdict = 'held'"
                " AND (decision.verdict, decision.rule, decision.rule_text)"
                " IS NOT (excluded.verdict, excluded.rule, excluded.rule_text)",
                [release_id, *facts.values()],
            )
            if cursor.rowcount:
                person = facts.pop("person")
                self._audit.record(Event.DECISION, person=person, release=release_id, **facts)

    def decisions(self, release_id: str) -> tuple[GrantDecision, ...]:
        """Return the decisions about a release; those about a table are those about the release that it is part of."""
        rows = self._connection.execute(
            f"SELECT {_DECISION} FROM decision WHERE release_id ="  # noqa: S608 - the program's own words
            " COALESCE((SELECT part_of FROM release WHERE id = ?1 AND part_of <> ''), ?1)",
            [release_id],
        )
        return tuple(GrantDecision(**dict(row)) for row in rows)

    def record_approvals(self, release_id: str, approvals: Iterable[Approval]) -> None:
        """Record what persons approved, in the transaction of the caller."""
        for approval in approvals:
            self._connection.execute(
                f"INSERT INTO approval (release_id, {_APPROVAL}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - the program's own words
                [release_id, *astuple(approval)],
            )
            self._audit.record(
                Event.APPROVAL,
                release=release_id,
                **same_fields(approval, ("person", "attribute", "time", "reason", "expires")),
                request=approval.request_digest.hex(),
            )

    def approvals(self, release_id: str) -> tuple[Approval, ...]:
        """Return what persons approved of a release, as its request stands; oldest first."""
        rows = self._connection.execute(
            f"SELECT {_APPROVAL} FROM approval WHERE release_id = ? AND request_digest = ? ORDER BY rowid",  # noqa: S608 - the program's own words
            [release_id, self._releases.release(release_id).request_digest],
        )
        return tuple(Approval(**dict(row)) for row in rows)

    def count_waiting_requests(self) -> int:
        """Return how many requests wait for a person."""
        query = (
            "SELECT COUNT(DISTINCT release.id) FROM release JOIN decision ON release.id = decision.release_id"
            " WHERE release.state = ? AND decision.verdict = ?"
        )
        return int(value_of(self._connection, query, ReleaseState.REQUESTED.value, HELD))

    def waiting_for_a_person(self, now: float) -> frozenset[str]:
        """Return the ids of requests that a person has yet to decide about, and whose deadline lies ahead.

        A request that asks for all or nothing needs no decision any more once anything of it is denied.
        """
        rows = self._connection.execute(
            "SELECT DISTINCT release.id FROM release JOIN decision ON release.id = decision.release_id"
            " WHERE release.state = ? AND decision.verdict = ? AND json_extract(release.request, '$.deadline') >= ?"
            " AND (json_extract(release.request, '$.partial') OR NOT EXISTS"
            " (SELECT 1 FROM decision AS other WHERE other.release_id = release.id AND other.verdict = ?))",
            [ReleaseState.REQUESTED.value, HELD, now, DENIED],
        )
        return frozenset(row["id"] for row in rows)
