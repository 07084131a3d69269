"""Entries of the audit log for people: in lines, and as plain data."""

from veiltab.common.core.texts.record_fields import same_fields
from veiltab.curator.audit.log import AuditEntry
from veiltab.curator.officer.requests import moment


def entry_data(entry: AuditEntry) -> dict[str, object]:
    """Return an entry as plain data for JSON."""
    facts = same_fields(entry, ("number", "event", "person", "release", "facts"))
    return facts | {"time": moment(entry.time)}


def entry_text(entry: AuditEntry) -> str:
    """Return an entry as a line for people."""
    parts = filter(None, [entry.event, entry.person and f"by {entry.person}", facts_text(entry), entry.release])
    return f"{entry.number:6}  {moment(entry.time)}  {'  '.join(parts)}"


def facts_text(entry: AuditEntry) -> str:
    """Return the facts of an entry that say something more than the entry does."""
    facts = ((name, value) for name, value in entry.facts.items() if name != "time" and value not in {None, ""})
    return ", ".join(f"{name} {value}" for name, value in facts)
