"""Names that a process remembers to spare itself a look into the database."""

MOST = 4096
"""Names that are remembered; with one more, all others are forgotten, and looked up again."""


class BoundedSet:
    """Names of which something is known that never changes."""

    def __init__(self) -> None:
        self._names = set[str]()

    def __contains__(self, name: str) -> bool:
        """Return whether a name is remembered."""
        return name in self._names

    def add(self, name: str) -> None:
        """Remember a name."""
        if len(self._names) >= MOST:
            self._names.clear()
        self._names.add(name)
