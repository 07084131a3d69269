"""Somebody with the curator's machine writes its ledger and audit log anew, every digest of them."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from veiltab.curator.audit.log import EMPTY, AuditEntry
from veiltab.curator.budget.entries import GENESIS, line_of, linked


def write_anew(database: Path, change: Callable[[int, dict[str, Any]], dict[str, Any]]) -> None:
    """Change the facts of entries of a ledger of pure epsilons, and let both chains fit again.

    Args:
        database: of the curator, which does not run.
        change: number and facts of an entry -> other facts.
    """
    with closing(sqlite3.connect(database)) as db, db:
        for trigger in ("audit_is_not_altered", "audit_is_not_cut"):
            db.execute(f"DROP TRIGGER {trigger}")
        heads, ledgers, head, audit = {0: EMPTY}, dict[int, bytes](), GENESIS, EMPTY
        charges = dict(db.execute("SELECT number, entry FROM ledger ORDER BY number"))
        for number, line in db.execute("SELECT number, line FROM audit ORDER BY number").fetchall():
            entry = AuditEntry.from_line(line)
            if entry.event == "charge":
                place = int(str(entry.facts["number"]))
                facts = change(place, json.loads(charges[place]))
                covered = heads[facts["audit"]["length"]]
                facts["audit"] = {"length": covered.length, "digest": covered.digest.hex()}
                fields = db.execute(
                    "SELECT number, release_id, ?, epsilon FROM ledger WHERE number = ?", [json.dumps(facts), place]
                )
                head = linked(head, line_of(*fields.fetchone()))
                ledgers[place] = head
                db.execute("UPDATE ledger SET entry = ?, digest = ? WHERE number = ?", [json.dumps(facts), head, place])
                entry = AuditEntry(**json.loads(line) | {"facts": entry.facts | {"ledger": head.hex()}})
            audit = audit.after(entry.line)
            heads[audit.length] = audit
            db.execute("UPDATE audit SET line = ?, digest = ? WHERE number = ?", [entry.line, audit.digest, number])
        assert sorted(ledgers) == sorted(charges)
