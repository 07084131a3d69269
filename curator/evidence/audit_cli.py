"""`veiltab curator audit`: list the audit log, and check its chain."""

from collections import deque

import click

from veiltab.common.command.cli import emit
from veiltab.common.core.texts.spelling import same_person_key
from veiltab.curator.audit.log import AuditEntry
from veiltab.curator.evidence.audit_text import entry_data, entry_text
from veiltab.curator.officer.open_state import OpenedState, with_own_state
from veiltab.curator.officer.options import optional_request_option, since_option, until_option

_SHOWN = 1_000


@click.command(epilog="Example: veiltab curator audit study.toml --state state --person 'Ana Diaz'")
@with_own_state
@optional_request_option
@click.option("--person", help="Only entries of this person, or of keys that this researcher was given.")
@since_option
@until_option
@click.option("--last", type=click.IntRange(min=1), default=_SHOWN, show_default=True, help="Only so many, the newest.")
def audit(
    own_state: OpenedState, prefix: str | None, person: str | None, since: int | None, until: int | None, last: int
) -> None:
    """List who decided what and who was given keys, and check that nothing of it was altered."""
    log = own_state.store.audit
    head = log.verify()
    log.verify_against(own_state.ledger.chain.audit_heads)
    release = "" if prefix is None else own_state.store.releases.release_id(prefix)
    entries: deque[AuditEntry] = deque(maxlen=last)
    matching = 0
    for entry in log.entries(release):
        if (since or 0) <= entry.time and (until is None or entry.time < until) and _is_of(entry, person):
            entries.append(entry)
            matching += 1
    plain = {
        "length": head.length,
        "head": head.digest.hex(),
        "matching": matching,
        "entries": [entry_data(one) for one in entries],
    }
    lines = [entry_text(one) for one in entries]
    if matching > len(entries):
        lines.insert(0, f"The newest {len(entries)} of {matching}; --last shows more.")
    lines.append(f"{head.length} entries in all; the chain is whole. Head: {head.digest.hex()}")
    emit(plain, "\n".join(lines))


def _is_of(entry: AuditEntry, person: str | None) -> bool:
    if person is None:
        return True
    return entry.facts.get("researcher") == person or (
        bool(entry.person) and same_person_key(entry.person) == same_person_key(person)
    )
