"""The page of microdata stands alone, warns, and shows text as text."""

import re
from dataclasses import replace
from decimal import Decimal

import pytest

from tests.researcher.microdata.made_linked import DOMAIN, PEOPLE, measured, people, status
from tests.researcher.test_report import Page
from veiltab.common.privacy.cards.card import Bound
from veiltab.researcher.microdata.expectation import ExpectedError
from veiltab.researcher.microdata.provenance import WARNING
from veiltab.researcher.microdata.synthesis import synthesise
from veiltab.researcher.report.microdata_page import MicrodataReport, render
from veiltab.researcher.survival.follow_up import Ending


@pytest.fixture(scope="module")
def report() -> MicrodataReport:
    truth = people()
    tables = measured(truth, seed=1)
    made = synthesise(DOMAIN, status(), tables, rows=PEOPLE, seed="<script>")
    return MicrodataReport(
        title="A <title> & more",
        domain=DOMAIN,
        owners={"age": "alice & sons", "job": "alice & sons", "wage": "bob", "town": "bob"},
        provenance=made.provenance,
        model=made.model,
        rows=made.rows(),
        tables=tables,
        expected=ExpectedError(pairs=0.0321, noise=0.0123),
        card=(Bound(roles=("analyst",), epsilon=Decimal("0.5"), note="<1, 0>"),),
        presence="<Who> learns of presence.",
        dates=(("report written", "2026-01-02"),),
        truth=truth,
    )


@pytest.fixture(scope="module")
def html(report: MicrodataReport) -> str:
    return render(report)


def test_page_is_well_formed_and_text_is_text(html: str) -> None:
    page = Page(html)
    assert page.open == []
    assert not {tag for tag, _ in page.tags} & {"script", "iframe", "object", "img", "link", "b", "foreignobject"}
    for text in ("A <title> & more", "alice & sons", "<b>clerk", "=smith", WARNING, "3.21%", "<1, 0>"):
        assert text in page.text
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    (policy,) = [a["content"] for tag, a in page.tags if tag == "meta" and a.get("http-equiv")]
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_the_truth_is_shown_only_where_it_is_known(report: MicrodataReport, html: str) -> None:
    assert "actual, mean over all pairs" in html
    assert "actual" not in render(replace(report, truth=None))


def test_every_measured_pair_is_listed(report: MicrodataReport, html: str) -> None:
    text = Page(html).text
    for one in report.tables:
        assert " \N{MULTIPLICATION SIGN} ".join(one.names) in text


def test_a_page_begins_with_what_the_tables_say_of_survival(
    report: MicrodataReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = Ending(time="wage", event="town", categories=("south",))
    for module in ("report", "microdata_page"):
        monkeypatch.setattr(f"veiltab.researcher.report.{module}.seeming_ending", lambda _domain: ending)
        monkeypatch.setattr(f"veiltab.researcher.report.{module}.figure", lambda _picture, caption: caption)
    text = Page(render(report)).text
    assert re.search(r"Share without town=south by wage \w+: [0-9.]+% \(", text)
    assert text.index("By its name wage is the time") < text.index("What the rows are")
