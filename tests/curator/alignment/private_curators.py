"""Curators that align privately, in one process."""

from tests.curator.alignment.circle import Curator
from veiltab.curator.alignment.private.ristretto import ELEMENT_BYTES

PEOPLE = [f"person {n}" + "x" * (n % 50) for n in range(400)]


THREE = [PEOPLE[:60], PEOPLE[:9:-1], [*PEOPLE[5:50], "somebody"]]


def elements(column: bytes) -> list[bytes]:
    return [column[start : start + ELEMENT_BYTES] for start in range(0, len(column), ELEMENT_BYTES)]


def session_of(curator: Curator) -> tuple[str, str]:
    (folder,) = (curator.folder / "alignments").iterdir()
    own = curator.store.private.session(folder.name)
    assert own is not None
    return folder.name, own.name
