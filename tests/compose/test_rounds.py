"""A round of collection through the containers: a fleet reports, and the estimates are compared with the truth."""

import numpy as np

from tests.compose.marks import COMPOSE, Remark
from tests.compose.stack import Stack
from veiltab.common.collection.population import parse_population

pytestmark = COMPOSE

NODES = 2000
DISTRIBUTION = "binomial:10:0.5"
"""What compose.yaml lets the fleet hold."""

LARGEST_Z = 5.6
"""No estimate is farther from the truth, in standard errors: alpha = 10 values * 2.2e-8 = 2.2e-7 a round."""


def test_two_thousand_nodes_who_reach_the_server_alone_answer_a_round(stack: Stack, remark: Remark) -> None:
    opened = stack.collect("open", "--epsilon", "2", "--rate", "0.5", "--population", str(NODES), "--oracle", "krr")
    round_id = str(opened["round"])
    stack.collect("enrol", "--round", round_id, "--nodes", str(NODES), "--out", "/srv/veiltab/tokens.csv")
    answer = stack.fleet(round_id)
    assert stack.fleet(round_id) == answer, "the fleet answered otherwise when it was asked again"
    stack.collect("close", "--round", round_id)
    result = stack.collect("estimate", "--round", round_id)
    true = parse_population(DISTRIBUTION).counts(NODES, 10) / NODES
    estimates, errors = (np.array([value[name] for value in result["values"]]) for name in ("estimate", "se"))
    largest = float(np.max(np.abs(estimates - true) / errors))
    assert largest <= LARGEST_Z, f"an estimate is {largest:.1f} standard errors from the truth"
    # The comparison must be able to fail.
    assert float(np.max(np.abs(estimates - np.roll(true, 3)) / errors)) > LARGEST_Z, "any distribution would do"
    remark(f"{sum(result['reports'].values())} reports of {NODES} nodes, at most {largest:.1f} standard errors")
