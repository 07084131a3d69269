import re
from functools import cache
from html.parser import HTMLParser

from veiltab.papers.experiment import Comparison, Curve, Figure, Findings, Panel
from veiltab.papers.page import render
from veiltab.papers.style import draw


class Text(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.tags = "", list[str]()
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)


@cache
def page() -> str:
    found, pictures = {}, {}
    for name in ("lin", "hu"):
        panel = Panel(title="p", x_label="x", y_label="y", curves=(Curve(label="c", x=(1, 2), y=(1, 2)),))
        figure = Figure(name=f"{name}-1", title=f"{name} <title>", panels=(panel,), caption="see <this> & that")
        yes = Comparison(what=f"{name} what <b>", source="page 1", printed=0.5, ours=0.51, tolerance=0.02)
        no = Comparison(what="other", source="page 2", printed=2, ours=None, tolerance=0, note="not <computed>")
        found[name] = (f"{name}: a paper & more", Findings(figures=(figure,), comparisons=(yes, no)))
        pictures[figure.name] = draw(figure)[0]
    return render(found, pictures, "quick & seed 1")


def test_everything_is_said_and_shown_as_text() -> None:
    shown = Text(page())
    expected = ("lin: a paper & more", "see <this> & that", "hu what <b>", "not <computed>", "quick & seed 1", "0.51")
    assert [part for part in expected if part not in shown.text] == []
    assert shown.tags.count("svg") == 2
    assert "script" not in shown.tags
    assert shown.tags.count("tr") == 4 + 2 * 3


def test_the_page_needs_nothing_else() -> None:
    assert not re.search(r'(src|href)="(?!#)', page())
    assert "@import" not in page()
    assert "<?xml" not in page()
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}">' in page()


def test_ids_of_different_pictures_do_not_meet() -> None:
    ids = re.findall(r'\bid="([^"]+)"', page())
    assert len(ids) == len(set(ids)) > 10
