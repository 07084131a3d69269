"""Which folders are the product: what src/veiltab links to, but for generated code and the replays."""

from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "veiltab"
_OTHERS = {"v1", "papers"}


def rooms() -> list[str]:
    """Return the names of the product's folders, sorted."""
    return sorted(path.name for path in SOURCE.iterdir() if path.is_symlink() and path.name not in _OTHERS)
