"""The frame of a self-contained HTML page: no script, no font and no picture from elsewhere."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from veiltab.common.privacy.cards.card import Bound
from veiltab.common.storage.named_files import written_as_named

CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What a browser may load and run for a page: its own styles and pictures, no script, nothing from elsewhere."""

# Pictures are drawn on white. Where it is dark, a filter exchanges light and dark, keeps hues, and shows the page where
# white was.
_CSS = """
:root { color-scheme: light dark; --sheet: #fff; --ink: #1b2430; --soft: #47525e; --line: #d9dfe5; --head: #16324f; }
@media screen and (prefers-color-scheme: dark) {
  :root { --sheet: #182029; --ink: #e5eaf0; --soft: #aab5c0; --line: #303b47; --head: #8cc0f0; }
  svg { filter: invert(1) hue-rotate(180deg); mix-blend-mode: screen; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 66rem; padding: 2.2rem 1.4rem 4rem; background: var(--sheet); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .7rem; padding-bottom: .25rem; border-bottom: 2px solid var(--head); }
p { margin: .6rem 0; } .lead { color: var(--soft); font-size: 1.05rem; margin-top: 0; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); gap: .9rem 1.6rem; margin: 0; }
dt { font-size: .82rem; color: var(--soft); } dd { margin: 0; font-weight: 600; } dt, dd { overflow-wrap: anywhere; }
.scroll { overflow-x: auto; background: linear-gradient(90deg, var(--sheet) 1rem, transparent 2rem) local,
  linear-gradient(270deg, var(--sheet) 1rem, transparent 2rem) local,
  linear-gradient(90deg, #8a949e66, transparent .8rem), linear-gradient(270deg, #8a949e66, transparent .8rem); }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .34rem .6rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
thead th { border-bottom: 2px solid #8a949e; font-size: .82rem; vertical-align: bottom; }
.n { text-align: right; } td.n { white-space: nowrap; }
figure { margin: .8rem 0; } svg { display: block; max-width: 100%; height: auto; } .narrow { display: none; }
figcaption, .note { font-size: .88rem; color: var(--soft); }
.read { border-left: 4px solid var(--head); padding: .1rem 0 .1rem 1rem; }
@media screen and (max-width: 38rem) { body { padding: 1.2rem .9rem 3rem; } h1 { font-size: 1.5rem; }
  th, td { padding: .3rem .4rem; } .wide { display: none; } .narrow { display: block; } }
@page { margin: 15mm; }
@media print { :root { color-scheme: light; } body { max-width: none; padding: 0; font-size: 10pt; }
  table { font-size: 8pt; } th, td { padding: .2rem .35rem; } thead th { font-size: 7.5pt; } h2 { break-after: avoid; }
  tr, figure, dl > div { break-inside: avoid; } thead { display: table-header-group; }
  .scroll { overflow: visible; background: none; } }
"""


def page(title: str, lead: str, sections: Iterable[tuple[str, str]]) -> str:
    """Return a complete HTML document.

    Args:
        title: its title, plain text.
        lead: first sentence, plain text.
        sections: (heading, content) pairs, HTML.
    """
    body = "\n".join(f"<section>\n<h2>{heading}</h2>\n{content}\n</section>" for heading, content in sections)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
        f"<style>{_CSS}</style>\n</head>\n<body>\n<main>\n<h1>{escape(title)}</h1>\n"
        f'<p class="lead">{escape(lead)}</p>\n{body}\n</main>\n</body>\n</html>\n'
    )


def write_page(html: str, path: Path) -> None:
    """Write a page to a file.

    Raises:
        InvalidInputError: the file cannot be written.
    """
    with written_as_named(path) as file:
        file.write(html.encode())


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a list of terms and what they are, of escaped texts."""
    items = "\n".join(f"<div><dt>{escape(term)}</dt><dd>{escape(text)}</dd></div>" for term, text in pairs)
    return f"<dl>\n{items}\n</dl>"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], numeric: set[int] | None = None) -> str:
    """Return an HTML table of escaped texts; columns in `numeric` are set to the right."""
    right = [' class="n"' if column in (numeric or set()) else "" for column in range(len(headings))]
    head = "".join(f"<th{side}>{escape(text)}</th>" for side, text in zip(right, headings, strict=True))
    lines = (
        "<tr>" + "".join(f"<td{side}>{escape(text)}</td>" for side, text in zip(right, row, strict=True)) + "</tr>"
        for row in rows
    )
    body = "\n".join(lines)
    inner = f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>"
    return f'<div class="scroll" tabindex="0"><table>\n{inner}\n</table></div>'


def card_table(bounds: Sequence[Bound], note: str) -> str:
    """Return who faces which epsilon and why, in words, with every digit in a fold."""
    words = table(("who", "faces", "it sees"), [(bound.name, bound.limit, bound.note) for bound in bounds])
    digits = "".join(f"<li>{escape(f'{bound.name}: {bound.in_full}')}</li>" for bound in bounds)
    fold = f"<details><summary>All digits, and the pure bounds</summary><ul>{digits}</ul></details>"
    return f'{words}\n{fold}\n<p class="note">{escape(note)}</p>'


def codebook_table(codebook: Mapping[str, Sequence[str]]) -> str:
    """Return every category of every attribute, in the order of the study file under which the release was made."""
    rows = [(name, " | ".join(categories)) for name, categories in codebook.items()]
    return table(("attribute", "categories, in the study file's order"), rows)
