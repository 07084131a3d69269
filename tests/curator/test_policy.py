from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from veiltab.common.errors import InvalidInputError
from veiltab.curator.policy import Policy, load_policy
from veiltab.curator.progress import APPROVED, DENIED, HELD, GrantDecision

Make = Callable[..., Any]
NOW = 1_900_000_000

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
    load: Load, make_request: Make, researcher: str, attribute: str, epsilon: str, verdict: str, expires: int | None
) -> None:
    request = make_request(researcher=researcher, attributes=(attribute,), epsilon=Decimal(epsilon))
    (decision,) = load(RULES).decide(request, ["sex", "age", "salary"], NOW)
    assert decision == GrantDecision(attribute=attribute, verdict=verdict, expires=expires, decided_by="policy")


def test_only_own_attributes_that_are_asked_for_are_decided(load: Load, make_request: Make) -> None:
    request = make_request(attributes=("sex", "salary", "age"))
    decided = load(RULES).decide(request, iter(["age", "sex"]), NOW)
    assert [decision.attribute for decision in decided] == ["sex", "age"]


def test_the_order_of_the_rules_matters(load: Load, make_request: Make) -> None:
    text = '[[rule]]\ndecision = "{}"\n[[rule]]\ndecision = "{}"\n'
    for first, second, verdict in (("approve", "deny", APPROVED), ("deny", "approve", DENIED)):
        decided = load(text.format(first, second)).decide(make_request(), ["sex"], NOW)
        assert [decision.verdict for decision in decided] == [verdict]


def test_without_a_policy_a_person_decides(make_request: Make, load: Load) -> None:
    for policy in (load_policy(None, researchers=[], attributes=[]), load(""), load("budget = 1")):
        decided = policy.decide(make_request(), ["sex", "salary"], NOW)
        assert {decision.verdict for decision in decided} == {HELD}
    assert load_policy(None, researchers=[], attributes=[]).budget is None


def test_a_rule_for_no_attribute_decides_nothing(load: Load, make_request: Make) -> None:
    policy = load('[[rule]]\nattributes = []\ndecision = "approve"')
    assert policy.decide(make_request(), ["sex"], NOW)[0].verdict == HELD


def test_numbers_are_read_exactly(load: Load) -> None:
    policy = load(RULES)
    assert policy.budget == Decimal("0.5")
    assert policy.rules[1].maximum_epsilon == Decimal("0.1")


RULE = "[[rule]]\ndecision = 'deny'\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rule", "cannot be read as TOML"),
        ("[[rule]", "cannot be read as TOML"),
        ("a = '\udcff'", "cannot be read as TOML"),
        ("budget = 1e99999999999999999999999", "cannot be read as TOML|not a finite"),
        ("budget = " + "9" * 5000, "cannot be read as TOML"),
        ("budget = 0", "budget must be a number above 0"),
        ("budget = -1", "budget must be a number above 0"),
        ("budget = 100.5", "at most 100"),
        ("budget = nan", "not a finite number"),
        ("budget = inf", "not a finite number"),
        ("budget = 1e-400000000", "ordinary size"),
        ("budget = true", "another kind"),
        ("budget = '1'", "another kind"),
        ("budget = [1]", "another kind"),
        ("budgt = 1", "unknown key 'budgt'. Did you mean 'budget'"),
        ("rule = 5", "another kind"),
        ("rule = 'deny'", "another kind"),
        ("rule = [1]", "another kind"),
        ("[rule]\ndecision = 'deny'", "another kind"),
        ("[[rule]]", "decision is not there"),
        ("[[rule]]\ndecision = 'aprove'", 'decision must be "approve", "hold" or "deny"'),
        ("[[rule]]\ndecision = ['approve']", "another kind"),
        ("[[rule]]\ndecision = true", "another kind"),
        (RULE + "researcher = 'ross'", "researcher is not in the study"),
        (RULE + "researcher = 1", "another kind"),
        (RULE + "researcher = ['rosa']", "another kind"),
        (RULE + "attributes = ['sax']", "attributes are not this curator's"),
        (RULE + "attributes = 'sax'", "attributes are not this curator's"),
        (RULE + "attributes = ['*']", "attributes are not this curator's"),
        (RULE + "attributes = [['sex']]", "another kind"),
        (RULE + "attributes = [1]", "another kind"),
        (RULE + "attributes = {sex = 1}", "another kind"),
        (RULE + "maximum_epsilon = 0", "maximum_epsilon must be a number above 0"),
        (RULE + "maximum_epsilon = '1'", "another kind"),
        (RULE + "maximum_epsilon = nan", "not a finite number"),
        (RULE + "maximum_epsilon = false", "another kind"),
        (RULE + "expires_days = 0", "whole number from 1"),
        (RULE + "expires_days = -1", "whole number from 1"),
        (RULE + "expires_days = 1.5", "another kind"),
        (RULE + "expires_days = true", "another kind"),
        (RULE + "expires_days = 36501", "whole number from 1 to 36500"),
        (RULE + "expires_days = 99999999999999999999", "whole number from 1"),
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
        with pytest.raises(InvalidInputError, match="cannot be read as TOML"):
            load_policy(path, researchers=[], attributes=[])
