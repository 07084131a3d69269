"""What stands in a ledger: entries, what they say of a release, and the digests that link them."""

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal
from typing import Any

from veiltab.common.dataclass import dataclass
from veiltab.common.privacy.description import ReleaseDescription, description_of
from veiltab.common.privacy.pricing.price import Price
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.table_spec import TableSpec
from veiltab.curator.audit.log import AuditHead
from veiltab.curator.budget.allowance import Charge, Sums

GENESIS = hashlib.sha256(b"veiltab ledger").digest()
"""The head of an empty ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One charge.

    Args:
        number: its place in the ledger, from 1.
        facts: the plain facts of the release, and the time of its reservation (Unix seconds).
        audit: where the audit log stood at the charge.
        epsilon: its pure epsilon, nats, an upper bound.
        price: its price; None where the budget had no delta.
        share: what part of the budget it takes.
    """

    number: int
    release_id: str
    facts: dict[str, Any]
    audit: AuditHead | None
    epsilon: Decimal
    price: Price | None
    share: Decimal

    @property
    def attributes(self) -> tuple[str, ...]:
        """What was released."""
        return tuple(self.facts["attributes"])

    @property
    def time(self) -> int:
        """When it was reserved, Unix seconds."""
        return int(self.facts["time"])

    @property
    def tables(self) -> int:
        """How many tables were charged together, second runs counted."""
        return sum(int(kind["count"]) for kind in self.facts["tables"]) + int(self.facts["repeats"])


def percent(share: Decimal) -> str:
    """Write a share for people, rounded up."""
    return f"{(100 * share).quantize(Decimal('0.01'), rounding=ROUND_CEILING)}%"


def charge_of(row: sqlite3.Row) -> Charge:
    """Return what a row of the ledger or of the reservations takes."""
    return Charge(epsilon=Decimal(row["epsilon"]), price=price_of(row))


def price_of(row: sqlite3.Row) -> Price | None:
    """Return the price of a row; None where the budget had no delta."""
    return None if row["mu"] is None else Price(mu=Decimal(row["mu"]), slack=Decimal(row["slack"]))


def covered_audit_head(fields: dict[str, Any]) -> AuditHead | None:
    """Return the head of the audit log that an entry covers, if it covers one."""
    covered = fields.get("audit")
    return covered and AuditHead(length=covered["length"], digest=bytes.fromhex(covered["digest"]))


def described(row: sqlite3.Row) -> ReleaseDescription | None:
    """Return the description of a release of one table; None of several."""
    fields = json.loads(row["entry"])
    kinds = fields["tables"]
    is_one = len(kinds) == 1 and kinds[0]["count"] == 1 and "gamma" in kinds[0] and not fields["repeats"]
    return description_of(kinds[0], "ledger") if is_one else None


def fields_of(row: sqlite3.Row) -> tuple[object, ...]:
    """Return what the digest of an entry covers, but for prices."""
    return row["number"], row["release_id"], row["entry"], row["epsilon"]


def prices_of(row: sqlite3.Row, sums: Sums) -> tuple[object, ...]:
    """Return what a link says of prices: that of its entry, and the sums up to and with it."""
    return row["mu"], row["slack"], str(sums.squares), str(sums.slack)


def linked(head: bytes, line: str) -> bytes:
    """Return the digest of an entry: SHA-256 of the digest before it and of its line."""
    return hashlib.sha256(head + line.encode()).digest()


def line_of(*fields: object) -> str:
    """Return the line of an entry."""
    return json.dumps(fields)


def chained(head: bytes, *fields: object) -> bytes:
    """Return the digest of an entry with these fields."""
    return linked(head, line_of(*fields))


def facts_of(release: ReleaseSpec) -> dict[str, object]:
    """Return the plain facts of a release: those of each kind of table once, with how many there are."""
    return {
        "tables": _kinds(release.each_table()),
        "repeated": _kinds(release.each_repeat()),
        "repeats": release.repeats,
        "epsilon": str(release.epsilon),
        "delta": None if release.delta is None else str(release.delta),
        "researcher": release.researcher,
        "attributes": [column.attribute for column in release.columns],
    }


def _kinds(tables: Iterable[TableSpec]) -> list[dict[str, object]]:
    kinds = Counter(json.dumps(_mechanism_facts(table)) for table in tables)
    return [json.loads(facts) | {"count": count} for facts, count in kinds.items()]


def _mechanism_facts(spec: TableSpec) -> dict[str, object]:
    return {
        **spec.description.as_dict(),
        "server_replacement": spec.server_replacement,
        "curator_replacement": spec.curator_replacement,
        "sampling": spec.sampling.value,
    }
