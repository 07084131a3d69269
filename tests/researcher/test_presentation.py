import re
from dataclasses import replace
from decimal import Decimal
from html import unescape

import numpy as np
import pytest

from tests.common.schemes.made_up import OneRespondent
from tests.conftest import spec_with
from tests.made_receipts import made_tests
from tests.researcher.made_status import made_status, result_of
from veiltab.common.errors import FailedReleaseError
from veiltab.common.privacy.cards.card import N_IS_EXACT
from veiltab.common.release.guarantees import epsilon_card, guaranteed_epsilon
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.spec import release_of
from veiltab.common.schemes import SCHEMES, has_stage, scheme_class
from veiltab.common.study.file import Study
from veiltab.common.study.missing import presence_sentence
from veiltab.researcher.estimates.estimation import Estimate
from veiltab.researcher.estimates.uncertainty import ReleaseDesign
from veiltab.researcher.report.presentation import report_page
from veiltab.researcher.status.release_status import Status


@pytest.fixture(autouse=True)
def _words_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no pictures: they are what test_report looks at."""
    monkeypatch.setattr("veiltab.researcher.report.report.figure", lambda _picture, caption: caption)


@pytest.fixture
def status() -> Status:
    spec = spec_with(epsilon=Decimal("1.25"))
    return made_status(
        release_id=spec.release_id,
        study_digest=spec.study_digest,
        epsilon="1.25",
        spec=release_of(spec),
        granted=("sex", "salary"),
    )


def estimate_of(study: Study, status: Status, names: tuple[str, ...]) -> Estimate:
    domain = study.domain(names)
    assert status.spec is not None
    mechanism = status.spec.table(0).mechanism.marginal(domain.cells)
    counts = np.full(domain.cells, 400 // domain.cells, np.int64)
    return Estimate(
        domain=domain,
        design=ReleaseDesign(population=1000, sample=400, mechanism=mechanism),
        counts=counts,
        study_digest=study.digest,
    )


@pytest.mark.parametrize("name", [*SCHEMES, OneRespondent.name])
def test_a_report_names_the_scheme(study: Study, status: Status, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(SCHEMES, OneRespondent.name, "tests.common.schemes.made_up:OneRespondent")
    stage = 500 if has_stage(scheme_class(name)) else None
    reported = replace(status, spec=release_of(spec_with(scheme=name, stage=stage)))
    page = unescape(report_page(study, reported, estimate_of(study, reported, ("sex", "salary"))))
    assert f"{scheme_class(name).title}, from a seed that the curators tossed" in page


def test_a_report_says_what_was_released_and_what_it_guarantees(study: Study, status: Status) -> None:
    assert status.spec is not None
    page = unescape(report_page(study, status, estimate_of(study, status, ("sex", "salary"))))
    for text in (
        "A survey: sex, salary",
        status.release_id,
        f"{guaranteed_epsilon(status.spec.table(0)).normalize():f}",
        "from a seed that the curators tossed",
        "ChaCha20, one key an attribute",
        "alice",
        "bob",
        "the curators add no noise, so together they hold the raw rows",
    ):
        assert text in page
    for bound in epsilon_card(status.spec.table(0)).bounds:
        assert all(text in page for text in (bound.name, bound.limit, bound.note, bound.in_full))
    assert f"{N_IS_EXACT} {presence_sentence(study)}" in page


def test_the_other_ways_to_sample_and_encrypt_have_their_words(study: Study, status: Status) -> None:
    assert status.spec is not None
    other = replace(status, spec=replace(status.spec, sampling=Sampling.INDICES, pad=Pad.OTP))
    page = report_page(study, other, estimate_of(study, status, ("sex", "salary")))
    assert "row indices that one curator drew and shared" in page
    assert "one-time pad" in page


def test_a_part_names_its_own_curators_only(study: Study, status: Status) -> None:
    page = report_page(study, status, estimate_of(study, status, ("salary",)))
    assert "A survey: salary" in page
    assert "bob" in page
    assert "sex" not in page


def test_without_a_result_there_is_no_report(study: Study, status: Status) -> None:
    estimate = estimate_of(study, status, ("salary",))
    for failure, problem in (("", "there is no result"), ("why", "why")):
        with pytest.raises(FailedReleaseError, match=problem):
            report_page(study, replace(status, spec=None, failure=failure), estimate)


def test_a_report_shows_the_result_of_every_test_of_the_server_and_no_count(study: Study, status: Status) -> None:
    assert "Tests of the server" not in report_page(study, status, estimate_of(study, status, ("sex", "salary")))
    assert status.spec is not None
    spec = replace(status.spec.table(0), canaries=10_300)
    passed, failed = (made_tests(spec, share=share).all_receipts() for share in (1.0, 0.5))
    receipts = (passed[0], failed[1], failed[2])
    for with_counts in (True, False):
        tested = replace(status, receipts=tuple(result_of(one, with_counts=with_counts) for one in receipts))
        page = report_page(study, tested, estimate_of(study, status, ("sex", "salary")))
        shown = page[page.index("Tests of the server") :]
        shown = shown[: shown.index("<h2")]
        for receipt in receipts:
            words = (receipt.tested_by, "10,300", f"{receipt.expected:,.0f} ± {receipt.sd:,.0f}")
            assert all(f">{word}</td>" in shown for word in words), receipt
            for count in receipt.counts:
                assert f"{count.count:,}" not in re.findall(r"[\d,]+", shown), count
        assert (shown.count("<td>passed</td>"), shown.count("<td>failed</td>")) == (1, 2)
