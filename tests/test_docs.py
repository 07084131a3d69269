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
