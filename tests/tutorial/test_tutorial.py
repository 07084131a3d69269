"""The commands of the tutorial, typed in an empty folder one after another, and those of the how-tos after them."""

import re
import sys
from pathlib import Path

import pytest

from tests.tutorial.browsing import BROWSER, Camera, approve_in_browser, look_at_report
from tests.tutorial.reading import sections
from tests.tutorial.terminals import Reader
from veiltab.play.local.processes import free_ports

DOCS = Path(__file__).parents[2] / "docs"
PORTS = ("7400", "7401", "7402", "7410")

APPROVAL = """```sh
veiltab curator approve study.toml --state state-survey --all --person "Ana Diaz"
```
"""
"""What Ana types where there is no browser."""

OTHER_TABLES = {
    "work": {"survey": "panel", "pension": "tax", "education": "educw", "hhi": "work", "hours": "income"},
    "serum": {"survey": "laboratory", "pension": "residents", "education": "kappa", "hhi": "gruppe", "hours": "dead"},
}
"""What a reader types instead of the tutorial's words, for each folder of other tables."""

EDGES = {"tax": "\ngrid 0 10000 20000 30000 100000\n", "laboratory": "\n0 1 1.5 2 100\n"}
"""The edges that a reader of these tables types for the first column, after Enter for the ids."""


@pytest.fixture
def ports() -> dict[str, str]:
    """Return free ports instead of the page's."""
    return dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "docs").symlink_to(DOCS)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    return tmp_path


def follow_tutorial(reader: Reader, camera: Camera | None) -> None:
    """Type what the tutorial says, and see that it ends with a table after few commands; None is nobody's browser."""
    for title, text in sections(DOCS / "tutorial.md").items():
        screens = reader.follow(text)
        match title:
            case "Decide" if camera:
                approve_in_browser(screens[-1], "Ana Diaz", camera)
            case "Decide":
                reader.follow(APPROVAL)
            case "The result":
                assert "mean of" in screens[-1]
                assert len(re.findall(r"\d\.\d", screens[-1])) >= 3 * 2
                assert reader.typed < 15 + (camera is None)
            case "A page to show around" if camera:
                look_at_report(reader.folder / "cover.html", camera)
            case _:
                pass


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_tutorial_and_the_how_tos(clone: Path, ports: dict[str, str], pictures: Path | None) -> None:
    with Reader(folder=clone, instead=ports) as reader:
        follow_tutorial(reader, Camera(folder=pictures) if BROWSER else None)
        for page in ("officer", "operator", "statistician"):
            reader.follow((DOCS / f"how-to/{page}.md").read_text())


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("tables", OTHER_TABLES)
def test_the_tutorial_with_other_tables(clone: Path, ports: dict[str, str], tables: str) -> None:
    instead = {"insurance": tables, **OTHER_TABLES[tables], **ports}
    with Reader(folder=clone, instead=instead, answers=EDGES) as reader:
        follow_tutorial(reader, camera=None)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_two_agencies(clone: Path, ports: dict[str, str]) -> None:
    """What the page says of its tables is what the commands say."""
    parts = sections(DOCS / "tutorial/agencies.md")
    with Reader(folder=clone, instead=ports) as reader:
        screens = {title: reader.follow(text) for title, text in parts.items()}
        pictures = [path.read_text() for path in (reader.folder / "ladder.svg", DOCS / "pictures/ladder.svg")]
    note, *_ = re.findall(r"^note: .*$", parts["Describe the tables"], re.MULTILINE)
    assert note in screens["Describe the tables"][2]
    checks = " ".join("\n".join(screens["Check them"]).split())
    said = re.findall(r"^\| `([^`]*)`", parts["Check them"], re.MULTILINE)
    assert len(said) == 4
    assert [one for one in said if " ".join(one.split()) not in checks] == []
    assert pictures[0] == pictures[1]
    linked = screens["Link"][-1]
    assert "2,328 rows are linked." in linked
    assert "estimated precision: 0.9986" in linked
    assert "estimated recall: 0.968" in linked
    plain, corrected = screens["Release"][-2:]
    assert "Corrected for wrong links" in corrected
    assert "Corrected" not in plain
    before, after = (
        [float(share) for share in re.findall(r" (\d+\.\d)%", screen)][:27] for screen in (plain, corrected)
    )
    assert max(abs(one - other) for one, other in zip(before, after, strict=True)) <= 0.2
