import hashlib
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from tests.conftest import request_with
from veiltab.common.errors import DeniedError, InvalidInputError
from veiltab.common.privacy.cards.card import Bound
from veiltab.common.privacy.coalitions import Coalition
from veiltab.common.release.receipts.canary_plan import HowTested
from veiltab.curator.officer.policy import Outlook, Policy, load_policy
from veiltab.curator.progress.progress import APPROVED, DENIED, HELD
from veiltab.curator.progress.release_record import GrantDecision

NOW = 1_900_000_000


def seen(
    population: int = 1000, charge: str = "0.01", *, pair: str | None = "3", row: str = "12", tested: str = "enough"
) -> Outlook:
    """Return an outlook: by default at the most that a rule approves unless it says otherwise."""
    epsilons = {
        Coalition.DESK_AND_SERVER: pair,
        Coalition.ANALYST_AND_CURATORS: "0.1",
        Coalition.DESK_AND_CURATORS: row,
    }
    bounds = tuple(
        Bound(roles=who.roles, epsilon=None if epsilon is None else Decimal(epsilon), note="")
        for who, epsilon in epsilons.items()
    )
    return Outlook(population=population, charge=Decimal(charge), bounds=bounds, tested=HowTested(tested))


RULES = """
budget = 0.5
[[rule]]
researcher = "rita"
attributes = "salary"
decision = "deny"
[[rule]]
researcher = "rosa"
attributes = ["sex", "age"]
maximum_epsilon = 0.1
decision = "approve"
expires_days = 30
[[rule]]
attributes = "age"
decision = "hold"
[[rule]]
researcher = "rosa"
decision = "approve"
"""


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], Policy]:
    def from_text(text: str) -> Policy:
        path = tmp_path / "policy.toml"
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        return load_policy(path, researchers=["rosa", "rita"], attributes=["sex", "age", "salary"])

    return from_text


Load = Callable[[str], Policy]


@pytest.mark.parametrize(
    ("researcher", "attribute", "epsilon", "verdict", "expires"),
    [
        ("rosa", "sex", "0.1", APPROVED, NOW + 30 * 86_400),
        ("rosa", "sex", "0.05", APPROVED, NOW + 30 * 86_400),
        # Above the threshold the rule does not match; the next ones decide.
        ("rosa", "sex", "0.1000000000000000000000000000000001", APPROVED, None),
        ("rosa", "age", "0.1", APPROVED, NOW + 30 * 86_400),
        ("rosa", "age", "0.2", HELD, None),
        ("rosa", "salary", "5", APPROVED, None),
        ("rita", "salary", "0.01", DENIED, None),
        ("rita", "age", "0.01", HELD, None),
        ("rita", "sex", "0.01", HELD, None),  # no rule matches
    ],
)
def test_the_first_rule_that_matches_decides(  # noqa: PLR0913, PLR0917 - one a column of the table
    load: Load, researcher: str, attribute: str, epsilon: str, verdict: str, expires: int | None
) -> None:
    request = request_with(researcher=researcher, attributes=(attribute,), epsilon=Decimal(epsilon))
    (decision,) = load(RULES).decide(request, ["sex", "age", "salary"], NOW, seen())
    bare = replace(decision, rule=None, rule_text="")
    assert bare == GrantDecision(attribute=attribute, verdict=verdict, expires=expires, decided_by="policy", time=NOW)


LIMITS = """
[[rule]]
researcher = "rita"
attributes = "salary"
decision = "deny"
[[rule]]
researcher = "rita"
decision = "hold"
[[rule]]
researcher = "rosa"
attributes = "sex"
maximum_epsilon = 0.5
maximum_charge = 0.05
decision = "approve"
[[rule]]
researcher = "rosa"
attributes = "age"
maximum_delta = 0.02
decision = "approve"
[[rule]]
researcher = "rosa"
attributes = "sex"
decision = "approve"
expires_days = 1
"""
BUDGET_DELTA = Decimal("1e-6")
REFUSED = "refused"


@pytest.mark.parametrize("delta_of_budget", [BUDGET_DELTA, None])
@pytest.mark.parametrize(
    ("researcher", "attribute", "epsilon", "delta", "charge", "verdict", "rule"),
    [
        ("rosa", "sex", "0.5", None, "0.05", APPROVED, 3),
        ("rosa", "sex", "0.5", "1e-6", "0.05", APPROVED, 3),
        # Above a maximum the rule does not match; the next ones decide.
        ("rosa", "sex", "0.51", "1e-6", "0.05", APPROVED, 5),
        ("rosa", "sex", "0.5", "1e-6", "0.050000000001", APPROVED, 5),
        # Without a maximum of its own, a rule approves up to the delta of the budget, and up to 1/n.
        ("rosa", "sex", "0.5", "2e-6", "0.05", HELD, None),
        ("rosa", "sex", "0.5", "0.001", "0.05", HELD, None),
        ("rosa", "sex", "0.5", "0.0011", "0.05", REFUSED, None),
        # A rule that names it may go above.
        ("rosa", "age", "0.5", "0.02", "0.9", APPROVED, 4),
        ("rosa", "age", "0.5", "0.021", "0.9", REFUSED, None),
        ("rosa", "age", "0.5", None, "0.9", APPROVED, 4),
        # What is denied stays denied, whatever the delta.
        ("rita", "salary", "0.5", "0.02", "0.01", DENIED, 1),
        ("rita", "age", "0.5", "1e-6", "0.01", HELD, 2),
        ("rita", "age", "0.5", "0.0011", "0.01", REFUSED, None),
        # No rule matches.
        ("rosa", "salary", "0.01", "1e-6", "0.01", HELD, None),
    ],
)
def test_rules_speak_of_epsilon_delta_and_charge(  # noqa: PLR0913, PLR0917 - one a column of the table
    tmp_path: Path,
    delta_of_budget: Decimal | None,
    researcher: str,
    attribute: str,
    epsilon: str,
    delta: str | None,
    charge: str,
    verdict: str,
    rule: int | None,
) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(LIMITS)
    own = ["sex", "age", "salary"]
    policy = load_policy(path, researchers=["rosa", "rita"], attributes=own, delta=delta_of_budget)
    asked = None if delta is None else Decimal(delta)
    request = request_with(researcher=researcher, attributes=(attribute,), epsilon=Decimal(epsilon), delta=asked)
    outlook = seen(1000, charge)
    if delta_of_budget is None and verdict is HELD and researcher == "rosa" and attribute == "sex":
        verdict, rule = APPROVED, 3  # a budget without delta leaves 1/n alone
    if verdict == REFUSED:
        with pytest.raises(DeniedError, match=r"delta .* is above 1/n = 0.001, and no rule of the policy allows that"):
            policy.decide(request, own, NOW, outlook)
    else:
        (decision,) = policy.decide(request, own, NOW, outlook)
        assert (decision.verdict, policy.deciding_rule(request, attribute, outlook)) == (verdict, rule)
    assert policy.needs_outlook(request)
    with pytest.raises(InvalidInputError, match="not known"):
        policy.decide(request, own, NOW)


def test_without_a_file_a_large_delta_is_refused() -> None:
    policy = load_policy(None, researchers=[], attributes=[], delta=BUDGET_DELTA)
    request = request_with(delta=Decimal("0.02"), attributes=("sex",))
    with pytest.raises(DeniedError) as caught:
        policy.decide(request, ["sex"], NOW, seen(1000, "0.01"))
    assert caught.value.remedy == "Ask with a smaller delta; advised: 0.000001 or less."
    assert not policy.decide(request, ["age"], NOW, seen(1000, "0.01"))
    assert not policy.needs_outlook(request_with())


def test_a_decision_names_its_rule_by_number_and_text(load: Load) -> None:
    asked = request_with(attributes=("sex", "age"), epsilon=Decimal("0.1"))
    for decision in load(LIMITS).decide(asked, ["sex", "age"], NOW, seen(10, "0.05")):
        assert decision.rule == {"sex": 3, "age": 4}[decision.attribute]
        assert f'attributes = ["{decision.attribute}"], maximum_' in decision.rule_text
    (unmatched,) = load(RULES).decide(request_with(researcher="rita", attributes=("sex",)), ["sex"], NOW, seen())
    assert (unmatched.rule, unmatched.rule_text) == (None, "")


@pytest.mark.parametrize("text", [RULES, LIMITS])
def test_the_text_of_a_rule_is_a_rule_of_a_policy_file(load: Load, text: str) -> None:
    rules = load(text).rules
    assert load(f"rule = [{', '.join(f'{{{rule.text}}}' for rule in rules)}]").rules == rules


def test_only_own_attributes_that_are_asked_for_are_decided(load: Load) -> None:
    request = request_with(attributes=("sex", "salary", "age"))
    decided = load(RULES).decide(request, iter(["age", "sex"]), NOW, seen())
    assert [decision.attribute for decision in decided] == ["sex", "age"]


def test_without_a_policy_a_person_decides(load: Load) -> None:
    assert (load("").persons, load("persons = 2").persons) == (1, 2)
    assert load("budget = 1").digest == hashlib.sha256(b"budget = 1").hexdigest()
    for policy in (load_policy(None, researchers=[], attributes=[]), load(""), load("budget = 1")):
        decided = policy.decide(request_with(), ["sex", "salary"], NOW, seen())
        assert {decision.verdict for decision in decided} == {HELD}
    assert load_policy(None, researchers=[], attributes=[]).budget is None


RULE = "[[rule]]\ndecision = 'deny'\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[rule]", "not a TOML file"),
        ("budget = 1e99999999999999999999999", "not a TOML file|not a finite"),
        ("budget = " + "9" * 5000, "more than 200 characters"),
        ("budget = 0", "budget: '0' is not a number from 1e-12"),
        ("budget = 100.5", "from 1e-12 to 100"),
        ("budget = nan", "not a finite number"),
        ("budget = 1e-400000000", "ordinary size"),
        ("budget = '1'", "another kind"),
        ("persons = 0", "persons must be a whole number from 1 to 10"),
        ("persons = 2.0", "another kind"),
        ("budgt = 1", "unknown key 'budgt'. Did you mean 'budget'"),
        ("rule = 5", "another kind"),
        ("[rule]\ndecision = 'deny'", "another kind"),
        ("[[rule]]", "decision is not there"),
        ("[[rule]]\ndecision = 'aprove'", r"decision is not known: 'aprove'. Did you mean 'approve'\?"),
        ("[[rule]]\ndecision = ['approve']", "another kind"),
        (RULE + "researcher = 'ross'", "researcher is not in the study"),
        (RULE + "attributes = ['sax']", "attributes are not this curator's"),
        (RULE + "attributes = ['*']", "attributes are not this curator's"),
        (RULE + "attributes = []", "attributes is empty"),
        (RULE + "attributes = [['sex']]", "another kind"),
        (RULE + "maximum_epsilon = 0", "maximum_epsilon: '0' is not a number"),
        (RULE + "maximum_delta = 0", "maximum_delta: '0' is not a number"),
        (RULE + "maximum_delta = 1", "below 1"),
        (RULE + "maximum_charge = 1.01", "a part of the budget, above 0 and at most 1"),
        (RULE + 'tested = "well"', "tested"),
        (RULE + 'maximum_pair_epsilon = "all"', "maximum_pair_epsilon"),
        (RULE + "maximum_row_epsilon = -1", "maximum_row_epsilon"),
        (RULE + "expires_days = 0", "whole number from 1"),
        (RULE + "expires_days = 36501", "whole number from 1 to 36500"),
        (RULE + "expire_days = 1", "unknown key 'expire_days'. Did you mean 'expires_days'"),
        (RULE + "[[rule]]\ndecision = 'deny'\nx = 1", r"number 2: unknown key 'x'"),
    ],
)
def test_a_malformed_policy_is_refused_with_its_place(load: Load, text: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem) as caught:
        load(text)
    assert "policy.toml" in str(caught.value)


def test_a_policy_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(InvalidInputError, match="the policy file cannot be read"):
            load_policy(path, researchers=[], attributes=[])


def test_a_policy_that_others_may_write_is_refused(load: Load, tmp_path: Path) -> None:
    load(RULES)
    (tmp_path / "policy.toml").chmod(0o666)
    with pytest.raises(InvalidInputError, match=r"policy\.toml: others than its owner may write this"):
        load(RULES)


def test_half_of_the_budget_is_for_releases_without_own_attributes_unless_the_file_says_otherwise(load: Load) -> None:
    assert load(RULES).others_share == load_policy(None, researchers=[], attributes=[]).others_share == Decimal("0.5")
    for part in ("0", "0.25", "1"):
        assert load(f"others_share = {part}").others_share == Decimal(part)
    for part in ("-0.1", "1.1"):
        with pytest.raises(InvalidInputError, match="others_share is a part of the budget, from 0 to 1"):
            load(f"others_share = {part}")


UNUSUAL = {
    "a pair that nothing protects": (seen(pair=None), 'maximum_pair_epsilon = "any"'),
    "a pair": (seen(pair="3.000001"), "maximum_pair_epsilon = 3.1"),
    "rows": (seen(row="12.000001"), 'maximum_row_epsilon = "any"'),
    "too few canaries": (seen(tested="too little"), 'tested = "too little"'),
    "no canaries": (seen(tested="not"), 'tested = "not"'),
    "several rows of a person": (
        replace(seen(), bounds=tuple(replace(bound, has_several=True) for bound in seen().bounds)),
        'maximum_pair_epsilon = "any"\nmaximum_row_epsilon = "any"',
    ),
    "a card that nobody has": (replace(seen(), bounds=()), 'maximum_pair_epsilon = "any"\nmaximum_row_epsilon = "any"'),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_a_rule_that_approves_leaves_to_a_person_what_undoes_protection(load: Load, name: str) -> None:
    outlook, allowed = UNUSUAL[name]
    request = request_with(attributes=("sex",))
    for more, verdict in (("", HELD), (f"{allowed}\n", APPROVED)):
        policy = load(f'[[rule]]\n{more}decision = "approve"\n')
        assert policy.needs_outlook(request)
        (decision,) = policy.decide(request, ["sex"], NOW, outlook)
        assert decision.verdict == verdict
        (usual,) = policy.decide(request, ["sex"], NOW, seen())
        assert usual.verdict == APPROVED
        assert 'tested = "' in usual.rule_text or "not" in more
    (denied,) = load('[[rule]]\ndecision = "deny"\n').decide(request, ["sex"], NOW, None)
    assert denied.verdict == DENIED, "a rule that denies has no limits unless it names them"
