"""What a study allows of a request: so much, and not one more."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.conftest import request_with
from veiltab.common.errors import InvalidInputError
from veiltab.common.release.request_limits import check_limits
from veiltab.common.study.file import Study

SEVERAL: dict[str, Any] = {
    "attributes": ("sex", "age", "salary"),
    "tables": (("sex", "age"), ("sex", "salary")),
    "delta": Decimal("1e-6"),
}


def test_a_release_has_no_more_tables_than_the_study_allows(study: Study) -> None:
    check_limits(request_with(**SEVERAL), replace(study, maximum_tables=2))
    with pytest.raises(InvalidInputError, match="2 tables are asked for; the study allows 1"):
        check_limits(request_with(**SEVERAL), replace(study, maximum_tables=1))


@pytest.mark.parametrize("several", [False, True])
def test_a_table_may_have_the_most_cells_and_not_one_more(study: Study, *, several: bool) -> None:
    request = request_with(**(SEVERAL if several else {}))
    cells = study.domain(("sex", "age") if several else request.attributes).cells
    check_limits(request, replace(study, maximum_cells=cells))
    with pytest.raises(InvalidInputError, match=f"has {cells} cells; the study allows {cells - 1}"):
        check_limits(request, replace(study, maximum_cells=cells - 1))
