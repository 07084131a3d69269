"""Which installed distributions veiltab does not need to run: the image's build installs the lock and removes these.

The lock holds the tools too, since one lock is one truth; an image that faces a network holds none of them.
"""

import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution, distributions

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def needed(project: str, extras: Iterable[str] = ()) -> frozenset[str]:
    """Return the canonical names of a project and of everything that it requires here, directly or not.

    Args:
        project: an installed distribution.
        extras: which of its extras count.

    Raises:
        PackageNotFoundError: something required is not installed.
        ValueError: the project has no such extra.
    """
    if unknown := set(extras) - set(distribution(project).metadata.get_all("Provides-Extra") or ()):
        raise ValueError(f"{project} has no extra {', '.join(sorted(unknown))}")
    to_visit = [(canonicalize_name(project), frozenset(extras))]
    visited: set[tuple[str, frozenset[str]]] = set()
    while to_visit:
        name, wanted = to_visit.pop()
        if (name, wanted) in visited:
            continue
        visited.add((name, wanted))
        for text in distribution(name).requires or ():
            requirement = Requirement(text)
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in (*wanted, "")):
                to_visit.append((canonicalize_name(requirement.name), frozenset(requirement.extras)))
    return frozenset(name for name, _ in visited)


def superfluous(project: str, extras: Iterable[str] = ()) -> list[str]:
    """Return the installed distributions that a project does not need, sorted."""
    installed = {canonicalize_name(found.metadata["Name"]) for found in distributions()}
    return sorted(installed - needed(project, extras))


if __name__ == "__main__":
    try:
        print("\n".join(superfluous("veiltab", sys.argv[1:])))  # noqa: T201 - it is what pip reads
    except PackageNotFoundError as error:
        sys.exit(f"the lock lacks {error.name}")
    except ValueError as error:
        sys.exit(str(error))
