"""A plan over HTTP computes any quantity from the others, rounded the safe way, and says what it would cost."""

from decimal import Decimal
from typing import Any

import pytest

from tests.researcher.api.asking import Program
from veiltab.common.privacy.planning.planning import plan_release
from veiltab.common.privacy.pricing.price import price_budget

TABLE = {"cells": "24", "population": "45222", "epsilon": "1"}
PAIRS = {"shape": "pairs", "attributes": ["sex", "age", "salary"], "population": "20000", "delta": "1e-6"}


def planned(reader: Program, *asked: dict[str, Any]) -> dict[str, Any]:
    answer = reader.ask("/v1/plan", params={name: value for part in asked for name, value in part.items()})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_errors_are_rounded_up_and_a_cell_has_its_part(reader: Program) -> None:
    asked = {"attributes": ["sex", "salary"], "population": "20000", "epsilon": "0.5", "delta": "1e-6"}
    found = planned(reader, asked)
    plan = plan_release(population=20_000, cells=4, epsilon=Decimal("0.5"), delta=Decimal("1e-6"))
    assert plan.root_mse() <= found["error"] <= 1.01 * plan.root_mse()
    assert plan.root_mse() / 2 <= found["cell_error"] <= 1.01 * plan.root_mse() / 2, "one of four cells"
    assert 0 < found["share"] < 1
    assert planned(reader, asked | {"epsilon": "9"})["share"] > 1, "no curator can grant it"


@pytest.mark.parametrize(
    ("asked", "value"),
    [
        ({"asked": "error"}, 0.0341),
        ({"asked": "epsilon", "error": "0.02"}, 1.77),
        ({"asked": "population", "error": "0.02"}, 132_000),
    ],
)
def test_any_quantity_is_found_from_the_others(reader: Program, asked: dict[str, str], value: float) -> None:
    known = {name: given for name, given in TABLE.items() if name != asked["asked"]}
    found = planned(reader, known, asked)
    assert (found["asked"], found[asked["asked"]]) == (asked["asked"], value)
    assert found["feasible"]


def test_several_tables_share_a_charge(reader: Program) -> None:
    found = planned(reader, PAIRS, {"epsilon": "1"})
    assert (found["tables"], found["cells"], found["cell_error"]) == (3, 16, None)
    assert [one["attributes"] for one in found["errors"]] == [["sex", "age"], ["sex", "salary"], ["age", "salary"]]
    parts = [price_budget(Decimal(epsilon), Decimal("1e-6")).mu ** 2 for epsilon in (1, 2)]
    assert found["share"] == pytest.approx(float(parts[0] / parts[1]), rel=0.01)
    least = planned(reader, PAIRS, {"asked": "epsilon", "error": ".02"})
    assert least["feasible"]
    assert least["error"] <= 0.02


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        (TABLE | {"population": "0"}, "population"),
        (TABLE | {"delta": "2"}, "delta"),
        (TABLE | {"cells": "1"}, "cells"),
        ({"population": "100", "epsilon": "1"}, "cells"),
        ({"cells": "24", "epsilon": "1"}, "population"),
        ({"cells": "24", "population": "100", "asked": "epsilon", "error": "2"}, "error"),
        ({"attributes": ["sex", "height"], "population": "100", "epsilon": "1"}, "study survey"),
        ({"shape": "everything", "population": "100", "epsilon": "1"}, "shape"),
        (PAIRS | {"shape": "linked", "attributes": ["sex"], "epsilon": "1"}, "attributes"),
        ({"shape": "pairs", "population": "100", "epsilon": "1"}, "delta"),
        (PAIRS | {"asked": "cells", "epsilon": "1", "error": ".1"}, "asked"),
    ],
)
def test_a_plan_without_an_answer_says_where(reader: Program, asked: dict[str, Any], where: str) -> None:
    answer = reader.ask("/v1/plan", params=asked)
    assert (answer.status_code, answer.json()["where"]) == (400, where)


def test_an_error_that_cannot_be_reached_is_said(reader: Program) -> None:
    found = planned(reader, {"cells": "24", "population": "100", "asked": "epsilon", "delta": "1e-6", "error": "1e-9"})
    assert not found["feasible"]
    assert found["advice"]
