"""Who may have which attribute at what epsilon: rules that approve, hold for a person, or deny.

The policy file is a curator's own (TOML):

    budget = 2.0                      # optional: less than the study's budget

    [[rule]]                          # the first rule that matches an attribute decides
    researcher = "rosa"               # or "*"
    attributes = ["education"]        # or "*"
    maximum_epsilon = 1.0             # optional: the rule matches up to here
    decision = "approve"              # or "hold", or "deny"
    expires_days = 30                 # optional: keys are given out for so long

What no rule matches is held for a person.
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from veiltab.common.core.rounding import parse_epsilon
from veiltab.common.errors import InvalidInputError
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.study.fields import Fields
from veiltab.common.study.file import Study
from veiltab.curator.progress import APPROVED, DENIED, HELD, GrantDecision

_VERDICTS = {"approve": APPROVED, "hold": HELD, "deny": DENIED}
_SECONDS_A_DAY = 86_400
_MOST_DAYS = 36_500


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule; `None` stands for any researcher, any attribute, any epsilon, no expiry."""

    researcher: str | None
    attributes: frozenset[str] | None
    maximum_epsilon: Decimal | None
    verdict: str
    expires_days: int | None

    def matches(self, researcher: str, attribute: str, epsilon: Decimal) -> bool:
        """Whether this rule decides."""
        return (
            self.researcher in {None, researcher}
            and (self.attributes is None or attribute in self.attributes)
            and (self.maximum_epsilon is None or epsilon <= self.maximum_epsilon)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A curator's rules, first match first, and its own budget if it is below the study's."""

    rules: tuple[Rule, ...] = field(default=())
    budget: Decimal | None = None

    def budget_within(self, study: Decimal) -> Decimal:
        """Return the epsilon that the curator spends at most: the study's, or its own if that is less."""
        return study if self.budget is None else min(self.budget, study)

    def decide(self, request: ReleaseRequest, own: Iterable[str], now: int) -> tuple[GrantDecision, ...]:
        """Decide about each attribute of this curator's that a request names."""
        names = frozenset(own)
        return tuple(self._decide(request, name, now) for name in request.attributes if name in names)

    def _decide(self, request: ReleaseRequest, attribute: str, now: int) -> GrantDecision:
        for rule in self.rules:
            if rule.matches(request.researcher, attribute, request.epsilon):
                expires = None if rule.expires_days is None else now + rule.expires_days * _SECONDS_A_DAY
                return GrantDecision(attribute=attribute, verdict=rule.verdict, expires=expires, decided_by="policy")
        return GrantDecision(attribute=attribute, verdict=HELD, expires=None, decided_by="policy")


def policy_of(study: Study, curator: str, path: Path | None) -> Policy:
    """Read the policy file of a curator of a study; see `load_policy`."""
    own = [rule.name for rule in study.attributes_of(curator)]
    return load_policy(path, researchers=[r.name for r in study.researchers], attributes=own)


def load_policy(path: Path | None, *, researchers: Iterable[str], attributes: Iterable[str]) -> Policy:
    """Read a policy file; without one, a person decides about everything.

    Raises:
        InvalidInputError: the file cannot be read, or names what the study does not know.
    """
    if path is None:
        return Policy()
    try:
        plain = tomllib.loads(path.read_text("utf-8"), parse_float=Decimal)
    except (OSError, ValueError, ArithmeticError, RecursionError) as error:
        raise InvalidInputError("the policy file cannot be read as TOML", where=str(path)) from error
    root = Fields(plain, str(path))
    known = (frozenset(researchers), frozenset(attributes))
    rules = tuple(_rule(fields, *known) for fields in (root.tables("rule") if root.holds("rule", object) else ()))
    budget = _epsilon(root, "budget")
    root.finish()
    return Policy(rules=rules, budget=budget)


def _rule(fields: Fields, researchers: frozenset[str], attributes: frozenset[str]) -> Rule:
    researcher = fields.text("researcher", "*")
    if researcher != "*" and researcher not in researchers:
        raise InvalidInputError("researcher is not in the study", where=fields.where)
    wanted = fields.texts("attributes") if fields.holds("attributes", list) else fields.text("attributes", "*")
    names = None if wanted == "*" else frozenset([wanted] if isinstance(wanted, str) else wanted)
    if names is not None and not names <= attributes:
        raise InvalidInputError("attributes are not this curator's", where=fields.where)
    decision = fields.text("decision")
    if decision not in _VERDICTS:
        raise InvalidInputError('decision must be "approve", "hold" or "deny"', where=fields.where)
    days = fields.integer("expires_days", 0)
    if fields.holds("expires_days", int) and not 1 <= days <= _MOST_DAYS:
        raise InvalidInputError(f"expires_days must be a whole number from 1 to {_MOST_DAYS}", where=fields.where)
    rule = Rule(
        researcher=None if researcher == "*" else researcher,
        attributes=names,
        maximum_epsilon=_epsilon(fields, "maximum_epsilon"),
        verdict=_VERDICTS[decision],
        expires_days=days or None,
    )
    fields.finish()
    return rule


def _epsilon(fields: Fields, key: str) -> Decimal | None:
    if not fields.holds(key, object):
        return None
    return parse_epsilon(fields.number(key), what=f"{fields.where}: {key}")
