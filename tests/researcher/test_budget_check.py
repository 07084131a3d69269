from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.conftest import request_with
from veiltab.common.errors import BudgetExceededError
from veiltab.common.study.file import Study
from veiltab.researcher.desk.request_check import check_fits_budget


def budget(study: Study, delta: str | None) -> Study:
    return replace(study, budget_epsilon=Decimal(3), budget_delta=None if delta is None else Decimal(delta))


@pytest.mark.parametrize(
    ("asked", "delta", "said"),
    [
        (
            {"epsilon": Decimal("3.01")},
            None,
            "study survey: epsilon 3.01 is above the study's whole budget of 3, so no",
        ),
        ({"epsilon": Decimal("3.01"), "delta": Decimal("1e-5")}, "1e-5", "whole budget of 3 at delta 1e-5, so no"),
    ],
)
def test_more_than_the_whole_budget_is_refused(
    study: Study, asked: dict[str, Any], delta: str | None, said: str
) -> None:
    with pytest.raises(BudgetExceededError) as refused:
        check_fits_budget(request_with(**asked), budget(study, delta))
    assert said in str(refused.value)
    assert "Ask for a smaller epsilon" in refused.value.remedy


@pytest.mark.parametrize(
    ("asked", "delta"),
    [
        ({"epsilon": Decimal(3)}, None),
        # With a delta these may take less than their epsilon; only n shows it.
        ({"epsilon": Decimal(4)}, "1e-5"),
        ({"epsilon": Decimal(4), "delta": Decimal("1e-9")}, "1e-5"),
        ({"epsilon": Decimal(2), "delta": Decimal("1e-3")}, "1e-5"),
        ({"epsilon": Decimal(4), "max_local_epsilon": Decimal(1), "delta": Decimal("1e-5")}, "1e-5"),
    ],
)
def test_what_a_budget_might_hold_is_left_to_the_curators(
    study: Study, asked: dict[str, Any], delta: str | None
) -> None:
    check_fits_budget(request_with(**asked), budget(study, delta))
