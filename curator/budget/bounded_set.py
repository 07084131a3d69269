"""Names that a process remembers to spare itself a look into the database."""

MOST = 4096
"""Names that are remembered; with one more, all others are forgotten, and looked up again."""


class BoundedSet(set[str]):
    """Names of which something is known that never changes."""

    def add(self, name: str) -> None:
        """Remember a name."""
        if len(self) >= MOST:
            self.clear()
        super().add(name)
