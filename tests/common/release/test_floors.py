"""What a study asks of every release: whoever plans, publishes or takes one refuses less."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.conftest import request_with, spec_with
from veiltab.common.errors import InvalidInputError
from veiltab.common.release.floors import Floors
from veiltab.common.release.request_limits import check_limits
from veiltab.common.release.spec import release_of
from veiltab.common.study.file import Study
from veiltab.researcher.parties.agreement import agreed_spec
from veiltab.server.release.spec_check import check_spec

LESS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "too little": (
        {"minimum_tested": "enough"},
        {"canaries": 2},
        "too little.*asks for 'enough'.*sample that the curators draw",
    ),
    "pair": ({"maximum_pair_epsilon": Decimal(3)}, {"curator_replacement": 0}, "desk with server would .* no protect"),
    "row": ({"maximum_row_epsilon": Decimal(9)}, {"server_replacement": 2**48}, "desk with curators .* a row"),
}


@pytest.mark.parametrize("less", LESS)
def test_every_party_refuses_a_release_below_a_floor_of_the_study(study: Study, less: str) -> None:
    floor, changes, why = LESS[less]
    asks, good = replace(study, **floor), spec_with(canaries=20_000, curator_replacement=2**63, deadline=9)
    spec = replace(good, **changes)
    check_spec(good, good.columns[0].owner, asks)
    check_spec(spec, spec.columns[0].owner, study)
    planned = {column.owner: spec for column in spec.columns}
    request = request_with(canaries=spec.canaries, deadline=9)
    assert agreed_spec(request, study, spec, planned) == spec
    for refuses in (
        lambda: Floors.of(asks).check(release_of(spec)),
        lambda: check_spec(spec, spec.columns[0].owner, asks),
        lambda: agreed_spec(request, asks, spec, planned),
    ):
        with pytest.raises(InvalidInputError, match=why):
            refuses()


def test_a_request_without_the_noise_of_curators_that_a_study_asks_for_is_refused(study: Study) -> None:
    asks = replace(study, minimum_noise_split=Decimal("0.25"))
    check_limits(request_with(noise_split=Decimal("0.25")), asks)
    with pytest.raises(InvalidInputError, match=r"0\.24; the study asks for 0\.25"):
        check_limits(request_with(noise_split=Decimal("0.24")), asks)


def test_no_limit_takes_a_sample_that_may_have_a_person_several_times() -> None:
    spec = spec_with(curator_replacement=2**63)
    for floors in (Floors(row_epsilon=Decimal(1000)), Floors(pair_epsilon=Decimal(1000))):
        floors.check(release_of(spec))
        with pytest.raises(InvalidInputError, match=r"a person may have several; .* the study allows epsilon 1000"):
            floors.check(release_of(replace(spec, scheme="wr")))
