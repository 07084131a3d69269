"""The site has every page, and its pages load nothing from elsewhere."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"

_TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def named_pages(index: Path) -> Iterator[Path]:
    """Return the pages that the tables of contents of a page name, and so on."""
    yield index
    for tree in _TOCTREE.findall(index.read_text()):
        for line in tree.splitlines():
            if line and not line.startswith(":"):
                for page in sorted(index.parent.glob(f"{line}.md")):
                    yield from named_pages(page)


def test_the_tables_of_contents_name_every_page_once() -> None:
    assert sorted(named_pages(DOCS / "index.md")) == sorted(DOCS.rglob("*.md"))


@pytest.mark.parametrize(
    ("page", "remote"),
    [
        ('<img src="https://example.org/a.png">', 1),
        ('<script async src="//example.org/a.js"></script>', 1),
        ('<link rel="stylesheet" href="https://example.org/a.css">', 1),
        ('<a href="https://example.org">elsewhere</a><img src="_images/a.svg">', 0),
    ],
)
def test_a_page_that_loads_something_from_elsewhere_is_noticed(page: str, remote: int) -> None:
    spec = importlib.util.spec_from_file_location("conf", DOCS / "conf.py")
    assert spec is not None
    assert spec.loader is not None
    conf = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conf)
    assert len(list(conf.remote_assets(page))) == remote


def test_the_readme_is_short_and_its_links_lead_somewhere() -> None:
    text = (DOCS.parent / "README.md").read_text()
    assert text.count("\n") <= 70
    linked = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
    assert len(linked) > 5
    assert [link for link in linked if not (DOCS.parent / link).exists()] == []


SAID: list[tuple[str, ...]] = [
    ("accounting.md", "Releases stand in every ledger"),
    ("accounting.md", "one point (eps_B, delta_B)", "other epsilons is not promised"),
    ("accounting.md", "must not change one person's row in the light of another's and of results"),
    ("accounting.md", "studies with the same people add up"),
    ("accounting.md", "budget is fixed", "raise after results"),
    ("accounting.md", "study file", "public and outside every epsilon"),
    ("accounting.md", "before the charge must not depend on rows"),
    ("coalitions.md", "each attempt is charged", "only delta_j for the j"),
    ("coalitions.md", "probability 1e-9 a table", "sums over the tables of a workload"),
    ("coalitions.md", "numbers are not rounded again"),
    ("coalitions.md", "a thousandth of the card's delta"),
    ("linkage.md", "follows from the release's own price", ".213, 1.065 and 2.165", "up to 2.6"),
    ("linkage.md", "does not protect presence in the hub's table", "without clerks' samples", "`--for-researcher`"),
    ("linkage.md", "other identifiers in rows of J spokes", "a group of 2J"),
    ("linkage.md", "The hub fixed", "without a look at how spokes link"),
    ("join.md", "with probability at most 2^-40 unless all but 40 columns", "132 unknown bits"),
    ("join.md", "below 2^-28", "counts as absent"),
    ("linkage-errors.md", "people like the linked ones", "off by l (W - P_A) P_B"),
    ("linkage-errors.md", "for one leg", "attributes of the hub are those in which the wrongly linked are alike"),
    ("linkage-errors.md", "Wrong links are more frequent in some categories", "NOT COVERED at 95%"),
    ("microdata.md", "worst coverage", ".950"),
    ("numbers.md", "to first order", "too small by the variance of its mean", "adds that back"),
    ("numbers.md", "said only if it is positive", "said are too large"),
    ("order-certificate.md", "attained up to moderate epsilon", ".01871"),
    ("order-certificate.md", "does not depend on its value", "counts every report that comes"),
    ("order-certificate.md", "no sum of positive terms", "one peak"),
    ("protection.md", "1e-9 a table (not a release", "131 tables fail with 1.3e-7"),
    ("protection.md", "pure, because the sample and the order are secret"),
    ("tables.md", "made from this person's rows alone", "compares people", "no epsilon here bounds that"),
    ("threat-model.md", "secret and fresh", "order of the table the ratio may be larger"),
    ("threat-model.md", "for every set R of results", "sum over S"),
]
"""A page, and words that stand in one of its paragraphs."""


def test_each_condition_of_a_guarantee_stands_in_one_paragraph() -> None:
    texts = {page: (DOCS / page).read_text().replace("*", "") for page, *_ in SAID}
    paragraphs = {page: [" ".join(one.split()) for one in text.split("\n\n")] for page, text in texts.items()}
    assert [one for one in SAID if not any(all(word in text for word in one[1:]) for text in paragraphs[one[0]])] == []
