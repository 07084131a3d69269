"""What docs/architecture.md draws and names is there."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.rooms import SOURCE
from tests.test_house import imports, modules

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


def floors() -> dict[str, list[list[str]]]:
    """Folder -> its rooms, floor by floor, the highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    return {
        one["containers"][0].removeprefix("veiltab."): [floor.split(" | ") for floor in one["layers"]]
        for one in contracts
        if one["type"] == "layers" and one["containers"] != ["veiltab"]
    }


def users(folder: str, room: str) -> list[str]:
    """Return who imports a room, by a statement or a name in a table of commands: rooms of its folder, or folders."""
    inside = f"veiltab.{folder}.{room}."
    found = set[str]()
    for name, used in imports().items():
        named = re.findall(r'"(veiltab\.[\w.]+):\w+"', modules()[name].read_text("utf-8"))
        if not f"{name}.".startswith(inside) and any(one.startswith(inside) for one in (*used, *named)):
            top, part, *_ = name.split(".")[1:]
            found.add(part if top == folder else top)
    return sorted(found)


def door(folder: str, room: str) -> str:
    """Return the sentence at the door of a room: who imports it, and what it may import."""
    places = floors()[folder]
    at = next(place for place, floor in enumerate(places) if room in floor)
    below = f"may import {', '.join(places[at + 1])} and what is below" if places[at + 1 :] else "imports no other room"
    return f"Imported by {', '.join(users(folder, room))}; {below}."


ROOMS = [
    (folder, room)
    for folder, places in floors().items()
    for floor in places
    for room in floor
    if (ROOT / folder / room).is_dir()
]


@pytest.mark.parametrize(("folder", "room"), ROOMS)
def test_a_room_says_who_imports_it_and_what_it_may_import(folder: str, room: str) -> None:
    text = (ROOT / folder / room / "__init__.py").read_text("utf-8").partition('"""')[0]
    assert " ".join(text.replace("#", "").split()) == door(folder, room)
