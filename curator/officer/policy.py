"""Who may have which attribute at what epsilon, delta and charge: rules that approve, hold for a person, or deny.

The policy file is a curator's own (TOML):

    budget = 2.0                      # optional: less than the study's budget
    persons = 2                       # optional: so many persons approve what is held; by default 1
    others_share = 0.25               # optional: part of the budget for releases without own attributes; by default 0.5

    [[rule]]                          # the first rule that matches an attribute decides
    researcher = "rosa"               # or "*"
    attributes = ["education"]        # or "*"
    maximum_epsilon = 1.0             # optional: the rule matches up to here
    maximum_delta = 1e-6              # optional: the same
    maximum_charge = 0.05             # optional: the same, as a part of the budget
    maximum_pair_epsilon = 2.0        # optional: the same, of the pairs on the card; "any" for whatever it is
    maximum_row_epsilon = 12.0        # optional: the same, of a row against desk and curators; "any" likewise
    tested = "enough"                 # optional: how well the server is tested at the least: also "too little", "not"
    decision = "approve"              # or "hold", or "deny"
    expires_days = 30                 # optional: keys are given out for so long

A table [notify] says who is told of requests that wait; see `veiltab.curator.officer.notify_settings`.

Every curator charges every release. Those that need none of its attributes come to no rule and no person; all of them
together take at most `others_share` of its budget, and what would take more is denied. What no rule matches is held for
a person. With persons = 2 it is approved once two different persons have approved it.

A rule that approves and does not say otherwise approves up to 3 for the pairs, up to 12 for a row, where the server is
tested enough, and up to the delta of the study's budget, never above 1/n, n being the number of rows:
with a larger delta, publishing the row of one respondent would keep the guarantee. A request with a delta above 1/n is
refused, unless a rule that matches it names a maximum_delta. What a request chooses away, a person decides about.

The charge is that of the whole request, before anything of it is denied. The charge and n are known once the tables are
aligned: a request waits until then if the decision depends on them.
"""

import hashlib
import json
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from veiltab.common.core.numbers.rounding import parse_delta, parse_epsilon
from veiltab.common.core.texts.nearest import known_names
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import DeniedError, InvalidInputError
from veiltab.common.privacy.cards.card import Bound, advised_delta
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.privacy.coalitions import PAIR_EPSILON, PAIRS, ROW_EPSILON, Coalition
from veiltab.common.release.receipts.canary_plan import HowTested
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.study.file import Study, read_file
from veiltab.common.study.toml_fields import Fields
from veiltab.common.study.toml_text import parsed_toml_text
from veiltab.curator.progress.progress import APPROVED, DENIED, HELD
from veiltab.curator.progress.release_record import GrantDecision

if TYPE_CHECKING:
    from veiltab.curator.officer.notify_settings import NotifySettings

_VERDICTS = {"approve": APPROVED, "hold": HELD, "deny": DENIED}
_DECISIONS = {verdict: decision for decision, verdict in _VERDICTS.items()}
_MAXIMA = ("epsilon", "delta", "charge", "pair_epsilon", "row_epsilon")
_SECONDS_A_DAY, _MOST_PERSONS = 86_400, 10
OTHERS_SHARE = Decimal("0.5")
"""Part of the budget that releases without a curator's own attributes may take, unless its policy says otherwise."""

ANY = Decimal("Infinity")
"""The maximum of a rule that takes any epsilon."""

MOST_DAYS = 36_500
"""For so many days a key may be given out, if not for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a plan of a request says before anybody decides about it.

    Args:
        population: n, rows of every table.
        charge: the part of the budget that the release would take.
        bounds: of its card; none if they are not known.
        tested: how well its server would be tested.
    """

    population: int
    charge: Decimal
    bounds: tuple[Bound, ...] = ()
    tested: HowTested = HowTested.NOT

    @property
    def pair_epsilon(self) -> Decimal:
        """The largest epsilon of the pairs of a person, nats; infinite where nothing bounds it, or nobody knows."""
        return self._largest([pair.roles for pair in PAIRS])

    @property
    def row_epsilon(self) -> Decimal:
        """The epsilon of a respondent's rows against desk and curators, as `pair_epsilon`."""
        return self._largest([Coalition.DESK_AND_CURATORS.roles])

    def _largest(self, roles: list[tuple[str, ...]]) -> Decimal:
        return max((bound.person_epsilon for bound in self.bounds if bound.roles in roles), default=ANY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule; `None` stands for any researcher, any attribute, no maximum, no expiry."""

    researcher: str | None
    attributes: frozenset[str] | None
    maximum_epsilon: Decimal | None
    verdict: str
    expires_days: int | None
    maximum_delta: Decimal | None = None
    maximum_charge: Decimal | None = None
    maximum_pair_epsilon: Decimal = ANY
    maximum_row_epsilon: Decimal = ANY
    tested: HowTested = HowTested.NOT

    @property
    def needs_card(self) -> bool:
        """Whether the rule depends on the card, or on how well the server is tested."""
        return min(self.maximum_pair_epsilon, self.maximum_row_epsilon) < ANY or self.tested is not HowTested.NOT

    @property
    def text(self) -> str:
        """The rule in a line, as a policy file may have it."""
        attributes = None if self.attributes is None else json.dumps(sorted(self.attributes))
        values = {
            "researcher": None if self.researcher is None else json.dumps(self.researcher),
            "attributes": attributes,
            **same_fields(self, (f"maximum_{name}" for name in _MAXIMA)),
            "tested": None if self.tested is HowTested.NOT else json.dumps(self.tested.value),
            "decision": json.dumps(_DECISIONS[self.verdict]),
            "expires_days": self.expires_days,
        }
        return ", ".join(f"{key} = {value}" for key, value in values.items() if value not in {None, ANY})

    def matches(self, request: ReleaseRequest, attribute: str, outlook: Outlook) -> bool:
        """Whether this rule is about an attribute of a request."""
        return (
            self.researcher in {None, request.researcher}
            and (self.attributes is None or attribute in self.attributes)
            and (self.maximum_epsilon is None or request.epsilon <= self.maximum_epsilon)
            and (self.maximum_delta is None or (request.delta or 0) <= self.maximum_delta)
            and (self.maximum_charge is None or outlook.charge <= self.maximum_charge)
            and (not self.needs_card or self._accepts(outlook))
        )

    def _accepts(self, outlook: Outlook) -> bool:
        return (
            outlook.pair_epsilon <= self.maximum_pair_epsilon
            and outlook.row_epsilon <= self.maximum_row_epsilon
            and outlook.tested.is_at_least(self.tested)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A curator's rules, first match first, and its own budget if it is below the study's.

    Args:
        rules: the first that matches decides.
        budget: the curator's own, nats.
        persons: so many different persons must approve what is held.
        delta: most that is approved by a rule without a maximum of its own: that of the study's budget.
        others_share: part of the budget that releases without attributes of this curator's may take together.
        digest: SHA-256 of the file, hexadecimal; empty without one.
        notify: who is told what, and how; None for nobody.
    """

    rules: tuple[Rule, ...] = field(default=())
    budget: Decimal | None = None
    persons: int = 1
    delta: Decimal | None = None
    others_share: Decimal = OTHERS_SHARE
    digest: str = ""
    notify: "NotifySettings | None" = None

    def budget_within(self, study: Decimal) -> Decimal:
        """Return the epsilon that the curator spends at most: the study's, or its own if that is less."""
        return study if self.budget is None else min(self.budget, study)

    def needs_outlook(self, request: ReleaseRequest) -> bool:
        """Whether a decision depends on the number of respondents or on the charge."""
        return (
            request.delta is not None or self.needs_card or any(rule.maximum_charge is not None for rule in self.rules)
        )

    @property
    def needs_card(self) -> bool:
        """Whether a decision depends on the card, or on how well the server is tested."""
        return any(rule.needs_card for rule in self.rules)

    def decide(
        self, request: ReleaseRequest, own: Iterable[str], now: int, outlook: Outlook | None = None
    ) -> tuple[GrantDecision, ...]:
        """Decide about each attribute of this curator's that a request names.

        Args:
            own: names of this curator's attributes.
            now: Unix seconds.
            outlook: of the request, where `needs_outlook` says so.

        Raises:
            DeniedError: its delta is above 1/n, and no rule says that it may be.
        """
        names = frozenset(own)
        return tuple(self._decide(request, name, now, outlook) for name in request.attributes if name in names)

    def _decide(self, request: ReleaseRequest, attribute: str, now: int, outlook: Outlook | None) -> GrantDecision:
        number = self.deciding_rule(request, attribute, outlook)
        if number is None:
            return GrantDecision(attribute=attribute, verdict=HELD, expires=None, decided_by="policy", time=now)
        rule = self.rules[number - 1]
        return GrantDecision(
            attribute=attribute,
            verdict=rule.verdict,
            expires=expiry(now, rule.expires_days),
            decided_by="policy",
            time=now,
            rule=number,
            rule_text=rule.text,
        )

    def deciding_rule(self, request: ReleaseRequest, attribute: str, outlook: Outlook | None) -> int | None:
        """Return the number of the rule that decides about an attribute, from 1; None if no rule does.

        Raises:
            DeniedError, InvalidInputError: as `decide`; the outlook is needed and missing.
        """
        if outlook is None:
            if self.needs_outlook(request):
                raise InvalidInputError("the charge and the number of respondents are not known", where="policy")
            outlook = Outlook(population=1, charge=Decimal(0))
        delta = request.delta or Decimal(0)
        is_large = delta * outlook.population > 1
        for number, rule in enumerate(self.rules, start=1):
            if not rule.matches(request, attribute, outlook):
                continue
            if rule.verdict == DENIED or rule.maximum_delta is not None:
                return number
            if rule.verdict == APPROVED and (is_large or (self.delta is not None and delta > self.delta)):
                continue
            if is_large:
                break
            return number
        if is_large:
            raise DeniedError(
                f"delta {delta_text(delta)} is above 1/n = {1 / outlook.population:.3g}, and no rule of the policy"
                " allows that",
                where="delta",
                remedy=f"Ask with a smaller delta; advised: {advised_delta(outlook.population):.2g} or less.",
            )
        return None


def expiry(now: int, days: int | None) -> int | None:
    """Return until when a key is given out that is granted now for some days, Unix seconds; None for ever."""
    return None if days is None else now + days * _SECONDS_A_DAY


def policy_source(path: Path | None, rules: int) -> str:
    """Say in a line where rules come from."""
    return "none, so a person decides about every request" if path is None else f"{path}, rules: {rules}"


def policy_of(study: Study, curator: str, path: Path | None) -> Policy:
    """Read the policy file of a curator of a study; see `load_policy`."""
    own = [rule.name for rule in study.attributes_of(curator)]
    researchers = [researcher.name for researcher in study.researchers]
    return load_policy(path, researchers=researchers, attributes=own, delta=study.budget_delta)


def load_policy(
    path: Path | None, *, researchers: Iterable[str], attributes: Iterable[str], delta: Decimal | None = None
) -> Policy:
    """Read a policy file; without one, a person decides about everything.

    Args:
        delta: that of the study's budget.

    Raises:
        InvalidInputError: the file cannot be read, or names what the study does not know.
    """
    if path is None:
        return Policy(delta=delta)
    content = read_file(path, "policy file", is_own=True)
    root = Fields(parsed_toml_text(content, str(path)), str(path))
    names = (frozenset(researchers), frozenset(attributes))
    rules = tuple(_rule(fields, *names) for fields in (root.tables("rule") if root.holds("rule", object) else ()))
    budget, persons = _epsilon(root, "budget"), root.integer("persons", 1)
    if not 1 <= persons <= _MOST_PERSONS:
        raise InvalidInputError(f"persons must be a whole number from 1 to {_MOST_PERSONS}", where=root.where)
    others = _others_share(root)
    notify = None
    if root.holds("notify", object):
        from veiltab.curator.officer.notify_settings import read_notify  # noqa: PLC0415 - not where nobody wants notices

        notify = read_notify(root.table("notify"), path.parent)
    root.finish()
    digest = hashlib.sha256(content).hexdigest()
    return Policy(
        rules=rules, budget=budget, persons=persons, delta=delta, others_share=others, digest=digest, notify=notify
    )


def _rule(fields: Fields, researchers: frozenset[str], attributes: frozenset[str]) -> Rule:
    researcher = fields.text("researcher", "*")
    if researcher != "*" and researcher not in researchers:
        near = known_names("Researchers", sorted(researchers), researcher)
        raise InvalidInputError(f"researcher is not in the study: {researcher[:60]!r}", where=fields.where, remedy=near)
    raw = fields.texts("attributes") if fields.holds("attributes", list) else fields.text("attributes", "*")
    if not raw:
        problem = "attributes is empty, so the rule would match nothing"
        raise InvalidInputError(problem, where=fields.where, remedy="Leave it out to match all of them.")
    names = None if raw == "*" else frozenset([raw] if isinstance(raw, str) else raw)
    if names is not None and not names <= attributes:
        other = min(names - attributes)
        near = known_names("Its attributes", sorted(attributes), other)
        raise InvalidInputError(f"attributes are not this curator's: {other[:60]!r}", where=fields.where, remedy=near)
    decision = fields.text("decision")
    if decision not in _VERDICTS:
        near = known_names("Decisions", list(_VERDICTS), decision)
        raise InvalidInputError(f"decision is not known: {decision[:60]!r}", where=fields.where, remedy=near)
    days = fields.integer("expires_days", 0)
    if fields.holds("expires_days", int) and not 1 <= days <= MOST_DAYS:
        raise InvalidInputError(f"expires_days must be a whole number from 1 to {MOST_DAYS}", where=fields.where)
    approves = _VERDICTS[decision] == APPROVED
    rule = Rule(
        researcher=None if researcher == "*" else researcher,
        attributes=names,
        maximum_epsilon=_epsilon(fields, "maximum_epsilon"),
        maximum_delta=_delta(fields, "maximum_delta"),
        maximum_charge=_charge(fields, "maximum_charge"),
        maximum_pair_epsilon=_limit(fields, "maximum_pair_epsilon", PAIR_EPSILON if approves else ANY),
        maximum_row_epsilon=_limit(fields, "maximum_row_epsilon", ROW_EPSILON if approves else ANY),
        tested=_tested(fields, HowTested.ENOUGH if approves else HowTested.NOT),
        verdict=_VERDICTS[decision],
        expires_days=days or None,
    )
    fields.finish()
    return rule


def _epsilon(fields: Fields, key: str) -> Decimal | None:
    return parse_epsilon(fields.number(key), what=f"{fields.where}: {key}") if fields.holds(key, object) else None


def _limit(fields: Fields, key: str, default: Decimal) -> Decimal:
    if fields.holds(key, str):
        if fields.text(key) != "any":
            raise InvalidInputError(f'{key} is a number, or "any"', where=fields.where)
        return ANY
    return _epsilon(fields, key) or default


def _tested(fields: Fields, default: HowTested) -> HowTested:
    text = fields.text("tested", default.value)
    if text not in {one.value for one in HowTested}:
        raise InvalidInputError('tested must be "enough", "too little" or "not"', where=fields.where)
    return HowTested(text)


def _delta(fields: Fields, key: str) -> Decimal | None:
    if not fields.holds(key, object):
        return None
    try:
        return parse_delta(fields.number(key))
    except InvalidInputError as error:
        raise InvalidInputError(f"{key}: {error.problem}", where=fields.where) from None


def _charge(fields: Fields, key: str) -> Decimal | None:
    charge = fields.number(key) if fields.holds(key, object) else None
    if charge is not None and not 0 < charge <= 1:
        raise InvalidInputError(f"{key} is a part of the budget, above 0 and at most 1", where=fields.where)
    return charge


def _others_share(fields: Fields) -> Decimal:
    if not fields.holds("others_share", object):
        return OTHERS_SHARE
    part = fields.number("others_share")
    if not 0 <= part <= 1:
        raise InvalidInputError("others_share is a part of the budget, from 0 to 1", where=fields.where)
    return part
