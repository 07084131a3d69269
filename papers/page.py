"""All replays as one self-contained HTML page: pictures, captions, and every printed number beside ours."""

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

from veiltab.common.web.document import CONTENT_POLICY
from veiltab.papers.experiment import Comparison, Figure, Findings, Verdict
from veiltab.papers.style import element
from veiltab.researcher.drawing.style import number

_CSS = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 2rem 1.4rem 4rem; background: #fff; color: #1b2430;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.3rem; margin: 3rem 0 .8rem; padding-bottom: .25rem; border-bottom: 2px solid #16324f; }
h3 { font-size: 1.02rem; margin: 1.8rem 0 .4rem; } p { margin: .6rem 0; }
figure { margin: 1.2rem 0 1.8rem; } svg { display: block; max-width: 100%; height: auto; }
figcaption, .note { font-size: .9rem; color: #47525e; max-width: 62rem; }
.scroll, figure > div { overflow-x: auto; background: linear-gradient(90deg, #fff 1rem, #fff0 2rem) local,
  linear-gradient(270deg, #fff 1rem, #fff0 2rem) local, linear-gradient(90deg, #8a949e66, #fff0 .8rem),
  linear-gradient(270deg, #8a949e66, #fff0 .8rem); }
table { border-collapse: collapse; width: 100%; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .34rem .6rem; text-align: left; vertical-align: top; border-bottom: 1px solid #d9dfe5; }
thead th { border-bottom: 2px solid #8a949e; font-size: .82rem; vertical-align: bottom; }
.n { text-align: right; white-space: nowrap; } .no td:first-child { border-left: 4px solid #c2571a; }
.no td:nth-child(6) { font-weight: 700; }
@media screen and (max-width: 38rem) { body { padding: 1.2rem .9rem 3rem; } h1 { font-size: 1.5rem; }
  svg { max-width: none; } }
@page { margin: 14mm; }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } table { font-size: 8pt; }
  h2, h3 { break-after: avoid; } tr, figure { break-inside: avoid; } thead { display: table-header-group; }
  .scroll, figure > div { overflow: visible; background: none; } }
"""

_HEADINGS = ("what", "source", "printed", "ours", "tolerance", "verdict", "reason or tolerance")


def render(replays: Mapping[str, tuple[str, Findings]], pictures: Mapping[str, str], settings: str) -> str:
    """Return the page; the same bytes for the same input.

    Args:
        replays: name of an experiment -> (title of the paper, what its replay shows).
        pictures: name of a figure -> its SVG document.
        settings: how thoroughly everything was replayed, as text.

    Returns:
        A complete HTML document, to be written as UTF-8.
    """
    everything = [one for _, findings in replays.values() for one in findings.comparisons]
    verdicts = list(count_verdicts(everything))
    contents = "\n".join(
        f'<tr><td><a href="#{escape(name)}">{escape(title)}</a></td><td class="n">{len(findings.figures)}</td>'
        + _counts(findings.comparisons, verdicts)
        for name, (title, findings) in replays.items()
    )
    total = f'<tr><td>all</td><td class="n"></td>{_counts(everything, verdicts)}'
    heads = "".join(f'<th class="n">{escape(one)}</th>' for one in ("printed numbers", *verdicts))
    sections = "\n".join(_section(name, title, findings, pictures) for name, (title, findings) in replays.items())
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>The papers, replayed</title>\n'
        f"<style>{_CSS}</style>\n</head>\n<body>\n<h1>The papers, replayed</h1>\n"
        '<p class="note">Every figure was computed anew by the modules that the services use. A printed number agrees '
        "if ours lies within the tolerance beside it; where it does not, a verdict says what that means, and the last "
        f'column why. {escape(settings)}</p>\n<div class="scroll"><table>\n<thead><tr><th>paper</th>'
        f'<th class="n">figures</th>{heads}</tr></thead>\n<tbody>\n{contents}\n{total}\n</tbody>\n'
        f"</table></div>\n{sections}\n</body>\n</html>\n"
    )


def count_verdicts(comparisons: Sequence[Comparison]) -> dict[Verdict, int]:
    """Return how many printed numbers have each verdict that there is."""
    counts = Counter(one.verdict for one in comparisons)
    return {verdict: counts[verdict] for verdict in Verdict if counts[verdict]}


def _counts(comparisons: Sequence[Comparison], verdicts: Sequence[Verdict]) -> str:
    """Return the last cells of a row of the contents, and its end."""
    counts = count_verdicts(comparisons)
    numbers = [len(comparisons), *(counts.get(verdict, 0) for verdict in verdicts)]
    return "".join(f'<td class="n">{one}</td>' for one in numbers) + "</tr>"


def _section(name: str, title: str, findings: Findings, pictures: Mapping[str, str]) -> str:
    figures = "\n".join(_figure(figure, pictures[figure.name]) for figure in findings.figures)
    table = f"<h3>Printed numbers, and ours</h3>\n{_comparisons(findings.comparisons)}" if findings.comparisons else ""
    return f'<section id="{escape(name)}">\n<h2>{escape(title)}</h2>\n{figures}\n{table}\n</section>'


def _figure(figure: Figure, svg: str) -> str:
    # The picture contains its title; the caption says what it shows.
    return (
        f'<figure>\n<div role="img" aria-label="{escape(figure.title)}">\n{element(svg)}\n</div>\n'
        f"<figcaption>{escape(figure.caption)}</figcaption>\n</figure>"
    )


def _comparisons(comparisons: Sequence[Comparison]) -> str:
    right = {2, 3, 4}
    head = "".join(f"<th{_side(column in right)}>{text}</th>" for column, text in enumerate(_HEADINGS))
    body = "\n".join(_row(one, right) for one in comparisons)
    return f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>'


def _row(one: Comparison, right: set[int]) -> str:
    ours = "-" if one.ours is None else number(one.ours)
    texts = (one.what, one.source, number(one.printed), ours, number(one.tolerance), one.verdict, one.note)
    cells = "".join(f"<td{_side(column in right)}>{escape(text)}</td>" for column, text in enumerate(texts))
    return f"<tr>{cells}</tr>" if one.agrees else f'<tr class="no">{cells}</tr>'


def _side(right: bool) -> str:  # noqa: FBT001 - a word of a table's markup
    return ' class="n"' if right else ""
