"""One-time links, and how a command makes more of them while the console runs.

The command leaves a link in a folder of the party's state: its SHA-256, whose it is, what it allows, and until when.
The console takes it from there when its person comes. A user who may write that folder may start a console as well.
"""

import fcntl
import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from veiltab.common.command.cli import emit, note
from veiltab.common.core.texts.spelling import same_person_key
from veiltab.common.dataclass import asdict, dataclass
from veiltab.common.errors import InvalidInputError, NotReadyError
from veiltab.common.storage.files import make_private, write_whole

LINK_SECONDS = 600
_ADDRESS = "address"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link that was printed and is not used yet.

    Args:
        decides: whether that person may send forms, or only read.
        expires: Unix seconds.
    """

    person: str
    decides: bool
    expires: float


def new_token() -> str:
    """Return the secret of a link."""
    return secrets.token_urlsafe(32)


def token_digest(token: str) -> bytes:
    """Return what is kept of a link's token, so that no comparison depends on how much of it is right."""
    return hashlib.sha256(token.encode(errors="replace")).digest()


def entrance(host: str, token: str) -> str:
    """Return the address of a link.

    Args:
        host: the console's, such as 127.0.0.1:8000.
    """
    return f"http://{host}/enter?link={token}"


def print_links(links: Mapping[str, str]) -> None:
    """Print the link of each person."""
    emit({"links": dict(links)}, "\n".join(f"{person}: {link}" for person, link in links.items()))
    note("Each link works once, for ten minutes, in a browser on this machine.")


def check_persons(persons: Sequence[str]) -> None:
    """Refuse names of persons who could not be told apart.

    Raises:
        InvalidInputError: no person, one twice, or one without a name.
    """
    if not persons or not all(one.strip() == one != "" for one in persons):
        raise InvalidInputError(
            "nobody was named who may enter", where="--person", remedy='Such as --person "Ana Diaz".'
        )
    if len(set(map(same_person_key, persons))) != len(persons):
        raise InvalidInputError("two of these names are the same person's", where="--person")


class LinkFolder:
    """Where a command leaves links for a console that runs.

    Args:
        folder: in the party's state folder.
        clock: returns Unix seconds.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock

    @contextmanager
    def opened(self, host: str) -> Iterator[None]:
        """Let the console of a block get the links; those that were left for an earlier one are deleted."""
        make_private(self._folder)
        for path in self._folder.iterdir():
            path.unlink()
        with (self._folder / _ADDRESS).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # until the process ends, however it ends
            file.write(host)
            file.flush()
            yield

    def take(self, digest: bytes) -> Link | None:
        """Return the link of a digest, and delete it; None if none was left."""
        path = self._folder / digest.hex()
        try:
            link = Link(**json.loads(path.read_bytes()))
            path.unlink()
        except FileNotFoundError:
            return None
        return link

    def leave(self, person: str, *, decides: bool) -> str:
        """Leave a link of a person for the console that runs, and return its address.

        Raises:
            NotReadyError: no console runs.
        """
        host, token = self._host(), new_token()
        link = Link(person=person, decides=decides, expires=self._clock() + LINK_SECONDS)
        write_whole(self._folder / token_digest(token).hex(), json.dumps(asdict(link)).encode())
        return entrance(host, token)

    def _host(self) -> str:
        """Return the address of the console that runs: it holds the lock of its file."""
        try:
            with (self._folder / _ADDRESS).open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return (self._folder / _ADDRESS).read_text()
        except FileNotFoundError:
            pass
        raise NotReadyError(
            "no console runs on this state folder",
            where=str(self._folder.parent),
            remedy="Start one: `veiltab curator console`.",
        )
