"""`veiltab curator audit`: list the audit log, and check its chain."""

from collections import deque
from datetime import UTC, datetime

import click

from veiltab.common.command.cli import emit, json_option
from veiltab.common.core.spelling import same_person_key
from veiltab.curator.audit_log import AuditEntry, Fact
from veiltab.curator.options import optional_request_option, with_standing
from veiltab.curator.requests import moment
from veiltab.curator.standing import Standing

_SHOWN = 1_000
_DATE = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"])


def seconds_of(_context: click.Context, _option: click.Parameter, value: datetime | None) -> int | None:
    """Return a date as Unix seconds; one without a time zone is UTC."""
    if value is None:
        return None
    return int((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp())


since_option = click.option("--since", type=_DATE, callback=seconds_of, help="Only from this date on, UTC.")


@click.command(epilog="Example: veiltab curator audit study.toml --name alice --state state --person 'Ana Diaz'")
@with_standing
@optional_request_option
@click.option("--person", help="Only entries of this person, or of keys that this researcher was given.")
@since_option
@click.option("--until", type=_DATE, callback=seconds_of, help="Only before this date, UTC.")
@click.option("--last", type=click.IntRange(min=1), default=_SHOWN, show_default=True, help="Only so many, the newest.")
@json_option
def audit(
    standing: Standing,
    prefix: str | None,
    person: str | None,
    since: int | None,
    until: int | None,
    last: int,
    as_json: bool,
) -> None:
    """List who decided what and who was given keys, and check that nothing of it was altered."""
    log = standing.store.audit
    head = log.verify()
    log.verify_against(standing.ledger.audit_heads)
    release = "" if prefix is None else standing.store.release_id(prefix)
    shown: deque[AuditEntry] = deque(maxlen=last)
    matching = 0
    for entry in log.entries(release):
        if (since or 0) <= entry.time and (until is None or entry.time < until) and _is_of(entry, person):
            shown.append(entry)
            matching += 1
    plain = {
        "length": head.length,
        "head": head.digest.hex(),
        "matching": matching,
        "entries": [entry_data(one) for one in shown],
    }
    lines = [entry_text(one) for one in shown]
    if matching > len(shown):
        lines.insert(0, f"The newest {len(shown)} of {matching}; --last shows more.")
    lines.append(f"{head.length} entries in all; the chain is whole. Head: {head.digest.hex()}")
    emit(as_json, plain, "\n".join(lines))


def entry_data(entry: AuditEntry) -> dict[str, object]:
    """Return an entry as plain data for JSON."""
    return {
        "number": entry.number,
        "time": moment(entry.time),
        "event": entry.event,
        "person": entry.person,
        "release": entry.release,
        "facts": entry.facts,
    }


def entry_text(entry: AuditEntry) -> str:
    """Return an entry as a line for people."""
    said = filter(None, [entry.event, entry.person and f"by {entry.person}", facts_text(entry), entry.release])
    return f"{entry.number:6}  {moment(entry.time)}  {'  '.join(said)}"


def facts_text(entry: AuditEntry) -> str:
    """Return the facts of an entry that say something more than the entry does."""
    said = ((name, value) for name, value in entry.facts.items() if name != "time" and _says_something(value))
    return ", ".join(f"{name} {value}" for name, value in said)


def _says_something(value: Fact) -> bool:
    return value not in {None, ""}


def _is_of(entry: AuditEntry, person: str | None) -> bool:
    if person is None:
        return True
    return entry.facts.get("researcher") == person or (
        bool(entry.person) and same_person_key(entry.person) == same_person_key(person)
    )
