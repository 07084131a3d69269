"""A curator releases how many rows of each category of its own attribute are linked, with noise, once for each.

The noise stands in the ledger's entry, so that it is charged and kept in one step: a curator that is killed before it
writes the file writes the same one later. It follows from a secret of the state and from the counts, so that a restored
copy, which has forgotten the entry, makes the same table again and not a second one.
"""

import json
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from veiltab.common.core.derivation import derive
from veiltab.common.core.numbers.rounding import parse_epsilon
from veiltab.common.core.texts.canonical import canonical_digest, canonical_text
from veiltab.common.core.texts.spelling import same_person_key
from veiltab.common.errors import ConflictError, InvalidInputError, NotReadyError
from veiltab.common.linkage.match_rates import MatchRates, below_by_key, geometric
from veiltab.common.storage.database import transaction
from veiltab.curator.audit.log import Event
from veiltab.curator.budget.entries import OWN_TABLE, OwnTable
from veiltab.curator.linkage.linkage_report import MOST_CATEGORIES, LinkageReport
from veiltab.curator.linkage.linkages import Linkages
from veiltab.curator.officer.opened import OpenedState
from veiltab.curator.officer.options import named_person
from veiltab.curator.officer.persons import person_name

MOST_EPSILON = Decimal(10)
"""Above, the noise is nothing."""


def linked_report(standing: OpenedState) -> LinkageReport:
    """Return what a curator knows of its latest linkage.

    Raises:
        InvalidInputError: the study has ids.
        NotReadyError: it is not linked yet.
    """
    where = f"curator {standing.name}"
    if standing.study.identity is None:
        raise InvalidInputError(
            "the study has ids, and links nobody",
            where=where,
            remedy="A study with the table [identity] links rows; docs/linkage.md says how.",
        )
    report = Linkages(standing.store.connection, standing.store.audit).latest_report()
    if report is None:
        raise NotReadyError(
            "is not linked yet", where=where, remedy="`veiltab status` says what it waits for; ask again later."
        )
    return report


def check_rates(standing: OpenedState, attribute: str, epsilon: str) -> Decimal:
    """Return the epsilon of a table of match rates that may be released.

    Raises:
        InvalidInputError: another attribute than one's own, one of too many categories, or an epsilon out of range.
    """
    own = {rule.name: rule.attribute for rule in standing.study.attributes_of(standing.name)}
    if attribute not in own:
        raise InvalidInputError(
            f"{attribute!r} is no attribute of this curator",
            where="attribute",
            remedy=f"It has {', '.join(own)}.",
        )
    if own[attribute].size > MOST_CATEGORIES or own[attribute].number:
        held = "numbers" if own[attribute].number else f"{own[attribute].size} categories"
        raise InvalidInputError(
            f"{attribute} has {held}, and rows are counted by attributes with {MOST_CATEGORIES} categories at most",
            where="attribute",
            remedy="Take another attribute.",
        )
    asked = parse_epsilon(epsilon)
    if asked > MOST_EPSILON:
        raise InvalidInputError(
            f"epsilon {asked} adds no noise to speak of",
            where="epsilon",
            remedy=f"Take one of {MOST_EPSILON} at most.",
        )
    return asked


def deciding(standing: OpenedState, persons: Sequence[str]) -> list[str]:
    """Return who decides, as it is recorded; the policy may ask for several different persons.

    Raises:
        InvalidInputError: there are fewer, or a name is not one.
    """
    names = [person_name(one) for one in persons or (named_person(None, standing.persons),)]
    if len(set(map(same_person_key, names))) < standing.persons:
        raise InvalidInputError(
            f"the policy asks for {standing.persons} different persons",
            where="--person",
            remedy="Give --person once for each of them.",
        )
    return names


def linked_then(standing: OpenedState, attribute: str) -> int | None:
    """Return how many people were linked when an attribute's table was charged; None if it was not."""
    release_id = _release_id(standing, attribute)
    charged = (entry.facts for entry in standing.ledger.chain.entries if entry.release_id == release_id)
    return next((facts["tables"][0]["population"] for facts in charged), None)


def release_rates(
    standing: OpenedState, report: LinkageReport, attribute: str, epsilon: Decimal, persons: Sequence[str]
) -> tuple[MatchRates, bool]:
    """Charge a table of match rates and return it: of the latest linkage, or the one that was charged before.

    Args:
        report: of its latest linkage.
        attribute: its own, as check_rates admits it.

    Returns:
        The table, and whether it is charged now.

    Raises:
        BudgetExceededError: the budget does not hold it; nothing is charged.
        ConflictError: a table of this attribute was charged at another epsilon.
        NotReadyError: nobody is linked, or the linkage did not count the attribute.
    """
    ledger, name = standing.ledger, standing.name
    release_id = _release_id(standing, attribute)
    (categories,) = (one.categories for one in standing.study.domain([attribute]).attributes)
    with transaction(standing.store.connection):
        if is_new := not ledger.chain.is_charged(release_id):
            key = Linkages(standing.store.connection, standing.store.audit).noise_key()
            facts = _noisy_facts(report, attribute, categories, epsilon, key)
            ledger.reserve(OwnTable(release_id, facts), ledger.budget.allowance.charge_of_pure_epsilon(epsilon))
            ledger.charge(release_id)
            for person in persons:
                standing.store.audit.record(
                    Event.RATES, person=person, release=release_id, attribute=attribute, epsilon=str(epsilon)
                )
    facts = next(entry.facts for entry in ledger.chain.entries if entry.release_id == release_id)
    rates = MatchRates(
        study=standing.study.id,
        curator=name,
        attribute=attribute,
        categories=tuple(facts["categories"]),
        linked=tuple(facts["linked"]),
        unlinked=tuple(facts["unlinked"]),
        epsilon=Decimal(facts["epsilon"]),
    )
    if rates.epsilon != epsilon:
        raise ConflictError(
            f"a table of {attribute} was released before, at epsilon {rates.epsilon}",
            where=f"curator {name}",
            remedy="Each attribute has one table of match rates; ask with its epsilon for its file.",
        )
    return rates, is_new


def _release_id(standing: OpenedState, attribute: str) -> str:
    return canonical_digest(json.dumps(["match rates", standing.study.id, standing.name, attribute])).hex()[:32]


def _noisy_facts(
    report: LinkageReport, attribute: str, categories: tuple[str, ...], epsilon: Decimal, key: bytes
) -> dict[str, Any]:
    """Return what the ledger says of a table, with noise in each of its counts, those of no row too.

    Args:
        key: secret, of this state; another attribute, other counts and another epsilon have independent noise.
    """
    known, size = next((one for one in report.rates if one.attribute == attribute), None), len(categories)
    if known is None or len(known.rows) > size or not report.links:
        raise NotReadyError(
            f"the latest linkage linked nobody, or did not count {attribute} by the categories of this study file",
            where="attribute",
            remedy="`veiltab status` says what the next one waits for; ask again then.",
        )
    linked = known.linked + (0,) * (size - len(known.linked))
    rows, rate = known.rows + (0,) * (size - len(known.rows)), Fraction(epsilon) / 2
    below = below_by_key(derive(key, f"rates {rate} {canonical_text(known)}"))
    kind = {
        "mechanism": "geometric",
        "relation": "substitution",
        "population": report.links,
        "cells": 2 * size,
        "epsilon": str(epsilon),
        "count": 1,
    }
    return {
        "tables": [kind],
        "repeated": [],
        "repeats": 0,
        "epsilon": str(epsilon),
        "delta": None,
        "researcher": OWN_TABLE,
        "attributes": [attribute],
        "categories": categories,
        "linked": [some + geometric(rate, below) for some in linked],
        "unlinked": [every - some + geometric(rate, below) for every, some in zip(rows, linked, strict=True)],
    }
