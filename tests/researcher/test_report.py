"""The page stands alone, says which number is biased, and shows text as text whatever a category is called."""

import re
from dataclasses import replace
from decimal import Decimal
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest

from tests.researcher.survival.test_survival import patients, some, without_noise
from tests.worlds.domains import domain_of
from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.cards.card import Bound
from veiltab.common.privacy.planning.planning import FEW_ROWS
from veiltab.researcher.drawing.pictures import cell_label, largest
from veiltab.researcher.estimates.estimation import Estimate, ReleaseDesign
from veiltab.researcher.report.report import ReportInput, render

HOSTILE = ("<script>alert(1)</script>", "</style><b>", 'x" onload="y', "--><!--", "$\\frac{$", "日本 & co", 'id="c-x"')
DIGEST = "ab" * 32


def make_report(sizes: tuple[int, ...] = (3, 2, 2), *, hostile: bool = False, sample: int = 2000) -> ReportInput:
    rng = np.random.default_rng(5)
    attributes = tuple(
        Attribute(
            name=f"attribute <u>{i}" if hostile else f"attribute {i}",
            categories=tuple((HOSTILE[j] if hostile else f"value {j}") for j in range(size)),
        )
        for i, size in enumerate(sizes)
    )
    domain = Domain(attributes=attributes)
    mechanism = GammaDiagonal(cells=domain.cells, replacement=2**62)
    truth = rng.dirichlet(np.ones(domain.cells))
    counts = rng.multinomial(sample, 0.75 * truth + 0.25 / domain.cells)
    return ReportInput(
        title="A <title> & more",
        release_id="r-42 <u>",
        estimate=Estimate(
            domain=domain,
            design=ReleaseDesign(population=9000, sample=sample, mechanism=mechanism),
            counts=counts,
            study_digest=DIGEST,
        ),
        owners=tuple((a.name, "alice & sons") for a in attributes),
        epsilon="1",
        scheme="without replacement",
        pad="one-time pad",
        respondents="n counts <everybody>.",
        presence="<Who> learns of presence.",
        dates=(("requested", "2026-01-02"),),
        card=(
            Bound(roles=("analyst",), epsilon=Decimal("0.5"), note="<1, 0>"),
            Bound(roles=("server",), epsilon=Decimal(0), note="it sees nothing"),
        ),
        truth=truth,
    )


@cache
def made_page(*, hostile: bool = False) -> str:
    """Return the page of a report that several tests look at."""
    return render(make_report((7, 2, 2) if hostile else (3, 2, 2), hostile=hostile))


class Page(HTMLParser):
    """Reads a page; keeps its text, its tags with attributes, and every tag that closes none."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.comments = 0
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "br", "hr", "img", "link"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:  # noqa: ARG002 - the parser's name
        self.comments += 1


@pytest.mark.parametrize("hostile", [False, True])
def test_page_is_well_formed_and_text_is_text(*, hostile: bool) -> None:
    report, page = make_report((7, 2, 2) if hostile else (3, 2, 2), hostile=hostile), Page(made_page(hostile=hostile))
    assert page.open == []
    assert not {tag for tag, _ in page.tags} & {"script", "iframe", "object", "img", "link", "b", "foreignobject", "u"}
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert page.comments == 0
    for text in (
        *report.estimate.domain.names,
        *report.estimate.domain.attributes[0].categories,
        "A <title> & more",
        "alice & sons",
        "<1, 0>",
    ):
        assert text in page.text
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = {value for _, attributes in page.tags for name, value in attributes.items() if name.endswith("href")}
    assert {target[1:] for target in targets if target} <= set(ids)


def test_a_page_shows_means_of_numbers() -> None:
    report = make_report()
    first, *others = report.estimate.domain.attributes
    number = Attribute(name=first.name, categories=("10", "20", "40"), number="alice hours")
    estimate = replace(report.estimate, domain=Domain(attributes=(number, *others)))
    page = Page(render(replace(report, estimate=estimate, pair=("attribute 0", "attribute 1"))))
    assert "Mean of attribute 0" in page.text
    assert "mean of attribute 0 given attribute 1" in page.text
    assert "attribute 1 value 0" in page.text
    assert "attribute 0=" not in page.text
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_a_page_begins_with_the_curve_of_a_time_to_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.researcher.report.report.figure", lambda _picture, caption: caption)
    people = some(patients(), "arm", "months", "died")
    owners = tuple((name, "alice") for name in people)
    text = Page(render(replace(make_report(), estimate=without_noise(people), owners=owners, truth=None))).text
    assert re.search(r"Share without died=yes by months 19: [0-9.]+% \([0-9.]+% to [0-9.]+%\)", text)
    assert text.index("Share without died=yes by months given arm") < text.index("Estimates")
    assert "given months" not in text


def test_nothing_is_loaded_from_elsewhere() -> None:
    html = made_page()
    page = Page(html)
    for _, attributes in page.tags:
        for name, value in attributes.items():
            if name in {"src", "href", "xlink:href", "data", "action", "srcset"}:
                assert value is not None
                assert value.startswith("#")
    assert not re.search(r"@import|url\((?!#)", html)


def test_a_browser_is_told_to_load_and_run_nothing() -> None:
    page = Page(made_page())
    (policy,) = [
        attributes["content"]
        for tag, attributes in page.tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert [tag for tag, _ in page.tags].index("meta") < [tag for tag, _ in page.tags].index("style")


def test_it_names_the_study_file_and_all_its_categories_in_their_order() -> None:
    report = make_report((14, 2))
    text = Page(render(report)).text
    assert DIGEST in text
    assert " | ".join(report.estimate.domain.attributes[0].categories) in text


def test_same_input_gives_the_same_bytes() -> None:
    assert render(make_report()) == made_page()


def test_it_says_what_was_released_and_which_number_is_biased() -> None:
    text = Page(made_page()).text
    cells = "12 = 3 \N{MULTIPLICATION SIGN} 2 \N{MULTIPLICATION SIGN} 2"
    for part in ("r-42", "9,000", "2,000 (22.2% of n)", cells, "2026-01-02"):
        assert part in text
    assert re.search(r"raw estimate takes the average.*?It is unbiased", text, re.DOTALL)
    assert re.search(r"projected value.*?It is\s+biased", text, re.DOTALL)


def test_numbers_of_the_cells_are_those_of_the_estimate() -> None:
    report, html = make_report(), made_page()
    last = html[html.index("<h2>All cells</h2>") :]
    rows = re.findall(r"<tr>(<td.*?)</tr>", last)
    assert len(rows) == 12
    for cell, row in enumerate(rows):
        fields = re.findall(r"<td[^>]*>(.*?)</td>", row)
        assert tuple(fields[:3]) == report.estimate.domain.categories_of(cell)
        numbers = [float(f.replace("\N{MINUS SIGN}", "-").rstrip("%")) for f in (fields[3], fields[4], fields[6])]
        expected = [100 * float(v[cell]) for v in (report.estimate.raw, report.estimate.se, report.estimate.projected)]
        assert numbers == pytest.approx(expected, abs=0.0051)
        assert report.truth is not None
        assert float(fields[8].rstrip("%")) == pytest.approx(100 * report.truth[cell], abs=0.0051)


def test_truth_is_shown_only_where_it_is_known_and_few_rows_are_warned_of() -> None:
    whole = Page(made_page()).text
    assert "truth" in whole.split("Estimates", 1)[1].split("One attribute", 1)[0]
    assert FEW_ROWS not in whole
    assert "<th class" in made_page()
    other = Page(render(replace(make_report((4, 1), sample=19), truth=None))).text
    assert "Long upright stroke" not in other.split("Estimates", 1)[1]
    assert FEW_ROWS in other
    assert "degrees of freedom" in other, "a test that cannot be made says why"


@pytest.mark.long
def test_large_tables_show_the_largest_cells_and_say_so() -> None:
    report = make_report((2, 501))
    text = Page(render(report)).text
    assert "The 60 largest of 1,002 cells." in text
    assert "The 1,000 largest of 1,002 cells." in text
    assert text.count(" · ") == 4 * 60
    # 60 labels in each drawing of cells and of shares, the wide and the narrow one; the largest estimate is among them
    assert cell_label(report.estimate, int(report.estimate.raw.argmax())) in text


@pytest.mark.long
def test_pair_of_the_heat_map_is_the_strongest_or_the_one_asked_for() -> None:
    report = make_report()
    asked = Page(render(replace(report, pair=("attribute 2", "attribute 0")))).text
    assert "attribute 2 and attribute 0" in asked
    assert "strongest estimated association" not in asked
    rng = np.random.default_rng(2)
    joint = np.einsum("a,bc->abc", [0.5, 0.3, 0.2], [[0.4, 0.1], [0.1, 0.4]]).reshape(-1)
    dependent = replace(report.released, counts=rng.multinomial(2000, joint))
    text = Page(render(replace(report, estimate=dependent))).text
    assert "attribute 1 and attribute 2" in text
    assert "strongest estimated association" in text


def test_one_attribute_alone_needs_no_pairs() -> None:
    text = Page(render(make_report((5,)))).text
    assert "Which attributes depend" not in text
    assert "All cells" in text


def test_labels_go_on_in_the_next_line_and_are_cut_where_they_are_longest() -> None:
    mechanism = GammaDiagonal(cells=2, replacement=2**62)
    design = ReleaseDesign(population=10, sample=4, mechanism=mechanism)
    estimate = Estimate(domain=domain_of(a=("x" * 100, "short"), b=("y" * 20,)), design=design, counts=np.array([3, 1]))
    label = cell_label(estimate, 0)
    assert label.replace("\n", " ") == "x" * 60 + " " + "x" * 40 + " · " + "y" * 20
    narrow = cell_label(estimate, 0, 20)
    assert narrow.replace("\n", "").replace(" ", "") == "x" * 36 + "…·" + "y" * 20
    assert max(map(len, narrow.split("\n"))) <= 20
    assert cell_label(estimate, 1) == "short · " + "y" * 20


def test_largest_keeps_the_order_of_the_table() -> None:
    assert largest(np.array([0.1, 0.5, 0.2, 0.5, 0.0]), 3).tolist() == [1, 2, 3]


def test_incomplete_reports_are_refused() -> None:
    report = make_report()
    with pytest.raises(InvalidInputError, match="no owner"):
        replace(report, owners=(("attribute 0", "alice"),))
    with pytest.raises(InvalidInputError, match="same cells"):
        replace(report, truth=np.full(3, 1 / 3))
    for pair in (("attribute 0", "attribute 0"), ("attribute 0", "nobody")):
        with pytest.raises(InvalidInputError, match="two different attributes"):
            replace(report, pair=pair)


def test_a_phone_sees_drawings_that_it_need_not_make_smaller() -> None:
    html = made_page(hostile=True)
    wide, narrow = (
        re.findall(rf'class="{name}".*\n<svg [^>]*width="([0-9.]+)pt"', html) for name in ("wide", "narrow")
    )
    assert len(narrow) == len(wide) == 4
    assert all(float(points) <= 4 * 72 for points in narrow)
