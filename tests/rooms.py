"""The folders of our own code: what src/veiltab links to, but for generated code and the replays."""

from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "veiltab"
_OTHERS = {"v1", "papers"}
DEMO = "play"
"""The folder that is a distribution of its own."""


def product() -> list[str]:
    """Return the names of the folders that the wheel of a party holds, sorted."""
    return [name for name in rooms() if name != DEMO]


def rooms() -> list[str]:
    """Return the names of the folders, sorted."""
    return sorted(path.name for path in SOURCE.iterdir() if path.is_symlink() and path.name not in _OTHERS)
