"""How `make docs` makes the site; a warning is an error, and so is a page that loads anything from elsewhere."""

import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import click
from sphinx.application import Sphinx
from sphinx.errors import SphinxError

project = "veiltab"
author = "the authors of veiltab"
copyright = f"{author}, Apache License 2.0"  # noqa: A001 - the name that Sphinx reads
release = metadata.version("veiltab")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click"]
root_doc = "index"
myst_heading_anchors = 4
autodoc_typehints = "description"
autodoc_member_order = "bysource"
html_theme = "furo"
html_title = "veiltab"
html_static_path = ["assets"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
smartquotes = False  # they would make one dash of the two before an option

_LOADED = re.compile(r"""<(?:script|img|iframe|source|link)[^>]*(?:src|href)=["'](?:[a-z]+:)?//""")
_EXAMPLE = re.compile(r"^Example: (.+(?:\n.+)*)", re.MULTILINE)


def remote_assets(page: str) -> Iterator[str]:
    """Return what makes a browser load something from elsewhere when it shows a page."""
    return (match[0] for match in _LOADED.finditer(page))


def _refuse_remote_assets(app: Sphinx, exception: Exception | None) -> None:
    if exception is None:
        for page in Path(app.outdir).rglob("*.html"):
            for asset in remote_assets(page.read_text()):
                raise SphinxError(f"{page} loads something from elsewhere: {asset}")


def _show_example_as_code(_app: Sphinx, _context: click.Context, lines: list[str]) -> None:
    lines[:] = _EXAMPLE.sub(lambda match: f"Example: ``{' '.join(match[1].split())}``", "\n".join(lines)).split("\n")


def _leave_out(_app: Sphinx, _context: click.Context, lines: list[str]) -> None:
    lines.clear()


def setup(app: Sphinx) -> None:
    """Write commands as they are typed, and look at the pages once they are there."""
    app.connect("sphinx-click-process-description", _show_example_as_code)
    app.connect("sphinx-click-process-epilog", _show_example_as_code)
    app.connect("sphinx-click-process-arguments", _leave_out)  # the usage shows them
    app.connect("build-finished", _refuse_remote_assets)
