"""What docs/architecture.md draws and names is there."""

import re
from pathlib import Path

from tests.rooms import SOURCE

ROOT = Path(__file__).parents[1]


def test_the_picture_shows_every_folder() -> None:
    drawn = set(re.findall(r'font-weight="700"[^>]*>([a-z0-9]+)[<:]', (ROOT / "docs/pictures/rooms.svg").read_text()))
    rooms = {path.name for path in (ROOT / "common").iterdir() if (path / "__init__.py").exists()}
    assert drawn == {path.name for path in SOURCE.iterdir() if path.is_symlink()} | rooms


def test_every_file_that_is_named_exists() -> None:
    text = "".join((ROOT / name).read_text() for name in ("docs/architecture.md", "CONTRIBUTING.md"))
    named = set(re.findall(r"`((?:common|curator|server|researcher|node|deploy|tests|src|docs)/[\w/.]*)`", text))
    assert len(named) > 25
    assert [name for name in sorted(named) if not (ROOT / name).exists() and "NAME" not in name] == []


def test_every_room_of_a_role_is_named() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    rooms = [
        path.parent
        for role in ("curator", "server", "node", "researcher", "deploy", "play")
        for path in ROOT.glob(f"{role}/*/__init__.py")
    ]
    assert len(rooms) > 5
    assert [room.name for room in rooms if f"`{room.relative_to(ROOT)}/`" not in text] == []
