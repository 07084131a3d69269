"""What an audit log says of requests, rebuilt entry by entry, to be compared with the rows that evidence shows."""

import hashlib
from typing import Any

from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import IntegrityError
from veiltab.common.release.state import ReleaseState
from veiltab.curator.audit.log import AuditEntry, Event

Facts = dict[str, Any]
Key = tuple[str, ...]
"""An attribute, and what else tells its decisions or approvals apart."""
Rows = dict[Key, Facts]

_UNCHARGED = {ReleaseState.REQUESTED, ReleaseState.APPROVED}


@dataclass(slots=True, kw_only=True)
class AuditReplay:
    """What the audit log in an evidence file says.

    Args:
        since: first Unix second of what the log in the file has for certain; 1 for a log that is whole.
        charges: number of a charge -> digest of the ledger with it.
        charged: the releases of the charges.
        decisions: release -> (attribute,) -> the latest decision.
        approvals: release -> (attribute, person, digest of the request) -> the approval.
        requests: release -> digest of its request.
        ends: release -> how it ended without a result; what comes after the first end changes nothing.
        policy: what the latest "policy loaded" says; None if there is none.
        study: digest of the study file that was served last; empty if that is not in the log.
    """

    since: int = 1
    charges: dict[int, str] = field(default_factory=dict)
    charged: set[str] = field(default_factory=set)
    decisions: dict[str, Rows] = field(default_factory=dict)
    approvals: dict[str, Rows] = field(default_factory=dict)
    requests: dict[str, str] = field(default_factory=dict)
    ends: dict[str, Facts] = field(default_factory=dict)
    policy: Facts | None = None
    study: str = ""

    def add(self, entry: AuditEntry) -> None:
        """Take up the next entry."""
        fields: Facts = dict(entry.facts)
        match entry.event:
            case Event.CHARGE.value:
                self.charges[int(fields["number"])] = str(fields["ledger"])
                self.charged.add(entry.release)
            case Event.DECISION.value:
                own = self.decisions.setdefault(entry.release, {})
                own[str(fields["attribute"]),] = fields | {"person": entry.person}
            case Event.APPROVAL.value:
                approved = (str(fields["attribute"]), entry.person, str(fields.pop("request")))
                self.approvals.setdefault(entry.release, {})[approved] = fields | {"person": entry.person}
            case Event.REQUEST.value:
                self.requests[entry.release] = str(fields["request"])
            case Event.END.value:
                self.ends.setdefault(entry.release, fields)
            case Event.REFUSAL.value:
                del fields["reason"]
                self.ends.setdefault(entry.release, fields | {"state": ReleaseState.DENIED.value})
            case Event.POLICY_LOADED.value:
                self.policy = fields
            case Event.STUDY_LOADED.value:
                self.study = str(fields["sha256"])
            case _:
                pass

    @property
    def releases(self) -> set[str]:
        """Those whose request, or a decision or approval of it, is in the log."""
        return set(self.requests) | set(self.decisions) | set(self.approvals)

    def check(self, row: Facts) -> bool:
        """Compare a row of a request with the log; return whether its request is in the log.

        Raises:
            IntegrityError: the row says something else, or lacks something, or has more.
        """
        release = row["release"]
        digest = hashlib.sha256(f"{row['study_digest']} {row['request']}".encode()).hexdigest()
        if self.requests.get(release, digest) != digest or row["request_digest"] != digest:
            raise IntegrityError(f"release {release}: another request than was received")
        decisions: Rows = {(one["attribute"],): one for one in row["decisions"]}
        self._compare(release, decisions, self.decisions.get(release, {}))
        approvals: Rows = {(one["attribute"], one["person"], one["request_digest"]): one for one in row["approvals"]}
        in_log = {key: one for key, one in self.approvals.get(release, {}).items() if key[-1] == digest}
        self._compare(release, approvals, in_log)
        self._check_end(row)
        return release in self.requests

    def _compare(self, release: str, rows: Rows, entries: Rows) -> None:
        for key in rows | entries:
            row, entry = rows.get(key), entries.get(key)
            if entry is None and row is not None and row["time"] < self.since and release not in self.requests:
                continue  # before the first entry in the file
            if row is None or entry is None or any(row[name] != value for name, value in entry.items()):
                raise IntegrityError(f"release {release}, attribute {key[0]}: not what was recorded")

    def _check_end(self, row: Facts) -> None:
        release, state, end = row["release"], ReleaseState(row["state"]), self.ends.get(row["release"])
        if release not in self.requests and (end is None or row["since"] < self.since):
            return  # it may have ended before the first entry in the file
        if end is None and state.unsuccessful:
            raise IntegrityError(f"release {release}: it is {state.value}, and no end of it was recorded")
        if end is not None and any(row[name] != value for name, value in end.items()):
            raise IntegrityError(f"release {release}: it is {state.value}, and another end of it was recorded")
        if state in _UNCHARGED and release in self.charged:
            raise IntegrityError(f"release {release}: it is {state.value}, and it was charged")
