"""A curator's charges for people: in lines, and as plain data."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal

from veiltab.common.core.numbers.rounding import bound_text, downward, upward
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.curator.budget.doubts import Doubt
from veiltab.curator.budget.entries import Entry, percent
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.records.store import CuratorStore


def purpose_of(entry: Entry, store: CuratorStore) -> str:
    """Return what the researcher gave as the purpose of what was charged; empty for none."""
    return store.releases.release(entry.release_id).request.purpose if store.releases.knows(entry.release_id) else ""


def spent_text(book: Ledger) -> str:
    """Return in a sentence what is spent and what is left."""
    budget = book.budget
    if budget.delta is None:
        return f"Spent {upward(budget.spent)} of {budget.epsilon}; {downward(budget.remaining)} left."
    return (
        f"Spent epsilon {upward(budget.spent)} at delta {delta_text(budget.delta)}, {percent(budget.share)} of the"
        f" budget of {budget.epsilon}; one more release may have {budget.rest}. {adding_up(book)}"
    )


def statements_text(book: Ledger) -> str:
    """Return in a sentence what is spent in Gaussian and zero-concentrated differential privacy."""
    price = book.budget.spent_price
    leak = f", each except with probability {bound_text(price.slack, 2)}" if price.slack else ""
    return f"Spent so far, if all was planned beforehand: {upward(price.mu)}-GDP and {upward(price.rho)}-zCDP{leak}."


def adding_up(book: Ledger) -> str:
    """Return in a sentence that charged, spent and left epsilon do not add up; "" without a delta, where they do."""
    if book.budget.delta is None:
        return ""
    return (
        "A budget with a delta adds the squares of prices, not epsilons: those charged, spent and left do not add up."
    )


def released_text(entry: Entry) -> str:
    """Return what was released: the attributes, of how many tables."""
    tables = f"{entry.tables} tables of " if entry.tables > 1 else ""
    return f"{tables}{', '.join(entry.attributes)}"


def asked_text(entry: Entry) -> str:
    """Return the epsilon and delta that were asked for."""
    fields = entry.facts
    epsilon = Decimal(str(fields["epsilon"])) if fields.get("delta") else entry.epsilon
    delta = f" at delta {delta_text(Decimal(str(fields['delta'])))}" if fields.get("delta") else ""
    return f"epsilon {upward(epsilon)}{delta}"


def entry_text(entry: Entry, purpose: str) -> str:
    """Return a charge as lines for people."""
    below = f"\n      purpose: {purpose}" if purpose else ""
    return (
        f"{entry.number:4}  {charged_at(entry)}  {entry.facts['researcher']}"
        f"  {released_text(entry)}  {asked_text(entry)}  charge {percent(entry.share)}  {entry.release_id}{below}"
    )


def entry_data(entry: Entry, purpose: str) -> dict[str, object]:
    """Return a charge as plain data for JSON."""
    price = {} if entry.price is None else {"mu": entry.price.mu, "slack": entry.price.slack}
    return {
        "number": entry.number,
        "release": entry.release_id,
        **entry.facts,
        "purpose": purpose,
        "time": charged_at(entry),
        "epsilon": Decimal(entry.facts["epsilon"]),
        "pure_epsilon": entry.epsilon,
        **price,
        "share": entry.share,
    }


def charged_at(entry: Entry) -> str:
    """Return when a charge was reserved, ISO 8601 in UTC."""
    return datetime.fromtimestamp(entry.time, UTC).isoformat()


def witness_text(own: int, remembered: Mapping[str, int], doubts: Iterable[Doubt]) -> str:
    """Return for people how long the ledgers are that a curator remembers, and who has seen more of its own.

    Args:
        own: entries of its own ledger.
        remembered: entries of the longest ledger that each other curator showed.
        doubts: what others say that they saw of its own, and it lacks.
    """
    lines = [f"This ledger has {own} entries."]
    lines += [f"Curator {name} showed a ledger of {length} entries." for name, length in remembered.items()]
    lines += [
        f"{one.who.capitalize()} has seen a ledger of {one.length} entries here, head {one.head.hex()[:12]}...;"
        f" this one lacks some of them{', which a person set aside' if one.is_set_aside else ''}."
        for one in doubts
    ]
    return "\n".join(lines)
