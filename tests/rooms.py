"""The folders of our own code: what src/veiltab links to, but for generated code and what the papers compute."""

from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "veiltab"
PAPERS = "papers"
DEMO = "play"
"""The folder that is a distribution of its own."""


def in_wheel() -> list[str]:
    """Return the names of the folders that the wheel of a party holds, sorted."""
    return sorted([name for name in rooms() if name != DEMO] + [PAPERS])


def rooms() -> list[str]:
    """Return the names of the folders, sorted."""
    return sorted(path.name for path in SOURCE.iterdir() if path.is_symlink() and path.name not in {"v1", PAPERS})
